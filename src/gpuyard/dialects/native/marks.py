"""Where each value of a job file stands, and the problems found there."""

from __future__ import annotations

import difflib
import re
import unicodedata
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, TypeVar

from gpuyard.domain.errors import BadInput
from gpuyard.domain.problems import Problem
from gpuyard.domain.reasons import Code, Reason

MOST_TOLD = 50
LONGEST_SHOWN = 80
FEW_KEYS = 5

Path = tuple[str | int, ...]
T = TypeVar("T")

# What people write who come from other systems.
OTHER_NAMES: Mapping[str, str] = {
    "args": "command",
    "cmd": "command",
    "script": "command",
    "entrypoint": "command",
    "run": "command",
    "gpu": "cards",
    "gpus": "cards",
    "npu": "cards",
    "npus": "cards",
    "num_gpus": "cards",
    "mem": "memory",
    "ram": "memory",
    "cpus": "cpu",
    "shm_size": "shm",
    "shared_memory": "shm",
    "environment": "env",
    "volumes": "mounts",
    "timeout": "max_time",
    "time_limit": "max_time",
    "nodes": "replicas",
    "workers": "replicas",
    "project": "group",
    "team": "group",
    "queue": "group",
    "task_name": "name",
    "job_name": "name",
    "retry": "retries",
    "device_type": "device",
    "type": "device",
    "model": "models",
    "gpu_model": "models",
    "gpu_type": "models",
    "card_model": "models",
    "node": "nodes",
    "hosts": "nodes",
    "nodeselector": "where",
    "node_selector": "where",
    "constraints": "where",
    "placement": "together",
    "checkpoint_dir": "checkpoint",
    "mountpath": "at",
    "target": "at",
    "source": "path",
    "readonly": "read_only",
    "port": "number",
}


@dataclass(frozen=True, slots=True)
class Mark:
    """A place in a text, counted from 1, and what is written there (None for lists and mappings)."""

    line: int
    column: int
    written: str | None = None


@dataclass(frozen=True, slots=True)
class Marks:
    """The place of every key and value. Empty when the data did not come from a text with lines."""

    keys: Mapping[Path, Mark] = field(default_factory=dict)
    values: Mapping[Path, Mark] = field(default_factory=dict)


class Wrong(Exception):
    """A reader cannot take a value. Caught by `Findings.attempt`, so that reading goes on with the next one."""

    def __init__(self, reason: Reason) -> None:
        super().__init__(reason.code.value)
        self.reason = reason


class Findings:
    """Collects every problem, so that a person corrects a file once and not ten times."""

    def __init__(self, marks: Marks | None) -> None:
        self.marks = marks or Marks()
        self.problems: list[Reason] = []

    def note(self, reason: Reason) -> None:
        if len(self.problems) < MOST_TOLD:
            self.problems.append(reason)

    def attempt(self, read: Callable[[Found], T], found: Found) -> T | None:
        """What the reader makes of the value; None after noting what is wrong with it."""
        try:
            return read(found)
        except Wrong as wrong:
            self.note(wrong.reason)
            return None

    def unknown_key(self, path: Path, valid: Iterable[str]) -> None:
        key, known = str(path[-1]), list(valid)
        close = nearest(key, known)
        facts: dict[str, Any] = {"key": showable(key)}
        if close:
            facts["nearest"] = close
        elif len(known) <= FEW_KEYS:
            facts["known"] = known
        self.note(_reason(Code.UNKNOWN_KEY, path[:-1], self.marks.keys.get(path), facts))

    def missing_key(self, path: Path, key: str) -> None:
        self.note(_reason(Code.MISSING_KEY, path, self.marks.values.get(path), {"key": key}))

    def raise_if_any(self) -> None:
        if self.problems:
            raise BadInput(*self.problems)


@dataclass(frozen=True, slots=True)
class Found:
    """One value, where it stands, and where to report what is wrong with it."""

    value: Any
    path: Path
    findings: Findings

    def wrong(self, problem: Problem, facts: Mapping[str, Any] | None = None, *, show: bool = True) -> Wrong:
        """What is wrong with this value. Values that may be secret are not shown."""
        shown = self._shown(problem) if show else ""
        told = {"problem": problem.value, **({"value": shown} if shown else {}), **(facts or {})}
        return Wrong(_reason(Code.BAD_VALUE, self.path, self.findings.marks.values.get(self.path), told))

    def wrong_key(self, problem: Problem, facts: Mapping[str, Any]) -> Wrong:
        """What is wrong with the name of this value."""
        told = {"problem": problem.value, "value": showable(self.path[-1]), **facts}
        return Wrong(_reason(Code.BAD_VALUE, self.path[:-1], self.findings.marks.keys.get(self.path), told))

    def _shown(self, problem: Problem) -> str:
        """As written. Quotes are kept where they are what is wrong: `"4"` is no number."""
        if isinstance(self.value, str) and problem in _QUOTES_MATTER and _LOOKS_UNQUOTED.fullmatch(self.value):
            return f'"{self.value}"'
        return showable(self.written if isinstance(self.value, int | float) and self.written else self.value)

    def inside(self, key: str | int) -> Found:
        return Found(self.value[key], (*self.path, key), self.findings)

    @property
    def written(self) -> str | None:
        """The value as it stands in the text, before anyone made a number of it."""
        mark = self.findings.marks.values.get(self.path)
        return mark.written if mark else None


_QUOTES_MATTER = frozenset({Problem.WHOLE_NUMBER, Problem.BOOLEAN, Problem.PRIORITY})
_LOOKS_UNQUOTED = re.compile(r"-?[0-9]{1,20}|true|false", re.IGNORECASE)


def _reason(code: Code, path: Path, mark: Mark | None, facts: Mapping[str, Any]) -> Reason:
    place: dict[str, Any] = {"at": dotted(path)} if path else {}
    if mark is not None:
        place |= {"line": mark.line, "column": mark.column}
    return Reason(code, {**place, **facts})


def dotted(path: Path) -> str:
    """`roles.worker.mounts.0.at`: the same spelling that `set_value` takes."""
    return ".".join(showable(part) for part in path)


def nearest(key: str, valid: Iterable[str]) -> str:
    """The valid key that was probably meant; empty when none comes close."""
    known = list(valid)
    lowered = key[:100].strip().lower().replace("-", "_")
    if lowered in known:
        return lowered
    if OTHER_NAMES.get(lowered) in known:
        return OTHER_NAMES[lowered]
    return next(iter(difflib.get_close_matches(lowered, known, n=1, cutoff=0.6)), "")


def showable(value: Any) -> str:
    """A short text of a simple value, fit for JSON; empty for lists and mappings."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int):
        value = str(value) if abs(value) < 10**400 else "…"
    if isinstance(value, float):
        return repr(value)
    if not isinstance(value, str):
        return ""
    text = value[:LONGEST_SHOWN].encode("utf-8", "replace").decode()
    return text + "…" if len(value) > LONGEST_SHOWN else text


def describe(character: str) -> str:
    """A character that cannot be shown, or that looks like another one."""
    return f"U+{ord(character):04X} {unicodedata.name(character, '')}".strip()
