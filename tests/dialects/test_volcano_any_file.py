"""Whatever is written into such a file, it is read or refused in words; and what was read is a job."""

from __future__ import annotations

import copy
import json
from typing import Any

import yaml
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.dialects.test_volcano_jobs import MPI
from tests.dialects.test_volcano_seed import TEMPLATE

from gpuyard.dialects import native
from gpuyard.dialects.volcano.reading import read
from gpuyard.domain.errors import BadInput
from gpuyard.words import say

SEED = {
    "jobname": "a",
    "queue": "q",
    "tasks": [
        {
            "amount": 1,
            "name": "t",
            "workingDir": "/x",
            "command": ["a"],
            "args": "b",
            "image": "i",
            "resources": {"cpu": "1", "memory": "1Gi", "gpu": 1, "npu": 0},
            "ports": [{"number": 1, "name": "a"}],
            "env": {"A": "b"},
        }
    ],
}
junk = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=6) | st.just("-1") | st.just("1e99"),
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(st.text(max_size=4), inner, max_size=2),
    max_leaves=4,
)


def places(data: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    found = [path] if path else []
    inside = data.items() if isinstance(data, dict) else enumerate(data) if isinstance(data, list) else ()
    for key, value in inside:
        found += places(value, (*path, key))
    return found


def changed(data: Any, path: tuple[Any, ...], value: Any) -> Any:
    other = copy.deepcopy(data)
    at = other
    for key in path[:-1]:
        at = at[key]
    at[path[-1]] = value
    return other


def read_or_refused(text: str) -> None:
    try:
        found = read(text)
        for note in found.notes:
            assert say(note, "en")
            assert say(note, "zh")
        native.read_job(found.job, priorities={"normal": 500, "high": 700})
    except BadInput as refusal:
        refused = refusal.problems
    else:
        refused = ()
    assert all(say(problem, "en") for problem in refused)


JOB = yaml.safe_load(MPI)


@settings(suppress_health_check=[HealthCheck.too_slow], deadline=None, max_examples=300)
@given(st.sampled_from([(data, path) for data in (JOB, SEED) for path in places(data)]), junk)
def test_any_value_in_any_place_is_read_or_refused(place: tuple[Any, tuple[Any, ...]], value: Any) -> None:
    data, path = place
    read_or_refused(json.dumps(changed(data, path, value)))


@settings(suppress_health_check=[HealthCheck.too_slow], deadline=None, max_examples=150)
@given(
    st.sampled_from([MPI, TEMPLATE]),
    st.integers(0, 2000),
    st.integers(0, 30),
    st.text("\t\n :-#[]{}'\"|ab1", max_size=5),
)
def test_any_slip_of_the_hand_is_read_or_refused(text: str, at: int, gone: int, instead: str) -> None:
    place = at % len(text)
    read_or_refused(text[:place] + instead + text[place + gone :])
