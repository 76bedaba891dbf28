"""Reader of where a job came from: the door, and what it remembers."""

from __future__ import annotations

from collections.abc import Mapping

from gpuyard.dialects.native.marks import Found
from gpuyard.dialects.native.parts import read_keys
from gpuyard.dialects.native.values import as_written, key_name, one_of
from gpuyard.domain.problems import Problem
from gpuyard.domain.workload import DOORS, MAX_ORIGIN_BYTES, MAX_ORIGIN_FACTS, ORIGIN_FACT_RULE, Origin


def origin(found: Found) -> Origin | None:
    keys = read_keys(found, {"door": one_of(DOORS), "facts": _facts}, required=("door",))
    return Origin(keys["door"], keys.get("facts", ())) if "door" in keys else None


def _facts(found: Found) -> tuple[tuple[str, str], ...]:
    if not isinstance(found.value, Mapping):
        raise found.wrong(Problem.MAPPING)
    if len(found.value) > MAX_ORIGIN_FACTS:
        raise found.wrong(Problem.TOO_MANY, {"limit": MAX_ORIGIN_FACTS})
    pairs = []
    for inner in map(found.inside, found.value):
        key, value = found.findings.attempt(_name, inner), found.findings.attempt(_value, inner)
        if key is not None and value is not None:
            pairs.append((key, value))
    if sum(len(key) + len(value.encode()) + 2 for key, value in pairs) > MAX_ORIGIN_BYTES:
        raise found.wrong(Problem.TOO_LONG, {"limit": MAX_ORIGIN_BYTES})
    return tuple(pairs)


_name = key_name(ORIGIN_FACT_RULE, Problem.FACT_NAME)


def _value(found: Found) -> str:
    return as_written(found, limit=MAX_ORIGIN_BYTES)
