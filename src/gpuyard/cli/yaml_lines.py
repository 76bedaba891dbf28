"""Plain data as YAML, for people to edit. The client has no library for it, and needs none for data this simple."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from typing import Any

# Words and times need no quotes, as long as nobody could take them for something else.
_PLAIN = re.compile(r"[A-Za-z_][A-Za-z0-9_.-]*|(?:[0-9]+(?:\.[0-9]+)?[dhms])+", re.ASCII)
_TAKEN = frozenset({"true", "false", "null", "yes", "no", "on", "off", "y", "n"})


def as_yaml(data: Mapping[str, Any]) -> str:
    return "".join(f"{line}\n" for line in _lines(data, ""))


def _lines(data: Mapping[str, Any], indent: str) -> Iterator[str]:
    for key, value in data.items():
        if isinstance(value, Mapping) and value:
            yield f"{indent}{_flow(str(key))}:"
            yield from _lines(value, indent + "  ")
        else:
            yield f"{indent}{_flow(str(key))}: {_flow(value)}"


def _flow(value: Any) -> str:
    if isinstance(value, Mapping):
        return "{" + ", ".join(f"{_flow(str(key))}: {_flow(inner)}" for key, inner in value.items()) + "}"
    if isinstance(value, list | tuple):
        return "[" + ", ".join(map(_flow, value)) + "]"
    if isinstance(value, str) and _PLAIN.fullmatch(value) and value.lower() not in _TAKEN:
        return value
    return json.dumps(value, ensure_ascii=False)
