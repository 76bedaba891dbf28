"""What the tests of the toolbox share: real containers with almost nothing in them, and one toolbox, built once."""

from __future__ import annotations

import asyncio
import atexit
import functools
import json
import os
import socket
import subprocess
import tempfile
import time
import uuid
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import aiohttp
import pytest
from tests.images.store import Store
from tests.provisions import IMAGES, TOOLBOX, Image, Provision, Unavailable, ready
from tests.provisions import missing as missing

from gpuyard.images.toolbox.base import AT
from gpuyard.images.toolbox.recipes import Service

PATIENCE_SECONDS = 120.0
FIRST_NUMBER = 0x7F000000  # of the container's people; far from what a yard on this machine gives out
HOME = "/mnt/user/ann"
DOOR = "/run/yard/door"


def built_toolbox() -> Path:
    """One for all tests. Without compilers or packages to fetch there is none, and what needs it is skipped, aloud."""
    return (_ready(TOOLBOX) / "toolbox" / "current").resolve()


def _ready(wanted: Provision) -> Path:
    try:
        return ready(wanted)
    except Unavailable as problem:
        pytest.skip(str(problem))


# --- images -------------------------------------------------------------------------------------------------------


def empty_image() -> str:
    return _shown("empty")


def busybox_image() -> str:
    return _shown("busybox")


def ssh_image() -> str:
    return _shown("ssh")


def debian_image() -> str:
    return _shown("debian")


def archive(image: str) -> Path:
    """One of these, as a file that can be loaded."""
    (name,) = [one.name for one in IMAGES if Image(one.name).reference == image]
    return _kept(name) / "image.tar"


def podman(*words: str, input: bytes | None = None, check: bool = True) -> subprocess.CompletedProcess[bytes]:
    return store().podman(*words, input=input, check=check)


@functools.cache
def store() -> Store:
    """Of this process: others that test at the same time have their own, and show the same images in it."""
    made = Store(Path(tempfile.mkdtemp(prefix="yard-images-")))
    atexit.register(made.remove)
    return made


def _shown(name: str) -> str:
    store().show([_kept(name) / "store"])
    return Image(name).reference


@functools.cache
def _kept(name: str) -> Path:
    (wanted,) = [one for one in IMAGES if one.name == name]
    return _ready(wanted)


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
