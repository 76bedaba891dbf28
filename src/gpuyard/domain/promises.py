"""A place that is promised to work while it moves: written with the end of its attempt, so that nothing forgets it.

Work that is moved is put back into the queue like any preempted work, and starts again on these very cards.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

from gpuyard.domain.cluster import Allotment, CardShare
from gpuyard.domain.workload import Attempt, State, Verdict, Workload

Places = Mapping[tuple[str, int], Allotment]  # (role, index) -> what the replica will have
PLACES = "to"  # the fact that holds them


class Promise(NamedTuple):
    by: str  # the one it moves for
    places: dict[tuple[str, int], Allotment]


def as_facts(places: Places) -> list[dict[str, Any]]:
    return [
        {
            "role": role,
            "index": index,
            "node": one.node,
            "cpu": one.cpu_milli,
            "memory": one.memory,
            "shm": one.shm,
            "device": one.device,
            "cards": [[share.index, share.milli] for share in one.cards],
            "simulated": one.simulated,
        }
        for (role, index), one in places.items()
    ]


def promise_of(workload: Workload) -> Promise | None:
    """Where it goes on once it has stopped; None unless it is moving."""
    ending = workload.attempt.ending if workload.attempt is not None else None
    if ending is None or ending.verdict is not Verdict.PREEMPTED:
        return None
    told = ending.reason.facts.get(PLACES)
    if not told or workload.state not in (State.STOPPING, State.QUEUED):
        return None
    return Promise(str(ending.reason.facts.get("by", "")), _places(told))


def _places(told: Sequence[Mapping[str, Any]]) -> dict[tuple[str, int], Allotment]:
    return {
        (one["role"], one["index"]): Allotment(
            one["node"],
            one["cpu"],
            one["memory"],
            one["shm"],
            one["device"],
            tuple(CardShare(index, milli) for index, milli in one["cards"]),
            one["simulated"],
        )
        for one in told
    }


def without_promise(attempt: Attempt | None) -> Attempt | None:
    """Its owner has other plans: nothing is kept for it any longer."""
    ending = attempt.ending if attempt is not None else None
    if attempt is None or ending is None or PLACES not in ending.reason.facts:
        return attempt
    facts = {key: value for key, value in ending.reason.facts.items() if key != PLACES}
    return replace(attempt, ending=replace(ending, reason=replace(ending.reason, facts=facts)))
