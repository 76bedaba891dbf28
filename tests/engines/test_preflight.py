"""The look before the start: what cannot run is named, and what might run is never refused."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import pytest
from tests.engines.places import IS_ROOT

from gpuyard.domain.reasons import NO_USE_RETRYING, Code
from gpuyard.engines.inside import preflight

PATH = "/usr/local/bin:/usr/bin:/bin"


@pytest.fixture
def home(tmp_path: Path) -> Path:
    (tmp_path / "train.py").write_text("print(1)")
    (tmp_path / "run.sh").write_text("#!/bin/sh\necho 1")
    (tmp_path / "folder").mkdir()
    (tmp_path / "package").mkdir()
    (tmp_path / "package" / "__main__.py").write_text("print(1)")
    for name, first in (
        ("good", b"#!/bin/sh\n"),
        ("by-env", b"#!/usr/bin/env sh\n"),
        ("lost", b"#!/opt/none/python3\n"),
        ("lost-env", b"#!/usr/bin/env python9\n"),
        ("windows", b"#!/bin/sh\r\n"),
        ("windows-env", b"#!/usr/bin/env sh\r\n"),
        ("plain", b"echo 1\n"),
        ("flags", b"#!/usr/bin/env -S sh -e\n"),
        ("binary", b"\x7fELF#!/none\n"),
    ):
        (tmp_path / name).write_bytes(first + b"exit 0\n")
        (tmp_path / name).chmod(0o755)
    (tmp_path / "broken").symlink_to(tmp_path / "nowhere")
    (tmp_path / "link.py").symlink_to("train.py")
    return tmp_path


def found(home: Path, *argv: str) -> tuple[str, str] | None:
    problem = preflight.check(list(argv), str(home), PATH)
    if problem is None:
        return None
    path = problem.get("path", "")
    return Code(problem["code"]).name, os.path.relpath(path, home) if path else problem["name"]


WRONG: list[tuple[tuple[str, ...], str, str]] = [
    (("python3", "missing.py"), "NO_START_FILE", "missing.py"),
    (("python3", "-u", "-W", "ignore", "missing.py", "--lr", "1"), "NO_START_FILE", "missing.py"),
    (("python3", "folder"), "START_FILE_IS_FOLDER", "folder"),
    (("python3", "broken"), "NO_START_FILE", "broken"),
    (("python3", "train.py/x.py"), "NO_START_FILE", "train.py/x.py"),
    (("bash", "missing.sh"), "NO_START_FILE", "missing.sh"),
    (("sh", "-ex", "./missing.sh"), "NO_START_FILE", "missing.sh"),
    (("./missing",), "NO_START_FILE", "missing"),
    (("./run.sh",), "NOT_EXECUTABLE", "run.sh"),
    (("./folder",), "START_FILE_IS_FOLDER", "folder"),
    (("./broken",), "NO_START_FILE", "broken"),
    (("./lost",), "NO_INTERPRETER", "lost"),
    (("./lost-env",), "NO_INTERPRETER", "lost-env"),
    (("./windows",), "WINDOWS_LINES", "windows"),
    (("./windows-env",), "WINDOWS_LINES", "windows-env"),
    (("no-such-command", "x"), "NO_SUCH_COMMAND", "no-such-command"),
    (("sh", "-c", "python3 missing.py --lr=0.1 --name 'a b'"), "NO_START_FILE", "missing.py"),
    (("sh", "-c", "CUDA_VISIBLE_DEVICES=0,1 A=b python3 -u missing.py"), "NO_START_FILE", "missing.py"),
    (("sh", "-c", "exec ./run.sh"), "NOT_EXECUTABLE", "run.sh"),
    (("bash", "-c", "bash missing.sh"), "NO_START_FILE", "missing.sh"),
    (("sh", "-c", "no-such-command"), "NO_SUCH_COMMAND", "no-such-command"),
]


@pytest.mark.parametrize(("argv", "code", "path"), WRONG, ids=[" ".join(argv) for argv, _, _ in WRONG])
def test_what_cannot_run_is_named(home: Path, argv: tuple[str, ...], code: str, path: str) -> None:
    if not shutil.which(argv[0], path=PATH) and "/" not in argv[0] and not code.startswith("NO_SUCH"):
        pytest.skip(f"there is no {argv[0]} here")
    assert found(home, *argv) == (code, path)


FINE: list[tuple[str, ...]] = [
    ("python3", "train.py"),
    ("python3", "link.py"),
    ("python3", "package"),
    ("python3", "-m", "missing"),
    ("python3", "-c", "print(1)"),
    ("python3", "-um", "missing"),
    ("python3", "-"),
    ("python3", "--version"),
    ("python3", "-Xdev", "train.py"),
    ("python3",),
    ("sh", "run.sh"),
    ("sh", "ls"),  # a shell looks for it on PATH too
    ("sh", "-s", "missing"),
    ("bash", "--rcfile", "x"),
    ("bash", "-lc", "anything"),
    ("bash", "-o", "pipefail", "-c", "anything"),
    ("./good",),
    ("./by-env",),
    ("./plain",),
    ("./flags",),
    ("./binary",),
    ("ls", "missing"),
    *(
        ("sh", "-c", line)
        for line in (
            "",
            "cd folder && python3 missing.py",
            "python3 train.py > out.txt",
            "python3 $SCRIPT",
            "python3 `ls`",
            "python3 *.py",
            "touch missing.py; python3 missing.py",
            "python3 missing.py || true",
            "true",
            "echo missing.py",
            "source env.sh",
            ". env.sh",
            "if true",
            "PATH=/x tool",
            "A=$B tool",
            "f() { :",
            "x=1",
            "'unclosed",
            "# nothing",
            "~/tool",
            "python3 train.py",
            "python3 'train.py'",
        )
    ),
]


@pytest.mark.parametrize("argv", FINE, ids=" ".join)
def test_what_might_run_is_not_refused(home: Path, argv: tuple[str, ...]) -> None:
    if not shutil.which(argv[0], path=PATH) and "/" not in argv[0]:
        pytest.skip(f"there is no {argv[0]} here")
    assert found(home, *argv) is None


def test_torchruns_script_is_looked_for_behind_its_options(home: Path) -> None:
    (home / "bin").mkdir()
    (home / "bin" / "torchrun").write_text("#!/bin/sh\n")
    (home / "bin" / "torchrun").chmod(0o755)

    def torchrun(*words: str) -> object:
        return preflight.check(["torchrun", *words], str(home), f"{home}/bin:{PATH}")

    assert torchrun("--standalone", "--nproc_per_node", "8", "train.py") is None
    assert torchrun("--nnodes=2", "--rdzv-id", "7", "missing.py", "--x") == {
        "code": "ended.no_start_file",
        "path": str(home / "missing.py"),
    }
    assert torchrun("--something-new", "8", "missing.py") is None
    assert torchrun("-m", "missing") is None


def test_a_working_folder_must_be_there(home: Path) -> None:
    problem = preflight.check(["ls"], str(home / "none"), PATH)
    assert problem == {"code": "ended.no_working_folder", "path": str(home / "none")}


def test_an_upload_that_is_under_way_is_waited_for_but_not_one_long_forgotten(home: Path) -> None:
    mark = home / preflight.UPLOADING
    mark.touch()
    assert found(home, "ls") == ("UPLOAD_UNDER_WAY", ".")
    os.utime(mark, (1, 1))
    assert found(home, "ls") is None


@pytest.mark.skipif(IS_ROOT, reason="root may read and write everything")
def test_rights_that_are_missing_are_named(home: Path) -> None:
    (home / "train.py").chmod(0)
    assert found(home, "python3", "train.py") == ("NOT_READABLE", "train.py")
    home.chmod(0o500)
    assert found(home, "ls") == ("FOLDER_NOT_WRITABLE", ".")
    home.chmod(0o700)


def test_names_no_file_can_have_are_left_to_the_command(home: Path) -> None:
    assert found(home, "./a\0b") is None
    assert found(home, "python3", "x" * 100_000) is None


def test_only_an_upload_is_worth_another_try() -> None:
    codes = {code for code in Code if code.value.startswith("ended.") and code in NO_USE_RETRYING}
    assert Code.NO_START_FILE in codes
    assert Code.UPLOAD_UNDER_WAY not in codes
