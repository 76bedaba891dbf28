"""Plain data to a `Policy`: what is left out keeps its default, and nonsense is refused with its place."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from gpuyard.dialects.native.marks import Findings, Found, Marks
from gpuyard.dialects.native.parts import Reader, read_keys
from gpuyard.dialects.native.values import duration, one_of, whole_number, yes_or_no
from gpuyard.dialects.policy.lists import (
    device_rings,
    model_name,
    named,
    names,
    node_name,
    number,
    one_of_these,
    person_name,
    pool_name,
)
from gpuyard.domain.errors import BadInput
from gpuyard.domain.policy import Defragment, Defragmenting, First, Ordering, Placing, Policy, Pool, Preempting
from gpuyard.domain.problems import Problem
from gpuyard.domain.resources import DEVICE_TYPES
from gpuyard.domain.workload import MAX_PRIORITY, MIN_PRIORITY, Kind

MAX_CORES_PER_CARD = 10_000
MAX_LABELS = 50
MAX_MOVES = 16  # of work, for one job that waits
LEAST_TOLERANCE = 0.0001  # less than this nobody can tell apart
LEAST_STEP, MOST_STEP, MOST_LEVELS = 1.0, 1000.0, 50  # of the levels of card-time
NORMAL = "normal"  # what a request without a priority gets

_priority = whole_number(MIN_PRIORITY, MAX_PRIORITY)


@dataclass(frozen=True, slots=True)
class Known:
    """What there is to be named in a policy. None: not known here, any name will do."""

    groups: frozenset[str] | None = None
    people: frozenset[str] | None = None
    kinds: frozenset[str] = frozenset(kind.value for kind in Kind)
    devices: frozenset[str] = frozenset(DEVICE_TYPES)


MAX_GROUPS = 10_000


def read_policy(data: Any, known: Known | None = None, marks: Marks | None = None) -> Policy:
    """Read a whole policy. Raises BadInput with every problem found."""
    found = Found(data, (), Findings(marks))
    if not isinstance(data, Mapping):
        raise BadInput(found.wrong(Problem.MAPPING, show=False).reason)
    keys = read_keys(found, _readers(known or Known()))
    policy = _policy(keys)
    _check_ceilings(found, policy)
    _check_pools(found, policy)
    found.findings.raise_if_any()
    return policy


def _policy(keys: Mapping[str, Any]) -> Policy:
    usual = Policy()
    return Policy(
        priorities=keys.get("priorities", usual.priorities),
        ceilings={**usual.ceilings, **keys.get("ceilings", {})},
        order=_ordering(keys.get("order", {})),
        backfill=keys.get("backfill", usual.backfill),
        keep_for_first=keys.get("keep_for_first", usual.keep_for_first),
        preempt=Preempting(**keys.get("preempt", {})),
        defragment=_defragment(keys.get("defragment", {})),
        placing=Placing(keys.get("placing", usual.placing)),
        servers=keys.get("servers", usual.servers),
        pools=keys.get("pools", {}),
        group_pools=keys.get("groups", {}),
        kind_pools=keys.get("kinds", {}),
        rings=keys.get("rings", usual.rings),
    )


def _ordering(keys: Mapping[str, Any]) -> Ordering:
    return Ordering(**{**keys, "first": First(keys.get("first", Ordering().first))})


def _defragment(keys: Mapping[str, Any]) -> Defragment:
    return Defragment(**{**keys, "mode": Defragmenting(keys.get("mode", Defragment().mode))})


def _readers(known: Known) -> Mapping[str, Reader]:
    pools = names(pool_name, may_be_empty=False)
    return {
        "priorities": _priorities,
        "ceilings": lambda found: read_keys(found, _CEILINGS),
        "order": lambda found: read_keys(found, {**ORDER, "people": names(person_name(known.people))}),
        "backfill": yes_or_no,
        "keep_for_first": yes_or_no,
        "preempt": lambda found: read_keys(found, PREEMPT),
        "defragment": lambda found: read_keys(found, DEFRAGMENT),
        "placing": one_of([placing.value for placing in Placing]),
        "servers": names(node_name),
        "pools": named(pool_name, _pool),
        "groups": named(person_name(known.groups), pools, limit=MAX_GROUPS),
        "kinds": named(one_of_these(known.kinds), pools),
        "rings": named(one_of_these(known.devices), device_rings),
    }


_CEILINGS: Mapping[str, Reader] = dict.fromkeys(("member", "lead", "admin"), _priority)
ORDER: Mapping[str, Reader] = {
    "first": one_of([first.value for first in First]),
    "first_level": duration(),
    "next_level": number(above=LEAST_STEP, most=MOST_STEP),
    "oldest_first": yes_or_no,
    "levels": whole_number(1, MOST_LEVELS),
    "people": names(person_name(None)),
    "fair_share": yes_or_no,
    "half_life": duration(),
    "ahead": duration(),
    "tolerance": number(above=LEAST_TOLERANCE, most=1.0),
    "cores_per_card": whole_number(1, MAX_CORES_PER_CARD),
    "age_every": duration(),
    "age_points": whole_number(0, MAX_PRIORITY),
}
PREEMPT: Mapping[str, Reader] = {
    "enabled": yes_or_no,
    "for_priority": yes_or_no,
    "for_turn": yes_or_no,
    "min_run": duration(least=0.0),
}

DEFRAGMENT: Mapping[str, Reader] = {
    "mode": one_of([mode.value for mode in Defragmenting]),
    "after": duration(least=0.0),
    "min_run": duration(least=0.0),
    "max_lost": duration(least=0.0),
    "moves": whole_number(1, MAX_MOVES),
}


def _priorities(found: Found) -> dict[str, int]:
    classes: dict[str, int] = named(person_name(None), _priority)(found)
    if NORMAL not in found.value:
        found.findings.missing_key(found.path, NORMAL)
    return classes


def _pool(found: Found) -> Pool:
    labels = named(node_name, _label_value, limit=MAX_LABELS)
    read = read_keys(found, {"models": names(model_name), "nodes": names(node_name), "labels": labels})
    return Pool(read.get("models", ()), read.get("nodes", ()), tuple(sorted(read.get("labels", {}).items())))


def _label_value(found: Found) -> str:
    return node_name(found)


# --- what only the whole document can show ------------------------------------------------------------------------


def _check_ceilings(found: Found, policy: Policy) -> None:
    """A lead may do no less than a member, an admin no less than a lead, and everybody what is normal."""
    ceilings = policy.ceilings
    for lower, higher in (("member", "lead"), ("lead", "admin")):
        if ceilings[lower] > ceilings[higher]:
            facts = {"role": lower, "ceiling": ceilings[lower], "above": higher, "its": ceilings[higher]}
            found.findings.note(_at(found, "ceilings", lower).wrong(Problem.CEILING_ORDER, facts, show=False).reason)
    normal = policy.priorities.get(NORMAL, MIN_PRIORITY)
    if normal > ceilings["member"]:
        facts = {"normal": normal, "ceiling": ceilings["member"]}
        found.findings.note(_at(found, "ceilings", "member").wrong(Problem.NORMAL_CEILING, facts, show=False).reason)


def _check_pools(found: Found, policy: Policy) -> None:
    """A pool that is named must be there. What could not be read is told already and not told again."""
    given = found.value.get("pools", {})
    there = set(policy.pools) | (set(map(str, given)) if isinstance(given, Mapping) else set())
    for key, users in (("groups", policy.group_pools), ("kinds", policy.kind_pools)):
        for user, pools in users.items():
            for place, pool in enumerate(pools):
                if pool not in there:
                    at = _at(found, key, user, place)
                    found.findings.attempt(one_of_these(there, Problem.POOL), at)


def _at(found: Found, *path: str | int) -> Found:
    """The value at this place; where a default stands in for it, the place alone."""
    value: Any = found.value
    for part in path:
        inside = isinstance(value, Mapping) and part in value
        listed = isinstance(value, list) and isinstance(part, int) and part < len(value)
        value = value[part] if inside or listed else None
    return Found(value, (*found.path, *path), found.findings)
