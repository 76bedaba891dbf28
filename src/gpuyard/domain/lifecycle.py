"""The one lifecycle of all workloads: a table (state, event) -> what happens. What is not in it cannot happen.

    queued ──Placed──> placed ──Launched──> starting ──Observed──> running ──Observed──> succeeded
      ^ │                │                     │                      │
      │ └─PauseAsked──┐  └──────── an ending: stop, pause, preemption, time up, a failed replica
      │               v                        v
      │             paused <──────────────  stopping ──last replica gone──> stopped | failed | queued (retry)
      └─ResumeAsked───┘

`advance` is pure: it returns the new workload and the lines of its story. What must be done next (launch, stop) is read
from the state by control, again and again, so nothing is lost when a process dies in between.

A dev environment knows no other end than its owner's: where a job has succeeded or failed, it is paused with the reason
and can be started again.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from gpuyard.domain.amending import amended
from gpuyard.domain.cluster import Allotment
from gpuyard.domain.promises import PLACES, Places, as_facts, without_promise
from gpuyard.domain.reasons import NO_USE_RETRYING, Code, Reason, because
from gpuyard.domain.workload import (
    Attempt,
    Cause,
    Ending,
    Kind,
    Life,
    Replica,
    ReplicaId,
    Seen,
    State,
    StoryEvent,
    Verdict,
    Wanted,
    Workload,
)

BACK_OFF_BASE_SECONDS = 2.0
BACK_OFF_MAX_SECONDS = 300.0


@dataclass(frozen=True, slots=True)
class Placed:
    """The plan gave every replica of a new attempt its place."""

    allotments: Mapping[tuple[str, int], Allotment]  # (role, index) -> what it was given
    facts: Mapping[str, Any] = field(default_factory=dict)  # why it was its turn, for the story


@dataclass(frozen=True, slots=True)
class Launched:
    """Every replica has been handed to the engine."""

    handles: Mapping[ReplicaId, str]


@dataclass(frozen=True, slots=True)
class Observed:
    """What the engine sees of the replicas of the present attempt."""

    seen: Mapping[ReplicaId, Seen]


@dataclass(frozen=True, slots=True)
class StopAsked:
    by: str


@dataclass(frozen=True, slots=True)
class PauseAsked:
    by: str


@dataclass(frozen=True, slots=True)
class ResumeAsked:
    by: str


@dataclass(frozen=True, slots=True)
class Preempted:
    """It makes room for another workload, by a rule (guarantee or priority), or moves to another place for it."""

    by: str
    by_name: str = ""
    by_owner: str = ""
    by_group: str = ""
    rule: str = ""
    lost_seconds: float = 0.0  # of its work, since it was last saved
    ran_seconds: float = 0.0
    saved: bool = True  # whether it has saved anything, or says where it will
    to: Places = field(default_factory=dict)  # the place that is kept for it, when it only moves


@dataclass(frozen=True, slots=True)
class Saved:
    """The attempt's work is saved up to `at`: what a preemption would cost is counted from there."""

    at: float
    step: int | None = None


@dataclass(frozen=True, slots=True)
class Rested:
    """A dev environment is stopped by the platform, for a reason its owner agreed to: idle, or its timer."""

    reason: Reason


@dataclass(frozen=True, slots=True)
class TimeUp:
    """The attempt has run for its maximum duration."""


@dataclass(frozen=True, slots=True)
class Overflowed:
    """It has taken more of something than anybody may, and is ended."""

    reason: Reason


@dataclass(frozen=True, slots=True)
class LaunchFailed:
    """The engine said it cannot start a replica."""

    replica: ReplicaId
    detail: str
    reason: Reason | None = None  # the engine's own, where it has one


Event = (
    Placed
    | Launched
    | Observed
    | StopAsked
    | PauseAsked
    | ResumeAsked
    | Preempted
    | Saved
    | Rested
    | TimeUp
    | Overflowed
    | LaunchFailed
)


@dataclass(frozen=True, slots=True)
class Step:
    """A workload after an event, and what to write into its story."""

    workload: Workload
    story: tuple[StoryEvent, ...] = ()


