"""What is left on each node: free cores, memory and cards, and what waiting workloads keep back of it.

A room is a node. Its cards of one model are a stack; the node as such is a stack too, for work without cards. Stacks
stand on shelves, one shelf for each sieve, in the order in which the policy wants them asked: the best fit is found
without a search.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import lru_cache
from math import inf
from typing import NamedTuple

from gpuyard.domain.cluster import Allotment, CardShare, Node, NodeState
from gpuyard.domain.images import full_names
from gpuyard.domain.policy import Placing, Policy
from gpuyard.domain.resources import WHOLE_CARD, Cards, Resources
from gpuyard.scheduling.fragments import Typical
from gpuyard.scheduling.renewal import Learned
from gpuyard.scheduling.rings import Rings, choose_chips, rings_of
from gpuyard.scheduling.score import in_order
from gpuyard.scheduling.shelf import Moves, Shelf
from gpuyard.scheduling.sieve import Sieve

SHARES_AT_MOST = 1000  # of one room are remembered
SHELVES_AT_MOST = 20_000
HELD_AT_MOST = 2000  # shelves of those that hold an image
OPEN_CPU_MILLI = 1000  # a replica without cards that leaves its CPU open gets one core


class Precedence(NamedTuple):
    """Where one stands that goes by rank: what it keeps is lent to those that have to make room for it."""

    group: str
    priority: int
    rank: float
    place: tuple[object, ...]  # in the order: the smaller one is asked first
    ripe_at: float  # when it has run long enough to be interrupted, if it starts now; infinity: it never is
    alone: bool  # it lends to its own group only

    def lends_to(self, other: Precedence, starts_at: float) -> bool:
        """Will the other have made room in time, so that nothing is lost by lending? One of the same rank will once it
        is over, or its rank has become a later one: waiting for that, nobody waits longer than for its age."""
        return (
            other.ripe_at <= (starts_at if starts_at > -inf else other.ripe_at)
            and other.ripe_at < inf
            and self.priority >= other.priority
            and self.rank <= other.rank
            and self.place <= other.place
            and (self.group == other.group or not self.alone)
        )


class Standing(NamedTuple):
    """Who asks: its place in the pass, and when it is sure to be over. What earlier ones keep back is not for it,
    unless it is over before they can start, or will have to make room for them."""

    seq: int
    ends_by: float = inf
    precedence: Precedence | None = None
    goes_on: bool = False  # may it use what one that waits lends to jobs, while nobody knows when that can start?

    @property
    def borrows(self) -> tuple[str, int] | None:
        """Its group and priority, if it may use what is lent."""
        mine = self.precedence
        return None if mine is None or mine.ripe_at == inf else (mine.group, mine.priority)


ALONE = Standing(-1)  # nobody is before it


class Keep(NamedTuple):
    """What an earlier workload keeps back of one room's free rest."""

    seq: int
    workload: str
    cpu: int
    memory: int
    cards: tuple[CardShare, ...]  # these very cards, whoever may hold them now
    starts_at: float  # when it will start at the latest; never known: minus infinity, so that nobody passes it
    precedence: Precedence | None = None  # of the one that keeps it, when it may be lent
    firm: tuple[int, int] | None = None  # cores and memory that are kept from jobs as well; None: all of it


@lru_cache(maxsize=4096)
def whole_card(index: int) -> CardShare:
    """Made once: it is given out all the time."""
    return CardShare(index, WHOLE_CARD)


