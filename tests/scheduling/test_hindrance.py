"""One that waits for work without a known end does not hold up everybody else's small jobs, and starts all the same."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.draw import a_job, a_node, groups_with, running
from tests.scheduling.test_time_laws import BY_PRIORITY_AND_AGE, a_machine
from tests.scheduling.test_time_laws import a_job as a_shaped_job
from tests.scheduling.worlds import Dice, Shape
from tests.scheduling.yard import Job, Yard

from gpuyard.domain.people import Quota
from gpuyard.domain.policy import Policy
from gpuyard.domain.reasons import Code
from gpuyard.domain.resources import GIB
from gpuyard.domain.workload import Kind, Together, Workload
from gpuyard.scheduling.books import Books
from gpuyard.scheduling.plan import decide, plan, preview
from gpuyard.scheduling.snapshot import Plan, Snapshot, Sort
from gpuyard.scheduling.why import why
from gpuyard.words import say

SEEDS = st.integers(0, 2**32)
NOW = 1000.0
BY_AGE = Policy(order=BY_PRIORITY_AND_AGE)
SMALL = 0.1


def with_spec(job: Workload, **changes: object) -> Workload:
    return replace(job, spec=replace(job.spec, **changes))  # type: ignore[arg-type]


ENDLESS = with_spec(a_job("endless001", cpu=SMALL, at=50.0), kind=Kind.ENV)
ON_A = running(ENDLESS, ("a", ()), cpu_milli=100)
ODD = a_job("odd0000001", cpu=1.95, memory_gib=1, at=100.0)


def small(number: int, cpu: float = SMALL, **more: object) -> Workload:
    return a_job(f"small{number:05d}", cpu=cpu, memory_gib=0.1, at=200.0 + number, owner="bob", **more)  # type: ignore[arg-type]


def a_world(queue: Sequence[Workload], *holding: Workload, policy: Policy = BY_AGE, nodes: str = "a") -> Snapshot:
    return Snapshot(NOW, tuple(a_node(n, cpu=2, memory_gib=16) for n in nodes), tuple(queue), holding, policy=policy)


def starts(outcome: Plan) -> list[str]:
    return sorted(placement.workload for placement in outcome.placements)


def test_small_jobs_go_on_in_half_of_what_one_keeps_that_waits_for_work_without_a_known_end() -> None:
    outcome = plan(a_world([ODD, *(small(n) for n in range(20))], ON_A))
    assert starts(outcome) == [f"small{n:05d}" for n in range(9)]  # of 1.9 cores that are free it holds back 0.95


def test_what_it_lends_is_the_same_half_however_often_it_is_asked() -> None:
    world = a_world([ODD, *(small(n) for n in range(20))], ON_A)
    outcome = plan(world)
    placed = [running(small(n), ("a", ()), cpu_milli=100) for n in range(9)]
    placed = [replace(w, attempt=replace(w.attempt, created_at=NOW)) for w in placed if w.attempt]
    left = [job for job in world.queue if job.id in outcome.waiting]
    assert not plan(replace(world, queue=tuple(left), holding=(ON_A, *placed))).placements


def test_two_odd_ones_lend_no_less_than_one() -> None:
    more = [with_spec(a_job(f"odd{n:07d}", cpu=1.95 - n / 100, memory_gib=1, at=100.0 + n)) for n in range(2, 40)]
    medium = a_job("medium0001", cpu=1, memory_gib=1, at=180.0)
    outcome = plan(a_world([ODD, *more, medium, *(small(n) for n in range(20))], ON_A))
    assert len(outcome.placements) == 9
    assert outcome.waiting["medium0001"].code is Code.ORDER


@pytest.mark.parametrize(
    "hindrance",
    [
        with_spec(ON_A, max_seconds=3600.0),  # known to end
        replace(ON_A, submitted_at=150.0),  # came later
    ],
)
def test_nobody_goes_on_once_what_came_before_it_has_a_known_end_or_is_gone(hindrance: Workload) -> None:
    assert not plan(a_world([ODD, small(1)], hindrance)).placements


def test_its_quota_is_lent_like_its_room() -> None:
    quota = Quota("vision", "cpu", 2100)
    world = replace(a_world([ODD, *(small(n) for n in range(20))], ON_A), groups=groups_with([quota]))
    assert len(plan(world).placements) == 9


def test_it_is_decided_alike_where_nobody_is_told_why() -> None:
    more = [a_job(f"odd{n:07d}", cpu=1.95 - n / 100, memory_gib=1, at=100.0 + n) for n in range(2, 5)]
    medium = a_job("medium0001", cpu=1, memory_gib=1, at=180.0)
    world = a_world([ODD, *more, medium, *(small(n) for n in range(20))], ON_A)
    assert starts(decide(Books.of(world), NOW, untold=True)) == starts(plan(world))


def test_where_no_passing_is_wanted_nobody_passes() -> None:
    assert not plan(a_world([ODD, small(1)], ON_A, policy=replace(BY_AGE, backfill=False))).placements


def test_a_dev_environment_does_not_go_on_since_it_has_no_end_itself() -> None:
    guest = with_spec(small(1), kind=Kind.ENV)
    outcome = plan(a_world([ODD, guest], ON_A))
    assert not outcome.placements
    assert "does not, since it has no end" in say(outcome.waiting[guest.id], "en")
    assert "没有结束时间，所以不在其中" in say(outcome.waiting[guest.id], "zh")


def test_cards_that_are_kept_are_never_lent_but_cores_beside_them_are() -> None:
    held = running(a_job("held000001", cards=1, at=50.0), ("a", (0,)), cpu_milli=8000)
    head = a_job("head000001", cards=8, cpu=64, memory_gib=8, at=100.0)
    on_cards, on_cores = a_job("card000001", cards=1, cpu=1, memory_gib=1, at=200.0), small(1, cpu=28)
    outcome = plan(Snapshot(NOW, (a_node("a", 8, cpu=64),), (head, on_cards, on_cores), (held,), policy=BY_AGE))
    assert starts(outcome) == [on_cores.id]


def test_one_of_cores_alone_waits_rather_where_nothing_without_a_known_end_is_in_its_way() -> None:
    """The other machine is fuller now, but with what has come since: that is gone some day, and is not let in again."""
    since = running(replace(small(0), submitted_at=150.0), ("b", ()), cpu_milli=1000)
    on_a, on_b = (with_spec(small(n), roles=(where(small(n), node),)) for n, node in ((1, "a"), (2, "b")))
    outcome = plan(a_world([ODD, on_a, on_b], ON_A, since, nodes="ab"))
    assert starts(outcome) == [on_a.id]
    assert "without_end" not in outcome.waiting[ODD.id].facts


def where(job: Workload, node: str) -> object:
    role = job.spec.roles[0]
    return replace(role, where=replace(role.where, nodes=(node,)))


# --- what is told -------------------------------------------------------------------------------------------------


def test_both_are_told_what_is_in_the_way_and_that_jobs_go_on_in_a_half() -> None:
    waiting = plan(a_world([ODD, small(1, cpu=1)], ON_A)).waiting
    assert (waiting[ODD.id].code, waiting["small00001"].code) == (Code.BUSY, Code.ORDER)
    for reason in waiting.values():
        assert reason.facts["without_end"] == ["endless001"]
        for language, half in (("en", "half of the cores and memory"), ("zh", "一半")):
            told = say(reason, language)  # type: ignore[arg-type]
            assert "endless001" in told
            assert half in told


def test_why_and_the_preview_say_the_same_and_offer_what_the_half_has_room_for() -> None:
    world = a_world([ODD, small(1, cpu=1)], ON_A)
    told = plan(world).waiting
    for id, sort in ((ODD.id, Sort.BUSY), ("small00001", Sort.ORDER)):
        proof = why(Books.of(world), id, NOW)
        assert proof is not None
        assert (proof.sort, proof.reason) == (sort, told[id])
    assert proof is not None
    assert {"cpu": "0.5"} in [dict(remedy.changes) for remedy in proof.remedies]
    assert preview(a_world([ODD], ON_A), small(1)).starts
    assert preview(a_world([ODD], ON_A), small(1, cpu=1)).reason == told["small00001"]


# --- as time passes -----------------------------------------------------------------------------------------------

HEADS = (
    *((Shape(cpu=cpu), Together.ANY) for cpu in (16, 15.5, 9)),
    (Shape(cpu=12, memory=60), Together.ANY),
    *((Shape(cpu=5, replicas=3), together) for together in (Together.ANY, Together.ONE_NODE)),
    (Shape(4), Together.ANY),
    (Shape(2, cpu=15), Together.ANY),
)
LONGEST = 300.0  # of all that comes after the head


def a_yard_with_a_head(dice: Dice) -> Yard:
    """What came before it has no known end, and ends all the same."""
    yard = Yard([a_machine("n1", 4, 16, 64)], policy=BY_AGE, every=30.0)
    for n in range(dice.randrange(1, 6)):
        shape = dice.choice([Shape(cpu=1), Shape(cpu=4), Shape(1, cpu=2), Shape(cpu=2, memory=20)])
        yard.submit(Job(a_shaped_job(f"run{n:07d}", shape), dice.uniform(100.0, 1500.0)), float(n))
    yard.run(20.0)
    shape, together = dice.choice(HEADS)
    yard.submit(Job(a_shaped_job("head000000", shape, priority=900, together=together), 100.0), 20.0)
    for n in range(230):
        guest = dice.choice([Shape(cpu=1, memory=1), Shape(cpu=0.5), Shape(cpu=3), Shape(1, cpu=1), Shape(cpu=7)])
        longest = dice.choice([None, None, LONGEST])
        job = a_shaped_job(f"job{n:07d}", guest, owner=dice.choice(["bob", "eve"]), grace=0.0, longest=longest)
        yard.submit(Job(job, dice.uniform(50.0, LONGEST)), 21.0 + 9.0 * n)
    return yard


@given(SEEDS)
@settings(max_examples=15, deadline=None)
def test_the_head_starts_at_the_latest_when_those_are_over_that_run_as_the_last_of_what_hindered_it_ends(
    seed: int,
) -> None:
    """However many small jobs come: nobody new goes on from then on."""
    yard = a_yard_with_a_head(Dice(seed))
    yard.run(3000.0, stop=lambda: not any(id.startswith("run") for id in yard.live))
    yard.run(yard.now + LONGEST + 1.0, stop=lambda: yard.start_of("head000000") is not None)
    assert yard.start_of("head000000") is not None, f"seed {seed}: {yard.waiting['head000000']}"


@given(SEEDS)
@settings(max_examples=20, deadline=None)
def test_it_starts_though_on_another_machine_something_never_ends(seed: int) -> None:
    """It is not drawn to and fro between machines, gathering nothing on either."""
    dice = Dice(seed)
    yard = Yard([a_machine(f"n{n}", 0, 16, 64) for n in range(2)], policy=BY_AGE, every=30.0)
    lasts = [dice.uniform(100.0, 1500.0), 1e9]
    for n, seconds in enumerate(lasts):
        there = a_shaped_job(f"run{n:07d}", Shape(cpu=dice.choice([0.6, 1]), memory=1))
        yard.submit(Job(with_spec(there, roles=(where(there, f"n{n}"),)), seconds), 0.0)
    yard.run(20.0)
    yard.submit(Job(a_shaped_job("head000000", Shape(cpu=15.5, memory=1), priority=900), 100.0), 20.0)
    for n in range(500):
        guest = a_shaped_job(f"job{n:07d}", Shape(cpu=dice.choice([0.5, 1, 3]), memory=0.1))
        yard.submit(Job(guest, dice.uniform(50.0, LONGEST)), 21.0 + 5.0 * n)
    yard.run(20.0 + lasts[0] + LONGEST + 31.0, stop=lambda: yard.start_of("head000000") is not None)
    assert yard.start_of("head000000") is not None, f"seed {seed}: {yard.waiting['head000000']}"


@given(SEEDS)
@settings(max_examples=40, deadline=None)
def test_others_lose_no_more_by_it_than_half_of_what_it_could_use_while_nobody_knows_its_start(seed: int) -> None:
    """Whenever a small job waits for what the head keeps, the head has at least half of its own need in front of it."""
    dice = Dice(seed)
    cores, memory = dice.choice([2, 8, 16]), 64
    used, asked = dice.uniform(0.05, cores - 0.3), dice.uniform(0.3, cores)
    there = running(a_job("endless001", cpu=1, at=50.0), ("a", ()), cpu_milli=round(used * 1000), memory=GIB)
    head = a_job("head000001", cpu=asked, memory_gib=dice.choice([1, 30, 62]), at=100.0)
    jobs = [small(n, cpu=dice.choice([0.05, 0.1, 0.2])) for n in range(200)]
    world = Snapshot(NOW, (a_node("a", cpu=cores, memory_gib=memory),), (head, *jobs), (there,), policy=BY_AGE)
    outcome, free = plan(world), cores * 1000 - round(used * 1000)
    if head.id not in outcome.waiting:
        return
    given_out = sum(one.cpu_milli for p in outcome.placements for one in p.allotments.values())
    could_use = min(round(asked * 1000), free)
    assert free - given_out <= could_use / 2 + 200, f"seed {seed}"  # beside half of that the largest has no room
    assert free - given_out >= could_use // 2
    assert plan(world) == outcome
