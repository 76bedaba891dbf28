"""Laws of a rehearsal, on worlds that are made up: nobody is lost, nothing is given twice, the same comes out twice."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

from hypothesis import given, settings
from hypothesis import strategies as st
from lab.synthetic import Habit, Kind, groups, nodes, work
from tests.scheduling.worlds import worlds

from gpuyard.domain.cluster import Node
from gpuyard.domain.people import Group
from gpuyard.domain.policy import HOUR, Ordering, Policy, Preempting
from gpuyard.domain.resources import WHOLE_CARD
from gpuyard.domain.workload import State
from gpuyard.rehearsal import Arrival, Habits, Result, rehearse
from gpuyard.rehearsal.summary import quantile, spread, summary
from gpuyard.scheduling.books import Books
from gpuyard.scheduling.plan import decide
from gpuyard.scheduling.snapshot import Snapshot

SEEDS = st.integers(0, 2**32)
CLUSTER = nodes((Kind(2), Kind(1, 4, "NVIDIA T4", 16)))
HABIT = Habit(groups=2, people=6, load=1.1, median=600.0, longest=6 * HOUR, burst=5)
POLICIES = st.sampled_from(
    [
        Policy(),
        Policy(preempt=Preempting(min_run=0.0)),
        Policy(order=Ordering(fair_share=False, age_points=0), backfill=False),
        Policy(order=Ordering(age_every=600.0)),
    ]
)
HABITS = st.sampled_from(
    [
        Habits(),
        Habits(keeps_work=False),
        Habits(keeps_work=False, save_every=120.0, start_seconds=3.0, stop_seconds=5.0),
    ]
)


def a_world(seed: int) -> tuple[tuple[Node, ...], dict[str, Group], list[Arrival]]:
    return CLUSTER, groups(HABIT, 20), work(seed, CLUSTER, HABIT, days=0.5)[:60]


@settings(max_examples=25, deadline=None)
@given(SEEDS, POLICIES, HABITS)
def test_everyone_comes_to_one_end_and_has_done_all_its_work(seed: int, policy: Policy, habits: Habits) -> None:
    cluster, parties, came = a_world(seed)

    result = rehearse(cluster, parties, policy, came, habits=habits)

    assert [outcome.id for outcome in result.outcomes] == [arrival.workload.id for arrival in came]
    for outcome, arrival in zip(result.outcomes, came, strict=True):
        assert outcome.state is State.SUCCEEDED
        assert outcome.ended is not None
        assert len(outcome.starts) == outcome.preemptions + 1
        assert outcome.starts == sorted(outcome.starts)
        assert outcome.ended >= outcome.submitted + arrival.seconds + outcome.lost - 1e-6
        if not outcome.preemptions:
            assert abs(outcome.ended - outcome.starts[0] - arrival.seconds) < 1e-6


@settings(max_examples=25, deadline=None)
@given(SEEDS, POLICIES, HABITS)
def test_no_card_is_given_twice_and_the_timeline_is_what_is_held(seed: int, policy: Policy, habits: Habits) -> None:
    cluster, parties, came = a_world(seed)
    held: list[tuple[float, int]] = []

    def after(books: Books, now: float) -> None:
        given: Counter[tuple[str, int]] = Counter()
        for holding in books.held.values():
            for allotment in holding.allotments:
                given.update({(allotment.node, share.index): share.milli for share in allotment.cards})
        assert all(milli <= WHOLE_CARD for milli in given.values())
        held.append((now, given.total()))

    result = rehearse(cluster, parties, policy, came, habits=habits, after=after)

    line = result.timeline
    assert dict(held) == dict(zip(line.at, line.used, strict=True))
    assert line.used[-1] == 0
    work_done = sum((o.seconds + o.lost) * o.cards for o in result.outcomes)
    used = sum(busy * (over - begun) for begun, over, busy, _, _ in line.spans()) / WHOLE_CARD
    assert used >= work_done - 1e-3


@settings(max_examples=10, deadline=None)
@given(SEEDS, POLICIES)
def test_the_same_world_gives_the_same_result(seed: int, policy: Policy) -> None:
    cluster, parties, came = a_world(seed)

    one, other = (rehearse(cluster, parties, policy, came) for _ in range(2))

    assert told(one) == told(other)


@settings(max_examples=15, deadline=None)
@given(SEEDS)
def test_cycles_that_are_left_out_would_have_changed_nothing(seed: int) -> None:
    """With reasons for all nothing is left out. Where time alone moves nobody, the same comes of both."""
    cluster, parties, came = a_world(seed)
    came = [replace(one, workload=replace(one.workload, owner="ann")) for one in came]
    policy = Policy(order=Ordering(fair_share=False, age_points=0))

    every = rehearse(cluster, parties, policy, came, told=True)
    some = rehearse(cluster, parties, policy, came)

    assert told(every) == told(some)
    assert some.cycles <= every.cycles


@settings(max_examples=15, deadline=None)
@given(SEEDS)
def test_nobody_waits_while_all_of_the_cluster_is_free(seed: int) -> None:
    cluster, _, came = a_world(seed)
    small = [one for one in came if one.workload.spec.roles[0].replicas == 1]

    result = rehearse(cluster, {"team1": Group("team1"), "team2": Group("team2")}, Policy(), small)

    assert not [at for at, _, busy, _, waiting in result.timeline.spans() if waiting and not busy]


@settings(max_examples=120, deadline=None)
@given(worlds())
def test_a_decision_that_nobody_reads_is_the_same_decision(world: Snapshot) -> None:
    read, unread = (decide(Books.of(world), world.now, untold=untold) for untold in (False, True))

    assert [(p.workload, p.allotments) for p in read.placements] == [
        (p.workload, p.allotments) for p in unread.placements
    ]
    assert read.evictions == unread.evictions
    assert not unread.waiting


def told(result: Result) -> list[tuple[object, ...]]:
    return [(o.id, o.starts, o.ended, o.state, o.preemptions, o.lost) for o in result.outcomes]


def test_a_quantile_is_one_of_the_values() -> None:
    assert [quantile([1, 2, 3, 4], share) for share in (0.0, 0.25, 0.5, 0.51, 0.9, 1.0)] == [1, 1, 2, 3, 4, 4]
    assert spread([]) == spread(()) == spread([0.0])
    assert (spread([1, 2, 3]).mean, spread([1, 2, 3]).most) == (2, 3)


def test_the_summary_counts_what_became_of_everyone() -> None:
    cluster, parties, came = a_world(1)
    found = summary(rehearse(cluster, parties, Policy(), came, until=came[30].workload.submitted_at))

    assert found.jobs >= found.started >= found.over
    assert 0 <= found.utilisation <= 1
