"""Laws that show only as time passes: reservations, starvation, borrowing, and no pushing each other out in turn."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from math import inf

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from tests.scheduling.worlds import A100, V100, Dice, Shape, a_workload
from tests.scheduling.yard import Job, Yard

from gpuyard.domain.cluster import Card, Node
from gpuyard.domain.people import Group, Quota
from gpuyard.domain.policy import DAY, Ordering, Placing, Policy, Preempting
from gpuyard.domain.reasons import NEVER_STARTS, Code
from gpuyard.domain.resources import GIB
from gpuyard.domain.usage import PastUse
from gpuyard.domain.workload import RoleSpec, Spec, State, Together, Workload
from gpuyard.scheduling.backfill import START_SECONDS
from gpuyard.scheduling.plan import plan
from gpuyard.scheduling.snapshot import Snapshot

SEEDS = st.integers(0, 2**32)
GUEST_LASTS = 200.0
BY_PRIORITY_AND_AGE = Ordering(fair_share=False, age_points=0)


def a_machine(
    name: str, cards: int, cpu: int = 64, memory: int = 256, model: str = A100, device: str = "nvidia"
) -> Node:
    return Node(name, cpu * 1000, memory * GIB, tuple(Card(index, device, model) for index in range(cards)))


def a_job(
    id: str,
    shape: Shape,
    *more: RoleSpec,
    owner: str = "ann",
    group: str = "vision",
    priority: int = 500,
    preemptible: bool = False,
    longest: float | None = None,
    grace: float = 10.0,
    together: Together = Together.ANY,
) -> Workload:
    spec = Spec(
        id,
        (shape.role(), *more),
        priority=priority,
        preemptible=preemptible,
        max_seconds=longest,
        grace_seconds=grace,
        together=together,
    )
    return Workload(id, owner, group, spec, 0.0)


# --- reservations -------------------------------------------------------------------------------------------------

HEADS = (
    *((Shape(cards), Together.ANY) for cards in (1, 2, 4, 8)),
    *((Shape(cards, cpu=cpu), Together.ANY) for cards, cpu in ((1, 30), (2, 8))),
    *((Shape(cpu=cpu), Together.ANY) for cpu in (8, 30)),
    *((Shape(2, replicas=3), together) for together in Together),
    *((Shape(4, replicas=2), together) for together in Together),
    *((Shape(cpu=10, replicas=3), together) for together in Together),
)
SMALL = (*(Shape(cards) for cards in (1, 1, 2, 0.5)), Shape(1, cpu=4), Shape(cpu=4), Shape(cpu=2, memory=20))


def a_busy_yard(dice: Dice, machines: int = 0, preempt: Preempting = Preempting()) -> Yard:  # noqa: B008
    """Some machines, full of work that is surely over some day, and an order of priority and age."""
    nodes = [
        a_machine(f"n{n}", dice.choice([2, 4, 4, 8]), *dice.choice([(16, 64), (64, 256)]), dice.choice([A100, V100]))
        for n in range(machines or dice.choice([1, 2, 2, 3]))
    ]
    policy = Policy(order=BY_PRIORITY_AND_AGE, placing=dice.choice(list(Placing)), preempt=preempt)
    yard = Yard(nodes, policy=policy, every=60.0)
    for n in range(dice.randrange(4, 14)):
        submit_small(yard, dice, f"run{n:07d}", at=float(n), endless=10)
    yard.run(20.0)
    # Nobody but the head stands before the others from now on; and one whose end is sure always waits.
    yard.submit(Job(a_job("never00000", Shape(1, replicas=10**5), longest=1.0, priority=1), 1.0), 20.0)
    return yard


def submit_small(yard: Yard, dice: Dice, id: str, at: float, endless: int) -> None:
    """`endless`: in so many of a hundred cases nobody knows when it will end."""
    longest = None if dice.often(endless) else dice.choice([30.0, 100.0, 300.0, 1000.0])
    lasts = dice.uniform(0.2, 1.0) * (longest or 1500.0)
    small = a_job(
        id, dice.choice(SMALL), longest=longest, grace=dice.choice([0.0, 10.0, 30.0]), preemptible=dice.often(30)
    )
    job = Job(small, lasts, launches_in=dice.choice([0.0, 0.0, START_SECONDS]), stops_in=dice.choice([0.0, 30.0]))
    yard.submit(job, at)


def latest_start(world: Snapshot, head: Workload) -> float | None:
    """When there is room for it for sure, if nobody else starts: tried at every moment at which somebody is over."""
    ends: dict[str, float] = {}
    for one in world.holding:
        if one.spec.max_seconds is None or one.state is State.STOPPING or one.attempt is None:
            continue
        begun = one.attempt.started_at
        begun = one.attempt.created_at + START_SECONDS if begun is None else begun
        ends[one.id] = begun + one.spec.max_seconds + one.spec.grace_seconds
    for moment in [world.now, *sorted(ends.values())]:
        left = tuple(one for one in world.holding if ends.get(one.id, moment + 1) > moment)
        if plan(replace(world, queue=(head,), holding=left)).placements:
            return moment
    return None


def check_reservation(seed: int) -> None:
    dice = Dice(seed)
    yard = a_busy_yard(dice)
    shape, together = dice.choice(HEADS)
    head = a_job("head000000", shape, priority=900, together=together)
    yard.submit(Job(head, 100.0), 21.0)
    yard.run(21.0)
    at = 21.0
    for n in range(30):
        at += dice.choice([0.0, 1.0, 10.0, 60.0])
        submit_small(yard, dice, f"job{n:07d}", at, endless=30)
    for _ in range(20):
        promised = latest_start(yard.snapshot(), replace(head, submitted_at=21.0))
        yard.run(yard.now + 150.0 if promised is None else promised, stop=lambda: bool(yard.start_of("head000000")))
        if promised is not None or yard.start_of("head000000"):
            break
    assert promised is None or yard.start_of("head000000"), f"seed {seed}: promised for {promised}"


@given(SEEDS)
@settings(max_examples=40, deadline=None)
def test_the_head_of_the_queue_starts_no_later_than_it_surely_could_when_it_came(seed: int) -> None:
    """Gangs too, whatever small work comes after it: short, long or without a known end, placed in whatever way."""
    check_reservation(seed)


@pytest.mark.soak
@given(SEEDS)
@settings(max_examples=2000, deadline=None)
def test_reservations_are_kept_in_thousands_of_yards(seed: int) -> None:
    check_reservation(seed)


@given(SEEDS)
@settings(max_examples=25, deadline=None)
def test_on_one_machine_work_without_a_known_end_delays_the_head_by_no_more_than_the_last_guest_lasts(
    seed: int,
) -> None:
    """And not by a second, where the head's own start is known: none goes on then (`test_hindrance`)."""
    begun = []
    for others in (True, False):
        dice = Dice(seed)
        yard = a_busy_yard(dice, machines=1, preempt=Preempting(enabled=False))
        shape, together = dice.choice(HEADS)
        yard.submit(Job(a_job("head000000", shape, priority=900, together=together), 100.0), 21.0)
        for n in range(12 if others else 0):
            whole = a_job(f"job{n:07d}", dice.choice([Shape(1), Shape(2), Shape(cpu=4)]))
            yard.submit(Job(whole, GUEST_LASTS), 21.0 + 20.0 * n)
        yard.run(4000.0, stop=lambda yard=yard: bool(yard.start_of("head000000")))  # type: ignore[misc]
        begun.append(yard.start_of("head000000") or inf)
    assert begun[0] <= begun[1] + GUEST_LASTS


