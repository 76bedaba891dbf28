"""What is typical, and what follows from that: worked out when first needed, or bit by bit where nobody should wait.

When other requests become typical, a bit is done in each pass, and until it is ready the last that was known holds.
Bits are counted and not timed: who decides once more from the same events gets ready in the same pass.
"""

from __future__ import annotations

from collections.abc import Generator, Iterable, Sequence
from typing import TYPE_CHECKING

from gpuyard.domain.resources import Resources
from gpuyard.scheduling.fragments import Typical
from gpuyard.scheduling.measure import Measure, sizes_by_device
from gpuyard.scheduling.mixing import Pricing, Sizes, Worths
from gpuyard.scheduling.ranking import Ranks

if TYPE_CHECKING:
    from gpuyard.scheduling.room import Room
    from gpuyard.scheduling.shelf import Moves

A_BIT = 600  # steps of some microseconds each: a few milliseconds
PLACED_STEPS = 60  # more for each replica that was placed: a pass that takes long anyway does more
LOOK_STEPS = 4  # to look at a room costs as much as to rank so many stacks
ROUNDS_AT_ONCE, ROOMS_AT_ONCE, STACKS_AT_ONCE = 10, 20, 50

Work = Generator[int, None, Ranks]  # yields the steps it took


class Learned:
    """What is typical of one cluster."""

    def __init__(self, typical: tuple[Typical, ...], rooms: Iterable[Room], moves: Moves) -> None:
        self._typical = typical
        self._rooms = list(rooms)
        self._moves = moves
        self._ranks: Ranks | None = None
        self._renewal: Renewal | None = None
        self._next: tuple[Typical, ...] | None = None

    @property
    def is_renewing(self) -> bool:
        return self._renewal is not None

    def ranks_for(self, asked: Resources) -> Ranks | None:
        """Where it is known what is typical of such cards."""
        if not self._typical:
            return None
        if self._ranks is None:
            self._ranks = Ranks(Measure(self._typical, self._rooms), self._rooms, self._moves)
        return self._ranks if self._ranks.measure.knows(asked.cards) else None

    def renew(self, typical: tuple[Typical, ...]) -> None:
        """These from now on."""
        self._renewal = self._next = None
        if typical != self._typical:
            self._typical = typical
            self._ranks = None

    def begin(self, typical: tuple[Typical, ...]) -> None:
        """These, once it is worked out what follows. Others that are told meanwhile have to wait for that."""
        if self._renewal is not None:
            self._next = typical
        elif not typical or (self._typical and self._ranks is None):  # nothing follows yet from those that were
            self.renew(typical)
        elif typical != self._typical:
            self._renewal = Renewal(typical, self._rooms, self._moves, self._ranks)

    def go_on(self, placed: int) -> None:
        """Once in a pass, when so many replicas have been placed."""
        ready = self._renewal.go_on(A_BIT + PLACED_STEPS * placed) if self._renewal is not None else None
        if self._renewal is None or ready is None:
            return
        self._typical, self._ranks, self._renewal = self._renewal.typical, ready, None
        following, self._next = self._next, None
        if following is not None:
            self.begin(following)


class Renewal:
    def __init__(self, typical: tuple[Typical, ...], rooms: Sequence[Room], moves: Moves, before: Ranks | None) -> None:
        self.typical = typical
        self._work = _renew(typical, rooms, moves, before)

    def go_on(self, steps: int) -> Ranks | None:
        """Do a bit more. What comes of it, once it is ready."""
        while steps > 0:
            try:
                steps -= next(self._work)
            except StopIteration as end:
                ready: Ranks = end.value
                return ready
        return None


def _renew(typical: tuple[Typical, ...], rooms: Sequence[Room], moves: Moves, before: Ranks | None) -> Work:
    mixes: dict[Sizes, Worths] = {}
    for sizes in sizes_by_device(typical, rooms):
        pricing = Pricing(sizes)  # not from memory: it must take as long every time
        while pricing.rounds_left:
            pricing.play(ROUNDS_AT_ONCE)
            yield ROUNDS_AT_ONCE * (1 + len(pricing))
        mixes[sizes] = pricing.worths()
    yield len(rooms)  # what follows cannot be cut: on a large cluster it has a bit for itself
    measure = Measure(typical, rooms, mixes)
    yield len(rooms)
    ranks = Ranks(measure, rooms, moves)
    while looked := ranks.look_ahead(ROOMS_AT_ONCE):
        yield LOOK_STEPS * looked
    for ranking in ranks.begun_like(before) if before is not None else ():
        while ranked := ranking.rank_ahead(STACKS_AT_ONCE):
            yield ranked
    return ranks
