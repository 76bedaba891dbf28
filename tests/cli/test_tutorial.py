"""The tutorial works: every command on the page is run, in its order."""

from __future__ import annotations

import re
import shlex
import subprocess
import sys
from pathlib import Path

from tests.cli.yard import PROJECT, Yard

PAGES = [PROJECT / "docs/tutorials" / name for name in ("first-job.md", "first-job.zh.md")]


def blocks(page: Path, kind: str) -> list[str]:
    return re.findall(rf"^```{kind}\n(.*?)^```$", page.read_text(encoding="utf-8"), re.DOTALL | re.MULTILINE)


def test_both_languages_show_the_same_commands() -> None:
    english, chinese = ([*blocks(page, "sh"), *blocks(page, "python")] for page in PAGES)
    assert english == chinese
    assert len(english) >= 9


def test_every_command_of_the_tutorial_works(yard: Yard) -> None:
    *shell, last = blocks(PAGES[0], "sh")
    (python,) = blocks(PAGES[0], "python")
    define = f'yard() {{ {shlex.join(yard.command())} "$@"; }}\n'
    python_run = f"{shlex.quote(sys.executable)} - <<'END_OF_PYTHON'\n{python}END_OF_PYTHON\n"
    script = "set -eu\n" + define + "".join(shell) + python_run + last
    done = subprocess.run(
        ["bash", "-c", script],
        cwd=yard.home,
        env=yard.environment(YARD_PORT="0", YARD_ENGINE="process"),
        capture_output=True,
        text=True,
        timeout=240,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    for words in ("hello\n", "epoch 2\n", "my turn\n", "hello from a file\n", "succeeded\n"):
        assert words in done.stdout
