"""How fast the planner finds the best fit, without anything around it."""

from __future__ import annotations

import random
import time
from collections.abc import Callable

from gpuyard.domain.people import Group
from gpuyard.domain.policy import Policy
from gpuyard.engines.simulated import virtual_nodes
from gpuyard.scheduling.books import Books
from gpuyard.scheduling.fit import Allotments, Ask, give_back, place_gang
from gpuyard.scheduling.room import Rooms
from lab.lines import Line
from lab.stage import a_job

DECISIONS = 40_000


def best_fit() -> list[Line]:
    """One job leaves and another asks, on nodes that are three quarters full. Processor time of one thread."""
    small, large = (min(_seconds_a_decision(nodes) for _ in range(3)) for nodes in (1000, 5000))
    return [
        Line("best fit on 5,000 nodes of 8 cards, decisions per second", 1 / large, 20_000, "1/s", at_most=False),
        Line("  cost of a decision on 5,000 nodes / on 1,000 nodes", large / small, 5.0, "ratio"),
    ]


def _seconds_a_decision(count: int) -> float:
    books = Books(virtual_nodes(count, 8), {"lab": Group("lab")}, Policy())
    asks = [books.ask_of(a_job(f"ask{cards}", seconds=1, cards=cards)) for cards in (1, 2, 4, 8)]
    chance = random.Random(7)
    picks = chance.choices(asks, (60, 20, 12, 8), k=DECISIONS)
    leaving = [chance.random() for _ in picks]
    held = _fill(books.rooms, lambda: chance.choices(asks, (60, 20, 12, 8))[0], count * 6)
    begun = time.process_time()
    for ask, part in zip(picks, leaving, strict=True):
        place = int(part * len(held))
        give_back(held[place], books.rooms)
        held[place] = place_gang(ask, books.rooms) or {}
    return (time.process_time() - begun) / DECISIONS


def _fill(rooms: Rooms, draw: Callable[[], Ask], cards: int) -> list[Allotments]:
    held: list[Allotments] = []
    while cards > 0 and (taken := place_gang(draw(), rooms)) is not None:
        held.append(taken)
        cards -= sum(allotment.cards_milli for allotment in taken.values()) // 1000
    return held


MEASURES = (best_fit,)
