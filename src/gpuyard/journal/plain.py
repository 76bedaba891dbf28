"""Values of the domain as plain JSON and back, found out from their types, so that a new field is journalled by itself.

Only what is not at its default is written. What a decision never looks at, and what may hold secrets (commands,
variables, mounts, the words of other systems), is named in `LEFT_OUT` and comes back as its default, or as nothing.
"""

from __future__ import annotations

import types
from collections.abc import Callable, Mapping
from dataclasses import MISSING, Field, fields, is_dataclass
from enum import Enum
from functools import lru_cache
from typing import Any, Union, get_args, get_origin, get_type_hints

from gpuyard.domain.reasons import Reason
from gpuyard.domain.workload import RoleSpec, Spec

LEFT_OUT: Mapping[type, frozenset[str]] = {
    RoleSpec: frozenset({"command", "env", "mounts", "ports"}),
    Spec: frozenset({"workdir", "checkpoint", "idle_seconds", "origin", "retries"}),
}
_NOTHING: Mapping[tuple[type, str], Any] = {(RoleSpec, "command"): ()}  # for what has no default of its own
_AS_IT_IS = (str, int, float, bool, type(None))

Decoder = Callable[[Any], Any]


# --- to plain -----------------------------------------------------------------------------------------------------


def to_plain(value: Any) -> Any:
    kind: Any = type(value)
    if kind in _AS_IT_IS:
        return value
    if isinstance(value, Enum):
        return value.value
    if isinstance(value, tuple | list):
        return [to_plain(item) for item in value]
    if isinstance(value, Mapping):
        return _mapping_to_plain(value)
    if isinstance(value, Reason):
        return value.to_json()
    found = {}
    for name, default in _written(kind):
        item = getattr(value, name)
        if item is not default and item != default:
            found[name] = to_plain(item)
    return found


def _mapping_to_plain(value: Mapping[Any, Any]) -> Any:
    """With keys that are text as an object, otherwise as pairs. The order is kept."""
    if all(isinstance(key, str) for key in value):
        return {str(key): to_plain(item) for key, item in value.items()}
    return [[to_plain(key), to_plain(item)] for key, item in value.items()]


@lru_cache(maxsize=64)
def _written(kind: type) -> tuple[tuple[str, Any], ...]:
    """The fields that are written, with their defaults."""
    if not is_dataclass(kind):
        raise TypeError(f"{kind.__name__} cannot be journalled")
    left_out = LEFT_OUT.get(kind, frozenset())
    return tuple((field.name, _default(field)) for field in fields(kind) if field.name not in left_out)


def _default(field: Field[Any]) -> Any:
    if field.default_factory is not MISSING:
        return field.default_factory()
    return field.default  # MISSING is like nothing else


# --- and back -----------------------------------------------------------------------------------------------------


def from_plain(kind: Any, data: Any) -> Any:
    return decoder(kind)(data)


@lru_cache(maxsize=256)
def decoder(kind: Any) -> Decoder:
    """How values of a type are read. Found out once for each."""
    origin, inner = get_origin(kind), get_args(kind)
    if kind in _AS_IT_IS or kind is Any:
        return lambda data: data
    if origin in (Union, types.UnionType):
        others = [decoder(one) for one in inner if one is not type(None)]
        return lambda data: None if data is None else others[0](data)
    if origin is tuple:
        return _tuple_decoder(inner)
    if origin is not None and issubclass(origin, Mapping):
        return _mapping_decoder(*inner)
    if origin is frozenset:
        each = decoder(inner[0])
        return lambda data: frozenset(map(each, data))
    if issubclass(kind, Enum):
        return lambda data: kind(data)
    if kind is Reason:
        return Reason.from_json
    if issubclass(kind, tuple):
        return _record_decoder(kind)
    return _dataclass_decoder(kind)


def _tuple_decoder(inner: tuple[Any, ...]) -> Decoder:
    if len(inner) == 2 and inner[1] is Ellipsis:
        each = decoder(inner[0])
        return lambda data: tuple(map(each, data))
    parts = [decoder(one) for one in inner]
    return lambda data: tuple(part(item) for part, item in zip(parts, data, strict=True))


def _mapping_decoder(key: Any, value: Any) -> Decoder:
    read_key, read_value = decoder(key), decoder(value)

    def read(data: Any) -> dict[Any, Any]:
        pairs = data.items() if isinstance(data, dict) else data
        return {read_key(one): read_value(item) for one, item in pairs}

    return read


def _record_decoder(kind: Any) -> Decoder:
    parts = [decoder(hint) for hint in get_type_hints(kind).values()]
    return lambda data: kind(*(part(item) for part, item in zip(parts, data, strict=True)))


def _dataclass_decoder(kind: Any) -> Decoder:
    hints = get_type_hints(kind)
    readers = {field.name: decoder(hints[field.name]) for field in fields(kind) if field.name in dict(_written(kind))}
    nothing = {name: value for (owner, name), value in _NOTHING.items() if owner is kind}

    def read(data: Any) -> Any:
        return kind(**nothing, **{name: readers[name](item) for name, item in data.items()})

    return read
