"""Judges what is left after a storm: pure, from a history of what clients were told and what the platform kept.

Each law broken is one sentence. `test_checker.py` plants every fault once and sees it named.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import pairwise

from gpuyard.domain.workload import ENDED, Attempt, State, StoryEvent, Workload

# Which states may follow which in a story. A line that does not change the state is always fine.
FOLLOWS: dict[State, set[State]] = {
    State.QUEUED: {State.PLACED, State.STOPPED, State.PAUSED},
    State.PLACED: {State.STARTING, State.STOPPING},
    State.STARTING: {State.RUNNING, State.STOPPING, State.SUCCEEDED, State.FAILED, State.QUEUED},
    State.RUNNING: {State.STOPPING, State.SUCCEEDED, State.FAILED, State.QUEUED},
    State.STOPPING: {State.STOPPED, State.PAUSED, State.FAILED, State.QUEUED},
    State.PAUSED: {State.QUEUED, State.STOPPED},
}


@dataclass(frozen=True)
class Kept:
    """Everything the platform kept of one workload."""

    workload: Workload
    story: Sequence[StoryEvent]
    attempts: Sequence[Attempt]
    logs: dict[int, str]  # attempt -> log of its only replica


@dataclass(frozen=True)
class History:
    acknowledged: dict[str, str]  # idempotency key -> id the client was told
    kept: dict[str, Kept]
    lines: int  # each job prints `line 0` ... and then `done`
    journal: Sequence[str] = ()  # what jobs themselves complained about
    left_running: Sequence[str] = field(default_factory=tuple)  # processes of ours that live on after everything ended


def check(history: History) -> list[str]:
    """Every broken law, in words. An empty list is a pass."""
    found = list(_acknowledged_jobs_are_there(history))
    found += [f"a job complained: {line}" for line in history.journal]
    found += [f"still running after the end: {process}" for process in history.left_running]
    for kept in history.kept.values():
        found += [f"{kept.workload.id}: {fault}" for fault in _faults_of(kept, history.lines)]
    found += list(_cards_given_twice(history.kept.values()))
    return found


def _acknowledged_jobs_are_there(history: History) -> Iterator[str]:
    for key, id in history.acknowledged.items():
        if id not in history.kept:
            yield f"{id} was acknowledged (key {key}) and is lost"
    ids = list(history.acknowledged.values())
    for id in {id for id in ids if ids.count(id) > 1}:
        yield f"{id} answers for two different submissions"


def _faults_of(kept: Kept, lines: int) -> Iterator[str]:
    yield from _story_faults(kept)
    yield from _attempt_faults(kept)
    yield from _log_faults(kept, lines)
    if kept.workload.state not in ENDED:
        yield f"never ended: {kept.workload.state.value}, {kept.workload.reason.code.value}"


def _story_faults(kept: Kept) -> Iterator[str]:
    states = [line.state for line in kept.story]
    if not states:
        yield "has no story"
        return
    for before, after in pairwise(states):
        if before in ENDED:
            yield f"went on after it had ended: {before.value} -> {after.value}"
        elif after is not before and after not in FOLLOWS[before]:
            yield f"impossible step in its story: {before.value} -> {after.value}"
    if states[-1] is not kept.workload.state:
        yield f"its story ends {states[-1].value}, its state is {kept.workload.state.value}"
    if kept.workload.state in ENDED and not kept.workload.reason.code.value.startswith("ended."):
        yield f"ended without saying how: {kept.workload.reason.code.value}"


def _attempt_faults(kept: Kept) -> Iterator[str]:
    numbers = [attempt.number for attempt in kept.attempts]
    if numbers != list(range(1, len(numbers) + 1)):
        yield f"attempts are numbered {numbers}"
    for before, after in pairwise(kept.attempts):
        if before.ended_at is None or before.ended_at > after.created_at:
            yield f"attempt {after.number} began before attempt {before.number} had ended"


def _log_faults(kept: Kept, lines: int) -> Iterator[str]:
    """A log holds the job's lines from the first on without a gap; a success holds all of them."""
    whole = [f"line {number}" for number in range(lines)] + ["done"]
    for number, text in kept.logs.items():
        got = text.split("\n")[:-1]
        if got != whole[: len(got)]:
            yield f"the log of attempt {number} has a gap or a repeat: {got[:3]}...{got[-3:]}"
    if kept.workload.state is State.SUCCEEDED:
        last = kept.logs.get(kept.workload.attempts_made, "").split("\n")[:-1]
        if last != whole:
            yield f"succeeded, but its log has {len(last)} of {len(whole)} lines"


def _cards_given_twice(everything: Iterable[Kept]) -> Iterator[str]:
    held: dict[tuple[str, int], list[tuple[float, float, str]]] = {}
    for kept in everything:
        for attempt in kept.attempts:
            until = attempt.ended_at if attempt.ended_at is not None else float("inf")
            for replica in attempt.replicas:
                for share in replica.allotment.cards:
                    interval = (attempt.created_at, until, str(replica.id))
                    held.setdefault((replica.allotment.node, share.index), []).append(interval)
    for (node, card), intervals in held.items():
        for (_, until, first), (since, _, second) in pairwise(sorted(intervals)):
            if since < until:
                yield f"card {card} of {node} was given to {second} while {first} had it"
