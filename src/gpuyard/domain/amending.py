"""A changed copy of a frozen value, for the places where thousands are made in one pass."""

from __future__ import annotations

from dataclasses import fields
from functools import lru_cache
from typing import Any, TypeVar

T = TypeVar("T")


def amended(value: T, **changes: Any) -> T:
    """`dataclasses.replace`, twice as fast: nothing is initialised or checked again. Only for values without a
    `__post_init__` that matters."""
    kind: Any = type(value)
    new: T = object.__new__(kind)
    assign = object.__setattr__
    for name in _names(kind):
        assign(new, name, changes[name] if name in changes else getattr(value, name))
    return new


@lru_cache(maxsize=64)
def _names(kind: type[Any]) -> tuple[str, ...]:
    return tuple(field.name for field in fields(kind))
