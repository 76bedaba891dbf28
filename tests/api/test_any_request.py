"""Requests nobody thought of, made from the published description: no answer of ours is ever a 5xx, and every answer is
as described. Once with an admin's token, once with a member's."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Any

import pytest
import schemathesis
from hypothesis import HealthCheck, given, settings
from hypothesis.errors import Unsatisfiable
from schemathesis import Case, GenerationMode
from schemathesis.checks import positive_data_acceptance
from schemathesis.core.result import Ok
from schemathesis.schemas import BaseSchema
from tests.api.yard import Yard, running

# What the schema allows and a rule of the house refuses (a weak password, an unknown folder) is no fault.
NOT_CHECKED = [positive_data_acceptance]
NOT_OUR_WORDS = (b"Input should", b"String should", b"should match pattern", b"Field required")
# The same requests in every run, so that a red run means that something changed.
EXAMPLES = settings(
    max_examples=10, deadline=None, database=None, derandomize=True, suppress_health_check=list(HealthCheck)
)


@pytest.fixture(scope="module")
def yard(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Yard]:
    with running(tmp_path_factory.mktemp("yard")) as yard:
        yard.person("chief", role="admin")
        yard.person("plain")
        yield yard


@pytest.fixture(scope="module")
def description(yard: Yard) -> BaseSchema:
    """All of it but the endless streams, which have tests of their own."""
    loaded = schemathesis.openapi.from_url(f"{yard.url}/api/v1/openapi.json")
    return loaded.exclude(path_regex="/(logs/follow|live)$")


@pytest.mark.parametrize(
    ("who", "mode"),
    [
        ("plain", GenerationMode.POSITIVE),
        ("chief", GenerationMode.NEGATIVE),
        pytest.param("chief", GenerationMode.POSITIVE, marks=pytest.mark.soak),
        pytest.param("plain", GenerationMode.NEGATIVE, marks=pytest.mark.soak),
    ],
)
def test_anything_asked_gets_a_described_answer(
    yard: Yard, description: BaseSchema, who: str, mode: GenerationMode
) -> None:
    headers = {"Authorization": f"Bearer {yard.token_of(who)}"}
    asked = 0
    for found in description.get_all_operations():
        assert isinstance(found, Ok)

        @given(case=found.ok().as_strategy(generation_mode=mode))
        @EXAMPLES
        def ask(case: Case[Any]) -> None:
            said = case.call_and_validate(headers=headers, excluded_checks=NOT_CHECKED).content
            assert not any(phrase in said for phrase in NOT_OUR_WORDS)

        with contextlib.suppress(Unsatisfiable):  # nothing can be said wrongly where nothing can be said
            ask()
            asked += 1
    assert asked > 20
