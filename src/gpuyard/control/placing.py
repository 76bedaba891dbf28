"""Asks scheduling who starts and who makes room, and writes it down. Nothing is launched before that is committed."""

from __future__ import annotations

from math import inf
from typing import Any

from gpuyard.control.changes import Changes
from gpuyard.domain.lifecycle import Placed, Preempted
from gpuyard.domain.reasons import Code, because
from gpuyard.domain.workload import StoryEvent
from gpuyard.scheduling.snapshot import Eviction, Placement, Plan, Turn
from gpuyard.world.picture import Picture


def decided(picture: Picture, plan: Plan, now: float) -> Changes:
    """What a plan changes."""
    changes = Changes(picture)
    for eviction in plan.evictions:
        _evict(changes, eviction, now)
    uses = {who: round(use, 4) for who, use in plan.uses.items()}
    for placement in plan.placements:
        changes.apply(placement.workload, Placed(placement.allotments, _facts(placement, uses)), now)
        simulated = sum(len(a.cards) for a in placement.allotments.values() if a.simulated)
        if simulated:
            _label(changes, placement.workload, simulated, now)
    return changes


def _evict(changes: Changes, eviction: Eviction, now: float) -> None:
    victim, by = changes.now(eviction.workload), changes.now(eviction.by)
    if victim is None or victim.attempt is None or by is None:
        return
    begun = victim.attempt.started_at
    event = Preempted(
        by=by.id,
        by_name=by.spec.name,
        by_owner=by.owner,
        by_group=by.group,
        rule=eviction.rule.value,
        lost_seconds=round(eviction.lost_seconds, 1),
        ran_seconds=round(now - begun, 1) if begun is not None else 0.0,
        saved=victim.attempt.saved_at is not None or victim.spec.checkpoint is not None,
        to=eviction.to,
    )
    changes.apply(victim.id, event, now)


def _facts(placement: Placement, uses: dict[str, float]) -> dict[str, Any]:
    facts: dict[str, Any] = {}
    turn = placement.turn
    if turn is not None:
        facts["turn"] = {
            "guaranteed": turn.guaranteed,
            "priority": turn.priority,
            "group_use": round(turn.group_use, 4),
            "user_use": round(turn.user_use, 4),
            **_by_itself(turn),
        }
    if placement.passed:
        facts["passed"] = list(placement.passed)
    if placement.gap is not None:
        facts["backfill"] = {"ends_by": placement.gap[0], "starts_at": placement.gap[1]}
    if placement.images:
        facts["images"] = list(placement.images)
    if uses:
        facts["uses"] = uses
    return facts


def _by_itself(turn: Turn) -> dict[str, float | None]:
    """What it had left or had been served, where its turn was found by that. Who declares no end has no number."""
    found = {"left": turn.left, "served": turn.served}
    told = {name: number for name, number in found.items() if number is not None}
    return {name: round(number, 4) if number < inf else None for name, number in told.items()}


def _label(changes: Changes, id: str, cards: int, now: float) -> None:
    """Simulated cards are said to be simulated in every story that gets them."""
    workload = changes.now(id)
    if workload is not None:
        reason = because(Code.CARDS_SIMULATED, cards=cards)
        changes.tell(id, [StoryEvent(now, reason, workload.state, workload.attempts_made)])
