"""What the tests of the toolbox share: real containers with almost nothing in them, and one toolbox, built once.

Both are kept outside the repository, so that only the first run on a machine pays for them.
"""

from __future__ import annotations

import asyncio
import io
import json
import os
import shutil
import socket
import subprocess
import tarfile
import time
import uuid
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import aiohttp
import pytest

from gpuyard.images.toolbox.base import AT
from gpuyard.images.toolbox.build import BuildFailed, Missing, build, remove
from gpuyard.images.toolbox.recipes import Service

CACHE = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "gpuyard-tests"
PATIENCE_SECONDS = 120.0
FIRST_NUMBER = 0x7F000000  # of the container's people; far from what a yard on this machine gives out
HOME = "/mnt/user/ann"
DOOR = "/run/yard/door"


def missing(*programs: str) -> str:
    """Why there can be no containers here; empty when there can."""
    if os.geteuid() != 0:
        return "containers are tested as root"
    absent = [name for name in ("podman", "busybox", *programs) if shutil.which(name) is None]
    return f"not installed: {', '.join(absent)}" if absent else ""


def built_toolbox(tell: Callable[[str, Mapping[str, object]], None] = lambda what, facts: None) -> Path:
    """The toolbox, built if this machine has none yet. Without compilers or packages to fetch there is none, and what
    needs it is skipped, aloud."""
    if problem := missing():
        pytest.skip(problem)
    try:
        made = build(CACHE, tell)
        remove(CACHE, keep_current=True)  # of earlier versions
        return made
    except (Missing, BuildFailed) as problem:
        pytest.skip(f"no toolbox on this machine: {problem}")


def podman(*words: str, input: bytes | None = None, check: bool = True) -> subprocess.CompletedProcess[bytes]:
    folder = CACHE / "podman"
    own = ["--root", str(folder / "store"), "--runroot", str(folder / "run"), "--cgroup-manager", "cgroupfs"]
    done = subprocess.run(["podman", *own, *words], input=input, capture_output=True, timeout=200)
    if check and done.returncode != 0:
        raise AssertionError(f"podman {' '.join(words)[:300]}: {done.stderr.decode(errors='replace')[-2000:]}")
    return done


# --- images -------------------------------------------------------------------------------------------------------


def empty_image() -> str:
    return _imported("localhost/yard-empty:1", lambda: _packed({}))


def busybox_image() -> str:
    """One program, and the names people call it by."""
    return _imported("localhost/yard-busybox:1", lambda: _packed(*_busybox()))


def ssh_image() -> str:
    """The same, with this machine's ssh."""

    def make() -> bytes:
        files, links = _busybox()
        programs = [Path(found) for name in ("ssh", "ssh-keygen") if (found := shutil.which(name))]
        files["etc/passwd"] += b"sshd:x:100:65534::/run/sshd:/bin/false\n"
        needed = [path for program in programs for path in (program, *_libraries(program))]
        return _packed(files | {str(path).lstrip("/"): path.read_bytes() for path in needed}, links)

    return _imported("localhost/yard-ssh:1", make)


def _busybox() -> tuple[dict[str, bytes], dict[str, str]]:
    found = shutil.which("busybox")
    assert found is not None
    names = subprocess.run([found, "--list"], capture_output=True, text=True, check=True).stdout.split()
    links = {f"bin/{name}": "busybox" for name in names if name != "busybox"}
    return {"bin/busybox": Path(found).read_bytes(), "etc/passwd": b"root:x:0:0:root:/root:/bin/sh\n"}, links


def _libraries(program: Path) -> list[Path]:
    """What it is linked with, its loader included."""
    told = subprocess.run(["ldd", str(program)], capture_output=True, text=True, check=True).stdout
    return [Path(word) for word in told.split() if word.startswith("/")]


def debian_image() -> str:
    """Debian at its smallest, with a Python that has neither pip nor ipykernel."""
    return _imported("localhost/yard-debian:1", _debian)


def _imported(name: str, make: Callable[[], bytes]) -> str:
    if podman("image", "exists", name, check=False).returncode != 0:
        podman("import", "-", name, input=make())
    return name


def _packed(files: Mapping[str, bytes], links: Mapping[str, str] | None = None) -> bytes:
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w") as archive:
        for folder in ("bin", "etc", "root", "tmp", "mnt"):
            entry = tarfile.TarInfo(folder)
            entry.type, entry.mode = tarfile.DIRTYPE, 0o1777 if folder == "tmp" else 0o755
            archive.addfile(entry)
        for path, content in files.items():
            entry = tarfile.TarInfo(path)
            entry.size, entry.mode = len(content), 0o755
            archive.addfile(entry, io.BytesIO(content))
        for path, target in (links or {}).items():
            entry = tarfile.TarInfo(path)
            entry.type, entry.linkname = tarfile.SYMTYPE, target
            archive.addfile(entry)
    return packed.getvalue()


def _debian() -> bytes:
    root = CACHE / "debian"
    shutil.rmtree(root, ignore_errors=True)
    root.parent.mkdir(parents=True, exist_ok=True)
    command = ["debootstrap", "--variant=minbase", "--include=python3,ca-certificates", "bookworm", str(root)]
    subprocess.run(["nice", "-n", "10", *command], check=True, capture_output=True)
    shutil.rmtree(root / "var" / "cache" / "apt", ignore_errors=True)
    packed = subprocess.run(["tar", "-C", str(root), "-c", "."], capture_output=True, check=True).stdout
    shutil.rmtree(root)
    return packed


# --- containers ---------------------------------------------------------------------------------------------------


