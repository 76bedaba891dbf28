"""Which work could move for one that waits: sets of it in order, the fewest and cheapest first, until one will do."""

from __future__ import annotations

from bisect import insort
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from itertools import combinations
from math import comb
from typing import TYPE_CHECKING

from gpuyard.domain.workload import Together
from gpuyard.scheduling.fit import Allotments, RoleAsk, give_back, place_gang, place_on
from gpuyard.scheduling.line import Batch
from gpuyard.scheduling.quota import amounts_of
from gpuyard.scheduling.room import Stack, Standing

if TYPE_CHECKING:
    from gpuyard.scheduling.books import Books
    from gpuyard.scheduling.defragment import Defragmentation, Mover, Moves

TRIALS_AT_MOST = 100  # has each of these a place to go?


class _Search:
    def __init__(
        self,
        task: Defragmentation,
        books: Books,
        batch: Batch,
        standing: Standing,
        stacks: Sequence[Stack],
        movers: Sequence[Mover],
    ) -> None:
        self.task = task
        self.books = books
        self.batch = batch
        self.standing = standing
        self.stacks = stacks
        self.movers = movers
        self.most = books.policy.defragment.moves
        self.here: dict[str, list[Mover]] = {}  # node -> those with a part of theirs there, the cheapest first
        for mover in movers:
            for node in dict.fromkeys(one.node for one in books.held[mover.id].allotments):
                self.here.setdefault(node, []).append(mover)

    def allowed(self, taken: Allotments | None) -> Allotments | None:
        """What it leaves open is settled only now: its quota is asked once more."""
        if taken is None:
            return None
        purse = self.books.purse
        if purse.refusal(self.batch.payer, amounts_of(taken.values()), self.standing) is None:
            return taken
        give_back(taken, self.books.rooms)
        return None


class InOnePlace(_Search):
    """All of it on one node: node by node, first all sets of one move, then of two, and so on."""

    def run(self) -> Moves | None:
        stacks = [one for one in self.stacks if one.room.node.name in self.here]
        for count in range(1, self.most + 1):
            found = [
                (_price(one), stack.room.rank, n, one, stack)
                for n, (one, stack) in enumerate(self._sets(stacks, count))
            ]
            for *_, movers, stack in sorted(found, key=lambda one: one[:3]):
                settled = self.task.settled(movers, partial(self._place, stack), self.standing)
                if settled is not None:
                    return settled
        return None

    def _place(self, stack: Stack) -> Allotments | None:
        ask, rooms = self.batch.ask, self.books.rooms
        if ask.replicas > 1:
            return self.allowed(place_on(stack.room, ask, rooms, self.standing))
        offer = stack.offer(ask.roles[0].resources, self.standing)
        if offer is None:
            return None
        rooms.take(offer)
        return self.allowed({(ask.roles[0].name, 0): offer})

    def _sets(self, stacks: Iterable[Stack], count: int) -> Iterator[tuple[tuple[Mover, ...], Stack]]:
        """Those of so many that would make room on a stack, as far as tests last."""
        role, replicas = self.batch.ask.roles[0], self.batch.ask.replicas
        for stack in stacks:
            for movers in self._holding_enough(stack, role, count):
                if not self.task.may_test:
                    return
                if self.task.fits_without(stack, role, movers, replicas, self.standing):
                    yield movers, stack

    def _holding_enough(self, stack: Stack, role: RoleAsk, count: int) -> Iterator[tuple[Mover, ...]]:
        """Sets that hold what the stack lacks: told by counting, before anything is tried."""
        name, cards = stack.room.node.name, role.resources.cards
        missing = cards.milli * self.batch.ask.replicas - stack.milli if cards is not None else 0
        here = self.here[name]
        sizes = [self._milli(one, stack) for one in here]
        for chosen in sets_of(sizes, count, missing, self.task.may_look):
            yield tuple(here[place] for place in chosen)

    def _milli(self, mover: Mover, stack: Stack) -> int:
        given = (share for one in self.task.on_node(mover, stack.room.node.name) for share in one.cards)
        return sum(share.milli for share in given if share.index in stack.indices)


