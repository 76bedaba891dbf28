"""Names for what is said again and again in a segment: workloads, specs, nodes, amounts and sets of cards have numbers.

What gets a number is said once, right before it is needed, and is numbered in that order on both sides.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

from gpuyard.domain.cluster import Allotment, CardShare
from gpuyard.domain.workload import Spec
from gpuyard.journal.plain import from_plain, to_plain

Key = tuple[str, int]
Say = Callable[[list[Any]], None]
NODE, AMOUNT, CARDS = "N", "A", "K"


class Numbers:
    """The writer's side."""

    def __init__(self, say: Say) -> None:
        self._say = say
        self._nodes: dict[str, int] = {}
        self._amounts: dict[tuple[object, ...], int] = {}
        self._cards: dict[tuple[CardShare, ...], int] = {}

    def allotments(self, given: Mapping[Key, Allotment], spec: Spec) -> list[Any]:
        """Where all replicas go: three numbers each, in the order of the spec unless that is said."""
        flat: list[int] = []
        for one in given.values():
            flat += self.allotment(one)
        return [flat] if is_natural(given, spec) else [flat, [list(key) for key in given]]

    def allotment(self, one: Allotment) -> tuple[int, int, int]:
        amounts = (one.cpu_milli, one.memory, one.shm, one.device, one.simulated)
        node = self._nodes.get(one.node)
        if node is None:
            node = self._new(self._nodes, one.node, NODE, one.node)
        amount = self._amounts.get(amounts)
        if amount is None:
            amount = self._new(self._amounts, amounts, AMOUNT, list(amounts))
        cards = self._cards.get(one.cards)
        if cards is None:
            cards = self._new(self._cards, one.cards, CARDS, [[share.index, share.milli] for share in one.cards])
        return node, amount, cards

    def _new(self, known: dict[Any, int], key: Any, kind: str, data: Any) -> int:
        number = known[key] = len(known)
        self._say([kind, data])
        return number


class Names:
    """The reader's side."""

    def __init__(self) -> None:
        self.nodes: list[str] = []
        self.amounts: list[tuple[int, int, int, str, bool]] = []
        self.cards: list[tuple[CardShare, ...]] = []

    def learn(self, kind: str, data: Any) -> None:
        if kind == NODE:
            self.nodes.append(data)
        elif kind == AMOUNT:
            cpu, memory, shm, device, simulated = data
            self.amounts.append((cpu, memory, shm, device, simulated))
        else:
            self.cards.append(tuple(CardShare(index, milli) for index, milli in data))

    def allotments(self, data: list[Any], spec: Spec) -> dict[Key, Allotment]:
        flat = data[0]
        keys = [(role, index) for role, index in data[1]] if len(data) > 1 else natural_keys(spec)
        places = [self.allotment(*flat[at : at + 3]) for at in range(0, len(flat), 3)]
        return dict(zip(keys, places, strict=True))

    def allotment(self, node: int, amount: int, cards: int) -> Allotment:
        cpu, memory, shm, device, simulated = self.amounts[amount]
        return Allotment(self.nodes[node], cpu, memory, shm, device, self.cards[cards], simulated)


def natural_keys(spec: Spec) -> list[Key]:
    return [(role.name, index) for role in spec.roles for index in range(role.replicas)]


def is_natural(given: Mapping[Key, Allotment], spec: Spec) -> bool:
    if len(given) == 1 and len(spec.roles) == 1:
        return (spec.roles[0].name, 0) in given
    return list(given) == natural_keys(spec)


class Specs:
    """The writer's side of what was asked for. Two that differ only in what is left out stay two."""

    def __init__(self, say: Say) -> None:
        self._say = say
        self._known: dict[str, int] = {}

    def number(self, spec: Spec, variant: int = 0) -> int:
        data = [to_plain(spec), variant]
        text = repr(data)
        number = self._known.get(text)
        if number is None:
            number = self._known[text] = len(self._known)
            self._say(["S", *data])
        return number


def read_spec(data: Any, variant: int) -> Spec:
    """A variant is told from the others by its working folder, which nobody looks at here."""
    spec: Spec = from_plain(Spec, data)
    return replace(spec, workdir=f"variant {variant}") if variant else spec
