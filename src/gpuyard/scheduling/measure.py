"""What a stack of cards is worth to typical requests. A request goes where it takes the least of that.

The worth of a stack is, for each typical request, what copies of it could use of the free cards (with the cores that
are left), weighted by how often it is made and by how few of the cluster's cards it may use; and for each card what
the best mixes make of its rest. Everything is a whole number, and is worked out once for each state of a stack.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from math import isqrt
from typing import TYPE_CHECKING

from gpuyard.domain.resources import WHOLE_CARD, Cards, Resources
from gpuyard.scheduling.fragments import Typical, may_use
from gpuyard.scheduling.mixing import GRAIN, Sizes, Worths, worths
from gpuyard.scheduling.rings import Rings, choose_chips, copies_in

if TYPE_CHECKING:
    from gpuyard.scheduling.room import Room, Stack

FINE = 1000  # weights are whole numbers: so many to one request
COPIES, FREE = 2, 3  # what copies fill counts for so many fifths; what is large enough for one, for the others
MIXED = 10  # what the best mixes make of a card counts so much more than what one typical request does
RESTS_AT_MOST = 20_000  # of one kind are remembered
UNIT = 10  # thousandths of a card: places that differ by less are equal, and the tightest of them is taken

Key = tuple[int, ...]
After = tuple[int, "Rests"]  # the card that is taken (its rest, or its index where chips are linked), and what is left


@dataclass(frozen=True, slots=True)
class Shape:
    """Typical requests for the same cards: they differ in their cores."""

    milli: int  # of one card
    number: int  # of cards
    cores: tuple[tuple[int, int], ...]  # (cpu, weight)


class Rests:
    """What is left of the cards of one stack, whatever the cores. Made once for all stacks of its kind."""

    __slots__ = ("_afters", "_base", "_uses", "_worth", "key", "kind")

    def __init__(self, kind: Kind, key: Key) -> None:
        self.kind = kind
        self.key = key
        self._base = kind.mixed(key)
        self._uses = kind.uses(key)
        self._worth: dict[int, int] = {}
        self._afters: dict[int, list[After]] = {}

    def worth(self, step: int) -> int:
        """With so many cores, as the kind counts them."""
        found = self._worth.get(step)
        if found is None:
            row, found = self.kind.row(step), self._base
            for shape, copies, amount, free in self._uses:
                fitting, filled = row[shape]
                found += amount * filled[copies] + free * fitting
            self._worth[step] = found
        return found

    def after(self, milli: int) -> list[After]:
        """Every way in which a request for so much may be served, what it is cut from first to be preferred."""
        found = self._afters.get(milli)
        if found is None:
            found = self._afters[milli] = [
                (card, self.kind.rests(key)) for card, key in self.kind.cuts(self.key, milli)
            ]
        return found


@dataclass(slots=True, eq=False)
class Kind:
    """Stacks that are alike to typical requests: same cards, same models asked for, same fair share."""

    shapes: Sequence[Shape]
    mixes: Worths
    mixed_weight: int
    cards: int
    _steps: list[int] = field(default_factory=list)  # amounts of cores at which something changes
    _rows: dict[int, list[tuple[int, list[int]]]] = field(default_factory=dict)
    _rests: dict[Key, Rests] = field(default_factory=dict)

    def __post_init__(self) -> None:
        copies = [(shape, self._most_copies(shape)) for shape in self.shapes]
        steps = {cpu * copy for shape, most in copies for cpu, _ in shape.cores for copy in range(1, most + 1)}
        self._steps = sorted(steps)

    def _most_copies(self, shape: Shape) -> int:
        return self.cards * (WHOLE_CARD // shape.milli) // shape.number

    def step(self, cpu: int) -> int:
        return bisect_right(self._steps, cpu)

    def row(self, step: int) -> list[tuple[int, list[int]]]:
        """For each shape: the weight of those for which there are cores, and that of so many copies of them."""
        found = self._rows.get(step)
        if found is None:
            cpu = self._steps[step - 1] if step else 0
            found = self._rows[step] = [self._cell(shape, cpu) for shape in self.shapes]
        return found

    def _cell(self, shape: Shape, cpu: int) -> tuple[int, list[int]]:
        fitting = sum(weight for each, weight in shape.cores if each <= cpu)
        filled, most = [0], self._most_copies(shape)
        for copies in range(1, most + 1):
            filled.append(filled[-1] + sum(weight for each, weight in shape.cores if each * copies <= cpu))
        return fitting, filled

    def rests(self, key: Key) -> Rests:
        found = self._rests.get(key)
        if found is None:
            if len(self._rests) >= RESTS_AT_MOST:  # shares of all sizes, for months: it is only a memory
                self._rests.clear()
            found = self._rests[key] = Rests(self, key)
        return found

    def mixed(self, key: Key) -> int:
        mixes = self.mixes
        return self.mixed_weight * sum(mixes[rest // GRAIN] for rest in key if rest > 0)

    def uses(self, key: Key) -> list[tuple[int, int, int, int]]:
        """For each shape that fits: its place, how many copies, what one fills, and what is large enough for it."""
        found = []
        for place, shape in enumerate(self.shapes):
            copies = self.copies(key, shape)
            if copies:
                free = sum(rest for rest in key if rest >= shape.milli)
                found.append((place, copies, COPIES * shape.milli * shape.number, FREE * free))
        return found

    # --- cards that are not linked: the rests above nothing, smallest first -------------------------------------------

    def key_of(self, stack: Stack) -> Key:
        left = stack.room.cards
        return tuple(sorted([left[index] for index in stack.indices if left[index] > 0]))

    def copies(self, key: Key, shape: Shape) -> int:
        if shape.milli == WHOLE_CARD:
            return key.count(WHOLE_CARD) // shape.number
        return sum(rest // shape.milli for rest in key)

    def cuts(self, key: Key, milli: int) -> Iterable[tuple[int, Key]]:
        if milli >= WHOLE_CARD:
            number = milli // WHOLE_CARD
            return [(WHOLE_CARD, key[:-number])] if key.count(WHOLE_CARD) >= number else []
        return [(rest, _without(key, rest, milli)) for rest in sorted(set(key)) if rest >= milli]

    def named(self, stack: Stack, cards: Sequence[int]) -> list[int]:
        """The indices of these cards, as `cuts` names them."""
        left = stack.room.cards
        return [index for rest in cards for index in stack.indices if left[index] == rest]


def _without(key: Key, rest: int, milli: int) -> Key:
    others = list(key)
    others.remove(rest)
    if rest > milli:
        others.append(rest - milli)
    return tuple(sorted(others))


@dataclass(slots=True, eq=False)
class LinkedKind(Kind):
    """Chips in rings: it matters which of them are free."""

    rings: Rings = ()
    indices: tuple[int, ...] = ()

    def key_of(self, stack: Stack) -> Key:
        left = stack.room.cards
        return tuple([left[index] for index in self.indices])

    def copies(self, key: Key, shape: Shape) -> int:
        if shape.milli < WHOLE_CARD:
            return sum(rest // shape.milli for rest in key if rest > 0)
        return copies_in(shape.number, self.rings, dict(zip(self.indices, key, strict=True)))

    def cuts(self, key: Key, milli: int) -> Iterable[tuple[int, Key]]:
        left = dict(zip(self.indices, key, strict=True))
        if milli < WHOLE_CARD:
            fitting = sorted((rest, index) for index, rest in left.items() if rest >= milli)
            return [(index, self._taken(left, {index: milli})) for _, index in fitting]
        chips = choose_chips(milli // WHOLE_CARD, self.rings, left)
        return [] if chips is None else [(chips[0], self._taken(left, dict.fromkeys(chips, WHOLE_CARD)))]

    def _taken(self, left: dict[int, int], taken: dict[int, int]) -> Key:
        return tuple([left[index] - taken.get(index, 0) for index in self.indices])

    def named(self, stack: Stack, cards: Sequence[int]) -> list[int]:
        return list(cards)


class Measure:
    """What is typical, as it concerns the cards of one cluster."""

    def __init__(
        self, typicals: Iterable[Typical], rooms: Iterable[Room], mixes: Mapping[Sizes, Worths] | None = None
    ) -> None:
        """`mixes`: those that are worked out already."""
        self._mixes = mixes or {}
        self._asked = [(one.resources, one.resources.cards, one.times) for one in typicals if one.resources.cards]
        stacks = [stack for room in rooms for stack in room.stacks if stack.device]
        self._builds = _builds(stacks)
        self._open = any(asked.cpu_milli is None for asked, _, _ in self._asked)
        self._weights = [self._weight(asked, cards, times) for asked, cards, times in self._asked]
        self._kinds: dict[tuple[object, ...], Kind] = {}
        self._kind_of: dict[int, Kind] = {}  # by the serial number of the stack
        for stack in stacks:
            self._kind_of[stack.serial] = self._kind(stack)

    def knows(self, cards: Cards | None) -> bool:
        """Is anything typical of such cards; of any cards at all, for work without?"""
        return self._times(cards.device if cards else "") > 0

    def unit(self, device: str) -> int:
        return max(1, UNIT * self._times(device) * FINE * (COPIES + FREE))

    def kind_of(self, stack: Stack) -> Kind:
        return self._kind_of[stack.serial]

    def _times(self, device: str) -> int:
        return sum(times for _, cards, times in self._asked if device in ("", cards.device))

    def _weight(self, asked: Resources, cards: Cards, times: int) -> int:
        """The fewer cards it may use at all, the more it counts on those: by three quarters of how few they are."""
        every = sum(number for stack, number in self._builds if stack.device == cards.device)
        open_to = sum(number for stack, number in self._builds if _might_serve(stack, asked, cards))
        ratio = FINE * every // (open_to or every or 1)
        return times * isqrt(ratio * isqrt(ratio * FINE))

    def _kind(self, stack: Stack) -> Kind:
        node = stack.room.node
        share = (node.cpu_milli, len(node.cards)) if self._open else ()
        linked = (stack.rings, stack.indices) if stack.rings else ()
        key = (stack.device, stack.model, len(stack.indices), share, linked)
        found = self._kinds.get(key)
        if found is None:
            sizes = _sizes(self._asked, stack.device)
            shapes, mixes = self._shapes(stack), self._mixes.get(sizes) or worths(sizes)
            weight = MIXED * self._times(stack.device) * FINE * (COPIES + FREE)
            common = (shapes, mixes, weight, len(stack.indices))
            made = LinkedKind(*common, rings=stack.rings, indices=stack.indices) if stack.rings else Kind(*common)
            found = self._kinds[key] = made
        return found

    def _shapes(self, stack: Stack) -> list[Shape]:
        cores: dict[tuple[int, int], dict[int, int]] = {}
        for (asked, cards, _), weight in zip(self._asked, self._weights, strict=True):
            if may_use(stack, cards):
                cpu = stack.room.fair_share(asked)[0]
                alike = cores.setdefault((min(cards.milli, WHOLE_CARD), max(1, cards.whole)), {})
                alike[cpu] = alike.get(cpu, 0) + weight
        return [Shape(*cut, tuple(sorted(alike.items()))) for cut, alike in sorted(cores.items())]


def sizes_by_device(typicals: Iterable[Typical]) -> list[Sizes]:
    """What is mixed on one card, for each device that is asked for."""
    asked = [(one.resources, one.resources.cards, one.times) for one in typicals if one.resources.cards]
    return [_sizes(asked, device) for device in sorted({cards.device for _, cards, _ in asked})]


def _sizes(asked: Iterable[tuple[Resources, Cards, int]], device: str) -> Sizes:
    here = [(cards, times) for _, cards, times in asked if cards.device == device]
    return tuple(sorted((min(cards.milli, WHOLE_CARD), times * max(1, cards.whole)) for cards, times in here))


def _builds(stacks: Iterable[Stack]) -> list[tuple[Stack, int]]:
    """One stack of each build of machine, and how many cards there are on all of that build."""
    found: dict[tuple[object, ...], tuple[Stack, int]] = {}
    for stack in stacks:
        node, number = stack.room.node, len(stack.indices)
        build = (stack.device, stack.model, number, node.cpu_milli, len(node.cards))
        first, cards = found.get(build, (stack, 0))
        found[build] = (first, cards + number)
    return list(found.values())


def _might_serve(stack: Stack, asked: Resources, cards: Cards) -> bool:
    enough = len(stack.indices) >= cards.whole and stack.room.node.cpu_milli >= stack.room.fair_share(asked)[0]
    return enough and may_use(stack, cards)
