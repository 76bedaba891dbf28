"""Stacks for one request, that which loses least of its worth first. Only what moved is ranked again."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from heapq import heapify, heappop, heappush
from itertools import islice
from typing import TYPE_CHECKING

from gpuyard.domain.policy import Placing
from gpuyard.domain.resources import Resources
from gpuyard.scheduling.measure import Measure, Rests
from gpuyard.scheduling.score import Key, key_for
from gpuyard.scheduling.shelf import Moves

if TYPE_CHECKING:
    from gpuyard.scheduling.room import Room, Stack

RANKINGS_AT_MOST = 400
RANKED_AHEAD = 64  # of them, when others become typical
STALE_AT_MOST = 3  # entries for one that counts, before those that do not count are thrown away

Entry = tuple[int, Key]  # what is lost, and the order between equals


class State:
    """A stack as it stands: what is left of its cards, what that is worth, and its place among equals."""

    __slots__ = ("rests", "tie", "worth")

    def __init__(self, rests: Rests | None, worth: int, tie: Key) -> None:
        self.rests = rests
        self.worth = worth
        self.tie = tie


class Ranks:
    """The rankings of all requests, and what they share. Rooms are looked at when they are needed, or before."""

    def __init__(self, measure: Measure, rooms: Iterable[Room], moves: Moves) -> None:
        self.measure = measure
        self.moves = moves
        self._states: dict[int, State] = {}
        self._rankings: dict[tuple[object, ...], Ranking] = {}
        self._tie = key_for(Placing.BEST_FIT)
        self._seen = moves.count
        self._ahead = iter(list(rooms))

    def look_ahead(self, number: int | None = None) -> int:
        """Look at so many more rooms, or all; zero when all have been looked at."""
        some = list(islice(self._ahead, number))
        for room in some:
            self._look_at(room)
        return len(some)

    def begun_like(self, other: Ranks) -> Iterator[Ranking]:
        """One after the other the rankings that others were asked for last, to be ranked ahead."""
        for key, known in list(other._rankings.items())[-RANKED_AHEAD:]:
            found = self._rankings[key] = Ranking(self, known.asked, known.stacks())
            yield found

    def candidates(self, asked: Resources, group: object, stacks: Iterable[Stack]) -> Iterator[Stack]:
        """All that have the cards and cores, in order. `group` stands for the stacks. Nothing may be taken while
        iterating."""
        cards = asked.cards
        key = (group, asked.cpu_milli, cards.milli if cards else 0)
        found = self._rankings.pop(key, None)
        if found is None:
            if len(self._rankings) >= RANKINGS_AT_MOST:
                del self._rankings[next(iter(self._rankings))]  # the one that was asked for longest ago
            found = Ranking(self, asked, stacks)
        self._rankings[key] = found
        return found.in_order()

    def states(self) -> dict[int, State]:
        """As they are now."""
        self.look_ahead()
        if self._seen != self.moves.count:
            for room in self.moves.since(self._seen):
                self._look_at(room)
            self._seen = self.moves.count
        return self._states

    def _look_at(self, room: Room) -> None:
        for stack in room.stacks:
            if stack.device:
                kind = self.measure.kind_of(stack)
                rests = kind.rests(kind.key_of(stack))
                self._states[stack.serial] = State(rests, rests.worth(kind.step(room.cpu)), self._tie(stack))
            else:
                self._states[stack.serial] = State(None, 0, self._tie(stack))

    def cards_of(self, stack: Stack, asked: Resources) -> list[int]:
        """The indices of the cards for a share, that which is the least loss first."""
        rests, milli = self.states()[stack.serial].rests, asked.cards.milli if asked.cards else 0
        assert rests is not None
        kind, cpu = rests.kind, stack.room.cpu - stack.room.fair_share(asked)[0]
        step = kind.step(max(0, cpu))
        cuts = [(-after.worth(step), place, card) for place, (card, after) in enumerate(rests.after(milli))]
        return kind.named(stack, [card for _, _, card in sorted(cuts)])


class Ranking:
    """The stacks for one request."""

    def __init__(self, ranks: Ranks, asked: Resources, stacks: Iterable[Stack]) -> None:
        self._ranks = ranks
        self.asked = asked
        self._milli = asked.cards.milli if asked.cards else 0
        self._unit = ranks.measure.unit(asked.cards.device if asked.cards else "")
        self._stacks: dict[int, Stack] = {}
        self._in_room: dict[Room, list[Stack]] = {}
        for stack in stacks:
            self._stacks[stack.serial] = stack
            self._in_room.setdefault(stack.room, []).append(stack)
        self._at: dict[int, Entry] = {}
        self._held: list[Entry] = []
        self._heap: list[Entry] = []
        self._seen = ranks.moves.count
        self._ahead = iter(list(self._stacks.values()))

    def stacks(self) -> Iterable[Stack]:
        return self._stacks.values()

    def rank_ahead(self, number: int | None = None) -> int:
        """Rank so many more stacks, or all; zero when all are ranked."""
        states, some = self._ranks.states(), list(islice(self._ahead, number))
        for stack in some:
            self._rank(stack, states)
        return len(some)

    def in_order(self) -> Iterator[Stack]:
        self.rank_ahead()
        self._rank_what_moved()
        heap, at, held = self._heap, self._at, self._held
        for entry in held:
            heappush(heap, entry)
        held.clear()
        while heap:
            entry = heap[0]
            serial = entry[1][-1]
            if at.get(serial) is not entry:
                heappop(heap)
                continue
            yield self._stacks[serial]
            heappop(heap)
            held.append(entry)

    def _rank_what_moved(self) -> None:
        moves = self._ranks.moves
        if self._seen == moves.count:
            return
        states, here = self._ranks.states(), self._in_room
        for room in moves.since(self._seen):
            for stack in here.get(room, ()):
                self._rank(stack, states)
        self._seen = moves.count
        if len(self._heap) > STALE_AT_MOST * len(self._stacks):
            self._held.clear()
            self._heap = list(self._at.values())
            heapify(self._heap)

    def _rank(self, stack: Stack, states: dict[int, State]) -> None:
        loss = self._loss(stack, states)
        if loss is None:
            self._at.pop(stack.serial, None)
            return
        entry = (loss // self._unit, states[stack.serial].tie)
        self._at[stack.serial] = entry
        heappush(self._heap, entry)

    def _loss(self, stack: Stack, states: dict[int, State]) -> int | None:
        """What typical requests lose if this one is served here; None where it cannot be."""
        room = stack.room
        cpu = self.asked.cpu_milli
        left = room.cpu - (room.fair_share(self.asked)[0] if cpu is None else cpu)
        if left < 0:
            return None
        loss = 0
        if self._milli:
            state = states[stack.serial]
            assert state.rests is not None
            afters = state.rests.after(self._milli)
            if not afters:
                return None
            step = state.rests.kind.step(left)
            loss = state.worth - max([after.worth(step) for _, after in afters])
            if len(room.stacks) == 2:  # the node itself and these cards
                return loss
        for other in room.stacks:
            if other.device and other is not stack:
                state = states[other.serial]
                assert state.rests is not None
                loss += state.worth - state.rests.worth(state.rests.kind.step(left))
        return loss
