"""Why did that one run before mine? Answered from what was written down when it got its place."""

from __future__ import annotations

from typing import Any

from tests.draw import a_job

from gpuyard.domain.reasons import Code, Reason, because
from gpuyard.domain.workload import State, StoryEvent, Workload
from gpuyard.scheduling.before import Answer, Past, before

TURN = {"guaranteed": False, "priority": 500, "group_use": 1.0, "user_use": 1.0}
BUSY = because(Code.BUSY, resource="nvidia", asked=8000, free=0, node="a", jobs=[])


def a_line(at: float, reason: Reason, state: State = State.QUEUED) -> StoryEvent:
    return StoryEvent(at, reason, state)


def placed(at: float, **facts: Any) -> StoryEvent:
    return a_line(at, because(Code.PLACED, nodes=["a"], attempt=1, **facts), State.PLACED)


def a_past(workload: Workload, *lines: StoryEvent) -> Past:
    return Past(workload, (a_line(workload.submitted_at, because(Code.SUBMITTED)), *lines))


def told(one: Past, two: Past) -> Answer:
    return before(one, two, lambda *_: None, lambda workload, _: workload.spec.priority)


MINE = a_job("mine", at=100.0)
URGENT = a_job("urgent", at=200.0, priority=700)
THEIRS = a_job("theirs", at=200.0, owner="bob", group="speech")


def test_the_other_was_not_there_yet() -> None:
    answer = told(a_past(MINE, placed(150.0)), a_past(THEIRS))
    assert answer == Answer("mine", "theirs", because(Code.RULE_NOT_THERE, submitted_at=200.0, at=150.0))


def test_the_other_could_not_start_then_and_its_reason_is_told() -> None:
    answer = told(a_past(THEIRS, placed(300.0, turn=TURN)), a_past(MINE, a_line(250.0, BUSY)))
    assert answer == Answer("theirs", "mine", because(Code.RULE_PASSED, reason=BUSY.to_json(), at=300.0))


def test_a_gap_was_filled() -> None:
    gap = {"ends_by": 900.0, "starts_at": 1000.0}
    theirs = a_past(THEIRS, placed(300.0, turn=TURN, passed=["mine"], backfill=gap))
    assert told(theirs, a_past(MINE, a_line(250.0, BUSY))).rule == because(Code.RULE_BACKFILL, **gap)


def test_what_is_guaranteed_to_its_group_comes_first() -> None:
    theirs = a_past(THEIRS, placed(300.0, turn={**TURN, "guaranteed": True}))
    assert told(theirs, a_past(MINE)).rule == because(Code.RULE_GUARANTEE, group="speech")


def test_its_priority_was_higher_also_by_waiting() -> None:
    theirs = a_past(THEIRS, placed(300.0, turn={**TURN, "priority": 550}))
    expected = because(Code.RULE_PRIORITY, mine=500, theirs=550, waited=100.0, points=50)
    assert told(theirs, a_past(MINE)).rule == expected


def test_its_group_had_used_less() -> None:
    theirs = a_past(THEIRS, placed(300.0, turn=TURN, uses={"vision": 7.25, "speech": 1.0}))
    rule = told(theirs, a_past(MINE, a_line(250.0, because(Code.ORDER, ahead="x")))).rule
    assert rule == because(Code.RULE_SHARE, group="speech", use=1.0, other_group="vision", other_use=7.2)


def test_its_owner_had_used_less() -> None:
    theirs = a_past(a_job("theirs", at=200.0, owner="bob"), placed(300.0, turn=TURN, uses={"vision/ann": 3.0}))
    rule = told(theirs, a_past(MINE)).rule
    assert (rule.code, rule.facts["use"], rule.facts["other_use"]) == (Code.RULE_USER_SHARE, 1.0, 3.0)


def test_it_came_first() -> None:
    mine = a_past(MINE, placed(300.0, turn=TURN))
    assert told(mine, a_past(THEIRS)).rule == because(Code.RULE_AGE, mine=200.0, theirs=100.0)


