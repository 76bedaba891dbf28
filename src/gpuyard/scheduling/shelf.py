"""Stacks of cards in the order in which the policy wants them asked, put in order again only when used."""

from __future__ import annotations

from bisect import bisect_left, insort
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

from gpuyard.domain.policy import Policy
from gpuyard.domain.resources import WHOLE_CARD, Cards
from gpuyard.scheduling.score import key_for, likeness, looseness

if TYPE_CHECKING:
    from gpuyard.scheduling.room import Room, Stack

COMPARED_AT_MOST = 64  # stacks that may be as good as another


class Moves:
    """Which rooms changed, the latest last: whoever looks again learns what moved since, however many look."""

    def __init__(self) -> None:
        self.count = 0
        self._last: dict[Room, int] = {}

    def note(self, room: Room) -> None:
        self.count += 1
        self._last.pop(room, None)
        self._last[room] = self.count

    def since(self, count: int) -> list[Room]:
        moved = []
        for room, last in reversed(self._last.items()):
            if last <= count:
                break
            moved.append(room)
        return moved


class Shelf:
    """The stacks that one sieve lets through, those to be asked first in front. Put in order again only when used."""

    def __init__(self, stacks: Iterable[Stack], policy: Policy, moves: Moves) -> None:
        self._key = key_for(policy.placing)
        self._packs = policy.placing.packs
        self._stacks = {stack.serial: stack for stack in stacks}
        self._packs_cards = self._packs and all(stack.device for stack in self._stacks.values())
        self._at = {serial: self._key(stack) for serial, stack in self._stacks.items()}
        self._keys = sorted(self._at.values())
        self._loosest: list[Stack] | None = None
        self._parts: list[tuple[int, int, int]] | None = None  # cards given out in part: (left, rank, serial)
        self._parts_of: dict[int, list[tuple[int, int, int]]] = {}
        self._moves = moves
        self._seen = moves.count

    def __iter__(self) -> Iterator[Stack]:
        """All of them, in order. Nothing may be taken meanwhile."""
        self._put_in_order()
        return (self._stacks[key[-1]] for key in self._keys)

    def stacks(self) -> Iterable[Stack]:
        """All of them, in no order."""
        return self._stacks.values()

    def loosest_first(self) -> Iterator[Stack]:
        """Those with the most free first, however the policy places."""
        self._put_in_order()
        if self._packs_cards:
            return (self._stacks[key[-1]] for key in reversed(self._keys))
        if self._loosest is None:
            self._loosest = sorted(self._stacks.values(), key=looseness, reverse=True)
        return iter(self._loosest)

    def candidates(self, cards: Cards | None) -> Iterator[Stack]:
        """Those that may have enough cards, in order. Nothing may be taken while iterating."""
        self._put_in_order()
        if cards is not None and self._packs:
            if cards.is_share:
                yield from self._with_parts(cards.milli)
            start = bisect_left(self._keys, (max(1, cards.whole),))
            for position in range(start, len(self._keys)):
                yield self._stacks[self._keys[position][-1]]
        else:
            for key in self._keys:
                yield self._stacks[key[-1]]

    def like(self, stack: Stack) -> Iterator[Stack]:
        """Those that are as good as this one, which need not be among them: none, where an admin has put the servers
        in order. Nothing may be taken while iterating."""
        self._put_in_order()
        same, wanted = self._key(stack)[:2], likeness(stack)
        start = bisect_left(self._keys, same)
        for key in self._keys[start : start + COMPARED_AT_MOST]:
            if key[:2] != same:
                return
            if likeness(self._stacks[key[-1]]) == wanted:
                yield self._stacks[key[-1]]

    def _with_parts(self, milli: int) -> Iterator[Stack]:
        """A share goes to a card that is shared already, the fullest that still fits."""
        if self._parts is None:
            self._parts_of = {serial: _parts(stack) for serial, stack in self._stacks.items()}
            self._parts = sorted(part for parts in self._parts_of.values() for part in parts)
        for position in range(bisect_left(self._parts, (milli,)), len(self._parts)):
            yield self._stacks[self._parts[position][2]]

    def _put_in_order(self) -> None:
        if self._seen == self._moves.count:
            return
        self._loosest = None
        for room in self._moves.since(self._seen):
            for stack in room.stacks:
                if stack.serial in self._at:
                    self._move(stack)
        self._seen = self._moves.count

    def _move(self, stack: Stack) -> None:
        old, new = self._at[stack.serial], self._key(stack)
        if old != new:
            del self._keys[bisect_left(self._keys, old)]
            insort(self._keys, new)
            self._at[stack.serial] = new
        if self._parts is not None:
            parts = _parts(stack)
            if parts != self._parts_of[stack.serial]:
                for part in self._parts_of[stack.serial]:
                    del self._parts[bisect_left(self._parts, part)]
                for part in parts:
                    insort(self._parts, part)
                self._parts_of[stack.serial] = parts


def _parts(stack: Stack) -> list[tuple[int, int, int]]:
    left = stack.room.cards
    return [(left[i], stack.room.rank, stack.serial) for i in stack.indices if 0 < left[i] < WHOLE_CARD]