class Container:
    """A running one, with a toolbox shown in it, a home and a door folder: as an engine starts them."""

    def __init__(self, image: str, toolbox: Path, folder: Path, argv: Sequence[str], env: Mapping[str, str]) -> None:
        self.name = f"yard-images-{uuid.uuid4().hex[:8]}"
        self.home, self.door = folder / "home", folder / "door"
        for path in (self.home, self.door):
            path.mkdir(exist_ok=True)
            os.chown(path, FIRST_NUMBER, FIRST_NUMBER)
        podman("run", "-d", "--name", self.name, *self._options(toolbox, env), image, *argv)

    def _options(self, toolbox: Path, env: Mapping[str, str]) -> list[str]:
        shown = [f"{toolbox}:{AT}:ro", f"{self.home}:{HOME}", f"{self.door}:{DOOR}"]
        known = {"HOME": HOME, "YARD_TOOLBOX": AT, "YARD_DOOR": DOOR, **env}
        return [
            *("--network", "none", "--ulimit", "nofile=8192:8192", "--ulimit", "nproc=4096:4096"),
            *("--security-opt", "no-new-privileges", "--workdir", HOME, "--stop-timeout", "1"),
            *("--uidmap", f"0:{FIRST_NUMBER}:65536", "--gidmap", f"0:{FIRST_NUMBER}:65536"),
            *(word for mount in shown for word in ("--volume", mount)),
            *(word for name, value in known.items() for word in ("--env", f"{name}={value}")),
        ]

    def run(self, *argv: str, env: Mapping[str, str] | None = None) -> subprocess.CompletedProcess[bytes]:
        told = [word for name, value in (env or {}).items() for word in ("--env", f"{name}={value}")]
        return podman("exec", *told, self.name, *argv, check=False)

    def output(self) -> str:
        said = podman("logs", self.name, check=False)
        return (said.stdout + said.stderr).decode(errors="replace")

    def is_running(self) -> bool:
        told = podman("inspect", "--format", "{{.State.Running}}", self.name, check=False)
        return told.stdout.strip() == b"true"

    def end(self) -> None:
        podman("rm", "--force", "--time", "0", self.name, check=False)


def start_service(
    image: str, toolbox: Path, folder: Path, service: Service, env: Mapping[str, str] | None = None
) -> Container:
    """Started, and listening."""
    container = Container(image, toolbox, folder, service.argv, {**service.env, **(env or {})})
    address = container.door / Path(service.socket).name
    deadline = time.monotonic() + PATIENCE_SECONDS
    while not listens(address):
        if not container.is_running() or time.monotonic() > deadline:
            said = container.output()
            container.end()
            raise AssertionError(f"{service.name} does not listen:\n{said[-4000:]}")
        time.sleep(0.05)
    return container


def listens(address: Path) -> bool:
    """The file is there a moment before anybody listens."""
    with socket.socket(socket.AF_UNIX) as visitor:
        try:
            visitor.connect(str(address))
        except OSError:
            return False
    return True


# --- talking to services ------------------------------------------------------------------------------------------


class Visitor:
    """A browser's part: keeps cookies, and sends the token Lab asks for with every change."""

    def __init__(self, address: Path, base_url: str = "/") -> None:
        self._socket, self._base = address, f"http://lab.test{base_url.rstrip('/')}"

    async def __aenter__(self) -> Visitor:
        jar = aiohttp.CookieJar(unsafe=True)
        self.session = aiohttp.ClientSession(connector=aiohttp.UnixConnector(str(self._socket)), cookie_jar=jar)
        return self

    async def __aexit__(self, *problem: object) -> None:
        await self.session.close()

    async def get(self, path: str) -> tuple[int, str]:
        async with self.session.get(self._base + path) as answer:
            return answer.status, await answer.text()

    async def get_json(self, path: str) -> Any:
        status, text = await self.get(path)
        assert status == 200, text[:1000]
        return json.loads(text)

    async def post(self, path: str, body: Mapping[str, Any]) -> tuple[int, Any]:
        token = {cookie.key: cookie.value for cookie in self.session.cookie_jar}.get("_xsrf", "")
        async with self.session.post(self._base + path, json=body, headers={"X-XSRFToken": token}) as answer:
            text = await answer.text()
            return answer.status, json.loads(text) if text.startswith(("{", "[")) else text

    async def run_cell(self, kernel: str, code: str) -> str:
        """What the cell printed."""
        url = f"{self._base}/api/kernels/{kernel}/channels"
        message = _message(code)
        async with self.session.ws_connect(url, origin="http://lab.test") as channel:
            await channel.send_json(message)
            async with asyncio.timeout(PATIENCE_SECONDS):
                return await _printed(channel, message["header"]["msg_id"])


def _message(code: str) -> dict[str, Any]:
    header = {"msg_id": uuid.uuid4().hex, "username": "", "session": uuid.uuid4().hex, "version": "5.3", "date": ""}
    content = {"code": code, "silent": False, "store_history": True, "user_expressions": {}, "allow_stdin": False}
    named = {"msg_type": "execute_request", **header}
    return {"header": named, "parent_header": {}, "metadata": {}, "content": content, "channel": "shell", "buffers": []}


async def _printed(channel: aiohttp.ClientWebSocketResponse, id: str) -> str:
    said = ""
    async for frame in channel:
        told = json.loads(frame.data)
        if told["parent_header"].get("msg_id") != id:
            continue
        content = told["content"]
        if told["msg_type"] == "stream":
            said += content["text"]
        elif told["msg_type"] == "error":
            said += "\n".join([content["ename"], content["evalue"]])
        elif told["msg_type"] == "status" and content["execution_state"] == "idle":
            return said
    raise AssertionError(f"the channel was closed after {said!r}")
