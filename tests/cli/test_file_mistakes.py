"""A file that cannot be read, or in which something is wrong, is named; in the reader's language."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from tests.cli.yard import Yard

READING = [("submit",), ("preview",), ("what-if", "--policy"), ("policy", "try", "-f"), ("policy", "set", "-f")]


@pytest.mark.parametrize("command", READING)
def test_a_file_that_is_not_there_is_told_in_both_languages(
    simulated: Yard, tmp_path: Path, command: tuple[str, ...]
) -> None:
    file = str(tmp_path / "nosuch.yaml")
    told = simulated.run(*command, file)
    assert (told.code, told.err) == (2, f"yard: {file}: No such file or directory\n")
    told = simulated.run(*command, file, YARD_LANG="zh")
    assert (told.code, told.err) == (2, f"yard：{file}：没有这个文件或目录\n")


def test_so_is_a_folder_and_what_lies_in_a_file(simulated: Yard, tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    assert "是目录，不是文件" in simulated.run("submit", str(tmp_path), YARD_LANG="zh").err
    assert "不是目录" in simulated.run("submit", str(tmp_path / "file" / "job.yaml"), YARD_LANG="zh").err


def test_so_is_a_file_of_somebody_else(simulated: Yard) -> None:
    """Root may read everything, so nobody's file is at hand: what the system says is made up."""
    program = (
        "import errno, os\nfrom gpuyard.cli.failures import tell_file_error\n"
        "for number in (errno.EACCES, errno.EL2HLT): tell_file_error(OSError(number, os.strerror(number), 'job.yaml'))"
    )
    environment = simulated.environment(YARD_LANG="zh")
    done = subprocess.run(
        [sys.executable, "-c", program], env=environment, capture_output=True, text=True, check=True, timeout=60
    )
    known, unknown = done.stderr.splitlines()
    assert known == "yard：job.yaml：权限不足"
    assert unknown.startswith("yard：job.yaml：")


@pytest.mark.parametrize("content", ["", "order: [1\n", "nokey: 1\n"])
@pytest.mark.parametrize("command", READING)
def test_what_is_wrong_in_a_file_begins_with_its_name(
    simulated: Yard, tmp_path: Path, command: tuple[str, ...], content: str
) -> None:
    file = tmp_path / "wrong.yaml"
    file.write_text(content)
    told = simulated.run(*command, str(file))
    assert (told.code, told.err.startswith(f"yard: {file}: line 1, column ")) == (2, True), told
    assert simulated.run(*command, str(file), YARD_LANG="zh").err.startswith(f"yard：{file}：第 1 行第 ")
    unnamed = simulated.run(*command, "-", stdin=content)
    assert (unnamed.code, unnamed.err.startswith("yard: line 1, column ")) == (2, True), unnamed
