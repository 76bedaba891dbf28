"""With `news_only` everybody is told the right reason in the end, and nobody the same twice."""

from __future__ import annotations

from dataclasses import replace
from random import Random

from hypothesis import given, settings
from hypothesis import strategies as st
from tests.draw import a_job, a_node, running
from tests.scheduling.worlds import NOW, held_by, worlds

from gpuyard.domain.people import Group
from gpuyard.domain.policy import Ordering, Policy
from gpuyard.domain.reasons import Code, Reason
from gpuyard.domain.workload import Workload
from gpuyard.scheduling.books import Books
from gpuyard.scheduling.plan import TOLD_AGAIN_SECONDS, decide
from gpuyard.scheduling.snapshot import Snapshot

BY_AGE = Policy(order=Ordering(fair_share=False))


class Owner:
    """Keeps books and puts back what it is told, at once or a little later."""

    def __init__(self, world: Snapshot, chance: Random) -> None:
        self.books = Books(world.nodes, world.groups, world.policy, world.past, world.run_times, world.typical)
        self.live: dict[str, Workload] = {}
        self.known: dict[str, Reason] = {}  # what everyone would read
        self.pending: dict[str, Reason] = {}
        self.chance = chance

    def put(self, workload: Workload) -> None:
        self.live[workload.id] = workload
        self.known[workload.id] = workload.reason
        self.pending.pop(workload.id, None)
        self.books.put(workload)

    def remove(self, id: str) -> None:
        self.live.pop(id, None)
        self.pending.pop(id, None)
        self.books.remove(id)

    def look(self, now: float) -> int:
        """One pass. Returns how many were told something."""
        outcome = decide(self.books, now, news_only=True)
        starts = {placement.workload for placement in outcome.placements}
        assert not starts & outcome.waiting.keys()
        for id, reason in outcome.waiting.items():
            assert self.known[id] != reason
            self.known[id] = reason
            self.pending[id] = reason
        self.put_back(0.5)
        for placement in outcome.placements:
            self.put(held_by(self.live[placement.workload], placement.allotments, now))
        return len(outcome.waiting)

    def put_back(self, share: float) -> None:
        for id in [id for id in self.pending if self.chance.random() < share]:
            self.live[id] = replace(self.live[id], reason=self.pending.pop(id))
            self.books.put(self.live[id])


@given(worlds(), st.integers(0, 2**32))
@settings(max_examples=150, deadline=None)
def test_everybody_is_told_the_right_reason_in_the_end_and_nothing_twice(world: Snapshot, seed: int) -> None:
    chance = Random(seed)
    owner = Owner(world, chance)
    everything = [*world.queue, *world.holding]
    chance.shuffle(everything)
    now = NOW
    for _ in range(2 * len(everything)):
        workload = chance.choice(everything)
        if workload.id not in owner.live:
            owner.put(workload)
        elif chance.random() < 0.2:
            owner.remove(workload.id)
        owner.look(now)
        now += chance.choice([0.1, 1.0, TOLD_AGAIN_SECONDS])
    for _ in range(len(everything)):  # until nobody starts any more
        now += TOLD_AGAIN_SECONDS
        owner.look(now)
    owner.look(now + TOLD_AGAIN_SECONDS)
    right = decide(owner.books, now + TOLD_AGAIN_SECONDS).waiting
    assert {id: owner.known[id] for id in right} == dict(right)
    assert owner.look(now + TOLD_AGAIN_SECONDS) == 0


def test_behind_the_first_of_a_strict_queue_the_others_keep_their_own_reason() -> None:
    busy = running(a_job("busy000001", cards=8), ("a", tuple(range(8))))
    books = Books([a_node("a", 8)], {"vision": Group("vision", fifo=True)}, Policy())
    jobs = [a_job(f"job000000{n}", cards=2, at=100.0 + n) for n in range(3)]
    for workload in (busy, *jobs):
        books.put(workload)
    told = decide(books, 1000.0, news_only=True).waiting
    assert [told[job.id].code for job in jobs] == [Code.BUSY, Code.FIFO, Code.FIFO]
    for job in jobs:
        books.put(replace(job, reason=told[job.id]))
    assert not decide(books, 1001.0, news_only=True).waiting
    assert not decide(books, 1010.0, news_only=True).waiting


def test_one_that_is_alone_in_a_strict_queue_is_no_trouble() -> None:
    busy = running(a_job("busy000001", cards=8), ("a", tuple(range(8))))
    books = Books([a_node("a", 8), a_node("b", 1)], {"vision": Group("vision", fifo=True)}, BY_AGE)
    first, other = a_job("first00001", cards=4, at=100.0), a_job("other00001", cards=1, at=200.0, group="speech")
    for workload in (busy, first, other):
        books.put(workload)
    outcome = decide(books, 1000.0)
    assert [p.workload for p in outcome.placements] == ["other00001"]
    assert outcome.placements[0].passed == ("first00001",)


def test_one_who_comes_back_to_an_old_place_and_starts_is_not_told_that_it_waits() -> None:
    old = running(a_job("old0000001", cards=8), ("a", tuple(range(8))))
    books = Books([a_node("a", 8)], {}, Policy())
    young = a_job("young00001", cards=2, at=300.0)
    for workload in (old, young):
        books.put(workload)
    told = decide(books, 1000.0, news_only=True).waiting
    books.put(replace(young, reason=told["young00001"]))
    books.remove("old0000001")
    books.put(running(a_job("less000001", cards=6), ("a", tuple(range(6)))))
    books.put(a_job("back000001", cards=2, at=200.0))
    outcome = decide(books, 1001.0, news_only=True)
    assert {p.workload for p in outcome.placements} == {"back000001"}
    assert "back000001" not in outcome.waiting
