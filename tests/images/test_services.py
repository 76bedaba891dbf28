"""Lab and VS Code, started as the recipes say, in images that have neither: one of busybox alone, and Debian."""

from __future__ import annotations

import asyncio
import contextlib
import os
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.images import stage

from gpuyard.images.toolbox import recipes
from gpuyard.images.toolbox.base import AT

pytestmark = pytest.mark.timeout(1500)  # the first test of a run may have to build the toolbox

Start = Callable[..., stage.Container]


@pytest.fixture(params=["busybox", "debian"])
def image(request: pytest.FixtureRequest) -> str:
    found = request.getfixturevalue(request.param)
    assert isinstance(found, str)
    return found


@pytest.fixture
def start(toolbox: Path, tmp_path: Path) -> Iterator[Start]:
    started: list[stage.Container] = []

    def begin(image: str, what: str, base_url: str = "/", **env: str) -> stage.Container:
        service = recipes.RECIPES[what](base_url, AT, stage.HOME, stage.DOOR)
        started.append(stage.start_service(image, toolbox, tmp_path, service, env))
        return started[-1]

    yield begin
    for container in started:
        container.end()


def own_file(container: stage.Container, path: str, text: str, mode: int = 0o755) -> None:
    """A file in the home, as if the person had made it."""
    file = container.home / path
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(text, encoding="utf-8")
    file.chmod(mode)
    for entry in (file, *file.relative_to(container.home).parents):
        os.chown(container.home / entry, stage.FIRST_NUMBER, stage.FIRST_NUMBER)


# --- Lab ----------------------------------------------------------------------------------------------------------


def test_a_notebook_cell_runs_in_lab(start: Start, image: str) -> None:
    container = start(image, "lab", "/i/7/lab/")

    async def visit() -> str:
        async with stage.Visitor(container.door / "lab.sock", "/i/7/lab/") as visitor:
            status, page = await visitor.get("/lab")
            assert status == 200
            assert "/i/7/lab/" in page
            status, kernel = await visitor.post("/api/kernels", {"name": "yard-python"})
            assert status == 201, kernel
            return await visitor.run_cell(kernel["id"], "import os; print(6 * 7, os.getuid())")

    assert asyncio.run(visit()) == "42 0\n"


def test_lab_opens_in_the_home_and_reaches_everything(start: Start, image: str) -> None:
    container = start(image, "lab")
    own_file(container, "note.txt", "hello")

    async def visit() -> tuple[str, Any, Any]:
        async with stage.Visitor(container.door / "lab.sock") as visitor:
            _, page = await visitor.get("/lab")
            return (
                page,
                await visitor.get_json(f"/api/contents{stage.HOME}/note.txt"),
                await visitor.get_json("/api/contents/etc/passwd"),
            )

    page, note, people = asyncio.run(visit())
    assert stage.HOME.strip("/") in page
    assert note["content"] == "hello"
    assert people["content"].startswith("root:")


def test_labs_terminal_is_the_images_shell(start: Start, image: str) -> None:
    container = start(image, "lab")

    async def visit() -> str:
        async with stage.Visitor(container.door / "lab.sock") as visitor:
            await visitor.get("/lab")
            status, terminal = await visitor.post("/api/terminals", {"cwd": stage.HOME})
            assert status == 200, terminal
            url = f"http://lab.test/terminals/websocket/{terminal['name']}"
            async with visitor.session.ws_connect(url, origin="http://lab.test") as channel:
                return await answered(channel, "echo $0-$((40+2)) $YARD_READY. in $PWD\r", "-42 1. in ")

    said = asyncio.run(visit())
    assert "sh-42" in said
    assert stage.HOME in said


async def answered(channel: Any, line: str, awaited: str) -> str:
    await channel.send_json(["stdin", line])
    said = ""
    async with asyncio.timeout(stage.PATIENCE_SECONDS):
        async for frame in channel:
            kind, *rest = frame.json()
            said += str(rest[0]) if kind == "stdout" else ""
            if awaited in said:
                return said
    raise AssertionError(said)