class ImpossibleTransition(Exception):
    """An event came in a state that has no row for it. It is a mistake in the program, never in the input."""

    def __init__(self, workload: Workload, event: Event) -> None:
        super().__init__(f"{workload.id} is {workload.state.value} and cannot take {type(event).__name__}")


def advance(workload: Workload, event: Event, now: float) -> Step:
    """Apply one event. The version grows by one whenever anything changed, so that a stale writer is noticed."""
    rule = TABLE.get((workload.state, type(event)))
    if rule is None:
        raise ImpossibleTransition(workload, event)
    step = rule(workload, event, now)
    if step.workload is workload or step.workload.version != workload.version:
        return step
    return Step(amended(step.workload, version=workload.version + 1), step.story)


def can(workload: Workload, event: type[Event]) -> bool:
    return (workload.state, event) in TABLE


# --- from the queue -----------------------------------------------------------------------------------------------


def _place(workload: Workload, event: Placed, now: float) -> Step:
    number = workload.attempts_made + 1
    replicas = tuple(
        Replica(ReplicaId(workload.id, number, role.name, index), event.allotments[role.name, index])
        for role in workload.spec.roles
        for index in range(role.replicas)
    )
    nodes = sorted({replica.allotment.node for replica in replicas})
    reason = because(Code.PLACED, nodes=nodes[:20], attempt=number, **event.facts)
    attempt = _following(workload, Attempt(number, now, replicas), now)
    return _moved(workload, State.PLACED, reason, now, attempt=attempt, not_before=0.0)


def _following(workload: Workload, attempt: Attempt, now: float) -> Attempt:
    """It carries on what earlier ones were given and have saved. A dev environment begins anew with each start."""
    before = workload.attempt
    if before is None or workload.spec.kind is Kind.ENV:
        return attempt
    return amended(attempt, served_before=before.served(now), kept_before=before.kept)


def _end_without_attempt(workload: Workload, event: StopAsked, now: float) -> Step:
    return _moved(workload, State.STOPPED, because(Code.STOPPED, by=event.by), now, ended_at=now)


def _pause_in_queue(workload: Workload, event: PauseAsked, now: float) -> Step:
    attempt = without_promise(workload.attempt)
    return _moved(workload, State.PAUSED, _paused(workload, event.by), now, attempt=attempt)


def _paused(workload: Workload, by: str) -> Reason:
    """To people a dev environment is stopped or started; a job is paused, and keeps its place in the queue."""
    return because(Code.RESTS if workload.spec.kind is Kind.ENV else Code.PAUSED, by=by)


def _resume(workload: Workload, event: ResumeAsked, now: float) -> Step:
    code = Code.START_ASKED if workload.spec.kind is Kind.ENV else Code.RESUMED
    return _moved(workload, State.QUEUED, because(code, by=event.by), now, not_before=0.0)


def _saved_in_time(workload: Workload, event: Saved, now: float) -> Step:
    """It was preempted, and used its grace to save: less is lost than was feared."""
    attempt = workload.attempt
    if attempt is None or attempt.ended_at is None or attempt.started_at is None:
        return Step(workload)
    if attempt.ending is None or attempt.ending.verdict is not Verdict.PREEMPTED:
        return Step(workload)
    saved = _with_save(attempt, min(event.at, attempt.ended_at), event.step)
    if saved is attempt or saved.saved_at is None:
        return Step(workload)
    lost = attempt.ended_at - saved.saved_at
    reason = because(Code.SAVED_IN_TIME, step=saved.saved_step, lost_seconds=lost)
    line = StoryEvent(now, reason, workload.state, attempt.number)
    return Step(amended(workload, attempt=saved), (line,))


# --- while an attempt lives ---------------------------------------------------------------------------------------


def _launched(workload: Workload, event: Launched, now: float) -> Step:
    attempt = _attempt(workload)
    if event.handles:
        replicas = tuple(amended(r, handle=event.handles.get(r.id, r.handle)) for r in attempt.replicas)
        attempt = amended(attempt, replicas=replicas)
    reason = because(Code.STARTING, attempt=attempt.number)
    return _moved(workload, State.STARTING, reason, now, attempt=attempt)


