"""The base: a Python and a shell that start in images with nothing in them."""

from __future__ import annotations

import json
import stat
import subprocess
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from tests.images import stage

from gpuyard.images.toolbox.base import AT, being_built, ensure_base, python_command

_REPORT = (
    "import sys, json, os, ssl, sqlite3, ctypes, select, socket, hashlib, lzma, bz2, zlib, uuid, pty, subprocess\n"
    "child = subprocess.run([sys.executable, '-c', 'print(1)'], capture_output=True, text=True)\n"
    "print(json.dumps({'uid': os.getuid(), 'path': sys.path, 'child': child.stdout, 'error': child.stderr}))\n"
)


@pytest.fixture(scope="module")
def base(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return ensure_base(tmp_path_factory.mktemp("data"))


def size(folder: Path) -> int:
    return sum(path.lstat().st_size for path in folder.rglob("*"))


def test_a_base_is_small_and_closed_to_changes(base: Path) -> None:
    files = [path for path in base.rglob("*") if path.is_file() and not path.is_symlink()]
    assert size(base) < 60_000_000
    assert [path for path in files if path.stat().st_mode & (0o222 | stat.S_ISUID | stat.S_ISGID)] == []


def test_its_python_runs_where_it_lies(base: Path) -> None:
    asked = [*python_command(str(base)), "-I", "-S", "-E", "-c", "import sys, ssl, sqlite3; print(sys.prefix)"]
    assert subprocess.run(asked, capture_output=True, text=True).stdout.strip() == str(base)


def test_a_second_asking_makes_nothing_new(base: Path) -> None:
    before = base.stat().st_ino
    assert ensure_base(base.parent.parent) == base
    assert base.stat().st_ino == before


def test_asked_by_several_at_once_it_is_made_once(tmp_path: Path) -> None:
    with ThreadPoolExecutor(3) as several:
        made = set(several.map(ensure_base, [tmp_path] * 3))
    assert [path.name for path in (tmp_path / "toolbox").glob("base-*")] == [path.name for path in made]


def interrupt_a_build_in(folder: Path) -> None:
    with being_built(folder, "new") as part:
        assert part is not None
        (part / "half").touch()
        raise KeyboardInterrupt


def test_what_was_interrupted_leaves_nothing_and_does_not_stand_in_the_way(tmp_path: Path) -> None:
    (tmp_path / ".old.part").mkdir()
    with pytest.raises(KeyboardInterrupt):
        interrupt_a_build_in(tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == [".lock"]


@pytest.mark.skipif(bool(stage.missing("patchelf")), reason=stage.missing("patchelf"))
class TestInAContainer:
    @pytest.fixture(params=["empty", "busybox"])
    def image(self, request: pytest.FixtureRequest) -> str:
        return stage.empty_image() if request.param == "empty" else stage.busybox_image()

    @pytest.fixture
    def container(self, image: str, base: Path, tmp_path: Path) -> Iterator[stage.Container]:
        container = stage.Container(image, base, tmp_path, [f"{AT}/bin/busybox", "sleep", "1000"], {})
        yield container
        container.end()

    @pytest.mark.parametrize("start", [python_command(AT), [f"{AT}/bin/python3"]], ids=["by its loader", "by name"])
    def test_python_runs_in_an_image_with_nothing_in_it(self, container: stage.Container, start: list[str]) -> None:
        done = container.run(*start, "-I", "-S", "-E", "-c", _REPORT)
        assert done.returncode == 0, done.stderr.decode()
        told = json.loads(done.stdout)
        assert (told["uid"], told["child"], told["error"]) == (0, "1\n", "")
        assert [path for path in told["path"] if not path.startswith(AT)] == []

    def test_there_is_a_shell_with_its_small_tools(self, container: stage.Container) -> None:
        script = f". {AT}/rc/profile.sh; ls {AT}/bin | grep -c python3; touch {AT}/x || echo refused"
        done = container.run(f"{AT}/bin/sh", "-c", script)
        assert done.stdout.decode().splitlines()[-1] == "refused"

    def test_sudo_does_what_it_is_asked_as_root(self, container: stage.Container) -> None:
        shim, shell = f"{AT}/shims/sudo", f"{AT}/bin/sh"
        asked = {
            ("-E", shell, "-c", "echo $A"): "kept",
            ("-n", "-H", "-u", "root", shell, "-c", "echo $HOME"): "/root",
            ("-nEu", "root", shell, "-c", "echo $A"): "kept",
            ("--user=root", "--", shell, "-c", "echo b"): "b",
            ("B=1 2", shell, "-c", 'echo "$B"'): "1 2",
            ("-s", shell, "-c", "echo 's s'"): "s s",
        }
        for words, expected in asked.items():
            done = container.run(shim, *words, env={"A": "kept", "SHELL": shell})
            assert (done.stdout.decode().strip(), done.returncode) == (expected, 0), (words, done.stderr)
        assert container.run(shim, f"{AT}/bin/sh", "-c", "exit 7").returncode == 7

    def test_sudo_refuses_to_be_somebody_else_in_words(self, container: stage.Container) -> None:
        done = container.run(f"{AT}/shims/sudo", "-u", "bob", f"{AT}/bin/busybox", "id")
        assert done.returncode == 1
        assert b"only root can be taken on here, not bob" in done.stderr
