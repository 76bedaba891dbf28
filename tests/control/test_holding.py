"""Who holds a card that was given to others is told, and ended when the card has been held for too long."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from dataclasses import replace

import pytest
from tests.control.test_control import sim
from tests.control.yard import EAGER, Yard
from tests.draw import a_job, a_node

from gpuyard.control.holding import REMEMBERED_SECONDS
from gpuyard.domain.cluster import Node
from gpuyard.domain.reasons import Code
from gpuyard.domain.workload import Cause, Kind, ReplicaId, State, Wanted
from gpuyard.engines.seam import HeldCard, HolderLook
from gpuyard.engines.simulated import SimulatedEngine
from gpuyard.store import audit, workplaces
from gpuyard.store.database import Database

BOUND = EAGER.held_card_seconds
GIVER, TAKER = ReplicaId("giver00001", 1, "worker", 0), ReplicaId("taker00001", 1, "worker", 0)


class Watched(SimulatedEngine):
    """Simulated machines that also tell who holds which card; what they hold is moved by hand."""

    def __init__(self, yard: Yard) -> None:
        super().__init__([a_node("a", 4)], lambda: yard.time)
        self.held: dict[ReplicaId, list[int]] = {}
        self.looked: float | None = None  # when the last look was, where it is not now
        self.graces: list[float] = []

    def nodes(self) -> list[Node]:
        trouble = {index for cards in self.held.values() for index in cards}
        return [
            replace(node, cards=tuple(replace(c, trouble="held" if c.index in trouble else "") for c in node.cards))
            for node in super().nodes()
        ]

    def holders(self) -> HolderLook:
        held = {id: [HeldCard("a", "nvidia", n, 77, "python3") for n in cards] for id, cards in self.held.items()}
        return HolderLook(self._clock() if self.looked is None else self.looked, held)

    def stop(self, id: ReplicaId, handle: str | None, grace_seconds: float) -> None:
        self.graces.append(grace_seconds)
        super().stop(id, handle, grace_seconds)


class HeldYard(Yard):
    @property
    def watched(self) -> Watched:
        assert isinstance(self.engine, Watched)
        return self.engine

    def run(self, id: ReplicaId, cards: int = 0) -> str:
        job = a_job(id.workload, cards=cards, cpu=0.1, env=sim(1e6, deaf=1))
        self.submit(replace(job, spec=replace(job.spec, retries={Cause.EXIT: 3}, grace_seconds=3600.0)))
        self.pass_time()
        assert self.state(id.workload) is State.RUNNING
        return id.workload

    def lets_go(self, id: ReplicaId) -> None:
        self.watched.held.pop(id, None)
        self.pass_time(3, steps=1)

    def is_held_by(self, id: ReplicaId, seconds: float, cards: tuple[int, ...] = (0,)) -> None:
        """Looked at every three seconds."""
        self.watched.held[id] = list(cards)
        until = self.time + seconds
        self.pass_time(0, steps=1)
        while self.time < until:
            self.pass_time(min(3, until - self.time), steps=1)


@pytest.fixture
def yard(database: Database) -> Iterator[HeldYard]:
    with closing(HeldYard(database, [a_node("a", 4)])) as yard:
        yard.engine = Watched(yard)
        yard.crash()
        yield yard


def trail(yard: Yard, id: str) -> list[str]:
    with yard.database.read() as conn:
        return [entry.action for entry in reversed(audit.page(conn)) if entry.object == id]


def test_it_is_told_once_and_ended_at_the_bound_without_another_try_and_without_an_hours_grace(yard: HeldYard) -> None:
    id = yard.run(TAKER)
    yard.is_held_by(TAKER, BOUND - 1, (0, 2))
    assert yard.state(id) is State.RUNNING
    assert yard.told(id).count(Code.KEEPS_CARD) == 1
    yard.is_held_by(TAKER, 3, (0, 2))
    assert yard.state(id) is State.STOPPING
    assert yard.watched.graces == [10.0]
    yard.pass_time(11)
    reason = yard.get(id).reason
    assert (yard.state(id), reason.code) == (State.FAILED, Code.KEPT_CARD)
    assert (reason.facts["cards"], reason.facts["node"], reason.facts["pid"]) == ([0, 2], "a", 77)
    assert trail(yard, id) == ["workload.warn_holder", "workload.end_holder"]


def test_who_lets_go_in_time_goes_on(yard: HeldYard) -> None:
    id = yard.run(TAKER)
    yard.is_held_by(TAKER, BOUND - 10)
    yard.lets_go(TAKER)
    yard.pass_time(REMEMBERED_SECONDS + 1, steps=1)
    yard.is_held_by(TAKER, BOUND - 10)
    assert yard.state(id) is State.RUNNING
    assert yard.told(id).count(Code.KEEPS_CARD) == 2, "it is a new time, and told anew"


def test_letting_go_for_a_moment_now_and_then_does_not_begin_the_time_anew(yard: HeldYard) -> None:
    id, begun = yard.run(TAKER), yard.time
    while yard.state(id) is State.RUNNING:
        assert yard.time < begun + 2 * BOUND
        yard.is_held_by(TAKER, 6)
        yard.lets_go(TAKER)
    assert yard.told(id).count(Code.KEEPS_CARD) == 1
    assert yard.get(id).reason.code is Code.KEPT_CARD


def test_a_card_that_is_handed_round_in_a_ring_is_nobodys_for_longer_than_the_bound(yard: HeldYard) -> None:
    ring = [replace(TAKER, workload=f"taker0000{number}") for number in range(4)]
    for id in ring:
        yard.run(id)
    for id in ring:
        yard.is_held_by(id, BOUND / 4)
        if yard.state(id.workload) is State.RUNNING:
            yard.lets_go(id)
    assert [yard.state(id.workload) for id in ring] == [State.RUNNING] * 3 + [State.STOPPING]
    assert yard.told(ring[3].workload).count(Code.KEEPS_CARD) == 1, "it was warned, too"


def test_an_environment_is_stopped_with_the_reason_and_can_be_started_again(yard: HeldYard) -> None:
    job = a_job(TAKER.workload, env=sim(1e6))
    yard.submit(replace(job, spec=replace(job.spec, kind=Kind.ENV)))
    with yard.database.write() as conn:
        workplaces.add(conn, TAKER.workload, None)
    yard.pass_time()
    yard.is_held_by(TAKER, BOUND + 3)
    yard.pass_time(3)
    assert (yard.state(TAKER.workload), yard.get(TAKER.workload).reason.code) == (State.PAUSED, Code.KEPT_CARD)
    yard.want(TAKER.workload, Wanted.RUN)
    yard.pass_time(3)
    assert yard.state(TAKER.workload) is State.RUNNING  # what is held by the attempt before does not count


def test_who_stops_anyway_is_not_waited_for_once_the_bound_is_over(yard: HeldYard) -> None:
    id = yard.run(TAKER)
    yard.is_held_by(TAKER, 3)
    yard.want(id, Wanted.STOP)
    yard.is_held_by(TAKER, BOUND - 9)
    assert set(yard.watched.graces) == {3600.0}
    yard.is_held_by(TAKER, 9)
    assert yard.watched.graces[-1] == 10.0
    yard.pass_time(11)
    assert yard.state(id) is State.STOPPED, "as its owner wanted"


def test_work_may_hold_what_another_replica_of_it_was_given(yard: HeldYard) -> None:
    id = yard.run(GIVER, cards=2)
    attempt = yard.get(id).attempt
    assert attempt is not None
    yard.is_held_by(GIVER, 3 * BOUND, tuple(share.index for share in attempt.replicas[0].allotment.cards))
    assert yard.state(id) is State.RUNNING
    assert Code.KEEPS_CARD not in yard.told(id)


def test_an_old_look_that_is_told_again_and_again_ends_nobody(yard: HeldYard) -> None:
    id = yard.run(TAKER)
    yard.is_held_by(TAKER, 3)
    yard.watched.looked = yard.time
    yard.is_held_by(TAKER, 3 * BOUND)
    assert yard.told(id).count(Code.KEEPS_CARD) == 1
    assert yard.state(id) is State.RUNNING


def test_where_an_admin_wants_nobody_ended_it_is_only_told(yard: HeldYard) -> None:
    yard.settings = replace(EAGER, held_card_seconds=0)
    yard.crash()
    id = yard.run(TAKER)
    yard.is_held_by(TAKER, 3 * BOUND)
    assert (yard.state(id), yard.told(id).count(Code.KEEPS_CARD)) == (State.RUNNING, 1)
    assert "seconds" not in next(e.reason for e in yard.story(id) if e.reason.code is Code.KEEPS_CARD).facts


def test_without_rooms_who_has_cards_of_the_kind_is_only_told_and_who_has_none_is_ended(yard: HeldYard) -> None:
    """A program that only measures opens all cards that it can see."""
    yard.watched.makes_rooms = False
    giver, taker = yard.run(GIVER, cards=1), yard.run(TAKER)
    yard.watched.held[GIVER] = [3]
    yard.is_held_by(TAKER, BOUND + 3, (3,))
    assert (yard.state(giver), yard.told(giver).count(Code.KEEPS_CARD)) == (State.RUNNING, 1)
    assert yard.state(taker) is State.STOPPING


def test_a_new_control_warns_once_more_and_ends_it_all_the_same(yard: HeldYard) -> None:
    id = yard.run(TAKER)
    yard.is_held_by(TAKER, BOUND - 3)
    yard.crash()
    yard.is_held_by(TAKER, BOUND - 3)
    assert yard.state(id) is State.RUNNING
    yard.is_held_by(TAKER, 6)
    assert yard.state(id) is State.STOPPING
