"""What ended attempts have used, charged to their group and their owner, and how long good ones took. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from gpuyard.domain.policy import Ordering
from gpuyard.domain.usage import PastUse
from gpuyard.domain.workload import Attempt, State, Workload
from gpuyard.scheduling.share import charged, rate_of
from gpuyard.scheduling.snapshot import JobName, Person

MOST_RUN_TIMES = 20  # of one name: enough to learn from


@dataclass(frozen=True, slots=True)
class Bill:
    """What is to be written in place of what was known: past use, and run times with the newest first."""

    past: dict[Person, PastUse] = field(default_factory=dict)
    run_times: dict[JobName, tuple[float, ...]] = field(default_factory=dict)


def bill(
    steps: Iterable[tuple[Workload, Workload]],
    past: Mapping[Person, PastUse],
    run_times: Mapping[JobName, tuple[float, ...]],
    rule: Ordering,
) -> Bill:
    """For workloads as they were and as they are now: those that let go of what they held have to pay for it."""
    made = Bill()
    for before, after in steps:
        attempt = after.attempt
        if not before.holds_resources or after.holds_resources or attempt is None or attempt.ended_at is None:
            continue
        rate = rate_of((replica.allotment for replica in attempt.replicas), rule.cores_per_card)
        for person in ((before.group, None), (before.group, before.owner)):
            known = made.past.get(person) or past.get(person)
            made.past[person] = charged(known, rate, attempt.created_at, attempt.ended_at, rule.half_life)
        if after.state is State.SUCCEEDED:
            name = (after.owner, after.spec.name)
            earlier = made.run_times.get(name) or run_times.get(name, ())
            made.run_times[name] = (_seconds(attempt, attempt.ended_at), *earlier[: MOST_RUN_TIMES - 1])
    return made


def _seconds(attempt: Attempt, ended_at: float) -> float:
    begun = attempt.started_at if attempt.started_at is not None else attempt.created_at
    return round(max(0.0, ended_at - begun), 3)
