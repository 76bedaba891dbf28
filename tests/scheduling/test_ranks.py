"""The orders that look at the workload itself: the shortest first, and the least served first."""

from __future__ import annotations

from dataclasses import replace
from math import inf

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.draw import a_job, a_node, running
from tests.scheduling.rules import amounts
from tests.scheduling.test_preempt_laws import crowded, workload
from tests.scheduling.worlds import NOW, Dice, worlds
from tests.scheduling.yard import Job, Yard

from gpuyard.domain.policy import HOUR, First, Ordering, Policy, Preempting
from gpuyard.domain.reasons import Code, because
from gpuyard.domain.workload import Attempt, State, StoryEvent, Workload
from gpuyard.scheduling.before import Past, before
from gpuyard.scheduling.books import Books
from gpuyard.scheduling.inquiry import Inquiry
from gpuyard.scheduling.plan import decide, plan
from gpuyard.scheduling.service import card_seconds, crossings, level_of, rank, seconds_left
from gpuyard.scheduling.snapshot import Plan, Rule, Snapshot

SHORTEST = Policy(order=Ordering(first=First.SHORTEST), preempt=Preempting(min_run=0.0))
SERVED = Policy(order=Ordering(first=First.LEAST_SERVED), preempt=Preempting(min_run=0.0))
NODE = a_node("a", 4)


def lasting(job: Workload, seconds: float | None, *, preemptible: bool = True) -> Workload:
    return replace(job, spec=replace(job.spec, max_seconds=seconds, preemptible=preemptible))


def served(job: Workload, seconds: float, kept: float = 0.0) -> Workload:
    """It was put back after so many seconds, of which it saved some."""
    attempt = Attempt(1, 0.0, (), started_at=0.0, ended_at=seconds, saved_at=kept or None)
    return replace(job, attempt=attempt)


def asked(queue: list[Workload], policy: Policy, holding: tuple[Workload, ...] = (), now: float = 1000.0) -> Plan:
    return plan(Snapshot(now, (NODE,), tuple(queue), holding, {}, policy))


def started(outcome: Plan) -> list[str]:
    return [placement.workload for placement in outcome.placements]


# --- the order ----------------------------------------------------------------------------------------------------


def test_the_one_with_the_least_left_comes_first_and_those_that_declare_nothing_last() -> None:
    jobs = [
        lasting(a_job("unknown001", cards=4, at=1), None),
        lasting(a_job("long000001", cards=4, at=2), 7200.0),
        lasting(a_job("short00001", cards=4, at=3), 3600.0),
    ]
    assert started(asked(jobs, SHORTEST)) == ["short00001"]
    assert started(asked(jobs[:2], SHORTEST)) == ["long000001"]


def test_work_that_was_saved_needs_not_be_done_again_and_what_was_lost_does() -> None:
    job = lasting(a_job(), 3600.0)
    assert seconds_left(served(job, 3000.0, kept=2000.0), NOW) == 1600.0
    assert seconds_left(served(job, 3000.0), NOW) == 3600.0
    assert seconds_left(lasting(job, None), NOW) == inf


def test_the_one_that_had_less_itself_comes_first_whoever_owns_it() -> None:
    old = served(a_job("old0000001", cards=4, at=1), 2 * HOUR)
    new = a_job("new0000001", cards=4, at=900)
    assert started(asked([old, new], SERVED)) == ["new0000001"]


def test_on_one_level_the_older_comes_first() -> None:
    one, two = served(a_job("old0000001", cards=4, at=1), 500.0), a_job("new0000001", cards=4, at=900)
    assert card_seconds(one, SERVED.order, NOW) == 2000.0
    assert started(asked([one, two], SERVED)) == ["old0000001"]


@pytest.mark.parametrize(("seconds", "level"), [(0, 0), (3599, 0), (3600, 1), (35_999, 1), (36_000, 2), (1e15, 7)])
def test_levels_grow_by_a_factor_and_the_last_has_no_end(seconds: float, level: int) -> None:
    assert level_of(seconds, SERVED.order) == level