def sets_of(sizes: Sequence[int], count: int, least: int, may_look: Callable[[], bool]) -> Iterator[tuple[int, ...]]:
    """The places of so many sizes that come to at least so much, in the order of `combinations`. A beginning that
    cannot get there any more is left: thousands of small ones cost little. `may_look` is asked at every step."""
    best = _largest_sums(sizes, count)

    def further(begun: tuple[int, ...], total: int, missing: int) -> Iterator[tuple[int, ...]]:
        if not missing:
            yield begun
            return
        for place in range(begun[-1] + 1 if begun else 0, len(sizes) - missing + 1):
            if total + best[missing][place] < least or not may_look():
                return
            after = total + sizes[place]
            if after + best[missing - 1][place + 1] >= least:
                yield from further((*begun, place), after, missing - 1)

    return further((), 0, count)


def _largest_sums(sizes: Sequence[int], count: int) -> list[list[int]]:
    """Of so many, from each place on: what the largest of them come to."""
    sums = [[0] * (len(sizes) + 1) for _ in range(count + 1)]
    largest: list[int] = []
    for place in reversed(range(len(sizes))):
        insort(largest, sizes[place])
        del largest[:-count]
        for number in range(1, count + 1):
            sums[number][place] = sum(largest[-number:])
    return sums


class OverSeveral(_Search):
    """A gang over several nodes, or roles that differ."""

    def run(self) -> Moves | None:
        number = sum(comb(len(self.movers), count) for count in range(1, self.most + 1))
        if number <= TRIALS_AT_MOST:
            return self._all_sets(self.movers)
        chosen = self._one_by_one() if len(self.batch.ask.roles) == 1 else None
        return self.task.settled(chosen, self._place, self.standing) if chosen else None

    def _place(self) -> Allotments | None:
        return self.allowed(place_gang(self.batch.ask, self.books.rooms, self.standing))

    def _all_sets(self, movers: Sequence[Mover]) -> Moves | None:
        for count in range(1, self.most + 1):
            sets = sorted(combinations(movers, count), key=_price)
            for chosen in sets:
                settled = self.task.settled(chosen, self._place, self.standing)
                if settled is not None:
                    return settled
        return None

    def _one_by_one(self) -> list[Mover] | None:
        """The fewest and cheapest that make room for one replica more, of all nodes, until all have room."""
        role, ask = self.batch.ask.roles[0], self.batch.ask
        stacks = self.stacks
        most = 1 if ask.together is Together.SPREAD else ask.replicas
        hosted = {stack: self._number(stack, role, (), most) for stack in stacks}
        missing = ask.replicas - sum(hosted.values())
        ways = []
        for stack in stacks if most > 1 or missing > 0 else ():
            here = self.here.get(stack.room.node.name, ())
            found = self._cheapest(stack, role, here, hosted[stack] + 1) if hosted[stack] < most else None
            if found is not None:
                ways.append((len(found), _price(found), stack.room.rank, stack.serial, found))
        chosen: list[Mover] = []
        for *_, found in sorted(ways)[: max(0, missing)]:
            chosen += [one for one in found if one not in chosen]
            missing -= 1
        return chosen if chosen and missing <= 0 and len(chosen) <= self.most else None

    def _number(self, stack: Stack, role: RoleAsk, movers: Sequence[Mover], most: int) -> int:
        number = 0
        while number < most and self.task.fits_without(stack, role, movers, number + 1, self.standing):
            number += 1
        return number

    def _cheapest(self, stack: Stack, role: RoleAsk, here: Sequence[Mover], number: int) -> tuple[Mover, ...] | None:
        for count in range(1, self.most + 1):
            for chosen in combinations(here, count):  # the cheapest come first
                if not self.task.may_test:
                    return None
                if self.task.fits_without(stack, role, chosen, number, self.standing):
                    return chosen
        return None


def _price(movers: Iterable[Mover]) -> float:
    return sum(one.price for one in movers)
