"""The checker sees every fault it is there for."""

from __future__ import annotations

from dataclasses import replace

import pytest
from tests.draw import a_job
from tests.faults.checker import History, Kept, check

from gpuyard.domain.cluster import Allotment, CardShare
from gpuyard.domain.lifecycle import Launched, Observed, Placed, StopAsked, advance
from gpuyard.domain.reasons import Code, because
from gpuyard.domain.workload import Life, Seen, State, StoryEvent, Workload

LINES = 3
LOG = "line 0\nline 1\nline 2\ndone\n"


def finished(id: str, at: float, card: int = 0) -> Kept:
    job = a_job(id, cards=1, at=at)
    story = [StoryEvent(at, because(Code.SUBMITTED, by="ann"), State.QUEUED)]
    allotment = Allotment("a", 100, 100, 50, "nvidia", (CardShare(card, 1000),))
    step = advance(job, Placed({("worker", 0): allotment}), at + 1)
    story += step.story
    assert step.workload.attempt is not None
    replica = step.workload.attempt.replicas[0].id
    for event, moment in (
        (Launched({replica: "h"}), at + 2),
        (Observed({replica: Seen(Life.RUNNING, started_at=at + 2)}), at + 2),
        (Observed({replica: Seen(Life.ENDED, 0, started_at=at + 2, ended_at=at + 3)}), at + 3),
    ):
        step = advance(step.workload, event, moment)
        story += step.story
    assert step.workload.attempt is not None
    return Kept(step.workload, story, [step.workload.attempt], {1: LOG})


def history(*kept: Kept) -> History:
    return History({f"key-{k.workload.id}": k.workload.id for k in kept}, {k.workload.id: k for k in kept}, LINES)


def test_a_good_history_passes() -> None:
    assert check(history(finished("job0000001", 0.0), finished("job0000002", 10.0))) == []


def _with(kept: Kept, **changes: object) -> History:
    return history(replace(kept, **changes))  # type: ignore[arg-type]


GOOD = finished("job0000001", 0.0)
STOPPED_LINE = StoryEvent(9.0, because(Code.STOPPED, by="ann"), State.STOPPED)


@pytest.mark.parametrize(
    ("planted", "said"),
    [
        (replace(history(GOOD), kept={}), "is lost"),
        (replace(history(GOOD), acknowledged={"a": "job0000001", "b": "job0000001"}), "two different submissions"),
        (history(finished("job0000001", 0.0), finished("job0000002", 1.0)), "was given to"),
        (_with(GOOD, logs={1: "line 0\nline 2\ndone\n"}), "gap or a repeat"),
        (_with(GOOD, logs={1: "line 0\nline 0\nline 1\n"}), "gap or a repeat"),
        (_with(GOOD, logs={1: "line 0\nline 1\n"}), "2 of 4 lines"),
        (_with(GOOD, logs={}), "0 of 4 lines"),
        (_with(GOOD, story=[*GOOD.story, STOPPED_LINE]), "went on after it had ended"),
        (_with(GOOD, story=[GOOD.story[0], *GOOD.story[2:]]), "impossible step"),
        (_with(GOOD, story=GOOD.story[:-1]), "its story ends running"),
        (_with(GOOD, story=[]), "has no story"),
        (_with(GOOD, attempts=[GOOD.attempts[0], replace(GOOD.attempts[0], number=2)]), "began before"),
        (_with(GOOD, attempts=[replace(GOOD.attempts[0], number=2)]), "attempts are numbered"),
        (_with(GOOD, workload=replace(GOOD.workload, state=State.RUNNING)), "never ended"),
        (_with(GOOD, workload=replace(GOOD.workload, reason=because(Code.RUNNING))), "without saying how"),
        (replace(history(GOOD), journal=["TWICE card-0"]), "complained"),
        (replace(history(GOOD), left_running=["pid 7"]), "still running"),
    ],
)
def test_each_planted_fault_is_named(planted: History, said: str) -> None:
    assert any(said in fault for fault in check(planted)), check(planted)


def test_a_stop_before_the_start_is_a_fine_history() -> None:
    job = a_job()
    step = advance(job, StopAsked("ann"), 1.0)
    submitted = StoryEvent(0.0, because(Code.SUBMITTED, by="ann"), State.QUEUED)
    workload: Workload = step.workload
    assert check(history(Kept(workload, [submitted, *step.story], [], {}))) == []
