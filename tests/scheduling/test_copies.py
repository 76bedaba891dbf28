"""How many copies of a typical request still fit."""

from __future__ import annotations

from dataclasses import replace

from hypothesis import given, settings
from tests.scheduling.test_fragments import FRAGMENTS, books_of, cards, node, put
from tests.scheduling.worlds import A100, NOW, V100, worlds

from gpuyard.domain.cluster import Card, Node, NodeState
from gpuyard.domain.resources import GIB, Resources
from gpuyard.domain.workload import RoleSpec, Spec, Workload
from gpuyard.scheduling.books import Books
from gpuyard.scheduling.copies import Served, served
from gpuyard.scheduling.fragments import Typical, may_use
from gpuyard.scheduling.inquiry import Inquiry
from gpuyard.scheduling.proposals import fragments
from gpuyard.scheduling.room import Room
from gpuyard.scheduling.snapshot import Snapshot


def of(books: Books, resources: Resources) -> Served:
    (one,) = served([Typical(resources, 1)], books.rooms)
    return one


def test_what_fits_and_what_is_stranded_is_all_that_is_free() -> None:
    books = books_of(node("a", 4), node("b", 4), t=(cards(1000), 1))
    put(books, cards(1000))
    assert of(books, cards(4000))[2:] == (1, 7000, 3000)
    assert of(books, cards(3000))[2:] == (2, 7000, 1000)
    put(books, cards(400))
    assert of(books, cards(700))[2:] == (6, 6600, 2400)


def test_cores_are_counted_once_where_a_machine_has_cards_of_two_models() -> None:
    mixed = Node("a", 8000, 64 * GIB, tuple(Card(n, "nvidia", A100 if n < 2 else V100) for n in range(4)))
    books = books_of(mixed, t=(cards(1000), 1))
    assert of(books, cards(1000, cpu=3000)).fit == 2
    assert of(books, cards(1000, cpu=1000, models=("V100",)))[2:] == (2, 2000, 0)


def test_those_without_cards_are_not_counted() -> None:
    books = books_of(node("a", 4), t=(cards(1000), 1))
    assert served([Typical(Resources(cpu_milli=1000), 5)], books.rooms) == ()


def test_what_fits_no_machine_is_not_told_among_typical_requests_and_what_fits_a_closed_one_is() -> None:
    closed = replace(node("closed", 16), state=NodeState.CORDONED)
    asked = [cards(1000), cards(16_000), cards(64_000), cards(1000, cpu=900_000), cards(1000, models=("T4",))]
    learned = Books([node("a", 8), closed], {}, FRAGMENTS, typical=tuple(Typical(one, 1) for one in asked))
    unlearned = Books([node("a", 8), closed], {}, FRAGMENTS)
    for number, resources in enumerate(asked):
        spec = Spec("job", (RoleSpec("worker", ("true",), 1, resources),))
        unlearned.put(Workload(f"job000000{number}", "ann", "team", spec, 0.0))
    for books in (learned, unlearned):
        told = fragments(Inquiry(books, NOW))
        assert sorted(one.cards.milli for one in told.requests) == [1000, 16_000]
        assert [one.fit for one in told.requests if one.cards.milli == 16_000] == [0]


def placed_one_by_one(room: Room, asked: Resources) -> int:
    cards, count = asked.cards, 0
    stacks = [stack for stack in room.stacks if cards is not None and may_use(stack, cards)]
    for stack in stacks:
        while (offer := stack.offer(asked)) is not None:
            room.take(offer)
            count += 1
    return count


@given(worlds())
@settings(max_examples=150, deadline=None)
def test_as_many_fit_as_can_be_placed_one_by_one(world: Snapshot) -> None:
    for one in world.typical:
        books = Books.of(world)
        told = served([one], books.rooms)
        plain = replace(one.resources, memory=0, shm=0)
        if told:
            assert told[0].fit == sum(placed_one_by_one(room, plain) for room in books.rooms)