# --- nobody starves -----------------------------------------------------------------------------------------------

LARGE = (
    *((Shape(cards), (), Together.ANY) for cards in (1, 4, 8)),
    *((Shape(cards, "ascend"), (), Together.ANY) for cards in (4, 8)),
    *((Shape(2, replicas=2), (), together) for together in Together),
    (Shape(2, replicas=4), (), Together.ANY),
    *((Shape(8, "ascend", replicas=2), (), together) for together in (Together.ANY, Together.SPREAD)),
    (Shape(cpu=60), (), Together.ANY),
    (Shape(1, cpu=30), (), Together.ANY),
    (Shape(4, models=("v100",)), (), Together.ANY),
    (Shape(0.5, cpu=1, replicas=2), (), Together.SPREAD),
    (Shape(0.5, cpu=1, replicas=10), (), Together.ONE_NODE),
    *((Shape(4, cpu=40), (Shape(cpu=40).role("ps"),), together) for together in (Together.ANY, Together.SPREAD)),
    (Shape(2), (Shape(1, replicas=2).role("ps"),), Together.ONE_NODE),
)
CROWD = (
    *(Shape(cards) for cards in (1, 1, 2, 0.5, 0.3)),
    *(Shape(cards, "ascend") for cards in (1, 1, 2)),
    *(Shape(cpu=cpu) for cpu in (1, 4, 9)),
    Shape(1, cpu=2, memory=60),
    Shape(1, replicas=2),
)