def test_work_that_runs_on_comes_to_its_next_levels_at_moments_that_are_known() -> None:
    runs = running(a_job("runs000001", cards=4), ("a", (0, 1, 2, 3)))
    assert runs.attempt is not None
    begun = runs.attempt.created_at
    moments = list(crossings(runs, SERVED.order, begun))
    assert moments[0] == pytest.approx(begun + 900, abs=0.01)
    for level, moment in enumerate(moments):
        assert rank(runs, SERVED.order, moment - 0.1) == level
        assert rank(runs, SERVED.order, moment) == level + 1


def test_the_one_that_has_waited_longest_comes_first_where_the_policy_says_so() -> None:
    jobs = [
        lasting(a_job("oldest0001", cards=4, at=1), 7200.0),
        lasting(a_job("second0001", cards=4, at=2), 5400.0),
        lasting(a_job("short00001", cards=4, at=3), 3600.0),
    ]
    spares = replace(SHORTEST, order=replace(SHORTEST.order, oldest_first=True))
    assert started(asked(jobs, spares)) == ["oldest0001"]
    with_books = Inquiry(Books.of(Snapshot(1000.0, (NODE,), tuple(jobs), (), {}, spares)), 1000.0)
    assert with_books.queue.in_order() == ["short00001", "second0001"]
    ahead = with_books.queue.ranked("short00001", "second0001")
    with_books.close()
    assert ahead is not None
    assert ahead.rule.code is Code.RULE_SHORTEST


def test_who_waits_longest_is_told_to_be_first_by_its_age_and_takes_nobodys_place_for_it() -> None:
    spares = replace(SHORTEST, order=replace(SHORTEST.order, oldest_first=True))
    runs = running(lasting(a_job("runs000001", cards=4, at=0), 3600.0), ("a", (0, 1, 2, 3)))
    jobs = [lasting(a_job("oldest0001", cards=4, at=1), 7200.0), lasting(a_job("long000001", cards=4, at=2), 6000.0)]
    snapshot = Snapshot(1000.0, (NODE,), tuple(jobs), (runs,), {}, spares)
    assert plan(snapshot).evictions == ()
    inquiry = Inquiry(Books.of(snapshot), 1000.0)
    ahead = inquiry.queue.ranked("oldest0001", "long000001")
    inquiry.close()
    assert ahead is not None
    assert (ahead.workload, ahead.rule.code) == ("oldest0001", Code.RULE_AGE)


def ranked_worlds() -> st.SearchStrategy[Snapshot]:
    return st.builds(_ranked, worlds(plain_policy=False), st.sampled_from([First.SHORTEST, First.LEAST_SERVED]))


def _ranked(world: Snapshot, first: First) -> Snapshot:
    dice = Dice(len(world.queue))
    queue = tuple(_with_past(dice, one) for one in world.queue)
    oldest_first = dice.often(50)
    order = replace(world.policy.order, first=first, first_level=600.0, next_level=4.0, oldest_first=oldest_first)
    return replace(world, queue=queue, policy=replace(world.policy, order=order))


def _with_past(dice: Dice, one: Workload) -> Workload:
    return one if dice.often(50) else served(one, dice.choice([50.0, 1000.0, 90_000.0]), kept=dice.choice([0, 30.0]))