def test_at_the_top_it_was_age_whoever_had_used_less() -> None:
    turn, uses = {**TURN, "priority": 1000, "group_use": 1.0}, {"speech": 5.0}
    mine = a_past(a_job("mine", at=100.0, priority=1000), placed(300.0, turn=turn, uses=uses))
    theirs = a_past(a_job("theirs", at=200.0, priority=1000, group="speech"), a_line(210.0, BUSY))
    assert told(mine, theirs).rule == because(Code.RULE_AGE, mine=200.0, theirs=100.0)


def test_it_is_the_other_way_round() -> None:
    mine, theirs = a_past(MINE, placed(300.0, turn=TURN)), a_past(THEIRS)
    assert told(theirs, mine) == told(mine, theirs)
    assert told(theirs, mine).first == "mine"


def test_what_nobody_wrote_down_nobody_makes_up() -> None:
    theirs = Past(THEIRS, (placed(300.0),))
    assert told(theirs, Past(MINE, ())).rule == because(Code.RULE_UNKNOWN, job="theirs")


def preempted(at: float, by: str, rule: str = "priority") -> tuple[StoryEvent, StoryEvent]:
    asked = a_line(at, because(Code.PREEMPTED, by=by, rule=rule), State.STOPPING)
    return asked, a_line(at + 10, because(Code.REQUEUED, by=by))


def test_it_took_the_place_of_the_one_that_ran_before_it() -> None:
    mine = a_past(MINE, placed(110.0, turn=TURN), *preempted(210.0, "urgent"), a_line(221.0, BUSY))
    urgent = a_past(URGENT, placed(220.0, turn={**TURN, "priority": 700}))
    expected = because(Code.RULE_MADE_ROOM, rule="priority", group="vision", at=210.0, mine=500, theirs=700)
    assert told(urgent, mine) == Answer("urgent", "mine", expected)
    assert told(mine, urgent) == Answer("urgent", "mine", expected)


def test_it_takes_the_place_before_it_has_one_itself() -> None:
    mine = a_past(MINE, placed(110.0, turn=TURN), preempted(210.0, "urgent")[0])
    assert told(a_past(URGENT), mine).rule.code is Code.RULE_MADE_ROOM


def test_what_counts_is_the_last_time_one_got_ahead() -> None:
    """It ran first, was put back for a third, and waits while the other gets the place that third leaves."""
    mine = a_past(MINE, placed(110.0, turn=TURN), *preempted(150.0, "third"), a_line(170.0, BUSY))
    urgent = a_past(URGENT, placed(300.0, turn={**TURN, "priority": 700}))
    answer = told(urgent, mine)
    assert (answer.first, answer.rule.code) == ("urgent", Code.RULE_PRIORITY)


def test_having_run_several_times_the_other_way_round_is_told_too() -> None:
    mine = a_past(MINE, placed(110.0, turn=TURN), a_line(150.0, because(Code.RETRY)), placed(300.0, turn=TURN))
    theirs = a_past(THEIRS, a_line(210.0, BUSY), placed(400.0, turn=TURN))
    assert told(theirs, mine).first == "mine"
    assert told(mine, theirs).rule == because(Code.RULE_AGE, mine=200.0, theirs=100.0)


def test_lines_about_something_else_are_no_reason_to_wait() -> None:
    notes = [a_line(100.0, because(code, cards=8)) for code in (Code.CARDS_SIMULATED, Code.IMAGE_NOT_USED)]
    urgent = a_past(URGENT, placed(300.0, turn={**TURN, "priority": 700}))
    expected = because(Code.RULE_PRIORITY, mine=500, theirs=700, waited=100.0, points=0)
    assert told(urgent, a_past(MINE, *notes)).rule == expected
    assert told(urgent, a_past(MINE, a_line(150.0, BUSY), *notes)).rule == expected


def test_one_that_was_paused_did_not_stand_in_the_order() -> None:
    pause = because(Code.PAUSED, by="ann")
    urgent = a_past(URGENT, placed(300.0, turn={**TURN, "priority": 700}))
    rule = told(urgent, a_past(MINE, a_line(250.0, pause, State.PAUSED))).rule
    assert rule == because(Code.RULE_PASSED, reason=pause.to_json(), at=300.0)
