"""Readers of what a policy is made of: lists of different names, mappings by name, numbers, rings."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Mapping
from typing import Any, TypeVar

from gpuyard.dialects.native.marks import Found, nearest
from gpuyard.dialects.native.values import name, text, whole_number
from gpuyard.domain.people import NAME_RULE
from gpuyard.domain.problems import Problem

MAX_ITEMS = 500
MAX_RINGS = 64
MAX_CHIP = 1023
LONGEST_NAME = 253  # of a machine, as in DNS

_WORD = re.compile(r"[A-Za-z0-9]")
T = TypeVar("T")
Read = Callable[[Found], T]

pool_name = name(NAME_RULE, Problem.PERSON_NAME)


def person_name(known: Collection[str] | None) -> Read[str]:
    """The name of a user or group that exists; of any when nobody knows which exist."""
    spelled = name(NAME_RULE, Problem.PERSON_NAME)
    return spelled if known is None else one_of_these(known)


def node_name(found: Found) -> str:
    """Anything a machine or a label may be called."""
    value = text(found, limit=LONGEST_NAME)
    if not value.strip() or value != value.strip():
        raise found.wrong(Problem.BLANK)
    return value


def model_name(found: Found) -> str:
    """At least one letter or digit: models are compared by their words."""
    value = node_name(found)
    if not _WORD.search(value):
        raise found.wrong(Problem.BLANK)
    return value


def one_of_these(known: Collection[str], problem: Problem = Problem.ONE_OF) -> Read[str]:
    def read(found: Found) -> str:
        value = text(found)
        if value in known:
            return value
        close = nearest(value, known)
        raise found.wrong(problem, {"allowed": sorted(known)} | ({"nearest": close} if close else {}))

    return read


def names(read: Read[str], *, may_be_empty: bool = True) -> Read[tuple[str, ...]]:
    """A list of names, each once."""

    def read_all(found: Found) -> tuple[str, ...]:
        _check_list(found, MAX_ITEMS, may_be_empty=may_be_empty)
        return tuple(_each_once(found, read))

    return read_all


def named(read_key: Read[str], read: Read[T], limit: int = MAX_ITEMS) -> Read[dict[str, T]]:
    """A mapping whose keys are names."""

    def read_all(found: Found) -> dict[str, T]:
        if not isinstance(found.value, Mapping):
            raise found.wrong(Problem.MAPPING)
        if len(found.value) > limit:
            raise found.wrong(Problem.TOO_MANY, {"limit": limit})
        result = {}
        for key in found.value:
            inner = found.inside(key)
            spelled = found.findings.attempt(read_key, Found(key, inner.path, found.findings))
            value = found.findings.attempt(read, inner)
            if spelled is not None and value is not None:
                result[spelled] = value
        return result

    return read_all


def number(*, above: float, most: float) -> Read[float]:
    def read(found: Found) -> float:
        value = found.value
        if isinstance(value, bool) or not isinstance(value, int | float) or not above < value <= most:
            raise found.wrong(Problem.NUMBER, {"above": above, "most": most})
        return float(value)

    return read


def device_rings(found: Found) -> tuple[tuple[int, ...], ...]:
    """Chips that are linked: no chip is in two rings, and no ring is empty."""
    _check_list(found, MAX_RINGS, may_be_empty=False)
    rings = []
    seen: set[int] = set()
    for place in range(len(found.value)):
        inner = found.inside(place)
        _check_list(inner, MAX_CHIP + 1, may_be_empty=False)
        rings.append(tuple(_each_once(inner, whole_number(0, MAX_CHIP), seen)))
    return tuple(rings)


def _each_once(found: Found, read: Read[T], seen: set[T] | None = None) -> list[T]:
    seen = set() if seen is None else seen
    values = []
    for place in range(len(found.value)):
        value = found.findings.attempt(read, found.inside(place))
        if value is None:
            continue
        if value in seen:
            found.findings.note(found.inside(place).wrong(Problem.REPEATED).reason)
        seen.add(value)
        values.append(value)
    return values


def _check_list(found: Found, limit: int, *, may_be_empty: bool) -> None:
    value: Any = found.value
    if not isinstance(value, list):
        raise found.wrong(Problem.LIST)
    if not value and not may_be_empty:
        raise found.wrong(Problem.BLANK)
    if len(value) > limit:
        raise found.wrong(Problem.TOO_MANY, {"limit": limit})
