"""Readers of the parts of a role that have an inside: command, environment, mounts, ports."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any, TypeVar

from gpuyard.dialects.native.marks import Found
from gpuyard.dialects.native.values import as_written, key_name, name, one_of, text, whole_number, yes_or_no
from gpuyard.domain.problems import Problem
from gpuyard.domain.workload import ENV_NAME_RULE, Mount, Port

MAX_COMMAND_BYTES = 64 * 1024
MAX_COMMAND_WORDS = 1000
MAX_ENV_BYTES = 64 * 1024
MAX_ENV_NAMES = 500
MAX_MOUNTS = 50
MAX_PORTS = 50
MAX_PATH_BYTES = 1024
VOLUMES = ("home", "share")
PORT_NAME_RULE = re.compile(r"[a-z][a-z0-9-]{0,30}")
PLACE_RULE = re.compile(r"(?:/[A-Za-z0-9._+@=-]{1,255})+")

RESERVED_PLACES = (
    *("/bin", "/boot", "/dev", "/etc", "/lib", "/lib32", "/lib64", "/libx32"),
    *("/proc", "/root", "/run", "/sbin", "/sys", "/tmp", "/usr", "/var"),  # noqa: S108 a name, never opened
)

Reader = Callable[[Found], Any]
T = TypeVar("T")


def read_keys(found: Found, readers: Mapping[str, Reader], required: tuple[str, ...] = ()) -> dict[str, Any]:
    """The known keys of a mapping, each read by its reader. What is wrong, unknown or missing is noted and left out."""
    if not isinstance(found.value, Mapping):
        raise found.wrong(Problem.MAPPING)
    for key in found.value:
        if key not in readers:
            found.findings.unknown_key((*found.path, str(key)), readers)
    for key in required:
        if key not in found.value:
            found.findings.missing_key(found.path, key)
    attempt = found.findings.attempt
    read = {key: attempt(readers[key], found.inside(key)) for key in found.value if key in readers}
    return {key: value for key, value in read.items() if value is not None}


def command(found: Found) -> tuple[str, ...]:
    """One text is run by the shell; a list is run as it is."""
    if isinstance(found.value, list):
        return _words(found)
    if found.value is not None and not isinstance(found.value, str):
        raise found.wrong(Problem.COMMAND)
    line = text(found, limit=MAX_COMMAND_BYTES, lines=True)
    if not line.strip():
        raise found.wrong(Problem.BLANK)
    return ("sh", "-c", line)


def _words(found: Found) -> tuple[str, ...]:
    if not found.value:
        raise found.wrong(Problem.COMMAND)
    if len(found.value) > MAX_COMMAND_WORDS:
        raise found.wrong(Problem.TOO_MANY, {"limit": MAX_COMMAND_WORDS})
    words = tuple(as_written(found.inside(index), limit=MAX_COMMAND_BYTES) for index in range(len(found.value)))
    if not words[0].strip():
        raise found.inside(0).wrong(Problem.BLANK)
    if sum(len(word.encode()) + 1 for word in words) > MAX_COMMAND_BYTES:
        raise found.wrong(Problem.TOO_LONG, {"limit": MAX_COMMAND_BYTES})
    return words


def named_texts(
    found: Found, name: Reader, value: Reader, *, most: int, most_bytes: int
) -> tuple[tuple[str, str], ...]:
    """Texts by name: at most so many, and so long together."""
    if not isinstance(found.value, Mapping):
        raise found.wrong(Problem.MAPPING)
    if len(found.value) > most:
        raise found.wrong(Problem.TOO_MANY, {"limit": most})
    pairs = []
    for inner in map(found.inside, found.value):
        key, text = found.findings.attempt(name, inner), found.findings.attempt(value, inner)
        if key is not None and text is not None:
            pairs.append((key, text))
    if sum(len(key) + len(text.encode()) + 2 for key, text in pairs) > most_bytes:
        raise found.wrong(Problem.TOO_LONG, {"limit": most_bytes})
    return tuple(pairs)


def env(found: Found) -> tuple[tuple[str, str], ...]:
    return named_texts(found, _env_name, _env_value, most=MAX_ENV_NAMES, most_bytes=MAX_ENV_BYTES)


_env_name = key_name(ENV_NAME_RULE, Problem.ENV_NAME)


def _env_value(found: Found) -> str:
    return as_written(found, limit=MAX_ENV_BYTES, secret=True)


def place(found: Found) -> str:
    """An absolute path in the job's own view, not over anything the system needs."""
    value = text(found, limit=MAX_PATH_BYTES)
    parts = [part for part in value.split("/") if part not in ("", ".")]
    path = "/" + "/".join(parts)
    if not value.startswith("/") or ".." in parts or not PLACE_RULE.fullmatch(path):
        raise found.wrong(Problem.MOUNT_PLACE)
    reserved = next((top for top in RESERVED_PLACES if path == top or path.startswith(top + "/")), None)
    if reserved is not None:
        raise found.wrong(Problem.MOUNT_RESERVED, {"place": reserved})
    return path


