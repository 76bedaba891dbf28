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
from gpuyard.scheduling.fragments import Typical, could_serve, has_cards, may_use
from gpuyard.scheduling.mixing import GRAIN, Sizes, Worths, worths
from gpuyard.scheduling.rings import Rings, choose_chips, copies_in

if TYPE_CHECKING:
    from gpuyard.scheduling.room import Room, Stack

    Builds = list[tuple[Stack, int]]  # with how many cards there are on all of that build

FINE = 1000  # weights are whole numbers: so many to one request
COPIES, FREE = 2, 3  # what copies fill counts for so many fifths; what is large enough for one, for the others
MIXED = 10  # what the best mixes make of a card counts so much more than what one typical request does
SHAPES_AT_MOST = 64  # on one kind of stack: those that ask for most
COPIES_AT_MOST = 100  # of one request on one stack are counted: of what is so small, there is always room for one more
KEPT_AT_MOST = 300_000  # numbers that are remembered, of some 150 bytes each
UNIT = 10  # thousandths of a card: places that differ by less are equal, and the tightest of them is taken

Key = tuple[int, ...]
# Of one shape that fits: its place, how many copies, what one of them fills, and what is large enough for it.
Use = tuple[int, int, int, int]
# Of one shape with so many cores: the weight of those for which there are enough, and that of so many copies of them.
Cell = tuple[int, dict[int, int]]
After = tuple[int, "Rests"]  # the card that is taken (its rest, or its index where chips are linked), and what is left


@dataclass(frozen=True, slots=True)
class Shape:
    """Typical requests for the same cards: they differ in their cores."""

    milli: int  # of one card
    number: int  # of cards
    cores: tuple[tuple[int, int], ...]  # (cpu, weight)

    @property
    def amount(self) -> int:
        """What is asked for in this shape, all requests together."""
        return self.milli * self.number * sum(weight for _, weight in self.cores)


class Memory:
    """How much all kinds remember together. Requests and rests that are never alike would fill it without end, so at
    some point all is forgotten, and worked out again where it is needed: it comes out the same."""

    def __init__(self) -> None:
        self.kept = 0
        self._keepers: dict[Rests | Kind, None] = {}

    def make_room(self, keeper: Rests | Kind, numbers: int) -> None:
        """Before it remembers so many more."""
        if self.kept + numbers > KEPT_AT_MOST:
            for one in self._keepers:
                one.forget()
            self._keepers.clear()
            self.kept = 0
        self.kept += numbers
        self._keepers[keeper] = None


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
            found = self._base + self.kind.used(step, self._uses)
            self.kind.memory.make_room(self, 1)
            self._worth[step] = found
        return found

    def after(self, milli: int) -> list[After]:
        """Every way in which a request for so much may be served, what it is cut from first to be preferred."""
        found = self._afters.get(milli)
        if found is None:
            found = [(card, self.kind.rests(key)) for card, key in self.kind.cuts(self.key, milli)]
            self.kind.memory.make_room(self, 1 + len(found))
            self._afters[milli] = found
        return found

    @property
    def numbers(self) -> int:
        return 1 + len(self._uses)

    def forget(self) -> None:
        self._worth.clear()
        self._afters.clear()


