"""One machine's cards, split into buckets: what is broken first, then what is given out, then who keeps the rest."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from gpuyard.domain.cluster import Card, Node, NodeState
from gpuyard.domain.ledger import BUCKETS, Amounts, Bucket
from gpuyard.domain.resources import WHOLE_CARD

_PLACE = {bucket: place for place, bucket in enumerate(BUCKETS)}
_USED, _IDLE, _FREE = _PLACE[Bucket.USED], _PLACE[Bucket.IDLE], _PLACE[Bucket.FREE]


class Given(NamedTuple):
    """What is given out of one card, in thousandths."""

    busy: int = 0
    untold: int = 0  # nobody measures whether it is busy
    idle: int = 0


class Rest(NamedTuple):
    """What becomes of one machine's free cards: index -> thousandths. What is named twice counts for the first."""

    kept: Mapping[int, int] = {}
    blocked: Mapping[int, int] = {}  # by quota
    stranded: Mapping[int, int] = {}


NOTHING_GIVEN = Given()
NO_REST = Rest()


class Plain(NamedTuple):
    """A machine that is ready, whose cards are all of one model and well."""

    model: str
    indices: frozenset[int]

    def split(self, given: Mapping[int, Given]) -> dict[str, Amounts] | None:
        """As the function does where nothing is known of the rest, but only what is given out is looked at. None where
        more is told to be given out than there is."""
        busy = untold = idle = 0
        for out in given.values():
            if out[0] + out[1] + out[2] > WHOLE_CARD:
                return None
            busy += out[0]
            untold += out[1]
            idle += out[2]
        if not given.keys() <= self.indices:
            return None
        capacity = WHOLE_CARD * len(self.indices)
        buckets = [0] * len(BUCKETS)
        buckets[_USED], buckets[_IDLE], buckets[_FREE] = busy + untold, idle, capacity - busy - untold - idle
        return {self.model: Amounts(capacity, tuple(buckets), untold)}


def plain(node: Node) -> Plain | None:
    """None: each of its cards has to be looked at."""
    models = {card.model or card.device for card in node.cards}
    is_well = node.state is NodeState.READY and not any(card.trouble for card in node.cards)
    if len(models) != 1 or not is_well:
        return None
    return Plain(models.pop(), frozenset(card.index for card in node.cards))


def split(node: Node, given: Mapping[int, Given], rest: Rest = NO_REST) -> dict[str, Amounts]:
    """By model. Whatever is told about a card, its thousandths come out once each."""
    found: dict[str, _Sum] = {}
    is_ready = node.state is NodeState.READY
    for card in node.cards:
        model = card.model or card.device
        into = found.get(model)
        if into is None:
            into = found[model] = _Sum()
        into.capacity += WHOLE_CARD
        out = given.get(card.index)
        if is_ready and out is not None and not card.trouble and out[0] + out[1] + out[2] == WHOLE_CARD:
            into.take(out)  # most cards of a busy machine
        else:
            _pour_card(into, node.state, card, out or NOTHING_GIVEN, rest)
    return {model: sum.amounts() for model, sum in found.items()}


class _Sum:
    __slots__ = ("_buckets", "_left", "_untold", "capacity")

    def __init__(self) -> None:
        self._buckets = [0] * len(BUCKETS)
        self.capacity = self._untold = self._left = 0

    def begin_card(self) -> None:
        self._left = WHOLE_CARD

    def take(self, out: Given) -> None:
        """A card that is given out as a whole."""
        self._buckets[_USED] += out[0] + out[1]
        self._buckets[_IDLE] += out[2]
        self._untold += out[1]

    def pour(self, bucket: Bucket, amount: int) -> int:
        """So much of what is left of the card, if there is so much."""
        poured = max(0, min(self._left, amount))
        self._buckets[_PLACE[bucket]] += poured
        self._left -= poured
        return poured

    def pour_used(self, given: Given) -> None:
        self.pour(Bucket.USED, given.busy)
        self._untold += self.pour(Bucket.USED, given.untold)
        self.pour(Bucket.IDLE, given.idle)

    def amounts(self) -> Amounts:
        return Amounts(self.capacity, tuple(self._buckets), self._untold)


def _pour_card(into: _Sum, state: NodeState, card: Card, given: Given, rest: Rest) -> None:
    into.begin_card()
    if state is NodeState.LOST or card.trouble:
        into.pour(Bucket.UNHEALTHY, WHOLE_CARD)
        return
    if given is not NOTHING_GIVEN:
        into.pour_used(given)
    if state is not NodeState.READY:
        into.pour(Bucket.UNHEALTHY if state is NodeState.DISK_FULL else Bucket.DRAINING, WHOLE_CARD)
        return
    if rest is not NO_REST:
        into.pour(Bucket.RESERVED, rest.kept.get(card.index, 0))
        into.pour(Bucket.QUOTA, rest.blocked.get(card.index, 0))
        into.pour(Bucket.FRAGMENTED, rest.stranded.get(card.index, 0))
    into.pour(Bucket.FREE, WHOLE_CARD)
