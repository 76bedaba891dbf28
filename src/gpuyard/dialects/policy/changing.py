"""One value of a policy changed by its dotted path, as in `yard policy set order.half_life=3d`; and what differs."""

from __future__ import annotations

import copy
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from gpuyard.dialects.native.marks import nearest, showable
from gpuyard.dialects.native.yaml_text import as_scalar, parse_yaml
from gpuyard.dialects.policy.writing import write_policy
from gpuyard.domain.errors import BadInput
from gpuyard.domain.policy import Policy
from gpuyard.domain.reasons import Code, because

_NAMED = {"priorities", "pools", "groups", "kinds", "rings"}  # the admin chooses the keys inside
_LISTS = {"order.people", "servers"}
_POOL_KEYS = ("models", "nodes", "labels")


def set_value(data: Mapping[str, Any], path: str, value: Any) -> dict[str, Any]:
    """A copy of the document with one value changed. Text is read as in a file; empty text brings the default back, or
    removes what has none.

    Where a list is wanted, `a,b` will do. Only the path is checked here; `read_policy` judges the value.
    """
    changed: dict[str, Any] = copy.deepcopy(dict(data))
    parts = _split(path)
    meant = _meant(value, _wants_list(parts))
    holder = changed
    for part in parts[:-1]:
        inner = holder.get(part)
        holder[part] = inner = dict(inner) if isinstance(inner, Mapping) else {}
        holder = inner
    if meant is None:
        meant = _default(parts)
    if meant is None:
        holder.pop(parts[-1], None)
    else:
        holder[parts[-1]] = meant
    return changed


def _default(parts: list[str]) -> Any:
    """What stands here when nobody says anything; None when nothing does."""
    value: Any = write_policy(Policy())
    for part in parts:
        value = value.get(part) if isinstance(value, Mapping) else None
    return value


def _split(path: str) -> list[str]:
    """The path in its parts, once it is clear that it leads somewhere. The names of labels may have dots."""
    document = write_policy(Policy())
    parts = path.split(".")
    top, inside = parts[0], document.get(parts[0])
    if top == "pools" and len(parts) > 3 and parts[2] == "labels":
        parts = [*parts[:3], ".".join(parts[3:])]
    if top not in document or not all(parts) or not _leads_somewhere(parts, inside):
        raise _unknown(path, _known_paths(document))
    return parts


def _leads_somewhere(parts: list[str], inside: Any) -> bool:
    if len(parts) == 1:
        return True
    if parts[0] == "pools":
        return len(parts) == 2 or (parts[2] in _POOL_KEYS and (len(parts) == 3 or parts[2] == "labels"))
    if parts[0] in _NAMED:
        return len(parts) == 2
    return len(parts) == 2 and isinstance(inside, Mapping) and parts[1] in inside


def _wants_list(parts: list[str]) -> bool:
    if ".".join(parts) in _LISTS:
        return True
    if parts[0] == "pools":
        return len(parts) == 3 and parts[2] != "labels"
    return parts[0] in ("groups", "kinds") and len(parts) == 2


def _meant(value: Any, wants_list: bool) -> Any:
    if not isinstance(value, str):
        return value
    text = value.strip()
    if not text:
        return None
    if text[0] in "[{":
        return parse_yaml(f"value: {text}")[0]["value"]
    if wants_list:
        return [word.strip() for word in text.split(",") if word.strip()]
    return as_scalar(text)


def _known_paths(document: Mapping[str, Any]) -> list[str]:
    nested = [f"{top}.{key}" for top in ("ceilings", "order", "preempt", "defragment") for key in document[top]]
    return [*nested, *document]


def _unknown(path: str, known: Iterable[str]) -> BadInput:
    paths = list(known)
    last = path.rsplit(".", 1)[-1]
    same_end = next((one for one in paths if one.rsplit(".", 1)[-1] == last), "")
    close = same_end or nearest(path, paths) or nearest(last, [one.rsplit(".", 1)[-1] for one in paths])
    return BadInput(because(Code.UNKNOWN_KEY, key=showable(path), **({"nearest": close} if close else {})))


def differences(before: Policy, after: Policy) -> dict[str, tuple[Any, Any]]:
    """Dotted path -> (value before, value after), None where there was or is none; in the order of the document."""
    old, new = dict(_leaves(write_policy(before))), dict(_leaves(write_policy(after)))
    paths = dict.fromkeys([*old, *new])
    return {path: (old.get(path), new.get(path)) for path in paths if old.get(path) != new.get(path)}


def _leaves(data: Mapping[str, Any], path: str = "") -> Iterator[tuple[str, Any]]:
    for key, value in data.items():
        here = f"{path}.{key}" if path else key
        if isinstance(value, Mapping):
            yield from _leaves(value, here)
        else:
            yield here, value