class Stack:
    """Cards of one model on one node; without a device, the node itself."""

    __slots__ = ("device", "indices", "milli", "model", "rings", "room", "serial", "whole")

    def __init__(
        self, room: Room, serial: int, device: str, model: str, indices: tuple[int, ...], rings: Rings
    ) -> None:
        self.room = room
        self.serial = serial
        self.device = device
        self.model = model
        self.indices = indices
        self.rings = rings
        self.whole = sum(1 for index in indices if room.cards[index] == WHOLE_CARD)
        self.milli = sum(max(0, room.cards[index]) for index in indices)

    def offer(
        self, asked: Resources, standing: Standing = ALONE, liked: Sequence[int] | None = None
    ) -> Allotment | None:
        """What a replica would get here, or None. Nothing is taken yet. `liked`: the cards to ask first for a share."""
        room = self.room
        cards = asked.cards
        if cards is not None and (self.whole < cards.whole or self.milli < cards.milli):
            return None
        cpu, memory, shm = room.fair_share(asked)
        if cpu > room.cpu or memory > room.memory:
            return None
        left = room.cards
        if room.keeps:
            beside = room.beside_keeps(standing)
            if beside is None or cpu > beside[0] or memory > beside[1]:
                return None
            left = beside[2]
        if cards is None:
            return Allotment(room.node.name, cpu, memory, shm)
        shares = self._choose(cards, left, liked)
        if shares is None:
            return None
        return Allotment(room.node.name, cpu, memory, shm, self.device, shares, room.are_simulated(shares))

    def _choose(
        self, asked: Cards, left: Mapping[int, int], liked: Sequence[int] | None
    ) -> tuple[CardShare, ...] | None:
        if asked.is_share and liked is not None:
            return next(((CardShare(i, asked.milli),) for i in liked if left[i] >= asked.milli), None)
        if asked.is_share:
            # The card with the least left that still fits, so that whole cards stay whole.
            fitting = [i for i in self.indices if left[i] >= asked.milli]
            return (CardShare(min(fitting, key=lambda i: (left[i], i)), asked.milli),) if fitting else None
        if self.rings:
            chips = choose_chips(asked.whole, self.rings, left)
            return None if chips is None else tuple([whole_card(chip) for chip in chips])
        whole = [i for i in self.indices if left[i] == WHOLE_CARD]
        return tuple([whole_card(i) for i in whole[: asked.whole]]) if len(whole) >= asked.whole else None

    def is_whole(self, chips: int) -> bool:
        """Are these all of its linked chips? Zero: it does not matter."""
        return not chips or not self.rings or chips == sum(len(ring) for ring in self.rings)

    def closest(self, asked: Cards) -> tuple[CardShare, ...]:
        """The cards that are closest to being free for it, beside those that others keep: the most left first."""
        cards, troubled, kept = self.room.cards, self.room.troubled, self.room.kept_cards()
        well = [i for *_, i in sorted([(i in troubled, kept.get(i, 0) - cards[i], i) for i in self.indices])]
        if asked.is_share:
            return (CardShare(well[0], asked.milli),)
        sets = [[i for i in well if i in ring] for ring in self.rings if len(ring) >= asked.whole] or [well]
        free = [[i for i in one if i not in kept][: asked.whole] for one in sets]
        best = max(free, key=lambda one: (len(one), sum([cards[i] for i in one]))) if len(free) > 1 else free[0]
        return tuple([whole_card(i) for i in best])