def _observe(workload: Workload, event: Observed, now: float) -> Step:
    seen_before = _attempt(workload)
    attempt = _with_seen(seen_before, event.seen)
    if attempt is seen_before:
        return Step(workload)
    workload = amended(workload, attempt=attempt)
    if all(r.seen.life is Life.ENDED for r in attempt.replicas):
        return _settle(workload, now)
    completed = _completed_role(workload)
    if completed is not None:
        reason = because(Code.ROLE_COMPLETED, role=completed)
        return _begin_ending(workload, Ending(Verdict.COMPLETED, reason), now)
    failure = _first_failure(attempt)
    if failure is not None:
        return _begin_ending(workload, failure, now)
    if workload.state is State.STARTING and all(_has_started(r) for r in attempt.replicas):
        workload = _with_start(workload, now)
        return _moved(workload, State.RUNNING, because(Code.RUNNING, attempt=attempt.number), now)
    return Step(workload)


def _has_started(replica: Replica) -> bool:
    return replica.seen.life is not Life.ABSENT and replica.seen.started_at is not None


def _with_start(workload: Workload, at: float) -> Workload:
    """Note when the attempt started, and the workload if it never did before."""
    attempt = amended(_attempt(workload), started_at=at)
    return amended(workload, attempt=attempt, started_at=at if workload.started_at is None else workload.started_at)


def _launch_failed(workload: Workload, event: LaunchFailed, now: float) -> Step:
    reason = event.reason or because(Code.LAUNCH_FAILED, detail=event.detail, replica=event.replica.short)
    return _begin_ending(workload, Ending(Verdict.FAILED, reason, Cause.LAUNCH), now)


def _stop_running(workload: Workload, event: StopAsked, now: float) -> Step:
    return _begin_ending(workload, Ending(Verdict.STOPPED, because(Code.STOP_ASKED, by=event.by)), now)


def _pause_running(workload: Workload, event: PauseAsked, now: float) -> Step:
    code = Code.STOP_ASKED if workload.spec.kind is Kind.ENV else Code.PAUSE_ASKED
    return _begin_ending(workload, Ending(Verdict.PAUSED, because(code, by=event.by)), now)


def _preempt(workload: Workload, event: Preempted, now: float) -> Step:
    nodes = sorted({place.node for place in event.to.values()})
    moves = {"nodes": nodes, PLACES: as_facts(event.to)} if event.to else {}
    reason = because(
        Code.MOVES if event.to else Code.PREEMPTED,
        by=event.by,
        by_name=event.by_name,
        by_owner=event.by_owner,
        by_group=event.by_group,
        rule=event.rule,
        lost_seconds=event.lost_seconds,
        ran_seconds=event.ran_seconds,
        saved=event.saved,
        **moves,
    )
    return _begin_ending(workload, Ending(Verdict.PREEMPTED, reason), now)


def _saved(workload: Workload, event: Saved, now: float) -> Step:
    """It is no line in the story: it may come every few seconds."""
    attempt = _attempt(workload)
    saved = _with_save(attempt, min(event.at, now), event.step)
    return Step(workload if saved is attempt else amended(workload, attempt=saved))


def _time_up(workload: Workload, event: TimeUp, now: float) -> Step:
    reason = because(Code.TIME_UP, seconds=workload.spec.max_seconds)
    if workload.spec.kind is Kind.ENV:
        return _rest(workload, Rested(reason), now)
    return _begin_ending(workload, Ending(Verdict.FAILED, reason, Cause.TIME), now)


def _overflow(workload: Workload, event: Overflowed, now: float) -> Step:
    if workload.spec.kind is Kind.ENV:
        return _rest(workload, Rested(event.reason), now)
    return _begin_ending(workload, Ending(Verdict.FAILED, event.reason, Cause.EXIT), now)


def _rest(workload: Workload, event: Rested, now: float) -> Step:
    """From here on nobody wants it to run, until its owner starts it again."""
    return _begin_ending(_unwanted(workload), Ending(Verdict.PAUSED, event.reason), now)


def _unwanted(workload: Workload) -> Workload:
    return amended(workload, wanted=Wanted.PAUSE, wanted_by="")


def _begin_ending(workload: Workload, ending: Ending, now: float) -> Step:
    attempt = amended(_attempt(workload), ending=ending)
    return _moved(workload, State.STOPPING, ending.reason, now, attempt=attempt)


