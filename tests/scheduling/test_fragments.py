"""Where work goes when the policy minds what typical requests could still use."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.scheduling.worlds import A100, V100, worlds

from gpuyard.domain.cluster import Allotment, Card, Node
from gpuyard.domain.policy import Placing, Policy
from gpuyard.domain.resources import GIB, WHOLE_CARD, Cards, Resources
from gpuyard.domain.workload import RoleSpec, Spec, State
from gpuyard.scheduling.books import Books
from gpuyard.scheduling.fit import Ask, Look, RoleAsk, ask_of, place_gang
from gpuyard.scheduling.fragments import FREQUENT_AT_MOST, LARGE_AT_MOST, Typical, fragmented, typical_from, unusable
from gpuyard.scheduling.measure import COPIES, COPIES_AT_MOST, FREE, KEPT_AT_MOST, SHAPES_AT_MOST, Measure
from gpuyard.scheduling.mixing import GRAIN, worths
from gpuyard.scheduling.plan import decide
from gpuyard.scheduling.rings import choose_chips
from gpuyard.scheduling.room import Room, Stack, fair_share
from gpuyard.scheduling.score import key_for
from gpuyard.scheduling.snapshot import Snapshot

FRAGMENTS = Policy(placing=Placing.FRAGMENTS)


def cards(milli: int, cpu: int | None = 1000, models: tuple[str, ...] = ()) -> Resources:
    return Resources(cpu_milli=cpu, memory=GIB, shm=0, cards=Cards("nvidia", milli, models))


def node(name: str, number: int, model: str = A100, cpu: int = 64_000) -> Node:
    return Node(name, cpu, 256 * GIB, tuple(Card(index, "nvidia", model) for index in range(number)))


def ask(resources: Resources, replicas: int = 1) -> Ask:
    return ask_of(Spec("job", (RoleSpec("worker", ("true",), replicas, resources),)), "team", FRAGMENTS)


def put(books: Books, resources: Resources, replicas: int = 1) -> list[Allotment]:
    taken = place_gang(ask(resources, replicas), books.rooms)
    return list(taken.values()) if taken else []


def books_of(*nodes: Node, **typical: tuple[Resources, int]) -> Books:
    return Books(nodes, {}, FRAGMENTS, typical=typical_from(dict(typical.values())))


# --- what is typical ----------------------------------------------------------------------------------------------


def told(counts: dict[Resources, int]) -> list[tuple[int, int]]:
    """Thousandths of a card, and how much that counts."""
    return [(one.resources.cards.milli, one.times) for one in typical_from(counts) if one.resources.cards]


def test_typical_are_the_most_frequent_requests_until_they_cover_nearly_all() -> None:
    assert told({cards(1000): 90, cards(500): 6, cards(20): 3, cards(10): 1}) == [(1000, 180), (500, 12)]


def test_what_asks_for_many_cards_is_typical_though_it_is_seldom_and_counts_half() -> None:
    assert told({cards(1000): 900, cards(8000): 5, cards(10): 5}) == [(1000, 1800), (8000, 5)]


def test_requests_that_differ_in_memory_alone_are_one_typical_request() -> None:
    small, large = cards(1000), replace(cards(1000), memory=99 * GIB, shm=GIB)
    assert typical_from({small: 3, large: 4}) == (Typical(Resources(cpu_milli=1000, cards=small.cards), 14),)


def test_with_nothing_known_of_what_is_typical_the_tightest_node_is_taken() -> None:
    books = Books([node("large", 8), node("small", 2)], {}, FRAGMENTS)
    assert [one.node for one in put(books, cards(1000))] == ["small"]


def test_of_requests_of_which_no_two_are_alike_the_first_by_frequency_and_by_cards_are_typical() -> None:
    counts = {cards(1 + n % 40, cpu=n): 1 for n in range(1000)} | {cards(8000): 1, cards(1000): 3}
    found = typical_from(counts)
    assert len(found) <= FREQUENT_AT_MOST + LARGE_AT_MOST
    assert found[0].resources.cards == Cards("nvidia", 1000)
    assert any(one.resources.cards == Cards("nvidia", 8000) for one in found)


def test_a_request_for_more_cards_than_any_machine_has_changes_nothing() -> None:
    usual = {cards(470): 10, cards(530): 10, cards(1000): 1}
    nodes = [node("a", 8), node("b", 4, V100)]
    never = {cards(64_000): 50, cards(8000, models=(V100,)): 50, cards(1000, models=("T4",)): 50}
    rooms = Books(nodes, {}, FRAGMENTS).rooms
    known = [Measure([Typical(one, n) for one, n in counts.items()], rooms) for counts in (usual, usual | never)]
    assert [one.unit("nvidia") for one in known] == [known[0].unit("nvidia")] * 2
    for room in rooms:
        plain, other = (one.kind_of(room.stacks[1]) for one in known)
        assert (plain.shapes, plain.mixes, plain.mixed_weight) == (other.shapes, other.mixes, other.mixed_weight)


# --- what is fragmented -------------------------------------------------------------------------------------------


def test_a_request_cannot_use_what_is_left_of_cards_that_are_too_full_for_it() -> None:
    books = books_of(node("a", 2), t=(cards(700), 1))
    put(books, cards(400))
    (stack,) = [stack for room in books.rooms for stack in room.stacks if stack.device]
    assert unusable(stack, cards(700)) == 600
    assert unusable(stack, cards(600)) == 0
    assert unusable(stack, cards(2000)) == 1600
    assert unusable(stack, cards(700, cpu=65_000)) == 1600


def test_fragments_are_the_mean_over_those_typical_requests_that_may_come_there() -> None:
    typical = typical_from({cards(700): 3, cards(300): 1, cards(1000, models=("V100",)): 4})
    books = Books([node("a", 1)], {}, FRAGMENTS, typical=typical)
    put(books, cards(400))
    (stack,) = [stack for room in books.rooms for stack in room.stacks if stack.device]
    assert fragmented(stack, typical) == 450


# --- where work goes ----------------------------------------------------------------------------------------------


def test_one_that_may_go_anywhere_leaves_the_cards_that_others_need_by_their_model() -> None:
    books = books_of(
        node("old", 4, V100),
        node("new", 8, A100),
        any=(cards(1000), 10),
        picky=(cards(1000, models=("V100",)), 10),
    )
    assert {one.node for _ in range(8) for one in put(books, cards(1000))} == {"new"}


def test_one_with_few_cores_leaves_the_cores_that_typical_requests_need_beside_the_cards() -> None:
    books = books_of(node("poor", 4, cpu=8000), node("rich", 4, cpu=48_000), usual=(cards(1000, cpu=12_000), 10))
    assert {one.node for _ in range(4) for one in put(books, cards(1000, cpu=2000))} == {"poor"}


def test_a_share_takes_the_card_on_which_the_rest_is_of_use() -> None:
    """470 + 530 fill a card, and 470 beside 300 would leave 230 that nobody asks for."""
    books = books_of(node("a", 2), one=(cards(470), 10), other=(cards(530), 10), third=(cards(700), 10))
    put(books, cards(300))
    put(books, cards(530))
    used = {index: books.rooms.by_name["a"].cards[index] for index in (0, 1)}
    (place,) = put(books, cards(470))
    assert used[place.cards[0].index] == 470


def test_work_without_cards_goes_where_its_cores_are_not_missed() -> None:
    books = books_of(node("cards", 8, cpu=64_000), Node("plain", 64_000, 256 * GIB), usual=(cards(1000, 8000), 5))
    assert [one.node for one in put(books, Resources(cpu_milli=8000, memory=GIB, shm=0))] == ["plain"]


def test_a_gang_has_all_its_places_or_none() -> None:
    books = books_of(node("a", 4), node("b", 4), usual=(cards(2000), 3))
    assert not put(books, cards(3000), 3)
    assert sum(stack.whole for room in books.rooms for stack in room.stacks) == 8
    assert len(put(books, cards(2000), 4)) == 4


def test_other_typical_requests_change_where_work_goes_from_then_on() -> None:
    books = books_of(node("old", 4, V100), node("new", 8, A100), picky=(cards(1000, models=("V100",)), 1))
    assert [one.node for one in put(books, cards(1000))] == ["new"]
    books.renew_typical(typical_from({cards(8000): 1}))
    assert [one.node for one in put(books, cards(1000))] == ["old"]


# --- the worth of what is left of a card --------------------------------------------------------------------------


def test_a_whole_card_is_worth_a_card_and_no_rest_is_worth_less_than_a_smaller_one() -> None:
    table = worths(((470, 30), (530, 30), (810, 10), (1000, 50)))
    assert table[-1] == WHOLE_CARD
    assert list(table) == sorted(table)


def test_what_no_typical_request_can_use_of_a_card_is_worth_nothing() -> None:
    table = worths(((810, 10), (300, 5)))
    assert table[290 // GRAIN] == 0
    assert table[300 // GRAIN] > 0


def test_a_size_that_spoils_the_rest_of_a_card_costs_nearly_the_whole_card() -> None:
    table = worths(((810, 50), (470, 50)))
    assert table[WHOLE_CARD // GRAIN] - table[190 // GRAIN] == WHOLE_CARD
    assert table[810 // GRAIN] > 900


# --- laws ---------------------------------------------------------------------------------------------------------


def minding_fragments(world: Snapshot) -> Snapshot:
    return replace(world, policy=replace(world.policy, placing=Placing.FRAGMENTS))


def worth_by_hand(stack: Stack, left: list[int], cpu: int, measure: Measure) -> int:
    """The rule as it is written, without anything that makes it fast: see decision 0019."""
    kind = measure.kind_of(stack)
    total = kind.mixed_weight * sum(kind.mixes[rest // GRAIN] for rest in left if rest > 0)
    for shape in kind.shapes:
        key = tuple(left) if stack.rings else tuple(sorted(rest for rest in left if rest > 0))
        most = kind.copies(key, shape)
        large = sum(rest for rest in left if rest >= shape.milli)
        for cores, weight in shape.cores:
            copies = min(most, cpu // cores if cores else most)
            if copies:
                total += weight * (COPIES * copies * shape.milli * shape.number + FREE * large)
    return total


def cut_by_hand(stack: Stack, milli: int) -> Iterator[list[int]]:
    """What may be left of its cards when so much is taken."""
    left = stack.room.cards
    if milli < WHOLE_CARD:
        for card in stack.indices:
            if left[card] >= milli:
                yield [left[index] - milli * (index == card) for index in stack.indices]
        return
    whole = [index for index in stack.indices if left[index] == WHOLE_CARD]
    number = milli // WHOLE_CARD
    chosen = (
        choose_chips(number, stack.rings, left) if stack.rings else whole[:number] if len(whole) >= number else None
    )
    if chosen is not None:
        yield [0 if index in chosen else left[index] for index in stack.indices]


def loss_by_hand(stack: Stack, role: RoleAsk, measure: Measure) -> int | None:
    room, asked = stack.room, role.resources
    cpu = room.cpu - fair_share(asked, room.node)[0]
    if cpu < 0:
        return None
    lost = 0
    for one in (one for one in room.stacks if one.device):
        before = [room.cards[index] for index in one.indices]
        if one is stack and asked.cards is not None:
            cuts = list(cut_by_hand(one, asked.cards.milli))
            if not cuts:
                return None
            after = max(worth_by_hand(one, left, cpu, measure) for left in cuts)
        else:
            after = worth_by_hand(one, before, cpu, measure)
        lost += worth_by_hand(one, before, room.cpu, measure) - after
    return lost


def in_order_by_hand(books: Books, role: RoleAsk, measure: Measure) -> Iterator[Stack]:
    """All stacks that have the cards and cores, by what is lost there, then the tightest."""
    best_fit = key_for(Placing.BEST_FIT)
    unit = measure.unit(role.sieve.device)
    losses = [(loss_by_hand(stack, role, measure), stack) for stack in books.rooms.shelf(role.sieve)]
    known = [(loss // unit, best_fit(stack), stack) for loss, stack in losses if loss is not None]
    yield from (stack for _, _, stack in sorted(known, key=lambda one: one[:2]))


@given(worlds(), st.integers(0, 2**32))
@settings(max_examples=120, deadline=None)
def test_nodes_are_asked_in_the_order_of_the_rule_worked_out_by_hand_whatever_came_before(
    world: Snapshot, seed: int
) -> None:
    world, chance = minding_fragments(world), Random(seed)
    books = Books.of(world)
    measure = Measure(world.typical, books.rooms)
    everyone = [*world.queue, *world.holding]
    for _ in range(8 if everyone else 0):
        workload = chance.choice(everyone)
        for role in books.ask_of(workload).roles:
            if measure.knows(role.resources.cards) and world.typical:
                found = [stack.serial for stack in books.rooms.candidates(role.resources, role.sieve)]
                assert found == [stack.serial for stack in in_order_by_hand(books, role, measure)]
        books.put(replace(workload, state=State.PAUSED) if chance.random() < 0.5 else workload)


@given(worlds())
@settings(max_examples=150, deadline=None)
def test_no_place_is_offered_that_the_plain_rules_would_refuse(world: Snapshot) -> None:
    world = minding_fragments(world)
    books = Books.of(world)
    for workload in world.queue:
        for role in books.ask_of(workload).roles:
            offered = dict(Look(books.rooms).offers(role))
            plain = {s: s.offer(role.resources) for s in books.rooms.shelf(role.sieve)}
            assert {stack for stack, offer in plain.items() if offer is not None} == set(offered)
            for stack, offer in offered.items():
                assert alike(stack.room, offer, plain[stack])


def alike(room: Room, offer: Allotment, plain: Allotment | None) -> bool:
    """The same amounts; only a share may be of another card, on which there is room for it."""
    assert plain is not None
    enough = all(room.cards[share.index] >= share.milli for share in offer.cards)
    return enough and replace(offer, cards=plain.cards) == plain and len(offer.cards) == len(plain.cards)


@given(worlds())
@settings(max_examples=100, deadline=None)
def test_placing_by_fragments_never_decides_whether_a_single_job_starts(world: Snapshot) -> None:
    """Of those that are asked first in a cluster where nothing is kept, as many replicas find a place."""
    world = minding_fragments(replace(world, queue=world.queue[:1]))
    tight = replace(world, policy=replace(world.policy, placing=Placing.BEST_FIT))
    assert [p.workload for p in decide(Books.of(world), world.now).placements] == [
        p.workload for p in decide(Books.of(tight), world.now).placements
    ]


# --- what it costs ------------------------------------------------------------------------------------------------


def hostile(seed: int, sizes: int, cores: int) -> tuple[Typical, ...]:
    chance = Random(seed)
    return typical_from({cards(1 + n % sizes, chance.randint(1, cores)): 1 for n in range(1000)})


def test_requests_of_which_no_two_are_alike_cost_a_bounded_amount() -> None:
    for sizes, cores in ((40, 300), (999, 3000)):
        typical = hostile(7, sizes, cores)
        rooms = Books([node("a", 8)], {}, FRAGMENTS).rooms
        (room,) = rooms
        kind = Measure(typical, rooms).kind_of(room.stacks[1])
        assert len(kind.shapes) <= SHAPES_AT_MOST
        requests = sum(len(shape.cores) for shape in kind.shapes)
        assert kind.number_of_steps <= requests * COPIES_AT_MOST <= len(typical) * COPIES_AT_MOST
        before = kind.memory.kept
        kind.rests((WHOLE_CARD,) * 8).worth(kind.step(64_000))  # one row, and what is left of the cards
        assert kind.memory.kept - before <= 3 * SHAPES_AT_MOST + 2


def test_what_is_remembered_is_bounded_and_to_forget_it_changes_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    def placed(most: int) -> tuple[list[list[Allotment]], int]:
        monkeypatch.setattr("gpuyard.scheduling.measure.KEPT_AT_MOST", most)
        books = Books([node("a", 8), node("b", 4, V100)], {}, FRAGMENTS, typical=hostile(3, 300, 300))
        chance = Random(5)
        places = [put(books, cards(chance.randint(1, 400), chance.randint(1, 300))) for _ in range(60)]
        ranks = books.rooms._learned.ranks_for(cards(1))
        assert ranks is not None
        return places, max(kind.memory.kept for kind in {ranks.measure.kind_of(r.stacks[1]) for r in books.rooms})

    everything, kept = placed(KEPT_AT_MOST)
    forgetful, few = placed(2000)
    assert few <= 2000 < kept <= KEPT_AT_MOST
    assert forgetful == everything


# --- how much can be given out ------------------------------------------------------------------------------------


def given_out(placing: Placing, seed: int) -> int:
    """Thousandths of cards given out when many small and large requests came to a cluster of several builds."""
    chance = Random(seed)
    shapes = [(810, 3000), (470, 12_000), (320, 4000), (650, 12_000), (1000, 11_000), (1000, 3000), (2000, 22_000)]
    asked = [cards(milli, cpu) for milli, cpu in shapes] + [cards(1000, 11_000, ("V100",))]
    coming = [chance.choice(asked) for _ in range(600)]
    nodes = [node(f"a{n}", 8, A100, 96_000) for n in range(20)] + [node(f"v{n}", 2, V100, 16_000) for n in range(40)]
    typical = typical_from({one: coming.count(one) for one in asked})
    books = Books(nodes, {}, Policy(placing=placing), typical=typical)
    return sum(share.milli for one in coming for place in put(books, one) for share in place.cards)


def test_more_is_given_out_than_by_the_best_fit() -> None:
    for seed in range(3):
        assert given_out(Placing.FRAGMENTS, seed) > given_out(Placing.BEST_FIT, seed)