class Room:
    """One node."""

    __slots__ = (
        "_shares", "_simulated", "cards", "cpu", "keeps", "memory", "node", "rank", "stack_of", "stacks", "troubled"
    )  # fmt: skip

    def __init__(self, node: Node, rank: int, policy: Policy, serial: int, *, empty_and_well: bool = False) -> None:
        self.node = node
        self.rank = rank
        self.cpu = node.cpu_milli
        self.memory = node.memory
        self.cards = {c.index: 0 if c.trouble and not empty_and_well else WHOLE_CARD for c in node.cards}
        self.keeps: list[Keep] = []
        self.troubled = frozenset(card.index for card in node.cards if card.trouble)
        self._simulated = frozenset(card.index for card in node.cards if card.simulated)
        self._shares: dict[Resources, tuple[int, int, int]] = {}
        models: dict[tuple[str, str], list[int]] = {}
        for card in node.cards:
            models.setdefault((card.device, card.model), []).append(card.index)
        self.stacks = [Stack(self, serial, "", "", (), ())]
        for number, ((device, model), indices) in enumerate(models.items(), 1):
            rings = rings_of(policy, device, indices)
            self.stacks.append(Stack(self, serial + number, device, model, tuple(indices), rings))
        self.stack_of = {index: stack for stack in self.stacks for index in stack.indices}

    def is_same(self, other: Room) -> bool:
        return self is other

    def take(self, allotment: Allotment, sign: int = 1) -> None:
        self.cpu -= sign * allotment.cpu_milli
        self.memory -= sign * allotment.memory
        for share in allotment.cards:
            before = self.cards.get(share.index, 0)
            after = before - sign * share.milli
            self.cards[share.index] = after
            stack = self.stack_of.get(share.index)
            if stack is not None:
                stack.whole += (after == WHOLE_CARD) - (before == WHOLE_CARD)
                stack.milli += max(0, after) - max(0, before)

    def fair_share(self, asked: Resources) -> tuple[int, int, int]:
        found = self._shares.get(asked)
        if found is None:
            if len(self._shares) >= SHARES_AT_MOST:  # requests that are all different, for months: it is only a memory
                self._shares.clear()
            found = self._shares[asked] = fair_share(asked, self.node)
        return found

    def are_simulated(self, shares: tuple[CardShare, ...]) -> bool:
        if len(self._simulated) in (0, len(self.cards)):
            return bool(self._simulated)
        return any(share.index in self._simulated for share in shares)

    def free_whole(self, device: str) -> int:
        return sum(stack.whole for stack in self.stacks if stack.device == device)

    def free_milli(self, device: str) -> int:
        return sum(stack.milli for stack in self.stacks if stack.device == device)

    def kept_cards(self) -> dict[int, int]:
        """What is kept of each card, by whomever."""
        kept: dict[int, int] = {}
        for keep in self.keeps:
            for share in keep.cards:
                kept[share.index] = kept.get(share.index, 0) + share.milli
        return kept

    def beside_keeps(self, standing: Standing) -> tuple[int, int, dict[int, int]] | None:
        """The cores, memory and cards that are left beside what earlier ones keep; None when nothing is."""
        cpu, memory, cards = self.cpu, self.memory, self.cards
        for keep in self.keeps:
            if not self.is_kept_from(keep, standing):
                continue
            kept = keep.firm if keep.firm is not None and standing.goes_on else (keep.cpu, keep.memory)
            cpu -= kept[0]
            memory -= kept[1]
            if cpu < 0 or memory < 0:
                return None
            if keep.cards:
                cards = dict(cards) if cards is self.cards else cards
                for share in keep.cards:
                    cards[share.index] -= share.milli
        return cpu, memory, cards

    def is_kept_from(self, keep: Keep, standing: Standing) -> bool:
        if keep.seq >= standing.seq or standing.ends_by <= keep.starts_at:
            return False
        return (
            keep.precedence is None
            or standing.precedence is None
            or not keep.precedence.lends_to(standing.precedence, keep.starts_at)
        )


def fair_share(asked: Resources, node: Node) -> tuple[int, int, int]:
    """CPU, memory and shared memory on this node. What was left open is the node's share per card, or per core."""
    if asked.cards and node.cards:
        part, whole = asked.cards.milli, len(node.cards) * WHOLE_CARD
    else:
        part, whole = min(asked.cpu_milli or OPEN_CPU_MILLI, node.cpu_milli), max(1, node.cpu_milli)
    cpu = asked.cpu_milli if asked.cpu_milli is not None else node.cpu_milli * part // whole
    memory = asked.memory if asked.memory is not None else node.memory * part // whole
    shm = asked.shm if asked.shm is not None else memory // 2
    return cpu, memory, shm