def test_lab_turns_away_pages_of_other_names(start: Start, busybox: str) -> None:
    container = start(busybox, "lab")

    async def visit() -> int:
        async with stage.Visitor(container.door / "lab.sock") as visitor:
            _, kernel = await visitor.post("/api/kernels", {}) if await visitor.get("/lab") else (0, {})
            url = f"http://lab.test/api/kernels/{kernel['id']}/channels"
            async with visitor.session.get(url, headers={**UPGRADE, "Origin": "http://evil.test"}) as answer:
                return answer.status

    assert asyncio.run(visit()) == 403


UPGRADE = {
    "Connection": "Upgrade",
    "Upgrade": "websocket",
    "Sec-WebSocket-Version": "13",
    "Sec-WebSocket-Key": "MDEyMzQ1Njc4OWFiY2RlZg==",
}


# --- kernels ------------------------------------------------------------------------------------------------------


async def kernels(visitor: stage.Visitor) -> dict[str, str]:
    found = await visitor.get_json("/api/kernelspecs")
    return {name: told["spec"]["display_name"] for name, told in found["kernelspecs"].items()}


def test_an_image_without_python_still_has_a_kernel(start: Start, busybox: str) -> None:
    container = start(busybox, "lab")

    async def visit() -> dict[str, str]:
        async with stage.Visitor(container.door / "lab.sock") as visitor:
            return await kernels(visitor)

    version = f"{sys.version_info[0]}.{sys.version_info[1]}"
    assert asyncio.run(visit()) == {"python3": f"Python {version} (toolbox)"}


def test_every_python_in_sight_is_offered_also_one_that_came_later(start: Start, debian: str) -> None:
    container = start(debian, "lab")

    async def visit() -> tuple[dict[str, str], dict[str, str]]:
        async with stage.Visitor(container.door / "lab.sock") as visitor:
            before = await kernels(visitor)
            a_conda_environment(container, "miniconda3/envs/Work 2")
            own_file(container, ".conda/environments.txt", f"{stage.HOME}/apart/nlp\n")
            a_conda_environment(container, "apart/nlp")
            own_file(container, ".local/share/jupyter/kernels/gone/kernel.json", kernel_file("/opt/gone/bin/python"))
            own_file(container, ".local/share/jupyter/kernels/mine/kernel.json", kernel_file("python"))
            await asyncio.sleep(3.5)  # what was found is remembered for three seconds
            return before, await kernels(visitor)

    before, after = asyncio.run(visit())
    assert set(before) == {"python3", "yard-python"}
    assert before["python3"] == "Python 3.11 (/usr/bin) - needs: pip install ipykernel"
    assert set(after) == {"python3", "yard-python", "conda-work-2", "conda-nlp", "mine"}
    assert after["conda-work-2"] == "Python 3.11 (conda: Work 2) - needs: pip install ipykernel"


def a_conda_environment(container: stage.Container, path: str) -> None:
    own_file(container, f"{path}/conda-meta/history", "")
    own_file(container, f"{path}/bin/python", '#!/bin/sh\nexec /usr/bin/python3 "$@"\n')


def kernel_file(program: str) -> str:
    argv = f'["{program}", "-m", "ipykernel_launcher", "-f", "{{connection_file}}"]'
    return f'{{"argv": {argv}, "display_name": "mine", "language": "python"}}'


