"""What the framework found wrong with a request, in our words: its own sentences and rules never reach anyone."""

from __future__ import annotations

import difflib
import re
from collections.abc import Mapping
from typing import Any

from gpuyard.api import models
from gpuyard.domain.problems import Problem
from gpuyard.domain.reasons import Code, Reason, because

NUMBER = "expected a number"
AMOUNT = "expected an amount like 8, 0.5 or 16G"
CURSOR = "not a cursor of a list"
EVENT_ID = "expected the id of an event"
UNUSABLE = "it cannot be used here"
UNREADABLE = "it cannot be read"

_PROBLEMS: Mapping[str, str] = {
    "string_type": Problem.TEXT,
    "bool_type": Problem.BOOLEAN,
    "bool_parsing": Problem.BOOLEAN,
    "int_type": Problem.WHOLE_NUMBER,
    "int_parsing": Problem.WHOLE_NUMBER,
    "int_parsing_size": Problem.WHOLE_NUMBER,
    "int_from_float": Problem.WHOLE_NUMBER,
    "float_type": NUMBER,
    "float_parsing": NUMBER,
    "finite_number": NUMBER,
    "dict_type": Problem.MAPPING,
    "model_type": Problem.MAPPING,
    "model_attributes_type": Problem.MAPPING,
    "list_type": Problem.LIST,
    "enum": Problem.ONE_OF,
    "literal_error": Problem.ONE_OF,
    "string_too_long": Problem.TOO_LONG,
    "too_long": Problem.TOO_MANY,
    "string_too_short": Problem.BLANK,
    "too_short": Problem.BLANK,
    "json_invalid": Problem.JSON_SYNTAX,
    models.NO_AMOUNT: AMOUNT,
}
_PATTERNS: Mapping[str, str] = {
    models.PERSON_PATTERN: Problem.PERSON_NAME,
    models.JOB_NAME_PATTERN: Problem.JOB_NAME,
    models.DIGEST_PATTERN: Problem.DIGEST,
    models.LABEL_PATTERN: Problem.CONTROL_CHARACTER,
    models.CURSOR_PATTERN: CURSOR,
    models.COUNT_PATTERN: CURSOR,
    models.EVENT_ID_PATTERN: EVENT_ID,
}
_BOUNDS = frozenset({"greater_than", "greater_than_equal", "less_than", "less_than_equal"})
_FACTS = {"gt": "above", "ge": "least", "lt": "below", "le": "most", "max_length": "limit"}
_SECRET = frozenset({"password", "old", "new"})
_PLACES = frozenset({"body", "query", "path", "header", "[key]"})
# What people call things that have another name here; by their letters alone `gpu` would look like `cpu`.
_MEANT = {"gpu": "nvidia", "gpus": "nvidia", "cuda": "nvidia", "npu": "ascend", "npus": "ascend", "ram": "memory"}


def in_our_words(error: Mapping[str, Any]) -> Reason:
    where = [str(part) for part in error["loc"] if part not in _PLACES]
    at, kind, context = ".".join(where)[:200], error["type"], error.get("ctx", {})
    if kind == "missing":
        return because(Code.MISSING_KEY, at="", key=at or "body")
    if kind == "extra_forbidden":
        return because(Code.UNKNOWN_KEY, at="", key=at[:80], nearest="")
    problem = _problem(kind, context)
    facts: dict[str, Any] = {"problem": str(problem)}
    if problem == Problem.ONE_OF:
        facts |= _choice(error.get("input"), str(context.get("expected", "")))
    facts |= {ours: context[theirs] for theirs, ours in _FACTS.items() if theirs in context}
    if kind == "json_invalid":
        return because(Code.BAD_VALUE, at="body", value="", detail=str(context.get("error", "")), **facts)
    shown = "" if where and where[-1] in _SECRET else _shown(error.get("input"))
    return because(Code.BAD_VALUE, at=at, value=shown, **facts)


def _problem(kind: str, context: Mapping[str, Any]) -> str:
    if kind in _BOUNDS:
        whole = any(isinstance(context.get(bound), int) for bound in ("gt", "ge", "lt", "le"))
        return Problem.WHOLE_NUMBER if whole else NUMBER
    if kind == "string_pattern_mismatch":
        return _PATTERNS.get(context.get("pattern", ""), UNUSABLE)
    return _PROBLEMS.get(kind, UNUSABLE)


def _choice(given: Any, expected: str) -> dict[str, Any]:
    allowed, written = re.findall(r"'([^']*)'", expected), str(given)[:80]
    meant = _MEANT.get(written.lower(), "")
    near = [meant] if meant in allowed else difflib.get_close_matches(written, allowed, 1)
    return {"allowed": allowed, "nearest": near[0] if near else ""}


def _shown(value: Any) -> str:
    """Short: only plain scalars are repeated to the sender."""
    return str(value)[:80] if isinstance(value, str | int | float | bool) else ""
