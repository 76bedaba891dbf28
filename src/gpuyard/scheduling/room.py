"""What is left on each node while a plan is made: the only mutable thing here, thrown away after each plan."""

from __future__ import annotations

from bisect import bisect_left, insort
from collections.abc import Iterable, Iterator

from gpuyard.domain.cluster import Allotment, CardShare, Node, NodeState
from gpuyard.domain.resources import WHOLE_CARD, Cards, Resources
from gpuyard.domain.workload import Workload

OPEN_CPU_MILLI = 1000  # a replica without cards that leaves its CPU open gets one core


class Room:
    """One node's free cores, memory and cards.

    `kept` is what the plan keeps back for an earlier workload that still waits: others may use only the rest.
    """

    __slots__ = ("cards", "cpu", "devices", "kept_cards", "kept_cpu", "kept_for", "kept_memory", "memory", "node")

    def __init__(self, node: Node, *, empty_and_well: bool = False) -> None:
        self.node = node
        self.cpu = node.cpu_milli
        self.memory = node.memory
        self.cards = {c.index: 0 if c.trouble and not empty_and_well else WHOLE_CARD for c in node.cards}
        self.devices: dict[str, list[int]] = {}
        for card in node.cards:
            self.devices.setdefault(card.device, []).append(card.index)
        self.kept_cpu = self.kept_memory = 0
        self.kept_cards: dict[str, int] = {}  # device -> thousandths of cards
        self.kept_for = ""

    def take(self, allotment: Allotment) -> None:
        self.cpu -= allotment.cpu_milli
        self.memory -= allotment.memory
        for share in allotment.cards:
            self.cards[share.index] = self.cards.get(share.index, 0) - share.milli

    def give_back(self, allotment: Allotment) -> None:
        self.cpu += allotment.cpu_milli
        self.memory += allotment.memory
        for share in allotment.cards:
            self.cards[share.index] += share.milli

    def key(self, device: str) -> Key:
        """Its place on a shelf: tighter is smaller. On the shelf without a device nodes with few free cards come first,
        so that work without cards does not stand in the way of work with cards."""
        if device:
            return (self.free_whole(device), self.free_milli(device), self.cpu, self.node.name)
        return (sum(self.free_whole(one) for one in self.devices), 0, self.cpu, self.node.name)

    def free_whole(self, device: str) -> int:
        return sum(1 for index in self.devices.get(device, ()) if self.cards[index] == WHOLE_CARD)

    def free_milli(self, device: str) -> int:
        return sum(max(0, self.cards[index]) for index in self.devices.get(device, ()))

    def offer(self, asked: Resources, *, past_kept: bool = False) -> Allotment | None:
        """What a replica would get here, or None. Nothing is taken yet."""
        cpu, memory, shm = fair_share(asked, self.node)
        if cpu > self.cpu - (0 if past_kept else self.kept_cpu):
            return None
        if memory > self.memory - (0 if past_kept else self.kept_memory):
            return None
        if asked.cards is None:
            return Allotment(self.node.name, cpu, memory, shm)
        shares = self._choose_cards(asked.cards, past_kept)
        if shares is None:
            return None
        return Allotment(self.node.name, cpu, memory, shm, asked.cards.device, shares, self._are_simulated(shares))

    def _are_simulated(self, shares: tuple[CardShare, ...]) -> bool:
        given = {share.index for share in shares}
        return any(card.simulated for card in self.node.cards if card.index in given)

    def keep_for(self, workload: str, asked: Resources) -> bool:
        """Keep back what this replica could use of the free rest here. False when there was nothing left to keep."""
        cpu, memory, _ = fair_share(asked, self.node)
        before = (self.kept_cpu, self.kept_memory, dict(self.kept_cards))
        self.kept_cpu = min(self.cpu, self.kept_cpu + cpu)
        self.kept_memory = min(self.memory, self.kept_memory + memory)
        if asked.cards is not None:
            device = asked.cards.device
            kept = self.kept_cards.get(device, 0) + asked.cards.milli
            self.kept_cards[device] = min(self.free_milli(device), kept)
        self.kept_for = self.kept_for or workload
        return before != (self.kept_cpu, self.kept_memory, self.kept_cards)

    def _choose_cards(self, asked: Cards, past_kept: bool) -> tuple[CardShare, ...] | None:
        indices = self.devices.get(asked.device, ())
        kept = 0 if past_kept else self.kept_cards.get(asked.device, 0)
        if kept and self.free_milli(asked.device) - kept < asked.milli:
            return None
        if asked.is_share:
            # The card with the least left that still fits, so that whole cards stay whole.
            fitting = [i for i in indices if self.cards[i] >= asked.milli]
            if not fitting:
                return None
            return (CardShare(min(fitting, key=lambda i: (self.cards[i], i)), asked.milli),)
        whole = [i for i in indices if self.cards[i] == WHOLE_CARD]
        if len(whole) < asked.whole:
            return None
        return tuple(CardShare(i, WHOLE_CARD) for i in whole[: asked.whole])


