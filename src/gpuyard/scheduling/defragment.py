"""The smallest set of moves of running work that brings a waiting job's cards together.

Only preemptible work moves, to a place that is free for it at once: no chains, nobody waits for another one's leaving.
Fewest moves first, then the least price: the seconds of work it loses, times its cards. Who may be moved, for whom:

- preemptible jobs that have run `min_run` and would lose no more than `max_lost`, with what earlier attempts lost: so
  nobody is moved again and again until its work never ends; dev environments never;
- never for one with a lower priority;
- nobody loses more than its unsaved seconds: its new place is kept for it from everybody until it runs again.

For a job that starts in one place (one replica, or all on one node) the answer is exact as long as it takes no more
than `TESTS_AT_MOST` tests of a node, `LOOKS_AT_MOST` looks to find sets to test and `TRIALS_AT_MOST` trials of a whole
set, among the `NODES_AT_MOST` nodes with the most free. For gangs over several nodes all sets are tried while they are
that few; beyond that it is the fewest moves for one replica after the other. Beyond counting what is free on each
node, the cost does not grow with the cluster.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from itertools import islice
from typing import TYPE_CHECKING, NamedTuple

from gpuyard.domain.cluster import Allotment
from gpuyard.domain.workload import Kind, Together, Workload
from gpuyard.scheduling.fit import Allotments, Ask, Look, RoleAsk, give_back, place_gang
from gpuyard.scheduling.line import Batch
from gpuyard.scheduling.preempt import lost_seconds
from gpuyard.scheduling.quota import Payer, amounts_of
from gpuyard.scheduling.room import Rooms, Stack, Standing
from gpuyard.scheduling.which_moves import TRIALS_AT_MOST, InOnePlace, OverSeveral

if TYPE_CHECKING:
    from gpuyard.scheduling.books import Books

TESTS_IN_ALL, LOOKS_IN_ALL, TRIALS_IN_ALL = 2000, 100_000, 200  # in one pass; for one job half of that:
TESTS_AT_MOST = 1000  # would it have room on this node without these?
LOOKS_AT_MOST = 50_000  # at sizes, while sets are put together to be tested
NODES_AT_MOST = 200  # nodes that work is moved away from: those with the most free
OFFERS_AT_MOST = 16  # places that are tried for one that moves
PLACES_AT_MOST = 200  # places that are tried for all of a set
REPLICAS_AT_MOST = 8  # of work that moves: its places are written down one by one


class Mover(NamedTuple):
    """Running work that could move."""

    price: float
    id: str
    lost_seconds: float


class Move(NamedTuple):
    workload: str
    lost_seconds: float
    places: Allotments  # where it goes on: free for it as soon as it has stopped


class Moves(NamedTuple):
    place: Allotments  # of the one that waits, once the others have moved
    moves: tuple[Move, ...]


Place = Callable[[], Allotments | None]


class Defragmentation:
    """The search of one pass. The books are left as they were."""

    def __init__(self, books: Books, now: float) -> None:
        self._books = books
        self._now = now
        self._left = (TESTS_IN_ALL, LOOKS_IN_ALL, TRIALS_IN_ALL)
        self._tests = self._looks = self._trials = self._places = 0
        self._payer = Payer("", "", False)

    def moves_for(self, batch: Batch, standing: Standing, gone: Iterable[str] = ()) -> Moves | None:
        """For the next of a batch; None when no set of moves would start it. `gone`: they leave already."""
        ask = batch.ask
        if not are_enough_free(ask, self._books.rooms):
            return None
        stacks = self._near(ask)
        movers = self._movers(batch, stacks, frozenset(gone))
        if not movers:
            return None
        tests, looks, trials = self._left
        self._payer = batch.payer
        self._tests, self._looks = min(tests, TESTS_AT_MOST), min(looks, LOOKS_AT_MOST)
        self._trials = min(trials, TRIALS_AT_MOST)
        before = (self._tests, self._looks, self._trials)
        in_one_place = len(ask.roles) == 1 and (ask.replicas == 1 or ask.together is Together.ONE_NODE)
        search: type[InOnePlace | OverSeveral] = InOnePlace if in_one_place else OverSeveral
        found = search(self, self._books, batch, standing, stacks, movers).run()
        spent = [had - max(0, has) for had, has in zip(before, (self._tests, self._looks, self._trials), strict=True)]
        self._left = (tests - spent[0], looks - spent[1], trials - spent[2])
        return found

    def _near(self, ask: Ask) -> list[Stack]:
        """Those with the most free, of all that could hold a replica of it if nothing else ran."""
        found: dict[int, Stack] = {}
        for role in ask.roles:
            least = role.resources.cards.whole if role.resources.cards is not None else 0
            shelf = self._books.rooms.shelf(role.sieve).loosest_first()
            large = (stack for stack in shelf if len(stack.indices) >= least)
            found.update((stack.serial, stack) for stack in islice(large, NODES_AT_MOST))
        return list(found.values())

    def _movers(self, batch: Batch, stacks: Iterable[Stack], gone: frozenset[str]) -> list[Mover]:
        """Those on these nodes that may be moved for it, the cheapest first."""
        books, rule, found = self._books, self._books.policy.defragment, []
        ids = dict.fromkeys(id for stack in stacks for id in books.on_node.get(stack.room.node.name, ()))
        for id in ids:
            workload = books.preemptible.get(id)
            if workload is None or id in gone or not self._may_move(workload, batch):
                continue
            held, lost = books.held[workload.id], lost_seconds(workload, self._now)
            if lost + _lost_before(workload) <= rule.max_lost and len(held.allotments) <= REPLICAS_AT_MOST:
                found.append(Mover(lost * held.rate, workload.id, lost))
        return sorted(found)

    def _may_move(self, workload: Workload, batch: Batch) -> bool:
        begun = workload.attempt.started_at if workload.attempt is not None else None
        return (
            begun is not None
            and begun <= self._now - self._books.policy.defragment.min_run
            and workload.spec.kind is not Kind.ENV
            and workload.spec.priority <= batch.priority
        )

    # --- what a set is worth ----------------------------------------------------------------------------------------

    def fits_without(
        self, stack: Stack, role: RoleAsk, movers: Sequence[Mover], number: int, standing: Standing
    ) -> bool:
        """Would a stack have room for so many replicas if these were gone?"""
        self._tests -= 1
        room = stack.room
        changed = [(one, -1) for mover in movers for one in self.on_node(mover, room.node.name)]
        for allotment, sign in changed:
            room.take(allotment, sign)
        found = 0
        while found < number and (offer := stack.offer(role.resources, standing)) is not None:
            room.take(offer)
            changed.append((offer, 1))
            found += 1
        for allotment, sign in changed:
            room.take(allotment, -sign)
        return found >= number

    def on_node(self, mover: Mover, node: str) -> list[Allotment]:
        return [one for one in self._books.held[mover.id].allotments if one.node == node]

    def may_look(self) -> bool:
        self._looks -= 1
        return self._looks >= 0

    @property
    def may_test(self) -> bool:
        return self._tests > 0 and self._trials > 0

    def settled(self, movers: Sequence[Mover], place: Place, standing: Standing) -> Moves | None:
        """Where the one that waits starts and where each of these goes on; None when one of them has no place."""
        if self._trials <= 0:
            return None
        self._trials -= 1
        self._places = PLACES_AT_MOST
        return self._room_first(movers, place, standing) or self._places_first(movers, place, standing)

    def _room_first(self, movers: Sequence[Mover], place: Place, standing: Standing) -> Moves | None:
        rooms = self._books.rooms
        with self._without(movers):
            taken = place()  # taken as well, beside those that are gone ...
        if taken is None:
            return None
        amounts = amounts_of(taken.values())
        self._books.purse.spend(self._payer, amounts)
        found = self._promised(list(movers), standing)  # ... and not free for them, once they are back
        self._books.purse.refund(self._payer, amounts)
        give_back(taken, rooms)
        return None if found is None else Moves(taken, tuple(found))

    def _places_first(self, movers: Sequence[Mover], place: Place, standing: Standing) -> Moves | None:
        """The one that waits may do with other cards than it would choose, where these need its first choice."""
        rooms = self._books.rooms
        found = self._promised(list(movers), standing)
        if found is None:
            return None
        for move in found:
            self._go(move.workload, move.places)
        with self._without(movers):
            taken = place()
        if taken is not None:
            give_back(taken, rooms)
        for move in found:
            self._come_back(move.workload, move.places)
        return None if taken is None else Moves(taken, tuple(found))

    def _go(self, id: str, places: Allotments) -> None:
        """Its new place is taken and paid for; its old one is still held."""
        held, purse = self._books.held[id], self._books.purse
        for allotment in places.values():
            self._books.rooms.take(allotment)
        purse.refund(held.payer, held.amounts)
        purse.spend(held.payer, amounts_of(places.values()))

    def _come_back(self, id: str, places: Allotments) -> None:
        held, purse = self._books.held[id], self._books.purse
        purse.refund(held.payer, amounts_of(places.values()))
        purse.spend(held.payer, held.amounts)
        give_back(places, self._books.rooms)

    @contextmanager
    def _without(self, movers: Iterable[Mover]) -> Iterator[None]:
        books = self._books
        held = [books.held[mover.id] for mover in movers]
        for one in held:
            for allotment in one.allotments:
                books.rooms.give_back(allotment)
        try:
            yield
        finally:
            for one in reversed(held):
                for allotment in one.allotments:
                    books.rooms.take(allotment)

    # --- places to go -----------------------------------------------------------------------------------------------

    def _promised(self, movers: list[Mover], standing: Standing) -> list[Move] | None:
        """A place for each of them, free as soon as it has left its own, whatever the others do. The books are left as
        they were."""
        if not movers:
            return []
        movers.sort(key=lambda one: (-self._books.held[one.id].rate, one.id))
        first, rest = movers[0], movers[1:]
        for places in self._offers(first, standing):
            self._places -= 1
            if self._places < 0:
                return None
            self._go(first.id, places)
            others = self._promised(rest, standing)
            self._come_back(first.id, places)
            if others is not None:
                return [Move(first.id, first.lost_seconds, places), *others]
        return None

    def _offers(self, mover: Mover, standing: Standing) -> list[Allotments]:
        """Places elsewhere that its quota allows, while everybody else is where they are."""
        books, held = self._books, self._books.held[mover.id]
        ask = books.ask_of(books.holding[mover.id])
        with self._without([mover]):
            books.purse.refund(held.payer, held.amounts)
            found = [
                places
                for places in self._placed(ask, standing)
                if not _overlap(places.values(), held.allotments)
                and books.purse.refusal(held.payer, amounts_of(places.values()), standing) is None
            ]
            books.purse.spend(held.payer, held.amounts)
        return found

    def _placed(self, ask: Ask, standing: Standing) -> list[Allotments]:
        """Several places for one replica; for a gang the best."""
        rooms = self._books.rooms
        if ask.replicas == 1:
            role = ask.roles[0]
            offers = islice(Look(rooms, standing).offers(role), OFFERS_AT_MOST)
            return [{(role.name, 0): offer} for _, offer in offers]
        taken = place_gang(ask, rooms, standing)
        if taken is None:
            return []
        give_back(taken, rooms)
        return [taken]


def _lost_before(workload: Workload) -> float:
    """Seconds for which earlier attempts held their places, and of which nothing is left."""
    attempt = workload.attempt
    return 0.0 if attempt is None else max(0.0, attempt.served_before - attempt.kept_before)


def are_enough_free(ask: Ask, rooms: Rooms) -> bool:
    """Moving changes where cards are free, never how many: there must be as many as it asks for."""
    asked = _cards_of(ask)
    free = {device: sum(room.free_milli(device) for room in rooms) for device in asked}
    return bool(asked) and all(free[device] >= milli for device, milli in asked.items())


def are_enough_free_for_it(ask: Ask, rooms: Rooms) -> bool:
    """The same, of cards that it may use as they are: on machines and of models that will do."""
    stacks = {stack.serial: stack for role in ask.roles for stack in rooms.shelf(role.sieve)}
    free: dict[str, int] = {}
    for stack in stacks.values():
        free[stack.device] = free.get(stack.device, 0) + stack.milli
    return all(free.get(device, 0) >= milli for device, milli in _cards_of(ask).items())


def _cards_of(ask: Ask) -> dict[str, int]:
    """What all its replicas ask for, by device, in thousandths."""
    asked: dict[str, int] = {}
    for role in ask.roles:
        if role.resources.cards is not None:
            cards = role.resources.cards
            asked[cards.device] = asked.get(cards.device, 0) + cards.milli * role.replicas
    return asked


def _overlap(one: Iterable[Allotment], other: Iterable[Allotment]) -> bool:
    """Would every replica be where one is already?"""
    before = {(a.node, tuple(share.index for share in a.cards)) for a in other}
    return all((a.node, tuple(share.index for share in a.cards)) in before for a in one)
