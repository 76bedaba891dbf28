"""The cluster as a picture: every machine a row, every card a cell, and which work is on it.

Kept in memory while somebody looks, and brought up to date by the change feed. Those rows that came out different are
told to everyone who looks, each as they may see it: whose work it is, is for those to know who may see that work.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from gpuyard.api import views
from gpuyard.api.views import from_milli
from gpuyard.domain.cluster import Node
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
    states: tuple[str, ...] = ()  # of the work on it: a change of these changes the picture too

    def works(self) -> set[str]:
        return {id for given in self.cards.values() for id, _ in given}


@dataclass(frozen=True, slots=True)
class Board:
    """All rows, by the name of the machine, and the work on them."""

    rows: Mapping[str, Row]
    works: Mapping[str, Workload]

    def different_from(self, before: Board) -> list[str]:
        """Names of the machines that look different, and of those that are gone."""
        changed = [name for name, row in self.rows.items() if before.rows.get(name) != row]
        return changed + [name for name in before.rows if name not in self.rows]


def make_board(nodes: Iterable[Node], holding: Sequence[Workload]) -> Board:
    given: dict[str, dict[int, list[tuple[str, int]]]] = {}
    states: dict[str, list[str]] = {}
    used = views.use_by_node(holding)
    for workload in holding:
        for replica in workload.attempt.replicas if workload.attempt else ():
            place = replica.allotment
            cells = given.setdefault(place.node, {})
            states.setdefault(place.node, []).append(f"{workload.id} {workload.state.value}")
            for share in place.cards:
                cells.setdefault(share.index, []).append((workload.id, share.milli))
    rows = {}
    for node in nodes:
        cells, use = given.get(node.name, {}), used.get(node.name) or views.NodeUse()
        cards = {index: tuple(works) for index, works in cells.items()}
        rows[node.name] = Row(node, use.cpu_milli, use.memory, cards, tuple(sorted(states.get(node.name, ()))))
    return Board(rows, {workload.id: workload for workload in holding})


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
