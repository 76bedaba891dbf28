"""A corpus of bad job files: each is refused whole, with its code, its line and words in both languages.

`corpus/expected.json` says for each file what is wrong with it: code, line and problem or key, one entry per problem.
"""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from gpuyard.dialects.native import JobFile, parse_yaml, read_job
from gpuyard.domain.errors import BadInput
from gpuyard.domain.reasons import Code, Reason
from gpuyard.words import say

CORPUS = Path(__file__).parent / "corpus"
EXPECTED: dict[str, list[str]] = json.loads((CORPUS / "expected.json").read_text())
HAS_NO_LINE = {Code.TOO_LARGE}


def read_file(name: str) -> JobFile:
    data, marks = parse_yaml((CORPUS / name).read_bytes())
    return read_job(data, marks, default_device="nvidia")


def problems_of(name: str) -> tuple[Reason, ...]:
    with pytest.raises(BadInput) as caught:
        read_file(name)
    return caught.value.problems


def test_every_file_of_the_corpus_is_expected_to_fail() -> None:
    assert {path.name for path in CORPUS.glob("*.yaml")} == set(EXPECTED)
    assert len(EXPECTED) > 150


@pytest.mark.parametrize("name", EXPECTED)
def test_a_bad_file_is_refused_with_code_and_line(name: str) -> None:
    told = [
        f"{p.code.value} {p.facts.get('line', '-')} {p.facts.get('problem') or p.facts.get('key') or ''}".strip()
        for p in problems_of(name)
    ]
    assert told == EXPECTED[name]


@pytest.mark.parametrize("name", EXPECTED)
def test_a_bad_file_is_explained_in_both_languages(name: str) -> None:
    for problem in problems_of(name):
        english, chinese = say(problem, "en"), say(problem, "zh")
        if problem.code not in HAS_NO_LINE:
            line, column = problem.facts["line"], problem.facts["column"]
            assert english.startswith(f"line {line}, column {column}")
            assert chinese.startswith(f"第 {line} 行第 {column} 列")
        assert not re.search(r"[\u4e00-\u9fff]", english)
        assert len(english) > 20
        assert len(re.findall(r"[\u4e00-\u9fff]", chinese)) > 4
        assert "?" not in english.replace("did you mean", "").replace("`?", "")


@pytest.mark.parametrize("name", EXPECTED)
def test_what_is_told_can_be_sent_as_json(name: str) -> None:
    for problem in problems_of(name):
        sent = json.dumps(problem.to_json(), allow_nan=False)
        assert Reason.from_json(json.loads(sent.encode())) == problem
        assert len(sent) < 1000
