"""What an engine would report of replicas that run, end, or are lost with their machine."""

from __future__ import annotations

from gpuyard.domain.reasons import Code, because
from gpuyard.domain.workload import Cause, Life, Replica, Seen, Workload


def begun_at(workload: Workload, otherwise: float) -> float:
    attempt = workload.attempt
    return attempt.started_at if attempt is not None and attempt.started_at is not None else otherwise


def end_of(replica: Replica, fails: Cause | None, now: float) -> Seen:
    begun = replica.seen.started_at
    if fails is None:
        return Seen(Life.ENDED, 0, None, None, begun, now)
    reason = because(Code.EXIT_CODE, exit_code=1, replica=replica.id.short)
    return Seen(Life.ENDED, 1, fails, reason, begun, now)


def lost_with(replica: Replica, now: float) -> Seen:
    reason = because(Code.NODE_LOST, node=replica.allotment.node, replica=replica.id.short)
    return Seen(Life.ENDED, None, Cause.LOST, reason, replica.seen.started_at, now)
