"""Single steps of the lifecycle, each as a sentence. The laws over all ways are in test_lifecycle_laws.py."""

from __future__ import annotations

from dataclasses import replace

import pytest
from tests.draw import a_job

from gpuyard.domain.cluster import Allotment
from gpuyard.domain.lifecycle import (
    BACK_OFF_MAX_SECONDS,
    ImpossibleTransition,
    Launched,
    LaunchFailed,
    Observed,
    PauseAsked,
    Placed,
    Preempted,
    ResumeAsked,
    Saved,
    StopAsked,
    TimeUp,
    advance,
    back_off_seconds,
    can,
)
from gpuyard.domain.reasons import Code, because
from gpuyard.domain.workload import Cause, Kind, Life, Replica, RoleSpec, Seen, State, Workload

RUNNING = Seen(Life.RUNNING, started_at=0.0)
DONE = Seen(Life.ENDED, exit_code=0, started_at=0.0, ended_at=5.0)
ABSENT = Seen(Life.ABSENT)


def failed(at: float | None = 5.0, code: int = 1, cause: Cause = Cause.EXIT) -> Seen:
    return Seen(Life.ENDED, code, cause, because(Code.EXIT_CODE, exit_code=code), 0.0, at)


def with_retries(job: Workload, **allowed: int) -> Workload:
    retries = {**job.spec.retries, **{Cause(cause): count for cause, count in allowed.items()}}
    return replace(job, spec=replace(job.spec, retries=retries))


def placed(job: Workload, now: float = 0.0) -> Workload:
    places = {(r.name, i): Allotment(f"node{i}", 1, 1, 1) for r in job.spec.roles for i in range(r.replicas)}
    return advance(job, Placed(places), now).workload


def launched(job: Workload, now: float = 0.0) -> Workload:
    job = placed(job, now)
    return advance(job, Launched({r.id: f"handle of {r.id}" for r in replicas(job)}), now).workload


def observed(job: Workload, *seen: Seen, now: float = 0.0) -> Workload:
    return advance(job, Observed(dict(zip((r.id for r in replicas(job)), seen, strict=False))), now).workload


def running(job: Workload, now: float = 0.0) -> Workload:
    job = launched(job, now)
    return observed(job, *[RUNNING] * len(replicas(job)), now=now)


def replicas(job: Workload) -> tuple[Replica, ...]:
    assert job.attempt is not None
    return job.attempt.replicas


def test_a_job_goes_from_the_queue_to_success() -> None:
    job = placed(a_job())
    assert (job.state, job.attempts_made) == (State.PLACED, 1)
    job = advance(job, Launched({}), 1.0).workload
    assert job.state is State.STARTING
    job = observed(job, RUNNING, now=2.0)
    assert (job.state, job.started_at) == (State.RUNNING, 2.0)
    job = observed(job, DONE, now=9.0)
    assert (job.state, job.exit_code, job.ended_at) == (State.SUCCEEDED, 0, 9.0)


def test_it_runs_even_when_the_clock_begins_at_zero() -> None:
    job = observed(launched(a_job()), Seen(Life.RUNNING, started_at=0.0), now=0.0)
    assert job.state is State.RUNNING
    assert job.started_at == 0.0


def test_a_gang_is_running_only_when_all_of_it_runs() -> None:
    job = launched(a_job(replicas=2))
    job = observed(job, RUNNING)
    assert job.state is State.STARTING
    assert observed(job, RUNNING, RUNNING).state is State.RUNNING


def test_work_that_ended_before_anyone_saw_it_run_still_has_its_start() -> None:
    job = observed(launched(a_job()), Seen(Life.ENDED, 0, started_at=3.0, ended_at=4.0), now=5.0)
    assert (job.state, job.started_at, job.ended_at) == (State.SUCCEEDED, 3.0, 5.0)
    assert job.attempt is not None
    assert job.attempt.started_at == 3.0


def test_one_failed_replica_ends_the_whole_gang() -> None:
    job = observed(running(a_job(replicas=2)), failed(code=3), RUNNING)
    assert job.state is State.STOPPING
    job = observed(job, failed(code=3), failed(at=6.0, code=143))
    assert (job.state, job.exit_code) == (State.FAILED, 3)


def test_the_replica_that_failed_first_gives_the_reason() -> None:
    job = observed(running(a_job(replicas=3)), failed(at=9.0, code=143), failed(at=5.0, code=7), RUNNING)
    assert job.reason.facts["exit_code"] == 7


def test_a_lost_replica_without_a_time_of_death_does_not_hide_the_real_failure() -> None:
    lost = Seen(Life.ENDED, None, Cause.LOST, because(Code.NODE_LOST, node="node0"))
    job = observed(running(a_job(replicas=2)), lost, failed(at=5.0, code=7))
    assert job.reason.code is Code.EXIT_CODE


