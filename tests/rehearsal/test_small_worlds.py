"""Rehearsals small enough to be done by hand: who starts when, who ends when, and what is lost on the way."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from math import inf

import pytest
from tests.draw import a_job, a_node, running

from gpuyard.domain.cluster import NodeState
from gpuyard.domain.people import Group, Quota
from gpuyard.domain.policy import HOUR, Defragment, Defragmenting, Ordering, Placing, Policy, Preempting
from gpuyard.domain.workload import Cause, Kind, State, Workload
from gpuyard.rehearsal import Arrival, Change, Habits, Rest, Result, rehearse
from gpuyard.scheduling.books import Books
from gpuyard.scheduling.snapshot import Plan

BY_AGE = Policy(order=Ordering(fair_share=False, age_points=0))
AT_ONCE = replace(BY_AGE, preempt=Preempting(min_run=0.0))
ONE_NODE = (a_node("a", cards=8),)
GROUPS = {"vision": Group("vision")}


def a_coming(id: str, cards: float, at: float, seconds: float, **more: object) -> Arrival:
    fails, patience, rests = more.pop("fails", None), more.pop("patience", inf), more.pop("rests", ())
    workload = a_job(id, cards=cards, at=at)
    spec = replace(workload.spec, **more)  # type: ignore[arg-type]
    return Arrival(replace(workload, spec=spec), seconds, fails, patience, rests)  # type: ignore[arg-type]


def run(
    arrivals: Iterable[Arrival], policy: Policy = BY_AGE, *, groups: Mapping[str, Group] = GROUPS, **more: object
) -> Result:
    return rehearse(ONE_NODE, groups, policy, arrivals, **more)  # type: ignore[arg-type]


def test_what_fits_starts_at_once_and_what_does_not_waits_for_an_end() -> None:
    result = run([a_coming("one", 6, 0, 100), a_coming("two", 4, 10, 50), a_coming("three", 2, 20, 10)])

    assert [(o.starts, o.ended) for o in result.outcomes] == [([0], 100), ([100], 150), ([100], 110)]
    assert [o.wait for o in result.outcomes] == [0, 90, 80]
    assert [o.completion for o in result.outcomes] == [100, 140, 90]
    assert {o.state for o in result.outcomes} == {State.SUCCEEDED}


def test_the_timeline_tells_how_many_cards_were_in_use() -> None:
    result = run([a_coming("one", 8, 0, 100), a_coming("two", 4, 50, 100)])

    assert list(result.timeline.spans()) == [
        (0, 50, 8000, 8000, 0),
        (50, 100, 8000, 8000, 1),
        (100, 200, 4000, 8000, 0),
    ]
    assert result.timeline.utilisation() == pytest.approx(0.75)
    assert result.timeline.utilisation(since=100) == pytest.approx(0.5)


def test_a_short_job_with_a_declared_maximum_passes_one_that_waits() -> None:
    jobs = [
        a_coming("long", 6, 0, 1000, max_seconds=1000.0, grace_seconds=0.0),
        a_coming("large", 8, 1, 100, max_seconds=100.0),
        a_coming("short", 2, 2, 50, max_seconds=60.0),
        a_coming("slow", 2, 3, 50),
    ]

    result = run(jobs)

    assert {o.id: o.starts for o in result.outcomes} == {"long": [0], "large": [1000], "short": [2], "slow": [1100]}


def test_an_interruption_keeps_the_work_that_was_done() -> None:
    jobs = [a_coming("low", 8, 0, 1000, preemptible=True), a_coming("high", 8, 300, 100, priority=900)]

    result = run(jobs, AT_ONCE, habits=Habits(keeps_work=True))

    low, high = result.outcomes
    assert (high.starts, high.ended) == ([300], 400)
    assert (low.starts, low.ended, low.preemptions, low.lost) == ([0, 400], 1100, 1, 0)


def test_an_interruption_loses_the_work_since_the_last_save() -> None:
    jobs = [a_coming("low", 8, 0, 1000, preemptible=True), a_coming("high", 8, 350, 100, priority=900)]

    (saving, _) = run(jobs, AT_ONCE, habits=Habits(keeps_work=False, save_every=100)).outcomes
    (careless, _) = run(jobs, AT_ONCE, habits=Habits(keeps_work=False)).outcomes

    assert (saving.lost, saving.ended) == (50, 450 + 700)
    assert (careless.lost, careless.ended) == (350, 450 + 1000)


def test_of_two_the_one_is_interrupted_that_saved_last() -> None:
    jobs = [
        a_coming("old", 4, 0, 1000, preemptible=True),
        a_coming("new", 4, 90, 1000, preemptible=True),
        a_coming("high", 4, 210, 100, priority=900),
    ]

    result = run(jobs, AT_ONCE, habits=Habits(keeps_work=False, save_every=100))

    assert {o.id: o.lost for o in result.outcomes} == {"old": 10, "new": 0, "high": 0}


def test_nobody_is_interrupted_before_its_least_time_and_then_at_that_very_moment() -> None:
    jobs = [a_coming("low", 8, 0, 1000, preemptible=True), a_coming("high", 8, 10, 100, priority=900)]

    result = run(jobs, BY_AGE)

    assert result.of("high").starts == [300]


def test_waiting_raises_a_priority_at_its_very_moment() -> None:
    """`large` keeps the last card until, at 150, `small` has waited long enough to be before it."""
    policy = Policy(order=Ordering(fair_share=False, age_every=100.0, age_points=10))
    jobs = [
        a_coming("first", 7, 0, 10_000),
        a_coming("other", 1, 1, 80),
        a_coming("small", 1, 50, 5, priority=95),
        a_coming("large", 8, 60, 5, priority=100),
    ]

    result = run(jobs, policy, tick=inf)

    assert {o.id: o.starts for o in result.outcomes if o.id != "first"} == {
        "other": [1],
        "small": [150],
        "large": [10_000],
    }


def test_a_moment_with_a_fraction_comes_once() -> None:
    """0.1 + 3 x 0.3 is no round number of steps, as a computer counts. The rehearsal comes to its end all the same."""
    policy = Policy(order=Ordering(fair_share=False, age_every=0.3, age_points=1))

    result = run([a_coming("first", 8, 0, 50), a_coming("waits", 8, 0.1, 1)], policy, tick=inf)

    assert result.of("waits").starts == [50]


def test_work_moves_together_for_one_that_waits_when_the_policy_says_so() -> None:
    """Two machines of four cards, each half used: a job of four waits, until one of the small ones moves."""
    cluster = (a_node("a", cards=4), a_node("b", cards=4))
    spread = replace(BY_AGE, placing=Placing.SPREAD)
    jobs = [
        a_coming("one", 2, 0, 10_000, preemptible=True),
        a_coming("two", 2, 0, 10_000, preemptible=True),
        a_coming("large", 4, 700, 50),
    ]

    moved = rehearse(cluster, GROUPS, replace(spread, defragment=Defragment(Defragmenting.MOVE)), jobs, tick=inf)
    left = rehearse(cluster, GROUPS, replace(spread, defragment=Defragment(Defragmenting.NEVER)), jobs, tick=inf)

    assert (moved.of("large").starts, left.of("large").starts) == ([1000], [10_000])
    assert sorted(o.preemptions for o in moved.outcomes) == [0, 0, 1]
    assert [o.ended for o in moved.outcomes[:2]] == [10_000, 10_000]


def test_starting_and_stopping_take_their_time() -> None:
    jobs = [a_coming("low", 8, 0, 1000, preemptible=True), a_coming("high", 8, 100, 100, priority=900)]

    result = run(jobs, AT_ONCE, habits=Habits(start_seconds=5, stop_seconds=7))

    low, high = result.outcomes
    assert (high.starts, high.ended) == ([112], 212)
    assert (low.starts, low.ended) == ([5, 217], 217 + 1000 - 102)


def test_a_job_that_runs_too_long_is_stopped_and_fails() -> None:
    (outcome,) = run([a_coming("endless", 1, 0, 1000, max_seconds=60.0)]).outcomes

    assert (outcome.state, outcome.ended) == (State.FAILED, 60)


def test_a_job_that_fails_is_tried_again_after_its_back_off() -> None:
    (outcome,) = run([a_coming("bad", 1, 0, 10, fails=Cause.EXIT, retries={Cause.EXIT: 2})]).outcomes

    assert (outcome.starts, outcome.ended, outcome.state) == ([0, 12, 26], 36, State.FAILED)


def test_an_owner_without_patience_takes_the_job_back() -> None:
    result = run([a_coming("one", 8, 0, 100), a_coming("two", 8, 10, 50, patience=60), a_coming("three", 8, 20, 5)])

    two = result.of("two")
    assert (two.starts, two.ended, two.state) == ([], 70, State.STOPPED)
    assert result.of("three").starts == [100]


def test_what_can_never_start_is_left_waiting() -> None:
    result = run([a_coming("huge", 9, 0, 10), a_coming("small", 1, 1, 10)])

    assert (result.of("huge").state, result.of("huge").ended) == (State.QUEUED, None)
    assert result.of("small").ended == 11


def test_a_lost_node_takes_its_work_along_and_the_work_comes_back_elsewhere() -> None:
    one, other = a_node("a", cards=8), a_node("b", cards=8)
    lost = Change(100, nodes=(replace(one, state=NodeState.LOST), other))

    result = rehearse(
        (one, replace(other, state=NodeState.CORDONED)),
        GROUPS,
        BY_AGE,
        [a_coming("job", 8, 0, 1000)],
        changes=[lost],
        habits=Habits(keeps_work=False),
    )

    (outcome,) = result.outcomes
    assert (outcome.starts, outcome.lost, outcome.ended) == ([0, 102], 100, 1102)


def test_a_gang_that_loses_one_of_its_nodes_is_stopped_as_a_whole() -> None:
    nodes = (a_node("a", cards=8), a_node("b", cards=8))
    gang = a_coming("gang", 8, 0, 1000)
    (role,) = gang.workload.spec.roles
    spec = replace(gang.workload.spec, roles=(replace(role, replicas=2),))
    gang = replace(gang, workload=replace(gang.workload, spec=spec))
    back = Change(200, nodes=nodes)

    result = rehearse(nodes, GROUPS, BY_AGE, [gang], changes=[Change(100, nodes=nodes[:1]), back])

    (outcome,) = result.outcomes
    assert (outcome.starts, outcome.cards, outcome.ended) == ([0, 200], 16, 200 + 900)


def test_other_rules_hold_from_their_moment_on() -> None:
    jobs = [a_coming("one", 4, 0, 1000), a_coming("two", 4, 0, 1000)]
    narrow = {"vision": Group("vision", (Quota("vision", "nvidia", 4000),))}

    result = run(jobs, groups=narrow, changes=[Change(300, groups=GROUPS)])

    assert sorted(o.starts for o in result.outcomes) == [[0], [300]]


def test_what_holds_cards_at_the_beginning_goes_on_for_what_is_left_of_it() -> None:
    before = running(a_job("old", cards=8, at=0), ("a", tuple(range(8))))
    jobs = [a_coming("new", 8, 100, 10)]

    result = run(jobs, holding=[Arrival(before, 50.0)], begin=90.0)

    assert (result.of("old").ended, result.of("new").starts) == (140, [140])


def test_what_waits_at_the_beginning_starts_no_sooner_than_that() -> None:
    result = run([a_coming("one", 8, 10, 50), a_coming("two", 4, 20, 50)], begin=100.0, until=200.0)

    assert [o.starts for o in result.outcomes] == [[100], [150]]
    assert next(result.timeline.spans())[:4] == (100, 150, 8000, 8000)


# --- pauses ---------------------------------------------------------------------------------------------------------


def test_work_that_is_paused_while_it_waits_lets_others_pass_and_keeps_its_place() -> None:
    jobs = [
        a_coming("first", 8, 0, 100),
        a_coming("paused", 8, 10, 50, rests=(Rest(20, 120),)),
        a_coming("second", 8, 30, 40),
        a_coming("third", 8, 40, 40),
    ]

    result = run(jobs)

    assert {o.id: o.starts for o in result.outcomes} == {
        "first": [0], "second": [100], "paused": [140], "third": [190],
    }  # fmt: skip
    assert result.of("paused").wait == 30  # while it is paused it does not wait


def test_work_that_is_paused_while_it_runs_gives_its_cards_away_and_goes_on_where_it_was() -> None:
    jobs = [a_coming("paused", 8, 0, 100, rests=(Rest(30, 60), Rest(70, 90))), a_coming("other", 8, 40, 10)]

    result = run(jobs, habits=Habits(keeps_work=False))

    paused = result.of("paused")
    assert (paused.starts, paused.ended, paused.lost) == ([0, 60, 90], 150, 0)
    assert result.of("other").starts == [40]


def test_work_that_is_over_sooner_than_it_was_paused_is_over() -> None:
    result = run([a_coming("one", 8, 0, 20, rests=(Rest(30, 60),))])

    assert (result.of("one").ended, result.of("one").state) == (20, State.SUCCEEDED)


def test_a_pause_that_is_over_before_the_work_has_stopped_is_still_one() -> None:
    result = run([a_coming("one", 8, 0, 100, rests=(Rest(30, 31),))], habits=Habits(stop_seconds=5.0))

    assert (result.of("one").starts, result.of("one").ended) == ([0, 36], 101)


def test_an_environment_asks_anew_after_a_rest_and_perhaps_for_something_else() -> None:
    small = a_job("env", cards=2).spec
    env = a_coming("env", 8, 0, 100, kind=Kind.ENV, rests=(Rest(30, 60, replace(small, kind=Kind.ENV)),))

    result = run([env, a_coming("other", 6, 40, 1000)], until=300)

    assert result.of("env").starts == [0, 60]
    assert result.of("env").state is State.PAUSED
    used = [(begun, milli) for begun, _, milli, _, _ in result.timeline.spans()]
    assert used[:4] == [(0, 8000), (30, 0), (40, 6000), (60, 8000)]


def test_an_environment_whose_time_was_up_before_waits_for_its_next_start() -> None:
    env = a_coming("env", 8, 0, 100, kind=Kind.ENV, max_seconds=20.0, rests=(Rest(30, 60),))

    result = run([env])

    assert result.of("env").starts == [0, 60]


def test_what_ran_out_of_time_is_not_done_again_and_so_is_not_lost() -> None:
    result = run([a_coming("one", 8, 0, 100, max_seconds=60.0)], habits=Habits(keeps_work=False))

    assert (result.of("one").state, result.of("one").lost) == (State.FAILED, 0)


# --- what is known and what is told -----------------------------------------------------------------------------------


def test_who_used_more_waits_longer_as_control_would_charge_it() -> None:
    def of(owner: str, id: str, at: float, seconds: float) -> Arrival:
        coming = a_coming(id, 8, at, seconds)
        return replace(coming, workload=replace(coming.workload, owner=owner))

    jobs = [of("ann", "a1", 0, 20 * HOUR), of("ann", "a2", 10, 100), of("bob", "b1", 20, 100)]

    result = run(jobs, Policy())

    assert result.of("b1").starts < result.of("a2").starts


def test_every_cycle_can_be_watched_before_and_after_it_is_carried_out() -> None:
    seen: list[tuple[float, int, int]] = []
    after: list[tuple[float, int]] = []

    def watch(books: Books, now: float, plan: Plan) -> None:
        seen.append((now, len(books.holding), len(plan.placements)))

    run(
        [a_coming("one", 8, 0, 100), a_coming("two", 8, 10, 50)],
        watch=watch,
        after=lambda books, now: after.append((now, len(books.holding))),
    )

    assert seen == [(0, 0, 1), (10, 1, 0), (100, 0, 1), (150, 0, 0)]
    assert after == [(0, 1), (10, 1), (100, 1), (150, 0)]


def test_the_plan_tells_reasons_only_when_asked_to() -> None:
    told: list[set[str]] = []
    jobs = [a_coming("one", 8, 0, 100), a_coming("two", 8, 10, 50)]

    run(jobs, watch=lambda books, now, plan: told.append(set(plan.waiting)), told=True)
    silent: list[set[str]] = []
    run(jobs, watch=lambda books, now, plan: silent.append(set(plan.waiting)))

    assert told[1] == {"two"}
    assert not any(silent)


def test_nothing_happens_after_the_end_that_is_asked_for() -> None:
    result = run([a_coming("one", 8, 0, 100), a_coming("two", 8, 10, 50)], until=100)

    assert [(o.state, o.ended) for o in result.outcomes] == [(State.QUEUED, None)] * 2
    assert result.of("one").starts == [0]


def test_a_workload_that_holds_nothing_cannot_hold_from_the_beginning() -> None:
    with pytest.raises(ValueError, match="holds nothing"):
        run([], holding=[Arrival(_waiting("w"), 1.0)])


def _waiting(id: str) -> Workload:
    return a_job(id, cards=1)
