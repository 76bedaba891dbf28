"""One value of a job file changed by its dotted path, as in `yard rerun --set roles.worker.cards=4`."""

from __future__ import annotations

import copy
from collections.abc import Iterable, Mapping
from typing import Any

from gpuyard.dialects.native.fields import JOB_FIELDS, ROLE_FIELDS, Field
from gpuyard.dialects.native.marks import nearest, showable
from gpuyard.dialects.native.parts import MOUNT_KEYS, PORT_KEYS
from gpuyard.dialects.native.places import WHERE_KEYS
from gpuyard.dialects.native.reading import ONLY_ROLE
from gpuyard.dialects.native.yaml_text import as_scalar
from gpuyard.domain.errors import BadInput
from gpuyard.domain.reasons import Code, because
from gpuyard.domain.workload import Cause

_LIST_KEYS: Mapping[str, Iterable[str]] = {"mounts": MOUNT_KEYS, "ports": PORT_KEYS}
_TEXT_IN_LISTS = frozenset({"volume", "path", "at", "name"})


def set_value(data: Mapping[str, Any], path: str, value: Any) -> dict[str, Any]:
    """A copy of the data with one value changed. Text is read as in a file; empty text removes the key.

    Only the path is checked here; `read_job` judges the value.
    """
    changed: dict[str, Any] = copy.deepcopy(dict(data))
    parts = path.split(".")
    holder, fields = changed, _fields(changed)
    if parts[0] == "roles":
        holder, parts = _into_role(changed, path, parts)
        fields = ROLE_FIELDS
    if parts[0] not in fields:
        raise _unknown(path, _known_paths(changed))
    if len(parts) == 1:
        _put(holder, parts[0], _meant(value, fields[parts[0]].is_text))
    else:
        _put_inside(holder, path, parts, value)
    return changed


def _fields(data: Mapping[str, Any]) -> Mapping[str, Field]:
    return JOB_FIELDS if "roles" in data else {**JOB_FIELDS, **ROLE_FIELDS}


def _into_role(data: dict[str, Any], path: str, parts: list[str]) -> tuple[dict[str, Any], list[str]]:
    """A file without `roles` has the one role `worker`, whose keys stand at the top."""
    roles = data.get("roles", {ONLY_ROLE: data})
    if len(parts) < 3 or not isinstance(roles, dict) or not isinstance(roles.get(parts[1]), dict):
        raise _unknown(path, _known_paths(data))
    return roles[parts[1]], parts[2:]


def _put_inside(holder: dict[str, Any], path: str, parts: list[str], value: Any) -> None:
    key, rest = parts[0], parts[1:]
    if key == "env":
        _put_env(holder, ".".join(rest), value)
    elif key == "retries" and len(rest) == 1 and rest[0] in {cause.value for cause in Cause}:
        present = holder.get("retries", {})
        causes = dict(present) if isinstance(present, Mapping) else {Cause.EXIT.value: present}
        holder["retries"] = causes | {rest[0]: _meant(value, is_text=False)}
    elif key == "where" and rest[0] in WHERE_KEYS:
        _put_where(holder, path, rest, value)
    elif key in _LIST_KEYS and len(rest) == 2:
        item = _item(holder.get(key), rest[0])
        if item is None or rest[1] not in _LIST_KEYS[key]:
            raise _unknown(path, [f"{key}.{rest[0]}.{inner}" for inner in _LIST_KEYS[key]])
        _put(item, rest[1], _meant(value, rest[1] in _TEXT_IN_LISTS))
    else:
        raise _unknown(path, _known_paths(holder))


def _put_env(holder: dict[str, Any], name: str, value: Any) -> None:
    """The names of the environment are free, and an empty value is a value."""
    present = holder.get("env", {})
    holder["env"] = (dict(present) if isinstance(present, Mapping) else {}) | {name: value}


def _put_where(holder: dict[str, Any], path: str, rest: list[str], value: Any) -> None:
    """`where.nodes=a,b`, `where.labels.zone=north`. The names of labels are free and may have dots."""
    present = holder.get("where", {})
    where = dict(present) if isinstance(present, Mapping) else {}
    if len(rest) == 1:
        _put(where, rest[0], _meant(value, is_text=True))
    elif rest[0] == "labels":
        labels = where.get("labels", {})
        where["labels"] = dict(labels) if isinstance(labels, Mapping) else {}
        _put(where["labels"], ".".join(rest[1:]), _meant(value, is_text=True))
    else:
        raise _unknown(path, ["where.nodes"])
    holder["where"] = where


def _item(items: Any, index: str) -> dict[str, Any] | None:
    if not isinstance(items, list) or not index.isdecimal() or len(index) > 4 or int(index) >= len(items):
        return None
    item = items[int(index)]
    return item if isinstance(item, dict) else None


def _put(holder: dict[str, Any], key: str, value: Any) -> None:
    if value is None:
        holder.pop(key, None)
    else:
        holder[key] = value


def _meant(value: Any, is_text: bool) -> Any:
    if not isinstance(value, str):
        return value
    if not value:
        return None
    return value if is_text else as_scalar(value)


def _known_paths(data: Mapping[str, Any]) -> list[str]:
    roles = data.get("roles")
    if not isinstance(roles, Mapping):
        return [*JOB_FIELDS, *ROLE_FIELDS]
    return [*JOB_FIELDS, *(f"roles.{role}.{key}" for role in roles for key in ROLE_FIELDS)]


def _unknown(path: str, known: list[str]) -> BadInput:
    first, last = path.split(".", 1)[0], path.rsplit(".", 1)[-1]
    close = nearest(path, known) or _ending(last, known) or _ending(nearest(last, ROLE_FIELDS), known)
    close = close or (first if first in known else "")
    facts = {"key": showable(path)} | ({"nearest": close} if close else {})
    return BadInput(because(Code.UNKNOWN_KEY, **facts))


def _ending(key: str, known: list[str]) -> str:
    return next((path for path in known if key and path.rsplit(".", 1)[-1] == key), "")
