"""When time alone can change what is decided, with no arrival and no end: then a cycle is due as well."""

from __future__ import annotations

from collections.abc import Iterator

from gpuyard.domain.policy import Defragmenting, Policy
from gpuyard.domain.workload import MAX_PRIORITY, Workload
from gpuyard.scheduling.service import crossings


def while_it_runs(workload: Workload, policy: Policy, now: float) -> Iterator[float]:
    """For work that has just started: from when on it may be interrupted, and when its turn becomes a later one."""
    if not workload.spec.preemptible:
        return
    if policy.defragment.mode is Defragmenting.MOVE:
        yield now + policy.defragment.min_run
    if policy.preempt.enabled:
        if policy.preempt.min_run > 0:
            yield now + policy.preempt.min_run
        yield from crossings(workload, policy.order, now)


def others_move_for_it(workload: Workload, policy: Policy) -> float | None:
    """From when on running work may be moved for one that waits; None: never."""
    rule = policy.defragment
    return workload.submitted_at + rule.after if rule.mode is Defragmenting.MOVE else None


def next_raise(workload: Workload, policy: Policy, now: float) -> float | None:
    """When waiting next raises its priority; None: never again."""
    rule = policy.order
    if not rule.age_points:
        return None
    steps = max(0, int((now - workload.submitted_at) // rule.age_every))
    if workload.spec.priority + steps * rule.age_points >= MAX_PRIORITY:
        return None
    raised_at = workload.submitted_at + (steps + 1) * rule.age_every
    # A hair's breadth before a step, as numbers with a fraction go, that step is the one that is being taken.
    return raised_at if raised_at > now else raised_at + rule.age_every
