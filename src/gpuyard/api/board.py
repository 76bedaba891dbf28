"""The cluster as a picture: every machine a row, every card a cell, and which work is on it.

Kept in memory while somebody looks, and brought up to date by the change feed. Those rows that came out different are
told to everyone who looks, each as they may see it: whose work it is, is for those to know who may see that work.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from operator import attrgetter
from typing import Any

from gpuyard.api.views import from_milli
from gpuyard.domain.cluster import Allotment, Node
from gpuyard.domain.resources import WHOLE_CARD
from gpuyard.domain.workload import Workload

Sees = Callable[[Workload], bool]


@dataclass(frozen=True, slots=True)
class Row:
    """One machine and what is on it, of which two can be compared."""

    node: Node
    cpu_milli: int = 0
    memory: int = 0
    cards: Mapping[int, tuple[tuple[str, int], ...]] = field(default_factory=dict)  # index -> (workload, milli)
    states: Mapping[str, str] = field(default_factory=dict)  # of all work on it: their change is one of the picture

    def works(self) -> set[str]:
        """Those that are shown: the ones with cards."""
        return {id for given in self.cards.values() for id, _ in given}


@dataclass(frozen=True, slots=True)
class Board:
    """All rows, by the name of the machine, and the work on them."""

    rows: Mapping[str, Row]
    works: Mapping[str, Workload]


def make_board(nodes: Iterable[Node], holding: Sequence[Workload]) -> Board:
    return Board(_rows(nodes, holding), {workload.id: workload for workload in holding})


@dataclass(frozen=True, slots=True)
class Changed:
    """What may be different from what a board shows: machines by name, workloads by id, and those of them that hold."""

    machines: Collection[str]
    ids: Collection[str]
    held: Mapping[str, Workload]


def renewed(board: Board, nodes: Iterable[Node], changed: Changed) -> tuple[Board, list[str]]:
    """The board afterwards, made anew where something changed, and the names of the machines that look different."""
    names = _touched(board, changed)
    if not names:
        return board, []
    works = {**board.works, **changed.held}
    for id in changed.ids:
        if id not in changed.held:
            works.pop(id, None)
    on_them = {id for name in names if name in board.rows for id in board.rows[name].states} | changed.held.keys()
    if not names <= board.rows.keys():  # a machine that was not there: work may have been waiting for it to come back
        on_them = set(works)
    rows = {name: row for name, row in board.rows.items() if name not in names}
    rows |= _rows([node for node in nodes if node.name in names], [works[id] for id in on_them if id in works])
    return Board(rows, works), [name for name in sorted(names) if board.rows.get(name) != rows.get(name)]


def _touched(board: Board, changed: Changed) -> set[str]:
    """The machines that changed, and those on which changed work was or is now."""
    before = [board.works[id] for id in changed.ids if id in board.works]
    places = (place for workload in (*before, *changed.held.values()) for place in _places(workload))
    return {*changed.machines, *(place.node for place in places)}


def _rows(nodes: Iterable[Node], holding: Iterable[Workload]) -> dict[str, Row]:
    """What these workloads use of these machines; that they use others as well does not matter here."""
    uses = {node.name: _Use(node) for node in nodes}
    for workload in sorted(holding, key=attrgetter("submitted_at", "id")):  # rows that hold the same look the same
        for place in _places(workload):
            if place.node in uses:
                uses[place.node].add(workload, place)
    return {name: use.row() for name, use in uses.items()}


def _places(workload: Workload) -> Iterator[Allotment]:
    return (replica.allotment for replica in workload.attempt.replicas) if workload.attempt else iter(())


class _Use:
    """A row in the making."""

    def __init__(self, node: Node) -> None:
        self._node = node
        self._cpu_milli = self._memory = 0
        self._cards: dict[int, list[tuple[str, int]]] = {}
        self._states: dict[str, str] = {}

    def add(self, workload: Workload, place: Allotment) -> None:
        self._cpu_milli += place.cpu_milli
        self._memory += place.memory
        self._states[workload.id] = workload.state.value
        for share in place.cards:
            self._cards.setdefault(share.index, []).append((workload.id, share.milli))

    def row(self) -> Row:
        cards = {index: tuple(works) for index, works in self._cards.items()}
        return Row(self._node, self._cpu_milli, self._memory, cards, self._states)


def show_rows(board: Board, names: Iterable[str]) -> list[dict[str, Any]]:
    """As they go over the wire. A machine that is gone is a row without cards in the state `gone`."""
    return [_shown(board.rows[name]) if name in board.rows else _gone(name) for name in names]


def show_works(board: Board, names: Iterable[str], sees: Sees) -> dict[str, dict[str, Any]]:
    """The work on these machines, by id, as far as the one who looks may know it."""
    ids = {id for name in names if name in board.rows for id in board.rows[name].works()}
    return {id: show_work(board.works[id], sees) for id in ids}


def show_work(workload: Workload, sees: Sees) -> dict[str, Any]:
    known = sees(workload)
    return {
        "name": workload.spec.name if known else None,
        "owner": workload.owner if known else None,
        "group": workload.group if known else None,
        "kind": workload.spec.kind.value,
        "state": workload.state.value,
    }


def _gone(name: str) -> dict[str, Any]:
    nothing = {"cpu": 0, "cpu_used": 0, "memory": 0, "memory_used": 0, "labels": {}, "cards": []}
    return {"name": name, "state": "gone", **nothing}


def _shown(row: Row) -> dict[str, Any]:
    node = row.node
    return {
        "name": node.name,
        "state": node.state.value,
        "cpu": from_milli(node.cpu_milli),
        "cpu_used": from_milli(row.cpu_milli),
        "memory": node.memory,
        "memory_used": row.memory,
        "labels": dict(node.labels),
        "cards": [_cell(row, index) for index in range(len(node.cards))],
    }


def _cell(row: Row, place: int) -> dict[str, Any]:
    card = row.node.cards[place]
    given = row.cards.get(card.index, ())
    return {
        "index": card.index,
        "device": card.device,
        "model": card.model,
        "simulated": card.simulated,
        "used": sum(milli for _, milli in given) / WHOLE_CARD,
        "trouble": card.trouble or None,
        "work": [id for id, _ in given],
    }
