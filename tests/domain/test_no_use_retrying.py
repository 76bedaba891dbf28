"""What plainly cannot run is not tried again: somebody has to change something first."""

from __future__ import annotations

from dataclasses import replace

import pytest
from tests.draw import a_job

from gpuyard.domain.cluster import Allotment
from gpuyard.domain.lifecycle import Launched, Observed, Placed, advance
from gpuyard.domain.reasons import NO_USE_RETRYING, Code, because
from gpuyard.domain.workload import Cause, Life, Seen, State, Workload


def ended_before_its_start(code: Code) -> Workload:
    """A job with two launch retries left, whose only replica was not started for this reason."""
    job = a_job()
    job = replace(job, spec=replace(job.spec, retries={**job.spec.retries, Cause.LAUNCH: 2}))
    places = {(role.name, n): Allotment("node", 1, 1, 1) for role in job.spec.roles for n in range(role.replicas)}
    job = advance(job, Placed(places), 0.0).workload
    assert job.attempt is not None
    ids = [replica.id for replica in job.attempt.replicas]
    job = advance(job, Launched(dict.fromkeys(ids, "handle")), 0.0).workload
    seen = Seen(Life.ENDED, None, Cause.LAUNCH, because(code, path="train.py"), None, 1.0)
    return advance(job, Observed(dict.fromkeys(ids, seen)), 1.0).workload


@pytest.mark.parametrize("code", sorted(NO_USE_RETRYING))
def test_what_would_end_alike_fails_at_once_and_says_why(code: Code) -> None:
    job = ended_before_its_start(code)
    assert (job.state, job.reason.code, dict(job.retries_used)) == (State.FAILED, code, {})


def test_an_upload_that_is_under_way_is_worth_another_try() -> None:
    job = ended_before_its_start(Code.UPLOAD_UNDER_WAY)
    assert (job.state, dict(job.retries_used)) == (State.QUEUED, {Cause.LAUNCH: 1})
