"""A `Policy` as the document it was, or would have been, read from; and as the text it is kept as."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from gpuyard.dialects.native.writing import exact_duration
from gpuyard.dialects.policy.reading import read_policy
from gpuyard.domain.policy import Policy, Pool


def write_policy(policy: Policy) -> dict[str, Any]:
    """Every key, also those at their default, so that an admin sees what there is to change."""
    order, preempt, defragment = policy.order, policy.preempt, policy.defragment
    return {
        "priorities": dict(policy.priorities),
        "ceilings": dict(policy.ceilings),
        "order": {
            "first": order.first.value,
            "first_level": exact_duration(order.first_level),
            "next_level": order.next_level,
            "levels": order.levels,
            "oldest_first": order.oldest_first,
            "people": list(order.people),
            "fair_share": order.fair_share,
            "half_life": exact_duration(order.half_life),
            "ahead": exact_duration(order.ahead),
            "tolerance": order.tolerance,
            "cores_per_card": order.cores_per_card,
            "age_every": exact_duration(order.age_every),
            "age_points": order.age_points,
        },
        "backfill": policy.backfill,
        "keep_for_first": policy.keep_for_first,
        "preempt": {
            "enabled": preempt.enabled,
            "for_priority": preempt.for_priority,
            "for_turn": preempt.for_turn,
            "min_run": exact_duration(preempt.min_run),
        },
        "defragment": {
            "mode": defragment.mode.value,
            "after": exact_duration(defragment.after),
            "min_run": exact_duration(defragment.min_run),
            "max_lost": exact_duration(defragment.max_lost),
            "moves": defragment.moves,
        },
        "placing": policy.placing.value,
        "servers": list(policy.servers),
        "pools": {name: _pool(pool) for name, pool in policy.pools.items()},
        "groups": _lists(policy.group_pools),
        "kinds": _lists(policy.kind_pools),
        "rings": {device: [list(ring) for ring in rings] for device, rings in policy.rings.items()},
    }


def _pool(pool: Pool) -> dict[str, Any]:
    return {"models": list(pool.models), "nodes": list(pool.nodes), "labels": dict(pool.labels)}


def _lists(users: Mapping[str, tuple[str, ...]]) -> dict[str, list[str]]:
    return {user: list(pools) for user, pools in users.items()}


def to_text(policy: Policy) -> str:
    return json.dumps(write_policy(policy), ensure_ascii=False, separators=(",", ":"))


def from_text(text: str | None) -> Policy:
    """What was kept; the default when nothing was. Who it names may have gone since, so names are not asked for."""
    return Policy() if text is None else read_policy(json.loads(text))