@given(ranked_worlds())
@settings(max_examples=150, deadline=None)
def test_the_order_is_that_of_a_plain_sort_where_nobody_is_guaranteed_anything(world: Snapshot) -> None:
    """Without guarantees and strict groups nobody is held back by its own group: one sort tells it all."""
    world = replace(world, groups={}, holding=(), nodes=())
    rule, now = world.policy.order, world.now
    books = Books.of(replace(world, nodes=(a_node("full", 8),)))
    waiting = [one for one in world.queue if not _never(books, one)]
    oldest = min(waiting, key=lambda one: (one.submitted_at, one.id), default=None)

    def key(one: Workload) -> tuple[object, ...]:
        person = rule.people.index(one.owner) if one.owner in rule.people else len(rule.people)
        raised = min(1000, one.spec.priority + int((now - one.submitted_at) // rule.age_every) * rule.age_points)
        mine = -1.0 if rule.oldest_first and one is oldest else rank(one, rule, now)
        return (person, -raised, mine if raised < 1000 else 0, one.submitted_at, one.id)

    inquiry = Inquiry(books, now)
    placed = inquiry.placed
    told = [id for id in inquiry.queue.in_order() if id not in placed]
    inquiry.close()
    assert told == [one.id for one in sorted(waiting, key=key) if one.id not in placed]


def _never(books: Books, one: Workload) -> bool:
    """It backs off, or no waiting will help."""
    batch = books.line.batch_of(one.id)
    return batch is None or batch.never is not None


# --- who makes room for whom --------------------------------------------------------------------------------------


@given(crowded(), st.sampled_from([First.SHORTEST, First.LEAST_SERVED]))
@settings(max_examples=200, deadline=None)
def test_nobody_makes_room_by_turn_for_work_of_the_same_or_a_later_rank(world: Snapshot, first: First) -> None:
    order = replace(world.policy.order, first=first, first_level=60.0, next_level=4.0)
    world = replace(world, policy=replace(world.policy, order=order))
    for eviction in plan(world).evictions:
        if eviction.rule is not Rule.TURN:
            continue
        victim, by = workload(world, eviction.workload), workload(world, eviction.by)
        assert victim.spec.preemptible
        assert rank(by, order, NOW) < rank(victim, order, NOW)
        assert by.spec.priority >= victim.spec.priority
        assert world.policy.preempt.for_turn


def test_a_short_job_takes_the_place_of_a_long_one_and_not_the_other_way_round() -> None:
    long = running(lasting(a_job("long000001", cards=4), 9000.0), ("a", (0, 1, 2, 3)))
    short = lasting(a_job("short00001", cards=4, at=500), 60.0)
    (eviction,) = asked([short], SHORTEST, (long,)).evictions
    assert (eviction.workload, eviction.rule) == ("long000001", Rule.TURN)
    longer = lasting(a_job("longer0001", cards=4, at=500), 90_000.0)
    assert not asked([longer], SHORTEST, (long,)).evictions
    off = replace(SHORTEST, preempt=Preempting(min_run=0.0, for_turn=False))
    assert not asked([short], off, (long,)).evictions
    firm = replace(long, spec=replace(long.spec, preemptible=False))
    assert not asked([short], SHORTEST, (firm,)).evictions


def test_what_one_gathers_is_lent_to_those_that_will_make_room_for_it() -> None:
    """Two of four cards are taken for long by work of its own level; nothing is lost by lending the other two."""
    busy = running(lasting(a_job("busy000001", cards=2), None, preemptible=False), ("a", (0, 1)))
    large = lasting(a_job("large00001", cards=4, at=10), None)
    later = served(lasting(a_job("later00001", cards=2, at=1), None), 5 * HOUR)
    assert started(asked([large, later], SERVED, (busy,))) == ["later00001"]
    firm = lasting(later, None, preemptible=False)
    assert started(asked([large, firm], SERVED, (busy,))) == []
    assert started(asked([large, later], Policy(), (busy,))) == ["later00001"]  # there it simply came first


def test_one_that_has_waited_to_the_top_lends_nothing_any_more() -> None:
    aged = replace(SERVED, order=replace(SERVED.order, age_every=60.0, age_points=500))
    busy = running(lasting(a_job("busy000001", cards=2), None, preemptible=False), ("a", (0, 1)))
    large = lasting(a_job("large00001", cards=4, at=10), None)
    small = lasting(a_job("small00001", cards=2, at=990), None)
    assert started(asked([large, small], aged, (busy,))) == []
    assert started(asked([large, small], SERVED, (busy,))) == ["small00001"]


@given(st.integers(0, 10_000), st.sampled_from([First.SHORTEST, First.LEAST_SERVED]))
@settings(max_examples=15, deadline=None)
def test_nobody_starves_while_waiting_raises_the_priority(seed: int, first: First) -> None:
    """Small new jobs come without end; a large old one starts all the same, and is not put back for ever."""
    dice = Dice(seed)
    order = Ordering(first=first, first_level=60.0, next_level=4.0, age_every=100.0, age_points=100)
    yard = Yard([NODE], None, Policy(order=order, preempt=Preempting(min_run=5.0)), every=20.0)
    yard.submit(Job(lasting(a_job("large00001", cards=4), 5000.0), lasts=200.0), at=100.0)
    for number in range(400):
        small = lasting(a_job(f"s{number:09d}", cards=dice.choice([1, 2])), dice.choice([30.0, 60.0]))
        yard.submit(Job(small, lasts=dice.choice([10.0, 30.0])), at=number * 5.0)
    yard.run(2500.0, stop=lambda: "large00001" in yard.ended)
    assert "large00001" in yard.ended, yard.waiting.get("large00001")


@given(ranked_worlds())
@settings(max_examples=60, deadline=None)
def test_books_that_are_kept_decide_as_new_ones_when_members_of_a_batch_were_served_differently(
    world: Snapshot,
) -> None:
    books = Books(world.nodes, world.groups, world.policy, world.past, world.run_times)
    for one in (*world.holding, *world.queue):
        books.put(replace(one, attempt=None) if one.state is State.QUEUED else one)
    for one in world.queue:
        books.put(one)  # what it had is known only now
    kept, new = decide(books, world.now), plan(world)
    assert [p.workload for p in kept.placements] == [p.workload for p in new.placements]
    assert dict(kept.waiting) == dict(new.waiting)
    assert all(amounts(p.allotments.values()) for p in new.placements)


# --- what is told -------------------------------------------------------------------------------------------------


def test_of_two_that_wait_the_numbers_of_both_are_told() -> None:
    full = running(lasting(a_job("full000001", cards=4, priority=900), 10.0, preemptible=False), ("a", (0, 1, 2, 3)))
    jobs = (served(a_job("old0000001", cards=4, at=1), 2 * HOUR), a_job("new0000001", cards=4, at=900))
    inquiry = Inquiry(Books.of(Snapshot(1000.0, (NODE,), jobs, (full,), {}, SERVED)), 1000.0)
    ahead = inquiry.ranked("old0000001", "new0000001")
    assert ahead is not None
    assert ahead.workload == "new0000001"
    assert ahead.rule == because(Code.RULE_LEAST_SERVED, theirs=0.0, mine=8.0)
    inquiry.close()


def test_afterwards_it_is_told_from_what_was_written_down() -> None:
    short, long = lasting(a_job("short00001", at=200.0), 60.0), lasting(a_job("long000001", at=100.0), 600.0)
    turn = {"guaranteed": False, "priority": 500, "group_use": 0.0, "user_use": 0.0, "left": 60.0}
    line = StoryEvent(300.0, because(Code.PLACED, turn=turn), State.PLACED)
    answer = before(Past(short, (line,)), Past(long, ()), lambda *_: None, lambda one, _: one.spec.priority)
    assert answer.rule == because(Code.RULE_SHORTEST, theirs=60.0, mine=600.0)
    unknown = before(
        Past(short, (line,)), Past(lasting(long, None), ()), lambda *_: None, lambda one, _: one.spec.priority
    )
    assert unknown.rule == because(Code.RULE_SHORTEST, theirs=60.0)


def test_where_only_the_first_keeps_what_it_gathers_nobody_else_does() -> None:
    busy = [running(a_job(f"busy00000{n}", cards=2), (name, (0, 1))) for n, name in enumerate("ab")]
    jobs = (a_job("first00001", cards=4, at=1), a_job("second0001", cards=3, at=2))
    for policy, keepers in ((Policy(), {"first00001", "second0001"}), (Policy(keep_for_first=True), {"first00001"})):
        books = Books.of(Snapshot(1000.0, (NODE, a_node("b", 4)), jobs, tuple(busy), {}, policy))
        found: list[str] = []
        decide(books, 1000.0, look=lambda one: found.extend(k.workload for r in one.books.rooms for k in r.keeps))  # noqa: B023
        assert set(found) == keepers
