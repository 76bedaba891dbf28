"""What is in the way of one that waits for as long as nobody knows: work that came no later and has no known end.

While that runs, what the other keeps would stand idle for nobody knows how long. So of the cores and memory that it
keeps on a node it holds back half, and jobs behind it go on in the other half (decision 0005). Nobody new does once
that work is gone or its end is known: what came later is never in the way in this sense, so what is only a guest cannot
keep the door open for the next one.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, NamedTuple

from gpuyard.domain.cluster import Allotment
from gpuyard.domain.resources import Resources
from gpuyard.domain.workload import Together, Workload
from gpuyard.scheduling.backfill import has_known_end
from gpuyard.scheduling.fit import Allotments, Ask
from gpuyard.scheduling.prospects import Prospect
from gpuyard.scheduling.room import Keep, Room, Rooms

if TYPE_CHECKING:
    from gpuyard.scheduling.books import Books

SOUGHT_AT_MOST = 4  # searches of all nodes for one where nothing is in the way, in one pass
NAMED_AT_MOST = 5


class Waiter(NamedTuple):
    """One that waits, and whom it may have make room."""

    came: float  # since when it has waited
    may_push_out: Callable[[str], bool]


class _There(NamedTuple):
    workload: Workload
    begun: float
    allotment: Allotment


def waits_since(workload: Workload) -> float:
    """Before that it ran itself, or was not asked: whoever came meanwhile was not behind it."""
    ended = workload.attempt.ended_at if workload.attempt is not None else None
    return max(workload.submitted_at, ended or 0.0, workload.not_before)


class Hindrances:
    """As one pass sees them."""

    def __init__(self, books: Books, now: float) -> None:
        self._books = books
        self._now = now
        self._running: dict[str, list[_There]] = {}
        self._placed: dict[str, list[_There]] = {}
        self._kept: dict[str, tuple[int, int, int]] = {}  # node -> how many keep something there, and how much
        self._sought = 0

    def note(self, workload: Workload, taken: Allotments) -> None:
        """The pass has given this one its place."""
        for one in taken.values():
            self._placed.setdefault(one.node, []).append(_There(workload, self._now, one))

    def _on(self, node: str) -> Iterator[_There]:
        if node not in self._running:
            self._running[node] = list(self._running_on(node))
        yield from self._running[node]
        yield from self._placed.get(node, ())

    def _running_on(self, node: str) -> Iterator[_There]:
        for id in self._books.on_node.get(node, ()):
            workload = self._books.holding[id]
            begun = workload.attempt.created_at if workload.attempt is not None else workload.submitted_at
            for allotment in self._books.held[id].allotments:
                if allotment.node == node:
                    yield _There(workload, begun, allotment)

    def _in_the_way(self, node: str, waiter: Waiter) -> Iterator[_There]:
        run_times = self._books.run_times
        for there in self._on(node):
            workload = there.workload
            learned = run_times.get((workload.owner, workload.spec.name), ())
            came_no_later = workload.submitted_at <= waiter.came
            if came_no_later and not has_known_end(workload, learned) and not waiter.may_push_out(workload.id):
                yield there

    # --- can it be told when it starts? -----------------------------------------------------------------------------

    def of(self, found: Sequence[Prospect], waiter: Waiter) -> tuple[str, ...]:
        """The work that keeps it from starting there even once all other work is gone; none, where there is none."""
        beside: dict[str, Room | None] = {}  # nothing is in the way in a room that is not here
        for stack, role in found:
            room, name = stack.room, stack.room.node.name
            if name not in beside:
                beside[name] = self._with_nothing_else(room, waiter)
            alone = beside[name]
            if alone is None:
                continue
            offer = alone.stacks[stack.serial - room.stacks[0].serial].offer(role.resources)
            if offer is None:
                ids = {there.workload.id for there in self._in_the_way(name, waiter)}
                return tuple(sorted(ids)[:NAMED_AT_MOST])
            alone.take(offer)
        return ()

    def _with_nothing_else(self, room: Room, waiter: Waiter) -> Room | None:
        there = list(self._in_the_way(room.node.name, waiter))
        if not there:
            return None
        alone = Room(room.node, room.rank, self._books.policy, room.stacks[0].serial, empty_and_well=True)
        for one in there:
            alone.take(one.allotment)
        return alone

    def elsewhere(self, ask: Ask, rooms: Rooms, waiter: Waiter) -> list[Prospect]:
        """The loosest nodes where nothing is in the way of one without cards; none when there are not enough.

        It waits there rather: where it lends, another node may become looser, and by going from one to the other it
        would gather nothing anywhere. Cards are never lent, so one with cards stays where it has gathered most.
        """
        role = ask.roles[0]
        if len(ask.roles) > 1 or role.resources.cards is not None or self._sought >= SOUGHT_AT_MOST:
            return []
        self._sought += 1
        at_least = role.replicas if ask.together is Together.ONE_NODE else 1
        at_most = 1 if ask.together is Together.SPREAD else role.replicas
        found: list[Prospect] = []
        for stack in rooms.shelf(role.sieve).loosest_first():
            fitting = min(at_most, self._fitting(stack.room, role.resources, waiter), role.replicas - len(found))
            found += [Prospect(stack, role)] * (fitting if fitting >= at_least else 0)
            if len(found) >= role.replicas:
                return found
        return []

    def _fitting(self, room: Room, asked: Resources, waiter: Waiter) -> int:
        """How many such replicas a node has room for beside what is in the way."""
        there = [one.allotment for one in self._in_the_way(room.node.name, waiter)]
        cpu, memory, _ = room.fair_share(asked)
        counts = []
        if cpu:
            counts.append((room.node.cpu_milli - sum(one.cpu_milli for one in there)) // cpu)
        if memory:
            counts.append((room.node.memory - sum(one.memory for one in there)) // memory)
        return max(0, min(counts, default=0))

    # --- what is lent -----------------------------------------------------------------------------------------------

    def half_kept(self, room: Room, keep: Keep, waiter: Waiter) -> Keep:
        """The same, of which half is open to jobs: of what it could use beside those before it, were nobody there that
        has begun since it waits. So the half is the same half however often it is asked."""
        cpu, memory = self._beside_keeps(room)
        for there in self._on(room.node.name):
            if there.begun >= waiter.came:
                cpu += there.allotment.cpu_milli
                memory += there.allotment.memory
        return keep._replace(firm=(_half(min(keep.cpu, cpu)), _half(min(keep.memory, memory))))

    def _beside_keeps(self, room: Room) -> tuple[int, int]:
        """What nobody has and nobody before it keeps. Keeps only come, so each is counted once in a pass."""
        count, cpu, memory = self._kept.get(room.node.name, (0, 0, 0))
        for keep in room.keeps[count:]:
            cpu += keep.cpu
            memory += keep.memory
        self._kept[room.node.name] = (len(room.keeps), cpu, memory)
        return room.cpu - cpu, room.memory - memory


def _half(amount: int) -> int:
    return (max(0, amount) + 1) // 2
