"""The pages and the tools say the same: what README promises is what the checks run."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import pytest

from gpuyard.cli.main import yard

PROJECT = Path(__file__).parent.parent
READMES = ("README.md", "README.zh.md")
PAGES = (*READMES, "CONTRIBUTING.md", "CHANGELOG.md", "docs/architecture.md")


def text_of(page: str) -> str:
    return (PROJECT / page).read_text(encoding="utf-8")


@pytest.mark.parametrize("page", READMES)
def test_both_readmes_give_the_same_test_command(page: str) -> None:
    (block,) = re.findall(r"<!-- test command -->\n```sh\n(.*?)\n```\n<!-- end -->", text_of(page), re.DOTALL)
    assert block == "make test"


@pytest.mark.parametrize("page", READMES)
def test_both_readmes_lead_to_the_same_first_job(page: str) -> None:
    assert "make run\n" in text_of(page)
    assert """yard run --cards 2 -- python3 -c "print('hello')"\n""" in text_of(page)


def test_both_readmes_name_the_same_commands() -> None:
    english, chinese = (set(re.findall(r"\byard [a-z]+", text_of(page))) for page in READMES)
    assert english == chinese


def test_the_readme_names_every_command_there_is_and_no_other() -> None:
    named = set(re.findall(r"yard ([a-z]+(?:-[a-z]+)*)", text_of("README.md")))
    short = set(re.findall(r"`(pause|resume|rerun)\b", text_of("README.md")))  # named after `yard stop` in one line
    assert named | short == set(yard.commands) - {"version"}


def test_the_checks_run_what_the_readme_says() -> None:
    """`.ci/run` takes the command out of README.md; here the same lines are run up to that point."""
    script = text_of(".ci/run").split("make prepare")[0]
    shown = subprocess.run(
        ["bash", "-c", script.replace('cd "$(dirname "${BASH_SOURCE[0]}")/.."', "") + 'echo "$test_command"'],
        cwd=PROJECT,
        capture_output=True,
        text=True,
        check=True,
    )
    assert shown.stdout.strip() == "make test"


@pytest.mark.parametrize("page", PAGES)
def test_every_link_to_a_page_of_ours_leads_somewhere(page: str) -> None:
    folder = (PROJECT / page).parent
    links = [link for link in re.findall(r"\]\(([^)]+)\)", text_of(page)) if "://" not in link]
    assert [link for link in links if not (folder / link).exists()] == []


@pytest.mark.parametrize("page", ["CONTRIBUTING.md", "docs/architecture.md", *READMES])
def test_every_make_target_that_is_named_exists(page: str) -> None:
    targets = set(re.findall(r"^([a-z-]+):", text_of("Makefile"), re.MULTILINE))
    named = set(re.findall(r"`make ([a-z]+)`|^make ([a-z]+)", text_of(page), re.MULTILINE))
    assert {first or second for first, second in named} <= targets
