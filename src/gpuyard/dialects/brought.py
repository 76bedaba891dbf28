"""Job files of other systems: which there are, how each is read, and whose a file probably is.

A reader yields our own job file as plain data, so that there is one model: `native.read_job` makes the `Spec` of it.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from gpuyard.domain.errors import BadInput
from gpuyard.domain.problems import Problem
from gpuyard.domain.reasons import Code, Reason, because

NATIVE, DLC, VOLCANO = "native", "dlc", "volcano"
DIALECTS = (NATIVE, DLC, VOLCANO)


@dataclass(frozen=True, slots=True)
class Unused:
    """Something of the file that has no meaning here. `why` is a key of `words` (door.unused.*) or plain words."""

    at: str
    line: int | None = None
    why: str = ""

    def reason(self) -> Reason:
        facts = {"at": self.at, "line": self.line, "why": self.why}
        return Reason(Code.DOOR_UNUSED, {name: fact for name, fact in facts.items() if fact})


@dataclass(frozen=True, slots=True)
class Brought:
    """What a file of another system says, as our job file in plain data, and what was lost on the way."""

    job: dict[str, Any]
    unused: tuple[Unused, ...] = ()
    warnings: tuple[Reason, ...] = ()

    @property
    def notes(self) -> tuple[Reason, ...]:
        """In the order of the file; what stands nowhere in it comes first."""
        told = (*self.warnings, *(unused.reason() for unused in self.unused))
        return tuple(sorted(told, key=lambda reason: int(reason.facts.get("line") or 0)))


def refused(text: str, line: int | None = None, problem: str = "", **facts: Any) -> BadInput:
    """The file cannot be meant; `text` says so as that system would, word for word where its words are known.
    `problem` (of `Problem`, or door.problem.*) with its facts is the same for who asks with a program of ours."""
    told = {"line": line, "problem": str(problem), **facts}
    return BadInput(Reason(Code.DOOR_REFUSED, {"text": text} | {name: fact for name, fact in told.items() if fact}))


Reader = Callable[[str], Brought]


def _read_native(text: str) -> Brought:
    from gpuyard.dialects.native import parse_yaml

    return Brought(parse_yaml(text)[0])


def _read_dlc(text: str) -> Brought:
    from gpuyard.dialects.dlc.reading import read

    return read(text)


def _read_volcano(text: str) -> Brought:
    from gpuyard.dialects.volcano.reading import read

    return read(text)


# Each is imported when it is first needed: a client that only tells states never pays for reading.
_READERS: Mapping[str, Reader] = {NATIVE: _read_native, DLC: _read_dlc, VOLCANO: _read_volcano}


def read(dialect: str, text: str) -> Brought:
    """Raises BadInput with what is wrong, in that system's words."""
    if dialect not in _READERS:
        facts = {"problem": Problem.ONE_OF.value, "value": dialect[:80], "allowed": list(DIALECTS)}
        raise BadInput(because(Code.BAD_VALUE, at="dialect", **facts))
    return _READERS[dialect](text)


_PARAMS_LINE = re.compile(r"[a-z][a-z0-9_]*=")
_VOLCANO_KEY = re.compile(r"(?:jobname|tasks|apiVersion)\s*:")


def guess(text: str, filename: str = "") -> str:
    """Whose file it is, by what only that system writes. Ours when nothing speaks against it."""
    lines = [line for line in text.splitlines() if line.strip() and not line.lstrip().startswith("#")]
    if any(_VOLCANO_KEY.match(line) for line in lines):
        return VOLCANO
    if lines and _PARAMS_LINE.match(lines[0].strip()):
        return DLC
    is_params = filename.rsplit("/", 1)[-1].endswith((".params", ".cfg", ".conf", ".ini"))
    return DLC if is_params and not any(":" in line for line in lines) else NATIVE