@pytest.mark.outside
def test_a_python_without_ipykernel_gets_it_when_it_is_started(start: Start, debian: str, tmp_path: Path) -> None:
    wheels = tmp_path / "home" / "wheels"
    download = [sys.executable, "-m", "pip", "download", "--quiet", "--only-binary", ":all:", "--dest", str(wheels)]
    if subprocess.run([*download, "--python-version", "3.11", "ipykernel"], capture_output=True).returncode != 0:
        pytest.skip("ipykernel cannot be fetched here")
    env = {"PIP_NO_INDEX": "1", "PIP_FIND_LINKS": f"{stage.HOME}/wheels"}
    container = start(debian, "lab", **env)

    async def visit() -> tuple[str, dict[str, str]]:
        async with stage.Visitor(container.door / "lab.sock") as visitor:
            await visitor.get("/lab")
            status, kernel = await visitor.post("/api/kernels", {"name": "python3"})
            assert status == 201, kernel
            said = await visitor.run_cell(kernel["id"], "import sys; print(sys.executable)")
            return said, await kernels(visitor)

    said, found = asyncio.run(visit())
    assert said == "/usr/bin/python3\n"
    assert found["python3"] == "Python 3.11 (/usr/bin)"


def test_when_ipykernel_cannot_be_installed_pips_words_are_the_answer(start: Start, debian: str) -> None:
    container = start(debian, "lab", PIP_NO_INDEX="1")

    async def visit() -> tuple[int, Any]:
        async with stage.Visitor(container.door / "lab.sock") as visitor:
            await visitor.get("/lab")
            return await visitor.post("/api/kernels", {"name": "python3"})

    status, answer = asyncio.run(visit())
    assert status == 500
    assert "/usr/bin/python3 has no ipykernel" in answer["message"]
    assert "No matching distribution found for ipykernel" in answer["message"]


# --- VS Code ------------------------------------------------------------------------------------------------------


def test_vs_code_answers_and_keeps_its_things_in_the_home(start: Start, image: str) -> None:
    container = start(image, "ide")

    async def visit() -> tuple[int, str]:
        async with stage.Visitor(container.door / "ide.sock") as visitor:
            return await visitor.get(f"/?folder={stage.HOME}")

    status, page = asyncio.run(visit())
    assert status == 200, page
    assert "vscode-workbench-web-configuration" in page
    assert (container.home / ".local/share/code-server").is_dir()
    assert (container.door / "ide.sock").stat().st_mode & 0o077 == 0


def test_vs_code_knows_its_pages_from_the_moment_on_at_which_it_can_be_asked(
    toolbox: Path, tmp_path: Path, debian: str
) -> None:
    service = recipes.RECIPES["ide"]("/", AT, stage.HOME, stage.DOOR)
    container = stage.Container(debian, toolbox, tmp_path, service.argv, service.env)
    try:
        assert first_answer(container.door / "ide.sock") == b"HTTP/1.1 200"
    finally:
        container.end()


def first_answer(address: Path) -> bytes:
    """Asked again and again without a pause, until somebody says something."""
    deadline = time.monotonic() + stage.PATIENCE_SECONDS
    while time.monotonic() < deadline:
        with socket.socket(socket.AF_UNIX) as visitor, contextlib.suppress(FileNotFoundError, ConnectionRefusedError):
            visitor.connect(str(address))
            visitor.sendall(b"GET /?folder=/ HTTP/1.1\r\nHost: lab.test\r\nConnection: close\r\n\r\n")
            return visitor.recv(12)
    raise AssertionError("it cannot be asked")


def test_vs_codes_own_parts_run_with_the_toolboxs_libraries(start: Start, image: str) -> None:
    container = start(image, "ide")
    modules = f"{AT}/code-server/node_modules/code-server/lib/vscode/node_modules"
    script = (
        f"const m = '{modules}/';"
        "const pty = require(m + 'node-pty').spawn('/bin/sh', ['-c', 'echo in a terminal'], {});"
        "pty.onData(d => process.stdout.write(d));"
        "require(m + '@vscode/spdlog'); require(m + '@vscode/sqlite3'); require(m + '@parcel/watcher');"
    )
    done = container.run(f"{AT}/bin/node", "-e", script)
    assert b"in a terminal" in done.stdout, done.stderr.decode()
    search = f"{modules}/@vscode/ripgrep-universal/bin"
    found = container.run("/bin/sh", "-c", f"{search}/linux-*/rg --version")
    assert found.stdout.startswith(b"ripgrep"), found.stderr.decode()
