"""Who waits for which image, and whose turn it is: few at a time, fair between people, once for all who wait."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from concurrent.futures import Future
from functools import partial

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpuyard.domain.errors import TooMany
from gpuyard.domain.reasons import because
from gpuyard.engines.container.client import EngineAway, Refused
from gpuyard.engines.container.pulls import MOST_ASKED, MOST_ASKED_OF_ONE, Problem, Pulls, Told
from gpuyard.engines.container.turns import MOST_AT_ONCE, MOST_OF_ONE, next_turn
from gpuyard.words import say

USERS = st.sampled_from(["ann", "bob", "cy", "dee", "eve", "fay", "gus", "hal", "ivy"])


# --- whose turn, without effects --------------------------------------------------------------------------------------


def test_the_longest_wait_comes_first_among_those_who_have_none() -> None:
    assert next_turn([("a", ["ann"]), ("b", ["bob"])], []) == ("a", "ann")


def test_who_has_none_comes_before_who_has_one() -> None:
    assert next_turn([("a", ["ann"]), ("b", ["bob"])], ["ann"]) == ("b", "bob")


def test_an_image_is_fetched_in_the_name_of_whoever_of_those_who_wait_has_the_fewest() -> None:
    assert next_turn([("a", ["ann", "bob"])], ["ann"]) == ("a", "bob")


def test_one_alone_never_has_more_than_a_few() -> None:
    assert next_turn([("a", ["ann"])], ["ann"] * MOST_OF_ONE) is None


def test_the_last_half_of_the_places_is_for_those_who_have_none() -> None:
    busy = [f"user{n // 2}" for n in range(MOST_AT_ONCE // 2 - 1)] + ["ann"]
    assert next_turn([("a", ["ann"])], busy) is None
    assert next_turn([("a", ["ann"]), ("b", ["bob"])], busy) == ("b", "bob")


@given(st.lists(st.tuples(USERS, st.booleans()), max_size=60))
def test_however_they_ask_nobody_who_has_none_waits_but_for_that_many_others(asked: list[tuple[str, bool]]) -> None:
    line: list[tuple[str, list[str]]] = []
    under_way: list[str] = []
    for number, (user, ends) in enumerate(asked):
        line.append((f"image{number}", [user]))
        if ends and under_way:
            under_way.pop(0)
        while (turn := next_turn(line, under_way)) is not None:
            line = [entry for entry in line if entry[0] != turn[0]]
            under_way.append(turn[1])
        counts = Counter(under_way)
        assert len(under_way) <= MOST_AT_ONCE
        assert max(counts.values(), default=0) <= MOST_OF_ONE
        if any(not counts[user] for _, (user,) in line):
            assert len(under_way) == MOST_AT_ONCE


# --- with pulls that end when the test says so ------------------------------------------------------------------------


class Wait:
    """One who waits, and what they hear."""

    def __init__(self, pulls: Pulls, image: str, user: str, *, is_request: bool = True) -> None:
        self.steps: list[str] = []
        self.ends: list[Problem | None] = []
        self.leave: Callable[[], None] = pulls.join(
            image, user, self.steps.append, self.ends.append, is_request=is_request
        )


class Line:
    def __init__(self) -> None:
        self.under_way: dict[str, Future[None]] = {}
        self.told: dict[str, Told] = {}
        self.begun: list[str] = []
        self.pulls = Pulls(self._begin)
        self.wait = partial(Wait, self.pulls)

    def _begin(self, image: str, told: Told) -> Future[None]:
        self.begun.append(image)
        self.told[image] = told
        self.under_way[image] = Future()
        return self.under_way[image]


@pytest.fixture
def line() -> Line:
    return Line()


def test_an_image_is_fetched_once_for_all_who_wait_for_it(line: Line) -> None:
    ann, bob = line.wait("x", "ann"), line.wait("x", "bob", is_request=False)
    line.told["x"]("half of it")
    line.under_way["x"].set_result(None)
    assert line.begun == ["x"]
    assert ann.steps == bob.steps == ["x", "half of it"]
    assert ann.ends == bob.ends == [None]


def test_who_does_not_have_their_turn_yet_hears_nothing(line: Line) -> None:
    waits = [line.wait(f"x{n}", "ann") for n in range(MOST_OF_ONE + 1)]
    assert [bool(wait.steps) for wait in waits] == [True] * MOST_OF_ONE + [False]
    line.under_way["x0"].set_exception(Refused(404, "manifest unknown"))
    assert isinstance(waits[0].ends[0], Refused)
    assert waits[-1].steps == [f"x{MOST_OF_ONE}"]


def test_a_pull_is_ended_when_the_last_who_waited_for_it_has_gone(line: Line) -> None:
    ann, bob = line.wait("x", "ann"), line.wait("x", "bob")
    ann.leave()
    assert not line.under_way["x"].cancelled()
    bob.leave()
    bob.leave()
    assert line.under_way["x"].cancelled()
    assert ann.ends == bob.ends == []
    line.wait("x", "cy")
    assert line.begun == ["x", "x"]


def test_a_pull_counts_for_somebody_who_still_waits_for_it(line: Line) -> None:
    first = [line.wait(f"x{n}", "ann") for n in range(MOST_OF_ONE)]
    for n in range(MOST_OF_ONE):
        line.wait(f"x{n}", "bob")
    for wait in first:
        wait.leave()
    assert line.wait("own", "bob").steps == []
    assert line.wait("other", "ann").steps == ["other"]


def test_who_asks_for_too_many_is_refused_in_words_and_their_launches_are_not(line: Line) -> None:
    asked = [line.wait(f"x{n}", "ann") for n in range(MOST_ASKED_OF_ONE)]
    with pytest.raises(TooMany) as refused:
        line.wait("one more", "ann")
    assert f"{MOST_ASKED_OF_ONE} images are still being fetched for you" in say(refused.value.reason, "en")
    assert f"你还有 {MOST_ASKED_OF_ONE} 个镜像" in say(refused.value.reason, "zh")
    line.wait("one more", "ann", is_request=False)
    asked[0].leave()
    line.wait("one more", "ann")


def test_all_together_may_not_ask_for_too_many_either(line: Line) -> None:
    for number in range(MOST_ASKED):
        line.wait(f"x{number}", f"user{number % (MOST_ASKED // 4)}")
    with pytest.raises(TooMany) as refused:
        line.wait("one more", "ann")
    assert refused.value.reason == because(refused.value.reason.code)


def test_an_engine_that_is_away_is_told_to_all_who_wait() -> None:
    def begin(image: str, told: Told) -> Future[None]:
        raise EngineAway("away")

    wait = Wait(Pulls(begin), "x", "ann")
    assert isinstance(wait.ends[0], EngineAway)
