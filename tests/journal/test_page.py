"""The page on looking back: every command is run in its order, and both languages show the same ones."""

from __future__ import annotations

import json

from tests.cli.conftest import yard  # noqa: F401 - the fixture
from tests.cli.test_tutorial import TUTORIALS, as_make_run_starts_it, blocks, run_in_bash
from tests.cli.yard import Yard


def test_both_languages_show_the_same_commands() -> None:
    english, chinese = (blocks(TUTORIALS / f"lookback{ending}", "sh") for ending in (".md", ".zh.md"))
    assert english == chinese
    assert len(english) >= 5


def test_every_command_of_the_page_works(yard: Yard) -> None:  # noqa: F811
    first, *shell = blocks(TUTORIALS / "lookback.md", "sh")
    assert first == "make run\n"
    as_make_run_starts_it(yard)
    done = run_in_bash(yard, "".join(shell))
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout.count("to the last bit the same") == 2
    told = done.stdout.partition(" tell of third, ")[2].partition("to the last bit")[0].splitlines()
    first = done.stdout.split()[0]
    waits, *between, starts = told[2:-1]
    assert " waits " in waits
    assert first in waits, "as the page says: the first is named while it runs"
    assert between
    assert all(" waits " in row for row in between)
    assert first not in between[-1]
    assert " starts " in starts
    assert "present policy" in done.stdout
    assert "the journal of decisions is written" in done.stdout
    assert json.loads((yard.home / "what-if.json").read_text())["jobs"] == 3
