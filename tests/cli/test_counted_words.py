"""One thing is not spoken of as many, wherever the command counts."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from string import Formatter

import pytest
from tests.cli.test_phrases import FOLDER

from gpuyard.cli.counted import Counted
from gpuyard.cli.phrases import say

THINGS = "cards|cores|cycles|decisions|dev environments|entries|jobs|machines|moves|nodes|placements|replicas"
UNBENT = re.compile(rf"\{{\w+\}} (?:{THINGS})\b")
OF_SEVERAL = {
    "import.several",
    "fragments.cards",
    "logs.failed_replica",
    "logs.replicas",
    "run.first_replicas",
}  # never said of one


def english_phrases() -> Iterator[tuple[str, str]]:
    for file in sorted(FOLDER.glob("*phrases.py")):
        for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Dict):
                for key, value in zip(node.keys, node.values, strict=True):
                    if isinstance(key, ast.Constant) and isinstance(value, ast.Tuple):
                        yield str(key.value), str(ast.literal_eval(value.elts[0]))


@pytest.mark.parametrize(
    ("count", "told"),
    [(0, "0 jobs"), (1, "1 job"), (2, "2 jobs"), ("1", "1 job"), (1.0, "1.0 jobs"), (12000, "12000 jobs")],
)
def test_a_word_goes_with_its_number(count: object, told: str) -> None:
    assert f"{Counted(count):job|jobs}" == told


def test_other_facts_are_shown_as_they_are() -> None:
    assert f"{Counted('vision')} {Counted(1.5):.2f}" == "vision 1.50"


def test_a_replay_of_one_cycle_says_so() -> None:
    told = say("replay.period", cycles=1, placements=1, evictions=1, reasons=1, first="A", last="B")
    assert told == "1 cycle, A to B: 1 placement, 1 preemption, 1 reason told"


def test_no_english_phrase_counts_without_bending() -> None:
    found = {key: match.group(0) for key, text in english_phrases() if (match := UNBENT.search(text))}
    assert found.keys() == OF_SEVERAL


def test_both_words_are_given_wherever_one_bends() -> None:
    forms = [form or "" for _, text in english_phrases() for _, _, form, _ in Formatter().parse(text)]
    bent = [form.partition("|") for form in forms if "|" in form]
    assert len(bent) > 5
    assert all(one and many and one != many for one, _, many in bent)