def check_that_it_starts(seed: int) -> None:
    """More small and more important work comes all the time than the machines can do."""
    dice = Dice(seed)
    machines = [
        a_machine("n1", 8, 64, 256),
        a_machine("n2", dice.choice([4, 8]), 64, 256, V100),
        a_machine("n3", 8, 64, 256, "Ascend 910B", "ascend"),
        a_machine("n4", 8, 64, 256, "Ascend 910B", "ascend"),
    ]
    groups = {
        name: Group(name, fifo=dice.often(25), quotas=(Quota(name, "nvidia", dice.choice([None, 8000]), None),))
        for name in ("vision", "speech", "audio")
    }
    order = Ordering(
        fair_share=dice.often(50), half_life=600.0, ahead=60.0, age_every=60.0, age_points=dice.choice([50, 200])
    )
    policy = Policy(order=order, placing=dice.choice(list(Placing)), backfill=dice.often(50))
    yard = Yard(machines, groups, policy, every=30.0)
    shape, more, together = dice.choice(LARGE)
    large = a_job(
        "large00000", shape, *more, together=together, group="vision", owner="ann", longest=dice.choice([None, 100.0])
    )
    yard.submit(Job(large, 50.0), 100.0)
    for n in range(800):
        small = a_job(
            f"job{n:07d}",
            dice.choice(CROWD),
            owner=dice.choice(["ann", "bob", "eve"]),
            group=dice.choice(["vision", "speech", "audio"]),
            priority=dice.choice([500, 500, 700, 900]),
            preemptible=dice.often(30),
            longest=dice.choice([None, None, 60.0, 120.0]),
        )
        yard.submit(Job(small, dice.uniform(30.0, 120.0), stops_in=5.0), n * 2.5)
    yard.run(2000.0, stop=lambda: bool(yard.start_of("large00000")))
    assert yard.start_of("large00000"), f"seed {seed}: {shape} {more} {together} {yard.waiting['large00000']}"


@example(8707473)  # groups that used less in turn took what the large one had gathered
@given(SEEDS)
@settings(max_examples=6, deadline=None)
def test_whatever_can_start_does_start_though_small_and_more_important_work_never_ends(seed: int) -> None:
    check_that_it_starts(seed)


@pytest.mark.soak
@given(SEEDS)
@settings(max_examples=500, deadline=None)
def test_nobody_starves_in_hundreds_of_yards(seed: int) -> None:
    check_that_it_starts(seed)


def test_cards_that_a_whole_card_waits_for_are_not_given_out_in_halves_for_ever() -> None:
    """Halves come all the time, and half a card is always free somewhere: the whole one starts all the same."""
    yard = Yard([a_machine("n1", 2)], policy=Policy(order=BY_PRIORITY_AND_AGE))
    for n in range(200):
        yard.submit(Job(a_job(f"job{n:07d}", Shape(0.5, cpu=1)), 40.0), n * 10.0 + 5.0 * (n % 2))
    yard.submit(Job(a_job("whole00000", Shape(1, cpu=1)), 10.0), 100.0)
    yard.run(400.0)
    assert yard.start_of("whole00000") is not None


