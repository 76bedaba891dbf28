"""Their plugins: which there are, and what their arguments say. Read from the file, and again when a replica starts."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

KNOWN = ("env", "svc", "ssh", "pytorch", "tensorflow", "mpi")
WITHOUT_MEANING = ("hcclrank",)
BRINGS: Mapping[str, tuple[str, ...]] = {"mpi": ("svc", "ssh"), "pytorch": ("svc",), "tensorflow": ("svc",)}
KEYS_OPTION = "ssh-key-file-path"
OPTIONS: Mapping[str, tuple[str, ...]] = {
    "pytorch": ("master", "worker", "port"),
    "tensorflow": ("ps", "worker", "chief", "evaluator", "port"),
    "mpi": ("master", "worker"),
    "ssh": (KEYS_OPTION,),
}

Plugins = dict[str, list[str]]


def complete(given: Plugins) -> Plugins:
    """With those that others bring along."""
    plugins = dict(given)
    for name in given:
        for brought in BRINGS.get(name, ()):
            plugins.setdefault(brought, [])
    return plugins


def to_text(plugins: Plugins) -> str:
    return json.dumps(plugins, separators=(",", ":"), ensure_ascii=False)


def from_text(text: str) -> Plugins:
    """Empty for what makes no sense: it may have been written by hand."""
    try:
        data: Any = json.loads(text) if text else {}
    except (ValueError, RecursionError):
        return {}
    if not isinstance(data, dict):
        return {}
    return {
        str(name): [str(word) for word in words] if isinstance(words, list) else []
        for name, words in data.items()
        if name in KNOWN
    }


def option(args: Sequence[str], name: str, usual: str) -> str:
    """`--master=mpimaster`, `--master mpimaster` or `-master=...`, as Go's flags are written."""
    for index, word in enumerate(args):
        bare = word.lstrip("-")
        if word == bare:
            continue
        key, equals, value = bare.partition("=")
        if key == name and (value or equals):
            return value or usual
        if key == name and index + 1 < len(args):
            return args[index + 1]
    return usual


def port(args: Sequence[str], usual: int) -> int:
    written = option(args, "port", str(usual))
    is_number = len(written) <= 5 and written.isascii() and written.isdecimal()
    return int(written) if is_number and 0 < int(written) < 65536 else usual


@dataclass(frozen=True, slots=True)
class Task:
    """One task of a job, as the plugins see it."""

    name: str
    replicas: int
    role: str = ""