def test_a_failure_is_retried_after_a_pause_and_keeps_its_place_in_the_queue() -> None:
    job = with_retries(a_job(at=50.0), exit=1)
    job = observed(running(job), failed(), now=100.0)
    assert (job.state, job.reason.code, job.not_before) == (State.QUEUED, Code.RETRY, 102.0)
    assert job.reason.facts["cause"]["code"] == "ended.exit_code"
    assert (job.submitted_at, job.retries_used) == (50.0, {Cause.EXIT: 1})
    job = observed(running(job, now=103.0), failed(), now=110.0)
    assert (job.state, job.attempts_made) == (State.FAILED, 2)


def test_each_cause_has_its_own_allowance() -> None:
    job = with_retries(a_job(), exit=0, lost=1)
    job = observed(running(job), failed(cause=Cause.LOST))
    assert job.state is State.QUEUED
    assert observed(running(job), failed()).state is State.FAILED


def test_a_resume_is_a_new_attempt_but_not_a_retry() -> None:
    job = advance(running(a_job()), PauseAsked("ann"), 1.0).workload
    assert job.state is State.STOPPING
    job = observed(job, DONE, now=2.0)
    assert job.state is State.PAUSED
    job = placed(advance(job, ResumeAsked("ann"), 3.0).workload)
    assert (job.attempts_made, dict(job.retries_used)) == (2, {})


def test_preempted_work_goes_back_to_its_place_without_using_a_retry() -> None:
    job = observed(advance(running(a_job(at=7.0)), Preempted("urgent"), 1.0).workload, failed())
    assert (job.state, job.submitted_at, dict(job.retries_used)) == (State.QUEUED, 7.0, {})


def saved(job: Workload) -> tuple[float | None, int | None]:
    assert job.attempt is not None
    return job.attempt.saved_at, job.attempt.saved_step


def test_when_work_was_saved_is_noted_when_it_is_news_and_is_no_line_in_the_story() -> None:
    job = running(a_job(), now=10.0)
    step = advance(job, Saved(20.0, 120), 25.0)
    assert (saved(step.workload), step.story) == ((20.0, 120), ())
    assert advance(step.workload, Saved(20.0, 120), 26.0).workload is step.workload
    assert advance(step.workload, Saved(15.0, 90), 26.0).workload is step.workload
    assert saved(advance(step.workload, Saved(22.0), 26.0).workload) == (22.0, 120)


def test_what_preempted_work_saved_in_its_grace_is_told_in_its_story() -> None:
    job = observed(advance(running(a_job(), now=10.0), Preempted("urgent"), 100.0).workload, failed(), now=108.0)
    step = advance(job, Saved(103.0, 40), 110.0)
    assert (saved(step.workload), step.workload.state) == ((103.0, 40), State.QUEUED)
    assert step.workload.reason == job.reason
    (line,) = step.story
    assert line.reason == because(Code.SAVED_IN_TIME, step=40, lost_seconds=5.0)
    assert advance(step.workload, Saved(103.0, 40), 111.0).workload is step.workload
    for other in (a_job(), with_retries(observed(running(with_retries(a_job(), exit=1)), failed()), exit=1)):
        assert other.state is State.QUEUED
        assert advance(other, Saved(103.0, 40), 110.0).workload is other


def test_work_saved_in_an_earlier_attempt_does_not_count_and_none_is_saved_in_the_future() -> None:
    job = running(a_job(), now=10.0)
    assert advance(job, Saved(9.0), 25.0).workload is job
    assert saved(advance(job, Saved(99.0), 25.0).workload) == (25.0, None)


@pytest.mark.parametrize("event", [PauseAsked("ann"), Preempted("urgent"), TimeUp()])
def test_a_stop_wins_over_whatever_was_ending_it(event: PauseAsked | Preempted | TimeUp) -> None:
    job = advance(running(with_retries(a_job(), time=3)), event, 1.0).workload
    job = advance(job, StopAsked("ann"), 2.0).workload
    assert observed(job, failed()).state is State.STOPPED


def test_asking_twice_to_stop_changes_nothing() -> None:
    job = advance(running(a_job()), StopAsked("ann"), 1.0).workload
    assert advance(job, StopAsked("bob"), 2.0).workload is job


def test_a_stopping_replica_that_was_never_launched_counts_as_gone() -> None:
    job = advance(placed(a_job(replicas=2)), StopAsked("ann"), 1.0).workload
    job = observed(job, failed())
    assert job.state is State.STOPPING
    assert observed(job, failed(), ABSENT).state is State.STOPPED


def test_a_silent_engine_ends_nothing() -> None:
    job = advance(running(a_job()), StopAsked("ann"), 1.0).workload
    assert advance(job, Observed({}), 2.0).workload is job


def test_an_end_is_final_whatever_is_seen_later() -> None:
    job = observed(running(a_job(replicas=2)), DONE)
    assert observed(job, RUNNING) is job