def relative_path(found: Found) -> str:
    """A path below a volume's own folder."""
    value = text(found, limit=MAX_PATH_BYTES)
    parts = [part for part in value.split("/") if part not in ("", ".")]
    too_long = any(len(part.encode()) > 255 for part in parts)
    if value.startswith(("/", "~")) or ".." in parts or too_long:
        raise found.wrong(Problem.RELATIVE_PATH)
    return "/".join(parts)


MOUNT_KEYS: Mapping[str, Reader] = {
    "volume": one_of(VOLUMES),
    "path": relative_path,
    "at": place,
    "read_only": yes_or_no,
}
PORT_KEYS: Mapping[str, Reader] = {
    "number": whole_number(1, 65535),
    "name": name(PORT_NAME_RULE, Problem.PORT_NAME),
}


def mounts(found: Found) -> tuple[Mount, ...]:
    read = _each(found, _mount, MAX_MOUNTS)
    _note_overlaps(found, [mount.at if mount else None for mount in read])
    return tuple(mount for mount in read if mount is not None)


def _note_overlaps(found: Found, places: list[str | None]) -> None:
    """Two mounts at one place, or one inside another, would hide each other's files."""
    for index, place in enumerate(places):
        around = next((other for other in places[:index] if place and other and _overlap(place, other)), None)
        if around is not None:
            where = found.inside(index).inside("at")
            wrong = Problem.REPEATED if around == place else Problem.MOUNT_INSIDE
            found.findings.note(where.wrong(wrong, {"place": around}).reason)


def _overlap(one: str, other: str) -> bool:
    return f"{one}/".startswith(f"{other}/") or f"{other}/".startswith(f"{one}/")


def _mount(found: Found) -> Mount | None:
    keys = read_keys(found, MOUNT_KEYS, required=("volume", "at"))
    return Mount(**keys) if {"volume", "at"} <= keys.keys() else None


def ports(found: Found) -> tuple[Port, ...]:
    read = _each(found, _port, MAX_PORTS)
    _note_repeated(found, [port.number if port else None for port in read], "number")
    _note_repeated(found, [port.name or None if port else None for port in read], "name")
    return tuple(port for port in read if port is not None)


def _port(found: Found) -> Port | None:
    """`{number: 6006, name: tb}`, or just `6006`."""
    if isinstance(found.value, int):
        return Port(PORT_KEYS["number"](found))
    keys = read_keys(found, PORT_KEYS, required=("number",))
    return Port(**keys) if "number" in keys else None


def _each(found: Found, read: Callable[[Found], T | None], limit: int) -> list[T | None]:
    """Every item of a list, None where something was wrong."""
    if not isinstance(found.value, list):
        raise found.wrong(Problem.LIST)
    if len(found.value) > limit:
        raise found.wrong(Problem.TOO_MANY, {"limit": limit})
    return [found.findings.attempt(read, found.inside(index)) for index in range(len(found.value))]


def _note_repeated(found: Found, values: list[Any], key: str) -> None:
    seen = set()
    for index, value in enumerate(values):
        if value is not None and value in seen:
            item = found.inside(index)
            where = item.inside(key) if isinstance(item.value, Mapping) else item
            found.findings.note(where.wrong(Problem.REPEATED).reason)
        seen.add(value)
