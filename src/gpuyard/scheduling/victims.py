"""The search for the cheapest victims: node by node for replicas that are alike, over all nodes for others."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from heapq import heapify, heappop, heappush
from typing import TYPE_CHECKING

from gpuyard.domain.cluster import Allotment
from gpuyard.domain.resources import WHOLE_CARD
from gpuyard.domain.workload import Together
from gpuyard.scheduling.cheapest import cheapest, spared
from gpuyard.scheduling.fit import RoleAsk
from gpuyard.scheduling.line import Batch
from gpuyard.scheduling.rights import Rights, Victim
from gpuyard.scheduling.room import Stack, Standing

if TYPE_CHECKING:
    from gpuyard.scheduling.books import Books

SPARED_AT_MOST = 64
TRIED_AT_MOST = 200  # victims that are tried out for roles of different sizes, the cheapest first
NODES_AT_MOST = 64  # that are searched more than there are replicas

Works = Callable[[Sequence[Victim]], bool]
Found = tuple[float, int, int, list[Victim] | None]  # price, rank, serial of the stack; None: not searched yet


class Search:
    """For one claimant. The books are as if everything that is leaving anyway were gone."""

    def __init__(
        self, books: Books, rights: Rights, candidates: Sequence[Victim], batch: Batch, standing: Standing
    ) -> None:
        self._books = books
        self._rights = rights
        self._candidates = candidates  # the cheapest first
        self._ask = batch.ask
        self._standing = standing
        self._here: dict[str, list[Victim]] = {}
        for victim in candidates:
            for node in {allotment.node for allotment in books.held[victim.id].allotments}:
                self._here.setdefault(node, []).append(victim)

    # --- replicas that are alike ------------------------------------------------------------------------------------

    def node_by_node(self) -> list[Victim] | None:
        """The cheapest set for one replica after the other, of all nodes. None when there is none, or roles differ."""
        if len(self._ask.roles) > 1:
            return None
        role, apart = self._ask.roles[0], self._ask.together is Together.SPREAD
        at_once = role.replicas if self._ask.together is Together.ONE_NODE else 1
        stacks = {stack.serial: stack for stack in self._books.rooms.shelf(role.sieve)}
        hosted = self._hosted_now(role, stacks.values()) if at_once < role.replicas else {}
        missing = role.replicas - sum(hosted.values())
        line: list[Found] = [self._bound(s, role, hosted.get(s.serial, 0) + at_once, ()) for s in stacks.values()]
        heapify(line)
        chosen: list[Victim] = []
        searches = NODES_AT_MOST + role.replicas
        while missing > 0 and line:
            _, _, serial, found = heappop(line)
            stack, number = stacks[serial], hosted.get(serial, 0) + at_once
            if apart and any(hosted.get(other.serial) for other in stack.room.stacks):
                continue
            if found is None or not self._rights.may_all_go([*chosen, *found]):
                searches -= 1
                found = self._cheapest_on(stack, role, number, chosen) if searches >= 0 else None
                if found is not None:
                    heappush(line, (_price(found), stack.room.rank, serial, found))
                continue
            chosen += found
            hosted[serial] = number
            missing -= at_once
            if missing > 0 and not apart:
                heappush(line, self._bound(stack, role, number + 1, chosen))
        return chosen if chosen and missing <= 0 else None

    def _hosted_now(self, role: RoleAsk, stacks: Iterable[Stack]) -> dict[int, int]:
        """How many replicas have room without anybody leaving."""
        most = 1 if self._ask.together is Together.SPREAD else role.replicas
        found: dict[int, int] = {}
        rooms: set[str] = set()
        for stack in stacks:
            name = stack.room.node.name
            number = self._room_for(stack, role, (), most) if name not in rooms else 0
            if number:
                rooms.add(name)  # several stacks share the cores of a room
                found[stack.serial] = number
        return found

    def _cheapest_on(self, stack: Stack, role: RoleAsk, number: int, chosen: Sequence[Victim]) -> list[Victim] | None:
        """The cheapest of those on a node whose end makes room for so many replicas, beside what is chosen."""
        if self._room_for(stack, role, chosen, number) >= number:
            return []
        offers = [one for one in self._here.get(stack.room.node.name, ()) if one not in chosen]
        return cheapest(
            offers,
            lambda victims: self._room_for(stack, role, [*chosen, *victims], number) >= number,
            lambda victims: self._rights.may_all_go([*chosen, *victims]),
        )

    def _room_for(self, stack: Stack, role: RoleAsk, gone: Iterable[Victim], most: int) -> int:
        """How many replicas a stack has room for once these are gone."""
        room, changed = stack.room, [(one, -1) for one in self._on(stack, gone)]
        for allotment, sign in changed:
            room.take(allotment, sign)
        number = 0
        while number < most and (offer := stack.offer(role.resources, self._standing)) is not None:
            room.take(offer)
            changed.append((offer, 1))
            number += 1
        for allotment, sign in changed:
            room.take(allotment, -sign)
        return number

    def _on(self, stack: Stack, victims: Iterable[Victim]) -> list[Allotment]:
        held, name = self._books.held, stack.room.node.name
        return [one for victim in victims for one in held[victim.id].allotments if one.node == name]

    def _bound(self, stack: Stack, role: RoleAsk, number: int, chosen: Sequence[Victim]) -> Found:
        """At least this is the price of one more replica on a stack."""
        offers = self._here.get(stack.room.node.name, [])
        least, cards = 0.0, role.resources.cards
        if not any(one in chosen for one in offers):
            least = offers[0].price if offers else float("inf")
            if cards is not None and cards.whole:
                need = (cards.whole * number - stack.whole) * WHOLE_CARD
                each = [(one.price, sum(self._milli(stack, one))) for one in offers] if need > 0 else []
                least = max([least, *([need * min(p / m for p, m in each if m)] if any(m for _, m in each) else [])])
        return (least, stack.room.rank, stack.serial, None)

    def _milli(self, stack: Stack, victim: Victim) -> Iterable[int]:
        for allotment in self._on(stack, [victim]):
            yield from (share.milli for share in allotment.cards if share.index in stack.indices)

    # --- roles that differ ------------------------------------------------------------------------------------------

    def one_by_one(self, works: Works) -> list[Victim]:
        """The cheapest first, as many as needed; if rights are used up on the wrong nodes by that, node by node."""
        candidates = self._candidates[:TRIED_AT_MOST]
        by_node = sorted(self._here.values(), key=_price)
        for ordered in (candidates, list(dict.fromkeys(one for here in by_node for one in here))[:TRIED_AT_MOST]):
            rightful = self._rights.rightful(ordered)
            chosen = _enough(rightful, works)
            if chosen:
                return spared(chosen, works) if len(chosen) <= SPARED_AT_MOST else chosen
            if len(rightful) == len(self._candidates):
                break
        return []


def _enough(candidates: Sequence[Victim], works: Works) -> list[Victim]:
    """The first ones, as many as needed. More never make it worse, so the number is found by halves."""
    if not candidates or not works(candidates):
        return []
    low, high = 1, len(candidates)
    while low < high:
        middle = (low + high) // 2
        if works(candidates[:middle]):
            high = middle
        else:
            low = middle + 1
    return list(candidates[:low])


def _price(victims: Iterable[Victim]) -> float:
    return sum(victim.price for victim in victims)