def test_what_is_seen_of_an_older_attempt_is_ignored() -> None:
    first = running(with_retries(a_job(), exit=1))
    old = Observed({r.id: failed() for r in replicas(first)})
    second = running(advance(first, old, 1.0).workload)
    assert advance(second, old, 2.0).workload is second


def test_a_failed_launch_is_retried_by_its_own_cause() -> None:
    job = placed(with_retries(a_job(), launch=1))
    job = advance(job, LaunchFailed(replicas(job)[0].id, "no such image"), 1.0).workload
    assert (job.state, job.reason.facts["detail"]) == (State.STOPPING, "no such image")
    job = observed(job, ABSENT)
    assert (job.state, job.retries_used) == (State.QUEUED, {Cause.LAUNCH: 1})


@pytest.mark.parametrize("state", [State.SUCCEEDED, State.FAILED, State.STOPPED])
@pytest.mark.parametrize("event", [StopAsked("a"), PauseAsked("a"), ResumeAsked("a"), TimeUp(), Observed({})])
def test_nothing_moves_what_has_ended(state: State, event: StopAsked | PauseAsked | ResumeAsked | TimeUp) -> None:
    job = replace(a_job(), state=state)
    assert not can(job, type(event))
    with pytest.raises(ImpossibleTransition):
        advance(job, event, 1.0)


def test_the_pause_between_retries_doubles_up_to_five_minutes() -> None:
    assert [back_off_seconds(n) for n in range(4)] == [2.0, 4.0, 8.0, 16.0]
    assert back_off_seconds(20) == back_off_seconds(10**9) == BACK_OFF_MAX_SECONDS


def with_a_launcher() -> Workload:
    """A launcher whose end completes the job, and two workers that would stay for ever."""
    job = a_job(replicas=2)
    launcher = RoleSpec("launcher", ("true",), completes=True)
    return replace(job, spec=replace(job.spec, roles=(launcher, *job.spec.roles)))


def test_a_job_succeeds_with_the_role_that_completes_it_and_the_others_are_stopped() -> None:
    job = observed(running(with_a_launcher()), DONE, RUNNING, RUNNING, now=7.0)
    assert (job.state, job.reason.code) == (State.STOPPING, Code.ROLE_COMPLETED)
    killed = failed(at=8.0, code=137)
    job = observed(job, DONE, killed, killed, now=9.0)
    assert (job.state, job.exit_code, job.ended_at) == (State.SUCCEEDED, 0, 9.0)


def test_a_job_succeeds_when_its_others_failed_in_the_moment_the_completing_role_ended_well() -> None:
    job = observed(running(with_a_launcher()), DONE, failed(), failed(), now=7.0)
    assert job.state is State.SUCCEEDED


def test_a_job_fails_when_the_role_that_would_complete_it_fails() -> None:
    job = observed(running(with_a_launcher()), failed(), RUNNING, RUNNING, now=7.0)
    job = observed(job, failed(), DONE, DONE, now=9.0)
    assert (job.state, job.exit_code) == (State.FAILED, 1)


def test_a_job_goes_on_while_not_all_of_the_completing_role_have_ended() -> None:
    job = with_a_launcher()
    launcher, workers = job.spec.roles
    job = replace(job, spec=replace(job.spec, roles=(replace(launcher, replicas=2), workers)))
    assert observed(running(job), DONE, RUNNING, RUNNING, RUNNING).state is State.RUNNING


def test_a_job_that_its_owner_stops_is_stopped_even_when_the_completing_role_ends_well_meanwhile() -> None:
    job = advance(running(with_a_launcher()), StopAsked("ann"), 1.0).workload
    assert observed(job, DONE, DONE, DONE, now=2.0).state is State.STOPPED


def test_what_earlier_attempts_held_and_saved_is_carried_along() -> None:
    job = running(a_job(), now=10.0)
    job = advance(job, Saved(25.0), 30.0).workload
    job = advance(job, Preempted("other"), 40.0).workload
    job = observed(job, ABSENT, now=45.0)
    assert job.attempt is not None
    assert (job.attempt.served(1000.0), job.attempt.kept) == (35.0, 15.0)
    job = running(job, now=100.0)
    assert job.attempt is not None
    assert (job.attempt.served(107.0), job.attempt.kept) == (42.0, 15.0)


def test_an_environment_begins_anew_with_each_start() -> None:
    env = a_job()
    env = replace(env, spec=replace(env.spec, kind=Kind.ENV))
    env = running(env, now=10.0)
    env = observed(advance(env, PauseAsked("ann"), 50.0).workload, ABSENT, now=50.0)
    env = placed(advance(env, ResumeAsked("ann"), 60.0).workload, now=60.0)
    assert env.attempt is not None
    assert env.attempt.served(65.0) == 5.0
