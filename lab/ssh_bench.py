"""How fast bytes come and go over SSH, with OpenSSH's own programs, through gateway, broker and a real environment."""

from __future__ import annotations

import contextlib
import json
import os
import statistics
import subprocess
import tempfile
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from lab.lines import Line
from lab.needs import program
from lab.platform import YARD, Platform, a_platform

MB = 1e6
SIZE = 200_000_000
ROUNDS = 3
PERSON, PLACE = "bench", "dev"
READY_SECONDS = 30.0


@dataclass(frozen=True)
class Visit:
    """How to come: the options every program of OpenSSH takes, and where to."""

    options: Sequence[str]
    port: int
    folder: Path

    def ssh(self, command: str) -> list[str]:
        return ["ssh", *self.options, "-p", str(self.port), f"{PERSON}+{PLACE}@127.0.0.1", command]

    def scp(self, source: str, target: str) -> list[str]:
        return ["scp", "-q", *self.options, "-P", str(self.port), source, target]


def ssh() -> list[Line]:
    for name in ("ssh", "scp", "ssh-keygen"):
        program(name, "openssh-client")
    with (
        tempfile.TemporaryDirectory(prefix="yard-ssh-") as folder,
        a_platform("--engine", "process") as platform,
        _a_visit(platform, Path(folder)) as visit,
    ):
        local, remote = Path(folder) / "file", f"{PERSON}+{PLACE}@127.0.0.1:file"
        local.write_bytes(os.urandom(1 << 20) * (SIZE >> 20))
        size = local.stat().st_size
        return [
            _line("ssh stdout of 200 MB", visit.ssh(f"head -c {size} /dev/zero"), size),
            _line("scp of 200 MB into the environment", visit.scp(str(local), remote), size),
            _line("scp of 200 MB out of the environment", visit.scp(remote, str(local) + ".back"), size),
        ]


def _line(what: str, command: list[str], size: int) -> Line:
    speeds = []
    for _ in range(ROUNDS):
        begun = time.perf_counter()
        subprocess.run(command, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, check=True)
        speeds.append(size / MB / (time.perf_counter() - begun))
    return Line(f"{what} (median of {ROUNDS}, login included)", statistics.median(speeds), 35, "MB/s", at_most=False)


@contextlib.contextmanager
def _a_visit(platform: Platform, folder: Path) -> Iterator[Visit]:
    owner = _environ(platform, platform.token)
    _yard(owner, "user", "create", PERSON, "--group", "default", "--password-stdin", stdin="a long enough secret")
    own = _environ(platform, _yard(owner, "token", "create", "bench", "--user", PERSON, "--scope", "admin").strip())
    key, known = folder / "key", folder / "known_hosts"
    subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", str(key)], check=True)
    _yard(own, "key", "add", str(key.with_suffix(".pub")))
    _yard(own, "env", "create", PLACE)
    try:
        port = _ssh_port(platform.data)
        host_key = (platform.data / "ssh_host_ed25519_key.pub").read_text()
        known.write_text(f"[127.0.0.1]:{port} {host_key}")
        options = {"IdentityFile": key, "UserKnownHostsFile": known, "IdentitiesOnly": "yes", "BatchMode": "yes"}
        yield Visit(["-F", "/dev/null", *(f"-o{name}={value}" for name, value in options.items())], port, folder)
    finally:
        _yard(own, "env", "rm", "--yes", PLACE)


def _environ(platform: Platform, token: str) -> dict[str, str]:
    return {**os.environ, "YARD_DATA": str(platform.data), "YARD_TOKEN": token, "YARD_LANG": "en"}


def _yard(environ: dict[str, str], *arguments: str, stdin: str = "") -> str:
    done = subprocess.run([*YARD, *arguments], env=environ, input=stdin, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise RuntimeError(f"yard {' '.join(arguments)}: {done.stderr}")
    return done.stdout


def _ssh_port(data: Path) -> int:
    deadline = time.monotonic() + READY_SECONDS
    while time.monotonic() < deadline:
        with contextlib.suppress(OSError, ValueError, KeyError, TypeError):
            return int(json.loads((data / "gateway.json").read_text())["ssh_port"])
        time.sleep(0.05)
    raise RuntimeError("the gateway did not open its SSH door")


MEASURES = (ssh,)
