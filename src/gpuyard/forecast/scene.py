"""What a look ahead needs of the books, in plain numbers: cards, cores and memory by cell, who holds them, who waits.

A cell is the cards of one model on one node. It is counted how many of them are free, not which: a look ahead over
many worlds has to be cheap, and the next hours are not known card by card anyway.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple

from gpuyard.domain.cluster import Allotment
from gpuyard.domain.workload import Together, Workload
from gpuyard.scheduling.books import Books
from gpuyard.scheduling.fit import Ask, RoleAsk
from gpuyard.scheduling.quota import Payer
from gpuyard.scheduling.room import Room, Stack


class Part(NamedTuple):
    """Replicas that are alike, and the cells they may use."""

    replicas: int
    cards: int  # thousandths, of each replica
    cpu: int
    memory: int
    fields: tuple[int, ...]  # kinds of cells
    only: frozenset[int] | None = None  # of these kinds only these cells; None: all


class Want(NamedTuple):
    """What a workload asks for."""

    parts: tuple[Part, ...]
    together: Together = Together.ANY


class Taken(NamedTuple):
    cell: int
    cards: int
    cpu: int
    memory: int


# group, user or empty for all of it, resource. Work that stays has two more: what is guaranteed to nobody ("", "", r),
# and of a group with a guarantee that part and the guarantee together ("", group, r).
Limit = tuple[str, str, str]


class Runner(NamedTuple):
    """One that holds something."""

    id: str
    taken: tuple[Taken, ...]
    limits: tuple[tuple[Limit, int], ...] = ()  # what it gives back to limits when it ends


class Waiter(NamedTuple):
    id: str
    want: int  # place in `wants`
    limits: tuple[tuple[Limit, int], ...] = ()
    surely: float | None = None  # seconds after which it is over for sure


class Scene(NamedTuple):
    """Everything at one moment. Waiters stand in the order in which they are asked."""

    field_of: list[int]  # of each cell, its kind
    room_of: list[int]  # of each cell, its node: cells of one node share cores and memory
    free: list[int]  # of each cell, thousandths of cards
    total: list[int]
    cpu: list[int]  # of each node
    memory: list[int]
    wants: list[Want]
    runners: list[Runner]
    waiters: list[Waiter]
    limits: dict[Limit, int]  # what is left of them


class Painter:
    """Makes a scene from books; the names of cells are kept for all that stands on them."""

    def __init__(self, books: Books) -> None:
        self._books = books
        self._rooms: dict[str, int] = {}
        self._cells: dict[tuple[str, str, str], int] = {}
        self._fields: dict[tuple[str, str], int] = {}
        self._wants: dict[Ask, int] = {}
        self._limited: set[Limit] = set()
        self._borrowed: dict[tuple[str, str], int] = {}  # by group and resource, of work that stays
        self.scene = Scene([], [], [], [], [], [], [], [], [], {})
        for room in books.rooms:
            self._add_room(room)
        for group in books.groups.values():
            for quota in group.quotas:
                if quota.limit is not None:
                    limit = (quota.group, quota.user or "", quota.resource)
                    self._limited.add(limit)
                    self.scene.limits[limit] = quota.limit - books.purse.used(quota.group, quota.user, quota.resource)
        self._add_guarantees()

    def _add_guarantees(self) -> None:
        purse, limits = self._books.purse, self.scene.limits
        limits.update({("", "", resource): left for resource, left in purse.left_in_common().items()})
        for (group, resource), guaranteed in purse.guaranteed.items():
            used = purse.firmly_used(group, resource)
            limits["", group, resource] = guaranteed + purse.common[resource] - used
            self._borrowed[group, resource] = max(0, used - guaranteed)

    def _add_room(self, room: Room) -> None:
        scene, name = self.scene, room.node.name
        self._rooms[name] = len(scene.cpu)
        scene.cpu.append(room.cpu)
        scene.memory.append(room.memory)
        for stack in room.stacks if len(room.stacks) == 1 else room.stacks[1:]:
            self._cells[name, stack.device, stack.model] = len(scene.free)
            scene.field_of.append(self._fields.setdefault((stack.device, stack.model), len(self._fields)))
            scene.room_of.append(self._rooms[name])
            scene.free.append(stack.milli)
            scene.total.append(1000 * sum(1 for index in stack.indices if index not in room.troubled))

    def add_runner(self, workload: Workload, allotments: Iterable[Allotment]) -> None:
        taken = tuple(found for found in map(self._taken, allotments) if found is not None)
        amounts = self._books.held[workload.id].amounts
        payer = self._books.held[workload.id].payer
        limits = (*self._limits(payer, amounts), *self._given_back(payer, amounts))
        self.scene.runners.append(Runner(workload.id, taken, limits))

    def add_waiter(self, workload: Workload, ask: Ask, amounts: Mapping[str, int]) -> None:
        payer = Payer(workload.group, workload.owner, workload.spec.preemptible)
        spec = workload.spec
        surely = None if spec.max_seconds is None else spec.max_seconds + spec.grace_seconds
        limits = (*self._limits(payer, amounts), *self._firmly(payer, amounts))
        self.scene.waiters.append(Waiter(workload.id, self._want(ask), limits, surely))

    def _taken(self, allotment: Allotment) -> Taken | None:
        """None for what is held on a node that is away: it comes back with the node, and nobody knows when."""
        room = self._books.rooms.by_name.get(allotment.node)
        if room is None:
            return None
        stack = room.stack_of.get(allotment.cards[0].index) if allotment.cards else None
        return Taken(self._cell(room, stack), allotment.cards_milli, allotment.cpu_milli, allotment.memory)

    def _cell(self, room: Room, stack: Stack | None) -> int:
        stack = stack or room.stacks[-1 if len(room.stacks) > 1 else 0]
        return self._cells[room.node.name, stack.device, stack.model]

    def _limits(self, payer: Payer, amounts: Mapping[str, int]) -> tuple[tuple[Limit, int], ...]:
        if not self._limited:
            return ()
        return tuple(
            (limit, amount)
            for resource, amount in amounts.items()
            for limit in ((payer.group, "", resource), (payer.group, payer.owner, resource))
            if amount and limit in self._limited
        )

    def _firmly(self, payer: Payer, amounts: Mapping[str, int]) -> Iterator[tuple[Limit, int]]:
        """What work that stays takes of guarantees, its group's and nobody's."""
        purse = self._books.purse
        for resource in purse.common if not payer.preemptible else ():
            if amount := amounts.get(resource, 0):
                group = payer.group if (payer.group, resource) in purse.guaranteed else ""
                yield ("", group, resource), amount

    def _given_back(self, payer: Payer, amounts: Mapping[str, int]) -> Iterator[tuple[Limit, int]]:
        """The same when it ends. What its group has borrowed comes back with those of it that are told of first."""
        for limit, amount in self._firmly(payer, amounts):
            yield limit, amount
            _, group, resource = limit
            if back := min(amount, self._borrowed.get((group, resource), 0)):
                self._borrowed[group, resource] -= back
                yield ("", "", resource), back

    def _want(self, ask: Ask) -> int:
        found = self._wants.get(ask)
        if found is None:
            found = self._wants[ask] = len(self.scene.wants)
            self.scene.wants.append(Want(tuple(self._part(role) for role in ask.roles), ask.together))
        return found

    def _part(self, role: RoleAsk) -> Part:
        stacks: Sequence[Stack] = list(self._books.rooms.shelf(role.sieve))
        cells = {self._cell(stack.room, stack if stack.device else None) for stack in stacks}
        fields = {self.scene.field_of[cell] for cell in cells}
        everywhere = sum(1 for field in self.scene.field_of if field in fields) == len(cells)
        shares = [stack.room.fair_share(role.resources) for stack in stacks]
        cpu, memory = min((share[0] for share in shares), default=0), min((share[1] for share in shares), default=0)
        cards = role.resources.cards.milli if role.resources.cards else 0
        only = None if everywhere else frozenset(cells)
        return Part(role.replicas, cards, cpu, memory, tuple(sorted(fields)), only)