# --- while it stops -----------------------------------------------------------------------------------------------


def _observe_stopping(workload: Workload, event: Observed, now: float) -> Step:
    """Absent counts as gone here: control asks the engine to stop a replica before it believes its absence."""
    before = _attempt(workload)
    attempt = _with_seen(before, event.seen)
    gone = all(
        r.seen.life is Life.ENDED or (r.id in event.seen and event.seen[r.id].life is Life.ABSENT)
        for r in attempt.replicas
    )
    if gone:
        return _settle(amended(workload, attempt=attempt), now)
    return Step(workload if attempt is before else amended(workload, attempt=attempt))


def _stop_instead(workload: Workload, event: StopAsked, now: float) -> Step:
    """A stop while a pause, a preemption or a retry is under way wins: the owner wants it gone."""
    attempt = _attempt(workload)
    if attempt.ending is not None and attempt.ending.verdict is Verdict.STOPPED:
        return Step(workload)
    return _begin_ending(workload, Ending(Verdict.STOPPED, because(Code.STOP_ASKED, by=event.by)), now)


def _settle(workload: Workload, now: float) -> Step:
    """The last replica is gone: what becomes of the workload?"""
    workload = _with_missed_start(workload)
    attempt = _attempt(workload)
    ending = attempt.ending or (None if _completed_role(workload) else _first_failure(attempt))
    workload = amended(workload, attempt=amended(attempt, ending=ending, ended_at=now))
    if ending is None and workload.spec.kind is Kind.ENV:
        return _moved(_unwanted(workload), State.PAUSED, because(Code.LEFT), now)
    if ending is None or ending.verdict is Verdict.COMPLETED:
        return _moved(workload, State.SUCCEEDED, because(Code.SUCCEEDED), now, ended_at=now, exit_code=0)
    if ending.verdict is Verdict.STOPPED:
        by = ending.reason.facts.get("by", "")
        return _moved(workload, State.STOPPED, because(Code.STOPPED, by=by), now, ended_at=now)
    if ending.verdict is Verdict.PAUSED:
        by = ending.reason.facts.get("by")
        reason = ending.reason if by is None else _paused(workload, by)
        return _moved(workload, State.PAUSED, reason, now)
    if ending.verdict is Verdict.PREEMPTED:
        by = ending.reason.facts.get("by", "")
        return _moved(workload, State.QUEUED, because(Code.REQUEUED, by=by), now)
    return _retry_or_fail(workload, ending, now)


def _with_missed_start(workload: Workload) -> Workload:
    """Work that ended before anyone saw it run did run: its replicas tell when."""
    attempt = _attempt(workload)
    starts = [r.seen.started_at for r in attempt.replicas if r.seen.started_at is not None]
    return workload if attempt.started_at is not None or not starts else _with_start(workload, max(starts))


def _retry_or_fail(workload: Workload, ending: Ending, now: float) -> Step:
    cause = ending.cause or Cause.EXIT
    used = workload.retries_used.get(cause, 0)
    limit = workload.spec.retries.get(cause, 0)
    if used < limit and ending.reason.code not in NO_USE_RETRYING:
        seconds = back_off_seconds(used)
        reason = because(Code.RETRY, cause=ending.reason.to_json(), number=used + 1, limit=limit, seconds=seconds)
        retries_used = {**workload.retries_used, cause: used + 1}
        return _moved(workload, State.QUEUED, reason, now, retries_used=retries_used, not_before=now + seconds)
    if workload.spec.kind is Kind.ENV:  # what is installed in it is not lost with it: it can be started again
        return _moved(_unwanted(workload), State.PAUSED, ending.reason, now)
    return _moved(workload, State.FAILED, ending.reason, now, ended_at=now, exit_code=ending.exit_code)


def back_off_seconds(retries_used: int) -> float:
    """2, 4, 8 ... seconds, at most five minutes: a crash loop must not keep the platform busy."""
    doublings = min(retries_used, 30)  # far beyond the limit, and never too large for a float
    return min(BACK_OFF_BASE_SECONDS * 2.0**doublings, BACK_OFF_MAX_SECONDS)


