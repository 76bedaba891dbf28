"""How long work runs, learned from runs that are over: of the same name, of the same shape, of any.

The most specific runs count most, but few of them say little: with n runs of a kind, that kind is believed with the
weight n / (n + DOUBT), and the rest goes to the next wider one. Of work that already runs only those runs count that
lasted longer than it has run by now.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right, insort
from collections import deque
from collections.abc import Iterable
from math import inf
from typing import NamedTuple

from gpuyard.domain.workload import Kind, Spec, Workload

DOUBT = 4.0  # this many runs of a kind weigh as much as all wider kinds together
LEAST_RUNS = 8  # with fewer runs of any kind nothing is known
MOST_RUNS = 4000  # older ones are forgotten ...
MOST_OF_ONE = MOST_RUNS // 2  # ... and before those of others the ones of a person who has more than this
START_SECONDS = 5.0  # between the place and the first second that counts

Key = tuple[str, ...]


class Run(NamedTuple):
    """One that is over, however it ended."""

    owner: str
    name: str
    shape: str
    seconds: float
    kind: str = Kind.JOB.value


def shape_of(spec: Spec) -> str:
    """`1x8` for one replica with eight cards; what differs in cores alone is alike."""
    roles = [(role.replicas, role.resources.cards.milli if role.resources.cards else 0) for role in spec.roles]
    return "+".join(f"{replicas}x{milli / 1000:g}" for replicas, milli in roles)


def run_of(owner: str, spec: Spec, seconds: float) -> Run:
    return Run(owner, spec.name, shape_of(spec), max(0.0, seconds), spec.kind.value)


class Curve:
    """Sorted run times of several kinds, the most specific first, with the weight each has."""

    __slots__ = ("parts",)

    def __init__(self, parts: Iterable[list[float]]) -> None:
        self.parts: list[tuple[float, list[float]]] = []
        left = 1.0
        for times in parts:
            weight = left * len(times) / (len(times) + DOUBT)
            self.parts.append((weight, times))
            left -= weight
        if self.parts:  # the widest kind there is takes what is left: there is nobody else to ask
            self.parts[-1] = (self.parts[-1][0] + left, self.parts[-1][1])

    def draw(self, chance: float, ran: float = 0.0) -> float:
        """The whole run time that this chance (0 to 1) gives, of all that lasted longer than `ran`. One kind comes
        after the other, so a higher chance is not a longer time."""
        found: list[tuple[float, list[float], int]] = []
        total = 0.0
        for weight, times in self.parts:
            first = bisect_right(times, ran) if ran > 0 else 0
            part = weight * (len(times) - first) / len(times)
            if part > 0:
                total += part
                found.append((total, times, first))
        if not found:  # longer than anything known: as long again, as likely as not
            return ran / max(1e-3, 1.0 - chance) if ran > 0 else 0.0
        point = chance * total
        place = next((i for i, (upto, _, _) in enumerate(found) if point <= upto), len(found) - 1)
        below = found[place - 1][0] if place else 0.0
        upto, times, first = found[place]
        alive = len(times) - first
        return times[first + min(int((point - below) / (upto - below) * alive), alive - 1)]

    def reached(self, part: float, ran: float = 0.0) -> float:
        """The run time that this part of all that lasted longer than `ran` stay below, each kind with its weight. The
        widest kind holds the runs of all others, so it is one of its times."""
        alive = [
            (weight / len(times), times, bisect_right(times, ran) if ran > 0 else 0) for weight, times in self.parts
        ]
        wanted = part * sum(weight * (len(times) - first) for weight, times, first in alive)
        if not wanted:
            return self.draw(part, ran)
        _, widest, first = alive[-1]

        def is_enough(seconds: float) -> bool:
            below = sum(weight * max(0, bisect_right(times, seconds) - first) for weight, times, first in alive)
            return below >= wanted * (1 - 1e-12)

        return widest[min(bisect_left(widest, True, lo=first, key=is_enough), len(widest) - 1)]


class RunTimes:
    """All runs that are remembered."""

    def __init__(self, runs: Iterable[Run] = ()) -> None:
        self._times: dict[Key, list[float]] = {}
        self._runs: dict[int, Run] = {}  # by a number that rises
        self._of: dict[str, deque[int]] = {}  # owner -> the numbers of theirs
        self._count = 0
        self._curves: dict[Key, Curve] = {}
        for run in runs:
            self.add(run)

    def __len__(self) -> int:
        return len(self._runs)

    def add(self, run: Run) -> None:
        self._count += 1
        self._runs[self._count] = run
        self._of.setdefault(run.owner, deque()).append(self._count)
        for key in _keys(run):
            insort(self._times.setdefault(key, []), run.seconds)
        if len(self._runs) > MOST_RUNS:
            mine = self._of[run.owner]
            self._forget(mine[0] if len(mine) > MOST_OF_ONE else next(iter(self._runs)))
        self._curves.clear()

    def with_more(self, runs: Iterable[Run]) -> RunTimes:
        """These as well. Whoever is looking ahead goes on with what was known when they began."""
        more = RunTimes()
        more._runs, more._count = dict(self._runs), self._count
        more._of = {owner: deque(numbers) for owner, numbers in self._of.items()}
        more._times = {key: list(times) for key, times in self._times.items()}
        for run in runs:
            more.add(run)
        return more

    def _forget(self, number: int) -> None:
        """The oldest of somebody."""
        run = self._runs.pop(number)
        numbers = self._of[run.owner]
        numbers.popleft()
        if not numbers:
            del self._of[run.owner]
        for key in _keys(run):
            times = self._times[key]
            del times[bisect_right(times, run.seconds) - 1]
            if not times:
                del self._times[key]

    def knows(self, workload: Workload) -> bool:
        """Is there anything to go by, its declared maximum apart?"""
        return len(self._times.get((workload.spec.kind.value,), ())) >= LEAST_RUNS

    def curve(self, workload: Workload) -> Curve:
        shape, kind = shape_of(workload.spec), workload.spec.kind.value
        key = (kind, workload.owner, workload.spec.name, shape)
        found = self._curves.get(key)
        if found is None:
            wanted = _keys(Run(workload.owner, workload.spec.name, shape, 0.0, kind))
            found = Curve(self._times[one] for one in wanted if one in self._times)
            self._curves[key] = found
        return found


def _keys(run: Run) -> tuple[Key, ...]:
    """From the most specific to the widest."""
    return (
        (run.kind, "name", run.owner, run.name),
        (run.kind, "owner", run.owner, run.shape),
        (run.kind, "shape", run.shape),
        (run.kind,),
    )


class Length:
    """How long one workload runs: its curve, and the maximum that ends it."""

    __slots__ = ("_curve", "kind", "most")

    def __init__(self, workload: Workload, times: RunTimes) -> None:
        spec = workload.spec
        self._curve = times.curve(workload) if times.knows(workload) else None
        self.most = spec.max_seconds
        self.kind = f"{workload.owner} {shape_of(spec)}"  # what runs alike

    @property
    def is_known(self) -> bool:
        return self._curve is not None or self.most is not None

    def draw(self, chance: float, ran: float = 0.0) -> float:
        """Seconds it runs in all, in a world drawn by chance; a declared maximum is the end in any case."""
        return self._at_most(ran) if self._curve is None else min(self._at_most(ran), self._curve.draw(chance, ran))

    def reached(self, part: float, ran: float = 0.0) -> float:
        """Seconds in all after which it is over in this part of all worlds."""
        return self._at_most(ran) if self._curve is None else min(self._at_most(ran), self._curve.reached(part, ran))

    def _at_most(self, ran: float) -> float:
        return inf if self.most is None else max(self.most, ran)
