"""A real server in its own process and folder, for benchmarks."""

from __future__ import annotations

import contextlib
import http.client
import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from gpuyard.cli.processes import gateway_pids

YARD = [sys.executable, "-m", "gpuyard.cli.main"]


@dataclass(frozen=True)
class Platform:
    data: Path
    process: subprocess.Popen[bytes]
    port: int
    token: str
    ready_seconds: float

    def connect(self) -> Connection:
        return Connection(self.port, self.token)

    def pss_bytes(self) -> int:
        """The server and everything below it, shared pages counted once."""
        pids = [self.process.pid, *_descendants(self.process.pid)]
        return sum(_pss(pid) for pid in pids)


class Connection:
    """One kept-alive connection: cheap enough not to be what is measured."""

    def __init__(self, port: int, token: str) -> None:
        self._http = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
        self._headers = {"Authorization": f"Bearer {token}", "Content-Type": "application/json"}

    def call(self, method: str, path: str, body: Any = None) -> Any:
        payload = None if body is None else json.dumps(body)
        self._http.request(method, f"/api/v1{path}", payload, self._headers)
        answer = self._http.getresponse()
        text = answer.read()
        if answer.status >= 400:
            raise RuntimeError(f"{method} {path}: {answer.status} {text[:300]!r}")
        return json.loads(text) if text else None

    def submit(self, **job: Any) -> str:
        return str(self.call("POST", "/workloads", job)["id"])

    def wait(self, id: str, *states: str, seconds: float = 60) -> dict[str, Any]:
        deadline = time.monotonic() + seconds
        while time.monotonic() < deadline:
            job: dict[str, Any] = self.call("GET", f"/workloads/{id}")
            if job["state"] in states:
                return job
            time.sleep(0.02)
        raise TimeoutError(f"{id} is {job['state']}: {job['reason']}")


@contextlib.contextmanager
def a_platform(*options: str, data: Path | None = None) -> Iterator[Platform]:
    with tempfile.TemporaryDirectory(prefix="yard-bench-", ignore_cleanup_errors=True) as folder:
        data = data or Path(folder) / "data"
        begun = time.monotonic()
        command = [*YARD, "up", "--data", str(data), "--port", "0", *options]
        with open(Path(folder) / "server.log", "wb") as log:
            process = subprocess.Popen(command, stdout=log, stderr=log, env={**os.environ, "YARD_LANG": "en"})
        try:
            port = _wait_until_ready(process, data, Path(folder) / "server.log")
            token = (data / "owner.token").read_text().strip()
            yield Platform(data, process, port, token, time.monotonic() - begun)
        finally:
            end(process)
            _end_gateway(data)


def end(process: subprocess.Popen[bytes], patience: float = 20) -> None:
    process.terminate()
    try:
        process.wait(patience)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()


def _end_gateway(data: Path) -> None:
    """It goes on without its server, and would be in the way of what is measured next."""
    deadline = time.monotonic() + 10
    while (pids := gateway_pids(data)) and time.monotonic() < deadline:
        for pid in pids:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGTERM)
        time.sleep(0.05)


def _wait_until_ready(process: subprocess.Popen[bytes], data: Path, log: Path) -> int:
    deadline = time.monotonic() + 30
    while time.monotonic() < deadline:
        if process.poll() is not None:
            break
        with contextlib.suppress(OSError, ValueError, KeyError):
            port = int(json.loads((data / "server.json").read_text())["url"].rsplit(":", 1)[1])
            probe = http.client.HTTPConnection("127.0.0.1", port, timeout=5)
            probe.request("GET", "/healthz")
            if probe.getresponse().status == 200:
                return port
        time.sleep(0.01)
    raise RuntimeError("the server did not start:\n" + log.read_text()[-3000:])


def _descendants(pid: int) -> list[int]:
    found: list[int] = []
    for task in Path(f"/proc/{pid}/task").glob("*/children"):
        with contextlib.suppress(OSError):
            for child in task.read_text().split():
                found += [int(child), *_descendants(int(child))]
    return found


def _pss(pid: int) -> int:
    with contextlib.suppress(OSError):
        for line in Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines():
            if line.startswith("Pss:"):
                return int(line.split()[1]) * 1024
    return 0
