"""JSON text to plain data, with the limits of the YAML reader: size, depth, number of values, no duplicate keys."""

from __future__ import annotations

import json
import math
from typing import Any, NoReturn

from gpuyard.dialects.native.marks import showable
from gpuyard.dialects.native.yaml_text import MAX_DEPTH, MAX_NODES, check_size
from gpuyard.domain.errors import BadInput
from gpuyard.domain.problems import Problem
from gpuyard.domain.reasons import Code, because

_MOST_DIGITS = 400


def parse_json(text: str | bytes) -> dict[str, Any]:
    """The data of a JSON job file. Raises BadInput."""
    check_size(text)
    try:
        data = json.loads(
            text.decode("utf-8-sig") if isinstance(text, bytes) else text,
            object_pairs_hook=_without_duplicates,
            parse_int=_int,
            parse_constant=_not_a_number,
        )
    except UnicodeDecodeError as error:
        raise _refusal(Problem.NOT_UTF8) from error
    except json.JSONDecodeError as error:
        raise _refusal(Problem.JSON_SYNTAX, line=error.lineno, column=error.colno, detail=error.msg) from error
    except RecursionError as error:
        raise _refusal(Problem.TOO_DEEP, limit=MAX_DEPTH) from error
    _check_bounds(data)
    if not isinstance(data, dict):
        raise _refusal(Problem.TOP_NOT_MAPPING)
    return data


def _without_duplicates(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    data = dict(pairs)
    if len(data) != len(pairs):
        seen: set[str] = set()
        for key, _ in pairs:
            if key in seen:
                raise _refusal(Problem.DUPLICATE_KEY, key=showable(key))
            seen.add(key)
    return data


def _int(digits: str) -> int | float:
    return int(digits) if len(digits) <= _MOST_DIGITS else math.inf


def _not_a_number(name: str) -> NoReturn:
    raise _refusal(Problem.JSON_NUMBER, detail=name)


def _check_bounds(data: Any) -> None:
    waiting, count = [(data, 1)], 0
    while waiting:
        value, depth = waiting.pop()
        count += 1
        if count > MAX_NODES:
            raise _refusal(Problem.TOO_MANY_NODES, limit=MAX_NODES)
        if depth > MAX_DEPTH:
            raise _refusal(Problem.TOO_DEEP, limit=MAX_DEPTH)
        if isinstance(value, dict):
            count += len(value)
            waiting.extend((inner, depth + 1) for inner in value.values())
        elif isinstance(value, list):
            waiting.extend((inner, depth + 1) for inner in value)


def _refusal(problem: Problem, **facts: Any) -> BadInput:
    return BadInput(because(Code.BAD_YAML, problem=problem.value, **facts))