def fair_share(asked: Resources, node: Node) -> tuple[int, int, int]:
    """CPU, memory and shared memory on this node. What was left open is the node's share per card, or per core."""
    cards = node.cards_of(asked.cards.device) if asked.cards else 0
    if asked.cards and cards:
        part, whole = asked.cards.milli, cards * WHOLE_CARD
    else:
        part, whole = min(asked.cpu_milli or OPEN_CPU_MILLI, node.cpu_milli), max(1, node.cpu_milli)
    cpu = asked.cpu_milli if asked.cpu_milli is not None else node.cpu_milli * part // whole
    memory = asked.memory if asked.memory is not None else node.memory * part // whole
    shm = asked.shm if asked.shm is not None else memory // 2
    return cpu, memory, shm


Key = tuple[int, int, int, str]  # free whole cards, free thousandths of cards, free CPU, name


class Rooms:
    """All rooms, and a shelf per device type with the tightest first: the best fit is found without a search."""

    def __init__(self, rooms: Iterable[Room]) -> None:
        self.by_name = {room.node.name: room for room in rooms}
        self._shelves: dict[str, list[Key]] = {"": []}
        for room in self.by_name.values():
            self._shelves[""].append(room.key(""))
            for device in room.devices:
                self._shelves.setdefault(device, []).append(room.key(device))
        for shelf in self._shelves.values():
            shelf.sort()

    def __iter__(self) -> Iterator[Room]:
        return iter(self.by_name.values())

    def tightest_first(self, asked: Resources) -> Iterator[Room]:
        """Rooms that may have enough cards, those with the least to spare first. Do not take while iterating."""
        if asked.cards is None:
            shelf, start = self._shelves[""], 0
        else:
            shelf = self._shelves.get(asked.cards.device, [])
            start = bisect_left(shelf, (asked.cards.whole,))
        for position in range(start, len(shelf)):
            yield self.by_name[shelf[position][3]]

    def take(self, allotment: Allotment) -> None:
        room = self.by_name[allotment.node]
        self._unshelve(room)
        room.take(allotment)
        self._shelve(room)

    def give_back(self, allotment: Allotment) -> None:
        room = self.by_name[allotment.node]
        self._unshelve(room)
        room.give_back(allotment)
        self._shelve(room)

    def _unshelve(self, room: Room) -> None:
        for device in ("", *room.devices):
            shelf = self._shelves[device]
            del shelf[bisect_left(shelf, room.key(device))]

    def _shelve(self, room: Room) -> None:
        for device in ("", *room.devices):
            insort(self._shelves[device], room.key(device))


def rooms_now(nodes: Iterable[Node], holding: Iterable[Workload]) -> Rooms:
    """What is free now. Work on a node that is not ready keeps its place in the books but opens no room there."""
    rooms = {node.name: Room(node) for node in nodes if node.state is NodeState.READY}
    for workload in holding:
        if workload.attempt is None:
            continue
        for replica in workload.attempt.replicas:
            room = rooms.get(replica.allotment.node)
            if room is not None:
                room.take(replica.allotment)
    return Rooms(rooms.values())


def rooms_if_empty(nodes: Iterable[Node]) -> Rooms:
    return Rooms(Room(node, empty_and_well=True) for node in nodes if node.state is NodeState.READY)