class Rooms:
    """All rooms and their shelves."""

    def __init__(
        self,
        nodes: Iterable[Node],
        policy: Policy,
        *,
        empty_and_well: bool = False,
        typical: tuple[Typical, ...] = (),
    ) -> None:
        ready = in_order([node for node in nodes if node.state is NodeState.READY], policy)
        self.by_name: dict[str, Room] = {}
        self._policy = policy
        self._moves = Moves()
        self._shelves: dict[Sieve, Shelf] = {}
        self._alike: dict[tuple[int, ...], Shelf] = {}  # sieves that let the same through share a shelf
        self._held: dict[tuple[Sieve, str], Shelf] = {}  # those of them that hold an image
        self._held_by: dict[str, frozenset[str]] = {}  # image -> the nodes that hold it
        serial = 0
        for rank, node in enumerate(ready):
            room = Room(node, rank, policy, serial, empty_and_well=empty_and_well)
            self.by_name[node.name] = room
            serial += len(room.stacks)
        self._learned = Learned(typical if policy.placing is Placing.FRAGMENTS else (), self, self._moves)

    def __iter__(self) -> Iterator[Room]:
        return iter(self.by_name.values())

    def shelf(self, sieve: Sieve) -> Shelf:
        found = self._shelves.get(sieve)
        if found is None:
            through = self._through(sieve)
            if len(self._shelves) >= SHELVES_AT_MOST:  # requests without end that are all different
                self._shelves.clear()
                self._alike.clear()
            serials = tuple(stack.serial for stack in through)
            found = self._alike.get(serials)
            if found is None:
                found = self._alike[serials] = Shelf(through, self._policy, self._moves)
            self._shelves[sieve] = found
        return found

    def candidates(self, asked: Resources, sieve: Sieve) -> Iterator[Stack]:
        """Those that may have room, in the order of the policy. Nothing may be taken while iterating."""
        shelf, ranks = self.shelf(sieve), self._learned.ranks_for(asked)
        return shelf.candidates(asked.cards) if ranks is None else ranks.candidates(asked, shelf, shelf.stacks())

    def liked(self, stack: Stack, asked: Resources) -> Sequence[int] | None:
        """For a share: the cards in the order in which they are to be asked. None: the fullest that fits."""
        ranks = self._learned.ranks_for(asked) if asked.cards is not None and asked.cards.is_share else None
        return None if ranks is None else ranks.cards_of(stack, asked)

    def renew_typical(self, typical: tuple[Typical, ...]) -> None:
        """Other requests are typical now."""
        if self._policy.placing is Placing.FRAGMENTS:
            self._learned.renew(typical)

    def learn_typical(self, typical: tuple[Typical, ...]) -> None:
        """The same, but it takes some passes until it holds."""
        if self._policy.placing is Placing.FRAGMENTS:
            self._learned.begin(typical)

    @property
    def has_learned(self) -> bool:
        """Does what was told to be typical hold by now?"""
        return not self._learned.is_renewing

    def go_on_learning(self, placed: int) -> None:
        """Once in a pass, when all is decided and so many replicas have been placed."""
        self._learned.go_on(placed)

    def _through(self, sieve: Sieve) -> list[Stack]:
        return [
            stack
            for room in self.by_name.values()
            for stack in room.stacks
            if stack.device == sieve.device and sieve.lets(room.node, stack.model) and stack.is_whole(sieve.whole)
        ]

    # --- images ---------------------------------------------------------------------------------------------------

    def held_by(self, image: str) -> frozenset[str]:
        """The nodes that hold it under one of its names; none where all do: then it makes no difference."""
        found = self._held_by.get(image)
        if found is None:
            names = set(full_names(image))
            found = frozenset(name for name, room in self.by_name.items() if not names.isdisjoint(room.node.images))
            if len(self._held_by) >= HELD_AT_MOST:
                self._held_by.clear()
            self._held_by[image] = found = found if len(found) < len(self.by_name) else frozenset()
        return found

    def like(self, stack: Stack, sieve: Sieve, image: str) -> Iterator[Stack]:
        """Places that are as good as this one and hold the image; none if it has the image itself."""
        holders = self.held_by(image)
        if not holders or stack.room.node.name in holders:
            return iter(())
        shelf = self._held.get((sieve, image))
        if shelf is None:
            if len(self._held) >= HELD_AT_MOST:
                self._held.clear()
            through = [other for other in self._through(sieve) if other.room.node.name in holders]
            shelf = self._held[sieve, image] = Shelf(through, self._policy, self._moves)
        return shelf.like(stack)

    def renew_images(self, nodes: Iterable[Node]) -> None:
        """The same nodes hold other images now."""
        for node in nodes:
            if node.name in self.by_name:
                self.by_name[node.name].node = node
        self._held.clear()
        self._held_by.clear()

    # --- what is given out ----------------------------------------------------------------------------------------

    def take(self, allotment: Allotment) -> None:
        """Work on a node that is not ready keeps its place in the books but has no room here."""
        self._change(allotment, 1)

    def give_back(self, allotment: Allotment) -> None:
        self._change(allotment, -1)

    def _change(self, allotment: Allotment, sign: int) -> None:
        room = self.by_name.get(allotment.node)
        if room is None:
            return
        room.take(allotment, sign)
        self._moves.note(room)


__all__ = ["ALONE", "Keep", "Room", "Rooms", "Stack", "Standing", "fair_share"]
