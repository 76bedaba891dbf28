"""What is put into words by hand is spelled as the general encoder would spell it, and read back the same."""

from __future__ import annotations

import json
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from gpuyard.domain.cluster import Allotment, CardShare
from gpuyard.domain.reasons import Code, Reason
from gpuyard.domain.workload import Cause, Life, Seen
from gpuyard.store import codec

moments = st.none() | st.floats(0, 4e9) | st.integers(0, 10**10)
facts = st.dictionaries(st.text(max_size=5), st.text(max_size=5) | st.integers() | st.none(), max_size=3)
reasons = st.builds(Reason, st.sampled_from(list(Code)), facts)
amounts = st.integers(0, 1 << 50)
shares = st.lists(st.builds(CardShare, st.integers(0, 99), st.integers(1, 1000)), max_size=4).map(tuple)


def is_spelled_alike(text: str, data: Any) -> bool:
    return text == json.dumps(data, separators=(",", ":"), sort_keys=True)


@settings(deadline=None)
@given(st.builds(Allotment, st.text(max_size=9), amounts, amounts, amounts, st.text(max_size=9), shares, st.booleans()))
def test_an_allotment_is_spelled_as_the_encoder_does_and_read_back(allotment: Allotment) -> None:
    text = codec.allotment_to_text(allotment)
    assert is_spelled_alike(text, json.loads(text))
    assert codec.allotment_from_text(text) == allotment


@settings(deadline=None)
@given(
    st.builds(
        Seen,
        st.sampled_from(list(Life)),
        st.none() | st.integers(-255, 255),
        st.none() | st.sampled_from(list(Cause)),
        st.none() | reasons,
        moments,
        moments,
    )
)
def test_a_look_is_spelled_as_the_encoder_does_and_read_back(seen: Seen) -> None:
    text = codec.seen_to_text(seen)
    assert is_spelled_alike(text, json.loads(text))
    assert codec.seen_from_text(text) == seen


@settings(deadline=None)
@given(reasons)
def test_a_reason_is_spelled_as_the_encoder_does_and_read_back(reason: Reason) -> None:
    text = codec.reason_to_text(reason)
    assert is_spelled_alike(text, reason.to_json())
    assert codec.reason_from_text(text) == reason