@dataclass(slots=True, eq=False)
class Kind:
    """Stacks that are alike to typical requests: same cards, same models asked for, same fair share."""

    shapes: Sequence[Shape]
    mixes: Worths
    mixed_weight: int
    cards: int
    memory: Memory
    _steps: list[int] = field(default_factory=list)  # amounts of cores at which something changes
    _rows: dict[int, list[Cell]] = field(default_factory=dict)
    _rests: dict[Key, Rests] = field(default_factory=dict)

    def __post_init__(self) -> None:
        copies = [(shape, self._most_copies(shape)) for shape in self.shapes]
        steps = {cpu * copy for shape, most in copies for cpu, _ in shape.cores for copy in range(1, most + 1)}
        self._steps = sorted(steps)

    def _most_copies(self, shape: Shape) -> int:
        return min(COPIES_AT_MOST, self.cards * (WHOLE_CARD // shape.milli) // shape.number)

    @property
    def number_of_steps(self) -> int:
        return len(self._steps)

    def step(self, cpu: int) -> int:
        return bisect_right(self._steps, cpu)

    def used(self, step: int, uses: Iterable[Use]) -> int:
        """What these uses are worth with so many cores."""
        row, found = self._row(step), 0
        for shape, copies, amount, free in uses:
            fitting, filled = row[shape]
            times = filled.get(copies)
            if times is None:
                times = self._filled(shape, copies, step)
                self.memory.make_room(self, 1)
                filled[copies] = times
            found += amount * times + free * fitting
        return found

    def _row(self, step: int) -> list[Cell]:
        found = self._rows.get(step)
        if found is None:
            cpu = self._cpu(step)
            found = [(sum([w for each, w in shape.cores if each <= cpu]), {}) for shape in self.shapes]
            self.memory.make_room(self, len(found))
            self._rows[step] = found
        return found

    def _cpu(self, step: int) -> int:
        return self._steps[step - 1] if step else 0

    def _filled(self, shape: int, copies: int, step: int) -> int:
        """So many copies at most, and of each request as many as there are cores for."""
        cpu = self._cpu(step)
        return sum([w * (min(copies, cpu // each) if each else copies) for each, w in self.shapes[shape].cores])

    def forget(self) -> None:
        self._rows.clear()
        self._rests.clear()

    def rests(self, key: Key) -> Rests:
        found = self._rests.get(key)
        if found is None:
            found = Rests(self, key)
            self.memory.make_room(self, found.numbers)
            self._rests[key] = found
        return found

    def mixed(self, key: Key) -> int:
        mixes = self.mixes
        return self.mixed_weight * sum(mixes[rest // GRAIN] for rest in key if rest > 0)

    def uses(self, key: Key) -> list[Use]:
        found = []
        for place, shape in enumerate(self.shapes):
            copies = min(COPIES_AT_MOST, self.copies(key, shape))
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
        self._builds = _builds(rooms)
        self._asked = _asked(typicals, self._builds)
        self._open = any(asked.cpu_milli is None for asked, _, _ in self._asked)
        self._weights = [self._weight(asked, cards, times) for asked, cards, times in self._asked]
        self._kinds: dict[tuple[object, ...], Kind] = {}
        self._kind_of: dict[int, Kind] = {}  # by the serial number of the stack
        self._memory = Memory()

    def knows(self, cards: Cards | None) -> bool:
        """Is anything typical of such cards; of any cards at all, for work without?"""
        return self._times(cards.device if cards else "") > 0

    def unit(self, device: str) -> int:
        return max(1, UNIT * self._times(device) * FINE * (COPIES + FREE))

    def kind_of(self, stack: Stack) -> Kind:
        found = self._kind_of.get(stack.serial)
        if found is None:
            found = self._kind_of[stack.serial] = self._kind(stack)
        return found

    def _times(self, device: str) -> int:
        return sum(times for _, cards, times in self._asked if device in ("", cards.device))

    def _weight(self, asked: Resources, cards: Cards, times: int) -> int:
        """The fewer cards it may use at all, the more it counts on those: by three quarters of how few they are."""
        every = sum(number for stack, number in self._builds if stack.device == cards.device)
        open_to = sum(number for stack, number in self._builds if could_serve(stack, asked, cards))
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
            common = (shapes, mixes, weight, len(stack.indices), self._memory)
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
        shapes = [Shape(*cut, tuple(sorted(alike.items()))) for cut, alike in sorted(cores.items())]
        shapes.sort(key=lambda shape: shape.amount, reverse=True)
        return sorted(shapes[:SHAPES_AT_MOST], key=lambda shape: (shape.milli, shape.number))


def sizes_by_device(typicals: Iterable[Typical], rooms: Iterable[Room]) -> list[Sizes]:
    """What is mixed on one card, for each device that is asked for."""
    asked = _asked(typicals, _builds(rooms))
    return [_sizes(asked, device) for device in sorted({cards.device for _, cards, _ in asked})]


def _sizes(asked: Iterable[tuple[Resources, Cards, int]], device: str) -> Sizes:
    here = [(cards, times) for _, cards, times in asked if cards.device == device]
    return tuple(sorted((min(cards.milli, WHOLE_CARD), times * max(1, cards.whole)) for cards, times in here))


def that_fit(typicals: Iterable[Typical], rooms: Iterable[Room]) -> tuple[Typical, ...]:
    """Those for cards that would find a place on some machine, were all of them empty."""
    builds, known = _builds(rooms), [(one, one.resources.cards) for one in typicals]
    return tuple(
        one
        for one, cards in known
        if cards is not None and any(could_serve(stack, one.resources, cards) for stack, _ in builds)
    )


def _asked(typicals: Iterable[Typical], builds: Builds) -> list[tuple[Resources, Cards, int]]:
    """Without those whose cards no machine has: 64 on one machine would pass for 64 whole cards, over and over. One
    that lacks cores alone is worth nothing anywhere, and its cards are asked for all the same."""
    asked = [(one.resources, one.resources.cards, one.times) for one in typicals if one.resources.cards]
    return [one for one in asked if any(has_cards(stack, one[1]) for stack, _ in builds)]


def _builds(rooms: Iterable[Room]) -> Builds:
    """One stack of each build of machine, and how many cards there are on all of that build."""
    stacks = [stack for room in rooms for stack in room.stacks if stack.device]
    found: dict[tuple[object, ...], tuple[Stack, int]] = {}
    for stack in stacks:
        node, number = stack.room.node, len(stack.indices)
        build = (stack.device, stack.model, number, node.cpu_milli, len(node.cards), stack.rings)
        first, cards = found.get(build, (stack, 0))
        found[build] = (first, cards + number)
    return list(found.values())
