"""How much a workload has been given itself, or has left: what its turn is found by where use does not decide it.

Two such orders. `shortest`: the least left of the declared maximum, which is enforced. `least_served`: the least
card-time so far, all attempts counted, in levels that grow by a factor; it needs no run times. Both numbers stand still
while a workload waits, so those alike keep standing in one batch.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from math import inf
from typing import Any

from gpuyard.domain.policy import First, Ordering
from gpuyard.domain.reasons import Code, Reason, because
from gpuyard.domain.resources import WHOLE_CARD
from gpuyard.domain.workload import Spec, Workload

NONE = 0.0  # the rank of everybody where use decides
A_HAIR = 1e-3  # seconds: so that nobody looks just before a level is reached


def cards_of(spec: Spec, rule: Ordering) -> float:
    """Cards, or cores as parts of a card where that is more: as it asks, wherever it will be placed."""
    total = 0.0
    for role in spec.roles:
        asked = role.resources
        cores = (asked.cpu_milli or WHOLE_CARD) / rule.cores_per_card if asked.cpu_milli or not asked.cards else 0.0
        total += role.replicas * max(asked.cards.milli if asked.cards else 0, cores)
    return total / WHOLE_CARD


def card_seconds(workload: Workload, rule: Ordering, now: float) -> float:
    """What it has been given so far."""
    attempt = workload.attempt
    return 0.0 if attempt is None else attempt.served(now) * cards_of(workload.spec, rule)


def seconds_left(workload: Workload, now: float) -> float:
    """Of its declared maximum, beside what is saved; infinity when it declares none. What runs is taken at its word:
    it would be done after this."""
    spec, attempt = workload.spec, workload.attempt
    if spec.max_seconds is None:
        return inf
    if attempt is None:
        return spec.max_seconds
    done = attempt.kept
    if attempt.ended_at is None and attempt.started_at is not None:
        done = max(done, attempt.kept_before + now - attempt.started_at)
    return max(0.0, spec.max_seconds - done)


def rank(workload: Workload, rule: Ordering, now: float) -> float:
    """The smaller one comes first. Of one that waits it does not depend on the time."""
    if rule.first is First.SHORTEST:
        return seconds_left(workload, now)
    if rule.first is First.LEAST_SERVED:
        return level_of(card_seconds(workload, rule, now), rule)
    return NONE


def level_of(served: float, rule: Ordering) -> int:
    """The level of so much card-time: counted from zero, the last one without end."""
    level, end = 0, rule.first_level
    while level < rule.levels - 1 and served >= end:
        level, end = level + 1, end * rule.next_level
    return level


def by_itself(theirs: Mapping[str, Any], mine: Mapping[str, Any]) -> Reason:
    """Why one comes first that had less, or has less left; the numbers of both, as `Turns.by_itself` tells them."""
    if "served" in theirs or "served" in mine:
        return because(Code.RULE_LEAST_SERVED, **_rounded(theirs.get("served"), mine.get("served")))
    return because(Code.RULE_SHORTEST, **_rounded(theirs.get("left"), mine.get("left")))


def _rounded(theirs: Any, mine: Any) -> dict[str, float]:
    """Who declares no end has no number."""
    numbers = {"theirs": theirs, "mine": mine}
    return {name: round(float(number), 2) for name, number in numbers.items() if number is not None and number < inf}


def crossings(workload: Workload, rule: Ordering, now: float) -> Iterator[float]:
    """When work that runs on will come to its next levels: then the order changes by itself."""
    if rule.first is not First.LEAST_SERVED:
        return
    served, cards, end = card_seconds(workload, rule, now), cards_of(workload.spec, rule), rule.first_level
    for _ in range(rule.levels - 1):
        if served < end and cards > 0:
            yield now + (end - served) / cards + A_HAIR
        end *= rule.next_level
