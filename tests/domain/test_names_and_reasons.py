"""The rules of names match whole texts, and reasons survive being stored."""

from __future__ import annotations

import json
import re

import pytest

from gpuyard.domain.people import NAME_RULE
from gpuyard.domain.problems import Problem
from gpuyard.domain.reasons import Code, Reason, because
from gpuyard.domain.workload import ENV_NAME_RULE, ID_RULE, JOB_NAME_RULE, ROLE_NAME_RULE

RULES = {
    "id": (ID_RULE, "a123456789"),
    "job": (JOB_NAME_RULE, "train-1.2_b"),
    "role": (ROLE_NAME_RULE, "worker"),
    "env": (ENV_NAME_RULE, "MY_SETTING"),
    "person": (NAME_RULE, "ann_b-1"),
}
HOSTILE = [
    "",
    "$(touch /tmp/pwn)",
    ";id",
    "`id`",
    "-v/:/x",
    "a b",
    "a/b",
    "../a",
    "a\x00",
    "\x1b[31m",
    "а",
    "ａ",
    "a" * 200,
]


@pytest.mark.parametrize("kind", RULES)
def test_a_good_name_is_taken_and_a_trailing_line_break_is_not(kind: str) -> None:
    rule, good = RULES[kind]
    assert rule.match(good)
    assert not rule.match(good + "\n")


@pytest.mark.parametrize("name", HOSTILE, ids=[ascii(name)[:20] for name in HOSTILE])
@pytest.mark.parametrize("kind", RULES)
def test_hostile_names_match_no_rule(kind: str, name: str) -> None:
    assert not RULES[kind][0].match(name)


@pytest.mark.parametrize("code", Code)
def test_a_reason_is_the_same_after_being_stored(code: Code) -> None:
    reason = because(code, by="ann", count=3, names=["a", "b"])
    assert Reason.from_json(json.loads(json.dumps(reason.to_json()))) == reason


def test_codes_and_problems_are_dotted_words() -> None:
    for value in [*Code, *Problem]:
        assert re.fullmatch(r"[a-z]+\.[a-z0-9_]+", value.value)