def test_a_ring_that_four_chips_wait_for_is_not_given_out_chip_by_chip_for_ever() -> None:
    yard = Yard([a_machine("n1", 8, model="Ascend 910B", device="ascend")], policy=Policy(order=BY_PRIORITY_AND_AGE))
    for n in range(300):
        yard.submit(Job(a_job(f"job{n:07d}", Shape(1, "ascend", cpu=1)), 60.0), n * 10.0 + 3.0 * (n % 3))
    yard.submit(Job(a_job("ring000000", Shape(4, "ascend", cpu=1)), 10.0), 100.0)
    yard.run(600.0)
    assert yard.start_of("ring000000") is not None


def test_the_model_one_waits_for_is_not_given_to_others_because_another_model_is_free_beside_it() -> None:
    cards = (
        *(Card(index, "nvidia", A100) for index in (0, 1)),
        *(Card(index, "nvidia", V100) for index in (2, 3, 4, 5)),
    )
    yard = Yard([Node("n1", 64_000, 256 * GIB, cards)], policy=Policy(order=BY_PRIORITY_AND_AGE))
    for n in range(100):
        yard.submit(Job(a_job(f"job{n:07d}", Shape(1, models=("a100",))), 60.0), n * 20.0)
    yard.submit(Job(a_job("both000000", Shape(2, models=("a100",))), 10.0), 50.0)
    yard.run(300.0)
    assert yard.start_of("both000000") is not None


def test_one_that_waits_for_room_does_not_lose_its_quota_meanwhile() -> None:
    """Later work of its group runs elsewhere without end; it would then wait for the quota instead of the room."""
    groups = {"vision": Group("vision", (Quota("vision", "nvidia", 4000),))}
    yard = Yard([a_machine("n1", 4), a_machine("n2", 2)], groups, Policy(order=BY_PRIORITY_AND_AGE))
    yard.submit(Job(a_job("busy000000", Shape(3, cpu=1), group="speech"), 100.0), 0.0)
    yard.submit(Job(a_job("large00000", Shape(4)), 10.0), 1.0)
    for n in range(50):
        yard.submit(Job(a_job(f"job{n:07d}", Shape(1, cpu=1)), 1000.0), 2.0 + n)
    yard.run(150.0)
    assert yard.start_of("large00000") == 100.0


def test_what_can_never_start_under_its_quota_holds_up_nobody() -> None:
    """Neither one whose fair share of cores is above the limit, nor one that borrows more than may be borrowed."""
    groups = {
        "vision": Group("vision", (Quota("vision", "cpu", 4000),), fifo=True),
        "speech": Group("speech", (Quota("speech", "nvidia", None, guaranteed=6000),)),
        "audio": Group("audio", fifo=True),
    }
    yard = Yard([a_machine("n1", 8)], groups, Policy(order=BY_PRIORITY_AND_AGE))
    yard.submit(Job(a_job("open000000", Shape(1)), 10.0), 0.0)
    yard.submit(Job(a_job("named00000", Shape(1, cpu=2)), 10.0), 1.0)
    yard.submit(Job(a_job("borrows000", Shape(4), group="audio"), 10.0), 2.0)
    yard.submit(Job(a_job("modest0000", Shape(1, cpu=2), group="audio"), 10.0), 3.0)
    yard.run(10.0)
    assert yard.start_of("named00000") == 1.0
    assert yard.start_of("modest0000") == 3.0
    assert yard.waiting["open000000"].code in NEVER_STARTS
    assert yard.waiting["borrows000"].code is Code.BORROW_NEVER


# --- what is lent comes back --------------------------------------------------------------------------------------


