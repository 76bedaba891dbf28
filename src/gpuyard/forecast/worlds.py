"""One world that may come: work ends as it was drawn, and those who wait start in their order as room comes free.

The rule is that of a pass, told in numbers: whoever finds no room keeps back what it could use, on the cells where it
is closest to starting, and of the limit it waits for; later ones use the rest.
"""

from __future__ import annotations

from collections.abc import Sequence
from heapq import heapify, heappop, heappush
from math import inf

from gpuyard.domain.workload import Together
from gpuyard.forecast.scene import Limit, Part, Runner, Scene, Taken, Want

HEAD_ASKS = 10  # looking for a place for one costs about as much as counting so many
Class = tuple[int, tuple[tuple[Limit, int], ...]]  # what is alike: what it asks for, and of whose limits


class Floor:
    """What is free, by cell. Cells of a kind stand in rows by how many cards are free: so the tightest is found."""

    def __init__(self, scene: Scene) -> None:
        self._field_of, self._room_of = scene.field_of, scene.room_of
        self.free, self.cpu, self.memory = list(scene.free), list(scene.cpu), list(scene.memory)
        self._total = scene.total
        self.spare = sum(free for free in scene.free if free > 0)  # all that is free and not held back
        most: dict[int, int] = {}
        for cell, field in enumerate(scene.field_of):
            most[field] = max(most.get(field, 0), scene.total[cell], scene.free[cell])
        self._rows: list[list[set[int]]] = [[set() for _ in range(most[field] // 1000 + 2)] for field in sorted(most)]
        for cell, free in enumerate(self.free):
            self._rows[scene.field_of[cell]][max(0, free) // 1000].add(cell)

    def give(self, cell: int, cards: int) -> None:
        """Cards come free; take them with a negative number."""
        before = self.free[cell]
        after = self.free[cell] = before + cards
        self.spare += cards
        old, new = before // 1000 if before > 0 else 0, after // 1000 if after > 0 else 0
        if old != new:
            rows = self._rows[self._field_of[cell]]
            rows[old].discard(cell)
            rows[new].add(cell)

    def release(self, taken: Sequence[Taken]) -> None:
        for cell, cards, cpu, memory in taken:
            if cards:
                self.give(cell, cards)
            room = self._room_of[cell]
            self.cpu[room] += cpu
            self.memory[room] += memory

    def place(self, want: Want) -> list[Taken] | None:
        """Room for all of it, taken; or None, and nothing is."""
        found: list[Taken] = []
        for part in want.parts:
            if not self._place(part, want.together, found):
                self.release(found)
                return None
        return found

    def _place(self, part: Part, together: Together, found: list[Taken]) -> bool:
        if not self._may_fit(part):
            return False
        used = {one.cell for one in found} if together is Together.SPREAD else set()
        missing = part.replicas
        while missing:
            cell = self._tightest(part, used)
            if cell is None:
                return False
            fitting = 1 if together is Together.SPREAD else min(missing, self._fitting(part, cell))
            missing -= fitting
            taken = Taken(cell, part.cards * fitting, part.cpu * fitting, part.memory * fitting)
            if part.cards:
                self.give(cell, -taken.cards)
            room = self._room_of[cell]
            self.cpu[room] -= taken.cpu
            self.memory[room] -= taken.memory
            found.append(taken)
            used.add(cell)
        return True

    def may_fit(self, want: Want) -> bool:
        """Counted, before anything is tried: false when there is surely no room."""
        return all(self._may_fit(part) for part in want.parts)

    def _may_fit(self, part: Part) -> bool:
        if not part.cards:
            return True
        missing, each = part.replicas, part.cards
        for field in part.fields:
            rows = self._rows[field]
            for whole in range(len(rows) - 1, each // 1000 - 1, -1):
                if rows[whole]:
                    at_most = whole * 1000 if each >= 1000 else whole * 1000 + 999
                    missing -= len(rows[whole]) * (at_most // each)
                    if missing <= 0:
                        return True
        return False

    def _fitting(self, part: Part, cell: int) -> int:
        room = self._room_of[cell]
        most = self.free[cell] // part.cards if part.cards else part.replicas
        if part.cpu:
            most = min(most, self.cpu[room] // part.cpu)
        if part.memory:
            most = min(most, self.memory[room] // part.memory)
        return most

    def _tightest(self, part: Part, used: set[int]) -> int | None:
        """The cell with the least to spare that takes at least one replica."""
        for field in part.fields:
            rows = self._rows[field]
            for whole in range(part.cards // 1000, len(rows)):
                for cell in rows[whole]:
                    if part.only is not None and cell not in part.only:
                        continue
                    if cell not in used and self._fitting(part, cell) > 0:
                        return cell
        return None

    def keep(self, want: Want) -> list[tuple[int, int]]:
        """Hold back what it could use where it is closest to starting. Returns what was held, to be given again."""
        kept: list[tuple[int, int]] = []
        for part in want.parts:
            missing, held_now = part.replicas if part.cards else 0, []
            for cell in self._loosest(part) if missing else ():
                room = min(self._total[cell] // part.cards, missing if want.together is not Together.SPREAD else 1)
                if room <= 0:
                    continue
                missing -= room
                held = min(max(0, self.free[cell]), room * part.cards)
                if held:
                    held_now.append((cell, held))
                if not missing:
                    break
            for cell, held in held_now:
                self.give(cell, -held)
            kept += held_now
        return kept

    def _loosest(self, part: Part) -> list[int]:
        found: list[int] = []
        for field in part.fields:
            for row in reversed(self._rows[field]):
                found.extend(row if part.only is None else row & part.only)
                if len(found) >= part.replicas and len(part.fields) == 1:
                    return found
        return found


class World:
    """Run it once: `starts` then tells after how many seconds each waiter starts; infinity when it does not."""

    def __init__(self, scene: Scene, lasts: Sequence[float], runs: Sequence[float]) -> None:
        """`lasts`: seconds each runner goes on from now; `runs`: seconds each waiter runs once it has started."""
        self._scene, self._runs = scene, runs
        self._floor = Floor(scene)
        self._limits = dict(scene.limits)
        self._ends = [(last, number) for number, last in enumerate(lasts)]
        heapify(self._ends)
        self._given: dict[int, list[Taken]] = {}  # by number: runners first, then waiters
        self.starts = [inf] * len(scene.waiters)
        self._alike: dict[Class, list[int]] = {}
        for number in range(len(scene.waiters) - 1, -1, -1):  # the first of each stands last, to be popped
            waiter = scene.waiters[number]
            self._alike.setdefault((waiter.want, waiter.limits), []).append(number)
        self._least = [sum(part.replicas * part.cards for part in want.parts) for want in scene.wants]
        shapes: dict[tuple[tuple[object, ...], ...], int] = {}  # where cards alone are counted, these are alike
        self._first_of_shape: list[Want] = []
        self._shape_of: list[int] = []
        for want in scene.wants:
            shape = tuple((part.replicas, part.cards, part.fields) for part in want.parts)
            if shape not in shapes:
                shapes[shape] = len(shapes)
                self._first_of_shape.append(want)
            self._shape_of.append(shapes[shape])
        self.events = self.asks = 0
        self.is_tired = False  # too much happened or was asked: who has not started by then may do so later

    def run(self, until: set[int], most_events: int, most_asks: int) -> None:
        """Until all of these waiters have started, or too much has happened."""
        missing = set(until)
        missing -= self._pass(0.0)
        while missing and self._ends:
            at = self._ends[0][0]
            if at == inf:
                return
            self.is_tired = self.events >= most_events or self.asks >= most_asks
            if self.is_tired:
                return
            self._end_all(at)
            missing -= self._pass(at)

    def _end_all(self, at: float) -> None:
        """Everything that ends at this moment."""
        runners, waiters = self._scene.runners, self._scene.waiters
        while self._ends and self._ends[0][0] == at:
            _, number = heappop(self._ends)
            self.events += 1
            one = runners[number] if number < len(runners) else waiters[number - len(runners)]
            self._floor.release(one.taken if isinstance(one, Runner) else self._given.pop(number))
            for limit, amount in one.limits:
                self._limits[limit] += amount

    def _pass(self, at: float) -> set[int]:
        """Everyone is asked once, in order; those alike to one that found no room are not. Returns who starts."""
        started: set[int] = set()
        kept: list[tuple[int, int]] = []
        held: list[tuple[Limit, int]] = []
        heads = self._heads_up_to_hope()
        least = min((self._least[key[0]] for _, key in heads), default=0)
        while heads and self._floor.spare >= least:
            number, key = heappop(heads)
            self.asks += HEAD_ASKS
            limited = self._is_limited(number)
            if not limited and self._start(number, at):
                started.add(number)
                alike = self._alike[key]
                alike.pop()
                if alike:
                    heappush(heads, (alike[-1], key))
                else:
                    del self._alike[key]
                continue
            if not limited:
                kept += self._floor.keep(self._scene.wants[key[0]])
            for limit, amount in key[1]:
                self._limits[limit] -= amount
                held.append((limit, amount))
        for cell, cards in kept:
            self._floor.give(cell, cards)
        for limit, amount in held:
            self._limits[limit] += amount
        return started

    def _heads_up_to_hope(self) -> list[tuple[int, Class]]:
        """The first of each class, as a heap, up to the last one that would find room were nobody before it."""
        self.asks += len(self._alike)
        fits, shape_of = [self._floor.may_fit(want) for want in self._first_of_shape], self._shape_of
        last = max((alike[-1] for key, alike in self._alike.items() if fits[shape_of[key[0]]]), default=-1)
        heads = [(alike[-1], key) for key, alike in self._alike.items() if alike[-1] <= last]
        heapify(heads)
        return heads

    def _is_limited(self, number: int) -> bool:
        return any(self._limits[limit] < amount for limit, amount in self._scene.waiters[number].limits)

    def _start(self, number: int, at: float) -> bool:
        waiter = self._scene.waiters[number]
        taken = self._floor.place(self._scene.wants[waiter.want])
        if taken is None:
            return False
        self.starts[number] = at
        ident = len(self._scene.runners) + number
        self._given[ident] = taken
        for limit, amount in waiter.limits:
            self._limits[limit] -= amount
        heappush(self._ends, (at + self._runs[number], ident))
        self.events += 1
        return True
