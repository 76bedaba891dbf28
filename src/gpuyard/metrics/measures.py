"""Measurements that add up: each is a total and a weight (CPU seconds over seconds, bytes over one look).

The mean over any stretch of time is the sum of the totals over the sum of the weights. Pure.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping

from gpuyard.domain.usage import CardUse, Usage

Measures = dict[str, tuple[float, float]]  # "cpu", "memory", "card.0.percent", "card.0.memory" -> (total, weight)


def measures_of(usage: Usage, at: float, before: Usage | None, before_at: float) -> Measures:
    """What one look tells. CPU use is a difference, so it needs the look before."""
    found: Measures = {"memory": (usage.memory, 1)}
    for card in usage.cards:
        found[f"card.{card.index}.memory"] = (card.memory, 1)
        if card.percent is not None and math.isfinite(card.percent):
            found[f"card.{card.index}.percent"] = (card.percent, 1)
    # A counter that went back began anew: nothing is known of this stretch.
    if before is not None and usage.cpu_seconds >= before.cpu_seconds and at > before_at:
        found["cpu"] = (usage.cpu_seconds - before.cpu_seconds, at - before_at)
    return found


def added(some: Measures, more: Mapping[str, tuple[float, float]]) -> Measures:
    total = dict(some)
    for name, (amount, weight) in more.items():
        amount_before, weight_before = total.get(name, (0.0, 0.0))
        total[name] = (amount_before + amount, weight_before + weight)
    return total


def usage_to_json(usage: Usage) -> str:
    cards = [(card.index, card.percent, card.memory) for card in usage.cards]
    return json.dumps((usage.cpu_seconds, usage.memory, usage.processes, cards))


def usage_from_json(text: str) -> Usage:
    cpu_seconds, memory, processes, cards = json.loads(text)
    return Usage(cpu_seconds, memory, processes, tuple(CardUse(*card) for card in cards))
