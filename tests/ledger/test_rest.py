"""What becomes of free cards, in all worlds that scheduling is tried in, checked by the plain rules of placing."""

from __future__ import annotations

from dataclasses import replace

from hypothesis import given, settings
from tests.draw import a_job, a_node, running
from tests.scheduling.worlds import NOW, worlds

from gpuyard.domain.people import Group, Quota
from gpuyard.domain.resources import Cards
from gpuyard.domain.workload import Together, Workload
from gpuyard.scheduling.books import Books
from gpuyard.scheduling.plan import Pass, decide
from gpuyard.scheduling.rest import FreeRest, rest_of, stranded
from gpuyard.scheduling.room import Room, Stack
from gpuyard.scheduling.snapshot import Snapshot


def seen(books: Books) -> FreeRest:
    found: list[FreeRest] = []
    decide(books, NOW, look=lambda one: found.append(rest_of(one)))
    return found[0]


@settings(max_examples=60, deadline=None)
@given(worlds())
def test_looking_changes_no_decision(world: Snapshot) -> None:
    assert decide(Books.of(world), NOW, look=rest_of) == decide(Books.of(world), NOW)


@settings(max_examples=100, deadline=None)
@given(worlds())
def test_what_a_quota_blocks_is_free_and_kept_for_nobody(world: Snapshot) -> None:
    def check(one: Pass) -> None:
        rest = rest_of(one)
        for name, cards in rest.blocked.items():
            room = one.books.rooms.by_name[name]
            for index, milli in cards.items():
                assert 0 < milli <= room.cards[index] - rest.kept.get(name, {}).get(index, 0)

    decide(Books.of(world), NOW, look=check)


@settings(max_examples=150, deadline=None)
@given(worlds())
def test_nobody_that_waits_could_use_what_is_called_a_fragment_and_somebody_wants_such_cards(world: Snapshot) -> None:
    def check(one: Pass) -> None:
        rest = rest_of(one)
        for room in one.books.rooms:
            lost = stranded(room, rest)
            for stack in room.stacks:
                bits = {index: lost[index] for index in stack.indices if index in lost}
                if bits:
                    assert any(want.sieve.lets(room.node, stack.model) for want in rest.wants)
                    _check_useless(room, stack, bits, rest)

    decide(Books.of(world), NOW, look=check)


def _check_useless(room: Room, stack: Stack, bits: dict[int, int], rest: FreeRest) -> None:
    """Were only these bits left of the stack, no request would be offered any of them."""
    name = room.node.name
    kept, blocked = rest.kept.get(name, {}), rest.blocked.get(name, {})
    before, keeps = dict(room.cards), list(room.keeps)
    numbers = stack.whole, stack.milli
    room.keeps.clear()
    left = {i: max(0, before[i] - kept.get(i, 0) - blocked.get(i, 0)) for i in stack.indices}
    room.cards.update(left)
    stack.whole, stack.milli = sum(milli == 1000 for milli in left.values()), sum(left.values())
    for want in rest.wants:
        if stack.device == want.sieve.device and want.sieve.lets(room.node, stack.model):
            offer = stack.offer(want.resources)
            assert offer is None or want.sieve.whole or bits.keys().isdisjoint(share.index for share in offer.cards)
    room.cards.update(before)
    room.keeps.extend(keeps)
    stack.whole, stack.milli = numbers


def a_world(*jobs: Workload, quota: int, cards: int = 8, nodes: int = 2) -> Books:
    groups = {"vision": Group("vision", (Quota("vision", "nvidia", quota),))}
    books = Books([a_node(f"n{number}", cards) for number in range(nodes)], groups, Snapshot(NOW, (), ()).policy)
    for job in jobs:
        books.put(job)
    return books


def test_as_much_is_blocked_as_those_who_wait_for_the_quota_ask_for() -> None:
    jobs = [a_job(f"job000000{n}", cards=2, cpu=1, memory_gib=1) for n in range(3)]
    rest = seen(a_world(*jobs, quota=2000))
    assert sum(milli for cards in rest.blocked.values() for milli in cards.values()) == 4000


def test_a_gang_that_would_not_fit_as_a_whole_is_not_blocked_by_its_quota() -> None:
    first = a_job("job0000001", cards=1, cpu=1, memory_gib=1)
    gang = a_job("job0000002", cards=8, replicas=2, cpu=1, memory_gib=1)
    assert seen(a_world(first, gang, quota=16_000)).blocked == {}
    smaller = a_job("job0000002", cards=7, replicas=2, cpu=1, memory_gib=1)
    blocked = seen(a_world(first, smaller, quota=14_000)).blocked
    assert sum(milli for cards in blocked.values() for milli in cards.values()) == 14_000


def test_shares_of_cards_are_blocked_by_the_thousandth() -> None:
    jobs = [a_job(f"job000000{n}", cards=0.3, cpu=1, memory_gib=1) for n in range(5)]
    rest = seen(a_world(*jobs, quota=300, cards=1, nodes=1))
    assert rest.blocked == {"n0": {0: 600}}, "two of the four that wait still fit beside the one that runs"


def a_ring_world(chips: int) -> Books:
    """A machine of which one chip of either ring is in use; three wait for a quota that leaves one chip too few."""
    groups = {"vision": Group("vision", (Quota("vision", "ascend", 1000 * (chips + 1)),))}
    books = Books([a_node("n0", 8, device="ascend")], groups, Snapshot(NOW, (), ()).policy)
    for chip in (0, 4):
        books.put(running(a_job(f"job000000{chip}", cards=1, device="ascend"), ("n0", (chip,))))
    for number in range(3):
        books.put(a_job(f"job001000{number}", cards=chips, device="ascend", cpu=1, memory_gib=1))
    return books


def test_chips_that_no_ring_could_give_are_not_blocked_by_a_quota() -> None:
    assert seen(a_ring_world(4)).blocked == {}, "six are free, and no ring has four of them"
    blocked = seen(a_ring_world(2)).blocked
    assert sum(blocked["n0"].values()) == 4000, "a pair in either ring; what is left of both is no pair"


def test_a_gang_of_several_roles_is_blocked_as_a_whole_or_not_at_all() -> None:
    def a_gang(id: str) -> Workload:
        job = a_job(id, cards=1, cpu=1, memory_gib=1)
        one = job.spec.roles[0]
        large = replace(one.resources, cards=Cards("nvidia", 3000))
        roles = (one, replace(one, name="large", replicas=2, resources=large))
        return replace(job, spec=replace(job.spec, roles=roles))

    first = a_job("job0000000", cards=1, cpu=1, memory_gib=1)
    gangs = [a_gang(f"job000000{n}") for n in range(1, 6)]
    blocked = seen(a_world(first, *gangs, quota=7000)).blocked  # 15 cards are free, on machines of eight
    total = sum(milli for cards in blocked.values() for milli in cards.values())
    assert total == 14_000, "two gangs of seven"


def test_gangs_that_are_spread_are_blocked_only_where_each_has_machines_enough() -> None:
    def spread(id: str) -> Workload:
        job = a_job(id, cards=1, replicas=2, cpu=1, memory_gib=1)
        return replace(job, spec=replace(job.spec, together=Together.SPREAD))

    first = a_job("job0000000", cards=3, cpu=1, memory_gib=1)
    gangs = [spread(f"job000000{n}") for n in range(1, 6)]
    blocked = seen(a_world(first, *gangs, quota=4000, nodes=2, cards=4)).blocked  # one card is free here, four there
    assert {name: sum(cards.values()) for name, cards in blocked.items()} == {"n0": 1000, "n1": 1000}