# --- small pieces -------------------------------------------------------------------------------------------------


def _attempt(workload: Workload) -> Attempt:
    assert workload.attempt is not None, f"{workload.id} is {workload.state.value} without an attempt"
    return workload.attempt


def _with_seen(attempt: Attempt, seen: Mapping[ReplicaId, Seen]) -> Attempt:
    """Take over what is news. An end is final: a later look never un-ends a replica."""
    replicas, changed = [], False
    for replica in attempt.replicas:
        look = seen.get(replica.id)
        if look is not None and replica.seen.life is not Life.ENDED and look != replica.seen:
            replica, changed = amended(replica, seen=look), True
        replicas.append(replica)
    return amended(attempt, replicas=tuple(replicas)) if changed else attempt


def _with_save(attempt: Attempt, at: float, step: int | None) -> Attempt:
    """Only what is newer, and not of an earlier attempt."""
    if at <= max(attempt.started_at or attempt.created_at, attempt.saved_at or 0.0):
        return attempt
    return amended(attempt, saved_at=at, saved_step=attempt.saved_step if step is None else step)


def _failure(replica: Replica) -> Ending:
    reason = replica.seen.reason or because(Code.EXIT_CODE, exit_code=replica.seen.exit_code, replica=replica.id.short)
    return Ending(Verdict.FAILED, reason, replica.seen.cause, replica.seen.exit_code)


def _first_failure(attempt: Attempt) -> Ending | None:
    """None when no replica failed; otherwise the failure of the one that ended first, which drew the others along.

    One whose end has no known time (its machine is lost) comes last: the others say more.
    """
    failed = [r for r in attempt.replicas if r.seen.cause is not None]
    if not failed:
        return None
    return _failure(min(failed, key=lambda r: (math.inf if r.seen.ended_at is None else r.seen.ended_at, r.id)))


def _completed_role(workload: Workload) -> str | None:
    """The first role that completes the workload and whose replicas have all ended well."""
    replicas = _attempt(workload).replicas
    for role in workload.spec.roles:
        if role.completes and all(_ended_well(r) for r in replicas if r.id.role == role.name):
            return role.name
    return None


def _ended_well(replica: Replica) -> bool:
    return replica.seen.life is Life.ENDED and replica.seen.cause is None


def _moved(workload: Workload, state: State, reason: Reason, now: float, **changes: object) -> Step:
    version = workload.version + 1
    moved = amended(workload, state=state, reason=reason, version=version, **changes)
    return Step(moved, (StoryEvent(now, reason, state, moved.attempts_made, str(reason.facts.get("by", ""))),))


TABLE: Mapping[tuple[State, type[Event]], Callable[..., Step]] = {
    (State.QUEUED, Placed): _place,
    (State.QUEUED, StopAsked): _end_without_attempt,
    (State.QUEUED, PauseAsked): _pause_in_queue,
    (State.QUEUED, Saved): _saved_in_time,
    (State.PLACED, Launched): _launched,
    (State.PLACED, LaunchFailed): _launch_failed,
    (State.PLACED, StopAsked): _stop_running,
    (State.PLACED, PauseAsked): _pause_running,
    (State.STARTING, Observed): _observe,
    (State.STARTING, StopAsked): _stop_running,
    (State.STARTING, PauseAsked): _pause_running,
    (State.STARTING, Preempted): _preempt,
    (State.STARTING, TimeUp): _time_up,
    (State.STARTING, Overflowed): _overflow,
    (State.STARTING, Rested): _rest,
    (State.RUNNING, Observed): _observe,
    (State.RUNNING, StopAsked): _stop_running,
    (State.RUNNING, PauseAsked): _pause_running,
    (State.RUNNING, Preempted): _preempt,
    (State.RUNNING, TimeUp): _time_up,
    (State.RUNNING, Overflowed): _overflow,
    (State.RUNNING, Rested): _rest,
    (State.RUNNING, Saved): _saved,
    (State.STOPPING, Observed): _observe_stopping,
    (State.STOPPING, StopAsked): _stop_instead,
    (State.PAUSED, ResumeAsked): _resume,
    (State.PAUSED, StopAsked): _end_without_attempt,
}