@given(SEEDS)
@settings(max_examples=40, deadline=None)
def test_a_group_that_asks_within_its_guarantee_gets_it_after_the_shortest_run_and_the_grace(seed: int) -> None:
    """However the borrowers lie on the machines, and whoever of them is within a guarantee of its own."""
    dice = Dice(seed)
    machines = [a_machine(f"n{n}", dice.choice([2, 4, 8])) for n in range(dice.choice([1, 2, 3]))]
    cards = sum(len(machine.cards) for machine in machines)
    mine = dice.randrange(1, cards + 1)
    theirs = dice.randrange(0, cards - mine + 1)
    groups = {
        "vision": Group("vision", (Quota("vision", "nvidia", None, guaranteed=mine * 1000),)),
        "speech": Group("speech", (Quota("speech", "nvidia", None, guaranteed=theirs * 1000),)),
    }
    min_run, grace = dice.choice([0.0, 300.0]), dice.choice([0.0, 30.0])
    policy = Policy(order=Ordering(fair_share=dice.often(50)), preempt=Preempting(min_run=min_run))
    yard = Yard(machines, groups, policy, every=5.0)
    for n in range(40):
        group = dice.choice(["speech", "audio", "audio"])
        size = 1 if theirs else dice.choice([1, 1, 2])  # of two cards only one may be beyond a guarantee
        lent = a_job(f"run{n:07d}", Shape(size, cpu=1), group=group, preemptible=True, grace=grace)
        yard.submit(Job(lent, 1e6, stops_in=grace), dice.uniform(0.0, 5.0))
    yard.run(10.0)
    came = 1000.0 if theirs else dice.choice([10.0, 200.0, 1000.0])  # speech has by then what is guaranteed to it
    names = [f"job{n:07d}" for n in range(mine)]
    for id in names:
        asked = a_job(id, Shape(1, cpu=1), priority=dice.choice([100, 500]), owner=dice.choice(["ann", "bob"]))
        yard.submit(Job(asked, 1e6), came)
    latest = max(came, 10.0 + min_run) + grace + 3 * yard.every * (1 + mine // 8)
    yard.run(latest)
    assert all(yard.start_of(id) is not None for id in names), f"seed {seed}: {yard.waiting}"
    uses = dict.fromkeys(groups, 0)
    for one in yard.live.values():
        if one.holds_resources and one.group in uses and one.attempt is not None:
            uses[one.group] += sum(replica.allotment.cards_milli for replica in one.attempt.replicas)
    asked_for = 1000 * sum(1 for one in yard.live.values() if one.group == "speech")
    assert uses["speech"] >= min(theirs * 1000, asked_for)


# --- nobody pushes anybody out in turn ----------------------------------------------------------------------------


def check_closed_yard(seed: int) -> None:
    """Nobody comes any more: interrupting ends soon, and everything is done in the end."""
    dice = Dice(seed)
    machines = [a_machine(f"n{n}", dice.choice([2, 4, 8])) for n in range(dice.choice([1, 2, 3]))]
    cards = sum(len(machine.cards) for machine in machines)
    parts = [dice.randrange(0, cards // 2 + 1) * 1000 for _ in range(2)]
    groups = {
        name: Group(name, (Quota(name, "nvidia", None, guaranteed=part),), fifo=dice.often(15))
        for name, part in zip(("vision", "speech"), parts, strict=True)
    }
    order = Ordering(fair_share=dice.often(50), age_every=200.0, age_points=dice.choice([0, 100]))
    policy = Policy(
        order=order, preempt=Preempting(min_run=dice.choice([0.0, 60.0])), placing=dice.choice(list(Placing))
    )
    yard = Yard(machines, groups, policy, every=20.0)
    count = dice.randrange(6, 25)
    for n in range(count):
        workload = a_workload(dice, f"job{n:07d}", ["nvidia"] * 8 + [""])
        spec = replace(workload.spec, preemptible=dice.often(70), max_seconds=None, grace_seconds=10.0)
        one = replace(workload, spec=spec, not_before=0.0)
        # What is interrupted begins anew: it must be able to get through in the end.
        yard.submit(Job(one, dice.uniform(20.0, 400.0), stops_in=dice.choice([0.0, 10.0])), dice.uniform(0.0, 100.0))
    yard.run(60_000.0, stop=lambda: yard.now > 200.0 and all(_is_hopeless(yard, id) for id in yard.live))
    assert all(_is_hopeless(yard, id) for id in yard.live), f"seed {seed}: {dict(yard.waiting)}"
    assert len(yard.evictions) <= count * (count - 1) / 2, f"seed {seed}: {len(yard.evictions)} of {count}"
    by_priority = {(e.by, e.workload) for _, e in yard.evictions if e.rule == "priority"}
    assert not any((victim, by) in by_priority for by, victim in by_priority)


def _is_hopeless(yard: Yard, id: str) -> bool:
    reason = yard.waiting.get(id)
    return reason is not None and reason.code in {*NEVER_STARTS, Code.BORROW, Code.NO_NODES}


@given(SEEDS)
@settings(max_examples=30, deadline=None)
def test_in_a_closed_yard_interrupting_comes_to_an_end_and_everything_gets_done(seed: int) -> None:
    check_closed_yard(seed)


@pytest.mark.soak
@given(SEEDS)
@settings(max_examples=2000, deadline=None)
def test_interrupting_comes_to_an_end_in_thousands_of_yards(seed: int) -> None:
    check_closed_yard(seed)


# --- shares -------------------------------------------------------------------------------------------------------


def endless_work(yard: Yard, people: Sequence[tuple[str, str]], until: float, each: float, dice: Dice) -> None:
    """Everybody always has more work in the queue than there is room for."""
    per_head = int(until / each * sum(len(node.cards) for node in yard.books.nodes)) + 5
    for group, owner in people:
        for n in range(per_head):
            job = a_job(f"{group[0]}{owner[0]}{n:08d}", Shape(1), group=group, owner=owner)
            yard.submit(Job(job, each * dice.uniform(0.8, 1.2)), 0.0)


@pytest.mark.parametrize(("weights", "expected"), [((1.0, 1.0), 1.0), ((2.0, 1.0), 2.0), ((1.0, 3.0), 1 / 3)])
def test_groups_with_endless_work_share_by_their_weights(weights: tuple[float, float], expected: float) -> None:
    groups = {name: Group(name, weight=weight) for name, weight in zip(("vision", "speech"), weights, strict=True)}
    yard = Yard([a_machine("n1", 8)], groups, Policy(order=Ordering(half_life=DAY)))
    endless_work(yard, [("vision", "ann"), ("speech", "bob")], 60_000.0, 1000.0, Dice(1))
    yard.run(60_000.0)
    ratio = yard.card_seconds["vision", None] / yard.card_seconds["speech", None]
    assert abs(ratio / expected - 1) < 0.15


def test_the_people_of_a_group_share_alike_however_many_jobs_each_has() -> None:
    yard = Yard([a_machine("n1", 8)], {}, Policy())
    people = [("vision", "ann"), ("vision", "bob"), ("vision", "eve")]
    endless_work(yard, people, 40_000.0, 1000.0, Dice(2))
    for n in range(300):  # ann asks for far more than the others, and first
        yard.submit(Job(a_job(f"more{n:06d}", Shape(1), owner="ann"), 1000.0), 0.0)
    yard.run(40_000.0)
    used = [yard.card_seconds[person] for person in people]
    assert max(used) / min(used) < 1.15


def test_past_use_counts_at_first_and_is_forgotten_by_and_by() -> None:
    past = {("vision", None): PastUse(8 * 20_000.0, 0.0), ("vision", "ann"): PastUse(8 * 20_000.0, 0.0)}
    order = Ordering(half_life=5000.0, ahead=600.0)
    yard = Yard([a_machine("n1", 8)], {}, Policy(order=order), past=past)
    endless_work(yard, [("vision", "ann"), ("speech", "bob")], 80_000.0, 500.0, Dice(3))
    yard.run(5000.0)
    assert yard.card_seconds.get(("vision", None), 0.0) < 0.5 * yard.card_seconds["speech", None]
    yard.run(40_000.0)
    before = dict(yard.card_seconds)
    yard.run(80_000.0)
    gained = {person: used - before.get(person, 0.0) for person, used in yard.card_seconds.items()}
    assert 0.85 < gained["vision", None] / gained["speech", None] < 1.15
