"""Reader of where a job came from: the door, and what it remembers."""

from __future__ import annotations

from gpuyard.dialects.native.marks import Found
from gpuyard.dialects.native.parts import named_texts, read_keys
from gpuyard.dialects.native.values import as_written, key_name, one_of
from gpuyard.domain.problems import Problem
from gpuyard.domain.workload import DOORS, MAX_ORIGIN_BYTES, MAX_ORIGIN_FACTS, ORIGIN_FACT_RULE, Origin


def origin(found: Found) -> Origin | None:
    keys = read_keys(found, {"door": one_of(DOORS), "facts": _facts}, required=("door",))
    return Origin(keys["door"], keys.get("facts", ())) if "door" in keys else None


def _facts(found: Found) -> tuple[tuple[str, str], ...]:
    return named_texts(found, _name, _value, most=MAX_ORIGIN_FACTS, most_bytes=MAX_ORIGIN_BYTES)


_name = key_name(ORIGIN_FACT_RULE, Problem.FACT_NAME)


def _value(found: Found) -> str:
    return as_written(found, limit=MAX_ORIGIN_BYTES)
