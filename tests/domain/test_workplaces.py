"""The lifecycle of dev environments: they rest where a job would end."""

from __future__ import annotations

from dataclasses import replace

import pytest
from tests.domain.test_lifecycle import ABSENT, DONE, failed, launched, observed, running
from tests.draw import a_job

from gpuyard.domain.lifecycle import LaunchFailed, PauseAsked, Rested, ResumeAsked, StopAsked, TimeUp, advance
from gpuyard.domain.reasons import Code, because
from gpuyard.domain.workload import Cause, Kind, State, Wanted, Workload

IDLE = because(Code.IDLE, idle_seconds=60.0)


def an_env(**retries: int) -> Workload:
    job = a_job()
    allowed = dict.fromkeys(Cause, 0) | {Cause(cause): count for cause, count in retries.items()}
    return replace(job, spec=replace(job.spec, kind=Kind.ENV, retries=allowed))


def test_stopped_by_its_owner_it_rests_and_can_be_started_again() -> None:
    env = replace(running(an_env()), wanted=Wanted.PAUSE, wanted_by="ann")
    stopping = advance(env, PauseAsked("ann"), 5.0).workload
    assert stopping.reason == because(Code.STOP_ASKED, by="ann")
    resting = observed(stopping, ABSENT, now=6.0)
    assert (resting.state, resting.reason) == (State.PAUSED, because(Code.RESTS, by="ann"))
    again = advance(resting, ResumeAsked("ann"), 7.0).workload
    assert (again.state, again.reason) == (State.QUEUED, because(Code.START_ASKED, by="ann"))


def test_stopped_for_idleness_it_rests_with_that_reason_and_nobody_wants_it_to_run() -> None:
    resting = observed(advance(running(an_env()), Rested(IDLE), 5.0).workload, DONE, now=6.0)
    assert (resting.state, resting.reason, resting.wanted) == (State.PAUSED, IDLE, Wanted.PAUSE)


def test_it_rests_when_its_maximum_time_is_over() -> None:
    env = running(an_env())
    env = replace(env, spec=replace(env.spec, max_seconds=10.0))
    resting = observed(advance(env, TimeUp(), 10.0).workload, DONE, now=11.0)
    assert (resting.state, resting.reason.code, resting.wanted) == (State.PAUSED, Code.TIME_UP, Wanted.PAUSE)


@pytest.mark.parametrize("seen", [failed(code=137), failed(cause=Cause.OOM), failed(cause=Cause.LOST)])
def test_a_failure_without_a_retry_left_rests_with_the_reason(seen: object) -> None:
    resting = observed(running(an_env()), seen)  # type: ignore[arg-type]
    assert (resting.state, resting.wanted) == (State.PAUSED, Wanted.PAUSE)
    assert resting.reason == seen.reason  # type: ignore[attr-defined]
    assert resting.ended_at is None


def test_a_lost_machine_brings_it_back_by_itself() -> None:
    waiting = observed(running(an_env(lost=1)), failed(cause=Cause.LOST))
    assert (waiting.state, waiting.wanted) == (State.QUEUED, Wanted.RUN)


def test_one_that_could_not_be_started_rests() -> None:
    env = launched(an_env())
    env = replace(env, state=State.PLACED)
    assert env.attempt is not None
    ending = advance(env, LaunchFailed(env.attempt.replicas[0].id, "no such image"), 5.0).workload
    resting = observed(ending, ABSENT, now=6.0)
    assert (resting.state, resting.reason.code) == (State.PAUSED, Code.LAUNCH_FAILED)


def test_one_that_ends_by_itself_rests() -> None:
    resting = observed(running(an_env()), DONE)
    assert (resting.state, resting.reason.code, resting.wanted) == (State.PAUSED, Code.LEFT, Wanted.PAUSE)


def test_removed_by_its_owner_it_has_ended() -> None:
    gone = observed(advance(running(an_env()), StopAsked("ann"), 5.0).workload, ABSENT, now=6.0)
    assert gone.state is State.STOPPED
    assert advance(observed(running(an_env()), DONE), StopAsked("ann"), 7.0).workload.state is State.STOPPED
