"""A look ahead: the same queue in many worlds, each with run times drawn anew, gives the spread of a start."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from math import inf
from typing import NamedTuple

from gpuyard.forecast.runtimes import START_SECONDS, Length
from gpuyard.forecast.scene import Scene
from gpuyard.forecast.worlds import World

ALIKE = 0.5  # this part of the work of one kind runs equally long in one world, as a row of trials does
WORLDS = 24
FEWEST_WORLDS = 6
MOST_EVENTS = 12_000  # in all worlds of a look together
MOST_ASKS = 2_000_000  # the same: a queue in which no two are alike costs as much as a long one in which all are
_MASK = (1 << 64) - 1


class Spread(NamedTuple):
    """Seconds from now: as likely before as after the middle; nine times out of ten before the late one."""

    middle: float
    late: float


def chances(seed: str, worlds: int) -> list[float]:
    """One point of 0 to 1 for each world, evenly spread and in an order of its own: as random as needed, the same
    each time."""
    state = _seeded(seed)
    shift = (state >> 11) / (1 << 53)
    order = list(range(worlds))
    for last in range(worlds - 1, 0, -1):
        state = _next(state)
        other = state % (last + 1)
        order[last], order[other] = order[other], order[last]
    return [((place + shift) / worlds) % 1.0 for place in order]


def _seeded(text: str) -> int:
    state = 0xCBF29CE484222325
    for byte in text.encode():
        state = ((state ^ byte) * 0x100000001B3) & _MASK
    return _next(state)


def _next(state: int) -> int:
    state = (state + 0x9E3779B97F4A7C15) & _MASK
    mixed = ((state ^ (state >> 30)) * 0xBF58476D1CE4E5B9) & _MASK
    mixed = ((mixed ^ (mixed >> 27)) * 0x94D049BB133111EB) & _MASK
    return mixed ^ (mixed >> 31)


def quantile(values: Sequence[float], part: float) -> float:
    """Of sorted values, between neighbours where it falls between them."""
    place = part * (len(values) - 1)
    low = int(place)
    high = min(low + 1, len(values) - 1)
    if values[low] == values[high] or place == low:
        return values[low]
    return inf if values[high] == inf else values[low] + (values[high] - values[low]) * (place - low)


class Runtime(NamedTuple):
    """How long it runs, of which it has run so much; None: it has yet to start."""

    length: Length
    ran: float | None = None


def look(
    scene: Scene, running: Sequence[Runtime], waiting: Sequence[Runtime], wanted: Iterable[int]
) -> dict[int, Spread]:
    """The spread of the start of each wanted waiter, by its place in the scene. Those are left out of which it would
    take too long to see it."""
    until = set(wanted)
    if not until:
        return {}
    ahead = max(until) + 1  # those behind the last wanted one are left out: they do not move it
    scene, waiting = scene._replace(waiters=scene.waiters[:ahead]), waiting[:ahead]
    worlds = max(FEWEST_WORLDS, min(WORLDS, MOST_EVENTS // (len(running) + 2 * ahead)))
    draw = Draw(worlds)
    lasts = [draw.drawn(scene.runners[i].id, runtime) for i, runtime in enumerate(running)]
    runs = [draw.drawn(scene.waiters[i].id, runtime) for i, runtime in enumerate(waiting)]
    starts: dict[int, list[float]] = {number: [] for number in until}
    for number in range(worlds):
        world = World(scene, [last[number] for last in lasts], [run[number] for run in runs])
        world.run(until, 2 * MOST_EVENTS // worlds, MOST_ASKS // worlds)
        if world.is_tired:
            starts = {place: found for place, found in starts.items() if world.starts[place] < inf}
        for place, found in starts.items():
            found.append(world.starts[place])
    return {place: spread_of(found) for place, found in starts.items()}


class Draw:
    """Run times for so many worlds. Work of one kind is not a hundred chances but, in part, one: if all of them were
    drawn apart, a long queue would seem surer than any of its jobs."""

    def __init__(self, worlds: int) -> None:
        self.worlds = worlds
        self._common: dict[str, list[float]] = {}

    def drawn(self, id: str, runtime: Runtime) -> list[float]:
        """In each world, for how much longer it holds what it holds."""
        length, ran = runtime.length, runtime.ran or 0.0
        start = START_SECONDS if runtime.ran is None else 0.0
        return [max(0.0, length.draw(chance, ran) - ran) + start for chance in self._chances(id, length.kind)]

    def _chances(self, id: str, kind: str) -> list[float]:
        if (_seeded(id) >> 11) / (1 << 53) >= ALIKE:
            return chances(id, self.worlds)
        if kind not in self._common:
            self._common[kind] = chances(kind, self.worlds)
        return self._common[kind]


def spread_of(found: list[float]) -> Spread:
    found.sort()
    return Spread(quantile(found, 0.5), quantile(found, 0.9))


def end_of(runtime: Runtime) -> Spread:
    """Seconds until running work is over."""
    length, ran = runtime.length, runtime.ran or 0.0
    return Spread(max(0.0, length.reached(0.5, ran) - ran), max(0.0, length.reached(0.9, ran) - ran))
