"""The numbers of a rehearsal: waits, completion times, how full the cluster was, interruptions."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from gpuyard.domain.policy import HOUR
from gpuyard.rehearsal.results import Outcome, Result


@dataclass(frozen=True, slots=True)
class Spread:
    """Of many numbers; zeros when there are none."""

    mean: float = 0.0
    median: float = 0.0
    p90: float = 0.0
    p99: float = 0.0
    most: float = 0.0


@dataclass(frozen=True, slots=True)
class Summary:
    jobs: int
    started: int
    over: int
    wait: Spread  # seconds, of those that started
    completion: Spread  # seconds, of those that are over
    utilisation: float  # of all card-seconds from the first to the last thing that happened
    busiest: float  # the same while work came in: the time after the last arrival only empties the cluster
    preemptions: int
    lost_card_hours: float
    seconds: float  # from the first to the last thing that happened


def spread(values: Iterable[float]) -> Spread:
    ordered = sorted(values)
    if not ordered:
        return Spread()
    return Spread(
        mean=sum(ordered) / len(ordered),
        median=quantile(ordered, 0.5),
        p90=quantile(ordered, 0.9),
        p99=quantile(ordered, 0.99),
        most=ordered[-1],
    )


def quantile(ordered: Sequence[float], share: float) -> float:
    """The smallest of them that at least this part does not exceed."""
    place = -(-len(ordered) * round(share * 10_000) // 10_000) - 1
    return ordered[min(len(ordered) - 1, max(0, place))]


def summary(result: Result) -> Summary:
    outcomes = result.outcomes
    last = max((outcome.submitted for outcome in outcomes), default=result.ended)
    return Summary(
        jobs=len(outcomes),
        started=sum(1 for outcome in outcomes if outcome.starts),
        over=sum(1 for outcome in outcomes if outcome.is_over),
        wait=spread(_known(outcomes, lambda outcome: outcome.wait)),
        completion=spread(_known(outcomes, lambda outcome: outcome.completion)),
        utilisation=result.timeline.utilisation(),
        busiest=result.timeline.utilisation(until=last),
        preemptions=sum(outcome.preemptions for outcome in outcomes),
        lost_card_hours=sum(outcome.lost * outcome.cards for outcome in outcomes) / HOUR,
        seconds=result.ended - result.began,
    )


def _known(outcomes: Iterable[Outcome], read: Callable[[Outcome], float | None]) -> Iterable[float]:
    return (value for outcome in outcomes if (value := read(outcome)) is not None)
