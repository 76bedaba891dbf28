"""The pages work: every command of the tutorial is run in its order, and the job file of the README as written."""

from __future__ import annotations

import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest
from tests.cli.yard import PROJECT, Yard

READMES = [PROJECT / name for name in ("README.md", "README.zh.md")]
TUTORIALS = PROJECT / "docs/tutorials"
PAGES = [TUTORIALS / name for name in ("first-job.md", "first-job.zh.md")]


def blocks(page: Path, kind: str) -> list[str]:
    return re.findall(rf"^```{kind}\n(.*?)^```$", page.read_text(encoding="utf-8"), re.DOTALL | re.MULTILINE)


def as_make_run_starts_it(yard: Yard) -> None:
    """`make run` itself would set up this very clone; what it starts is what it says."""
    cards = re.search(r"^CARDS .*,,(.*)\)$", (PROJECT / "Makefile").read_text(encoding="utf-8"), re.MULTILINE)
    assert cards is not None
    assert cards[1] == "--simulate-cards 8"
    yard.up("--engine", "process", *cards[1].split())


@pytest.mark.parametrize("name", ["first-job", "preemption", "queue", "environments", "packing"])
def test_both_languages_show_the_same_commands(name: str) -> None:
    pages = (TUTORIALS / f"{name}.md", TUTORIALS / f"{name}.zh.md")
    english, chinese = ([*blocks(page, "sh"), *blocks(page, "python")] for page in pages)
    assert english == chinese
    assert len(english) >= 6


@pytest.mark.parametrize("kind", ["yaml", "python"])
def test_both_readmes_show_the_same_job(kind: str) -> None:
    assert blocks(READMES[0], kind) == blocks(READMES[1], kind)


def test_the_job_of_the_readme_works_on_a_fresh_platform(yard: Yard) -> None:
    as_make_run_starts_it(yard)
    (file,) = blocks(READMES[0], "yaml")
    (commands,) = (block for block in blocks(READMES[0], "sh") if "yard submit" in block)
    (python,) = blocks(READMES[0], "python")
    (yard.home / "job.yaml").write_text(file)
    (yard.home / "train.py").write_text("import sys; print('trained', *sys.argv[1:])\n")
    done = run_in_bash(yard, commands + in_python(python))
    assert done.returncode == 0, done.stdout + done.stderr
    assert "trained --lr 0.1\n" in done.stdout
    assert "succeeded" in done.stdout


def test_every_command_of_the_tutorial_works(yard: Yard) -> None:
    first, *shell, last = blocks(PAGES[0], "sh")
    assert first == "make run\n"
    as_make_run_starts_it(yard)
    (python,) = blocks(PAGES[0], "python")
    done = run_in_bash(yard, "".join(shell) + in_python(python) + last)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "my cards: " in done.stdout
    for words in ("hello", "epoch 2", "going on after epoch 3", "my turn", "hello from a file", "succeeded"):
        assert f"{words}\n" in done.stdout


def test_every_command_of_the_lesson_on_environments_works(yard: Yard) -> None:
    first, *shell = blocks(TUTORIALS / "environments.md", "sh")
    assert first == "make run\n"
    as_make_run_starts_it(yard)
    done = run_in_bash(yard, "".join(shell))
    assert done.returncode == 0, done.stdout + done.stderr
    assert "hello from dev" in done.stdout
    assert "yard env ssh dev" in done.stderr
    assert "no dev environments" in done.stderr


def test_every_command_of_the_lesson_on_preemption_works(yard: Yard) -> None:
    first, *shell = blocks(TUTORIALS / "preemption.md", "sh")
    assert first == "make run\n"
    as_make_run_starts_it(yard)
    done = run_in_bash(yard, "".join(shell))
    assert done.returncode == 0, done.stdout + done.stderr
    before, _, after = done.stdout.partition("my turn\n")
    saved = re.findall(r"^saved step (\d+)$", after.partition("making room")[0], re.MULTILINE)
    for words in (
        "attempt 1 begins after step 0\n",
        "making room",
        "which has a higher priority",
        f"at step {saved[-1]}",
        f"attempt 2 begins after step {saved[-1]}\n",
        "trained: 3.0\n",
    ):
        assert words in after, done.stdout + done.stderr
    assert before


def test_every_command_of_the_lesson_on_the_queue_works(yard: Yard) -> None:
    first, *shell = blocks(TUTORIALS / "queue.md", "sh")
    assert first == "make run\n"
    as_make_run_starts_it(yard)
    done = run_in_bash(yard, "".join(shell))
    assert done.returncode == 0, done.stdout + done.stderr
    for words in ("It waits for running work to end", "What would start it now", "our own cards\n", "guaranteed"):
        assert words in done.stdout, done.stdout + done.stderr


def test_every_command_of_the_lesson_on_packing_works(yard: Yard) -> None:
    first, *shell = blocks(TUTORIALS / "packing.md", "sh")
    options = re.search(r'UP="(--engine simulated --nodes \S+)', first)
    assert options is not None
    yard.up(*options[1].split())
    done = run_in_bash(yard, "".join(shell))
    assert done.returncode == 0, done.stdout + done.stderr
    for words in (
        "1 move of preemptible work would start it",
        "Its cards are being brought together",
        "to the last bit the same",
        "FRAGMENTED",
        "other policy",
    ):
        assert words in done.stdout, done.stdout + done.stderr


def in_python(text: str) -> str:
    return f"{shlex.quote(sys.executable)} - <<'END_OF_PYTHON'\n{text}END_OF_PYTHON\n"


def run_in_bash(yard: Yard, script: str) -> subprocess.CompletedProcess[str]:
    define = f'yard() {{ {shlex.join(yard.command())} "$@"; }}\n'
    return subprocess.run(
        ["bash", "-c", "set -eu\n" + define + script],
        cwd=yard.home,
        env=yard.environment(),
        capture_output=True,
        text=True,
        timeout=240,
        check=False,
    )
