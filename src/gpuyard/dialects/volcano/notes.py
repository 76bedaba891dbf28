"""One file being read: where its values stand, what has no meaning here, and what is taken as something else."""

from __future__ import annotations

import difflib
from collections.abc import Collection, Mapping, Sequence
from typing import Any

from gpuyard.dialects.brought import Unused, refused
from gpuyard.dialects.native import Marks
from gpuyard.domain.errors import BadInput
from gpuyard.domain.problems import Problem
from gpuyard.domain.reasons import Code, Reason

Path = tuple[str | int, ...]
MOST_NOTES = 60
NEARLY = 0.8  # of the letters, by difflib's measure: `resouces` is, `volumeDevices` beside `volumeMounts` is not
NEGATIVE = "door.problem.negative"
NO_SUCH_QUEUE = "door.problem.queue"
_DENIED = 'admission webhook "validatejob.volcano.sh" denied the request: '
_WRONG_TYPE = "failed to unmarshal file, err:  error unmarshaling JSON: while decoding JSON: json: cannot unmarshal"

_WANTED = {
    "map[string]interface {}": Problem.MAPPING,
    "[]interface {}": Problem.LIST,
    "string": Problem.TEXT,
    "int32": Problem.WHOLE_NUMBER,
}


class Notes:
    """`has_lines`: what has not a single end of a line is no file, but was made of flags; nobody could look there."""

    def __init__(self, marks: Marks, warnings: tuple[Reason, ...] = (), *, has_lines: bool = True) -> None:
        self._marks = marks
        self._has_lines = has_lines
        self.unused: list[Unused] = []
        self.warnings = list(warnings)

    # --- what is told beside a job that is taken ---

    def leave_out(self, path: Path, why: str) -> None:
        if len(self.unused) < MOST_NOTES:
            self.unused.append(Unused(dotted(path), self.line(path), why))

    def leave_out_rest(self, data: Mapping[str, Any], path: Path, known: Collection[str], why: str) -> None:
        """Whatever stands there besides what is known, as far as it says anything. Raises BadInput for what is nearly
        a known key that is missing: left out, a job would run without what was asked for."""
        for key, value in data.items():
            if key not in known and value not in (None, {}, [], ""):
                self._require_no_slip(key, path, [one for one in known if one not in data])
                self.leave_out((*path, key), why)

    def _require_no_slip(self, key: str, path: Path, missing: Sequence[str]) -> None:
        near = difflib.get_close_matches(str(key)[:100], missing, n=1, cutoff=NEARLY)
        if near:
            words = f'unknown field "{dotted((*path, key))[:200]}", did you mean "{near[0]}"?'
            raise self.refuse((*path, key), words, "door.problem.unknown_field", nearest=near[0])

    def read_as(self, path: Path, what: str) -> None:
        line = self.line(path)
        facts = {"at": dotted(path)} | ({"line": line} if line else {}) | {"what": what}
        if len(self.warnings) < MOST_NOTES:
            self.warnings.append(Reason(Code.DOOR_READ_AS, facts))

    # --- refusals ---

    def refuse(self, path: Path, words: str, problem: str, **facts: Any) -> BadInput:
        """In their words, and by what is wrong, for it to be told in ours."""
        return refused(words, self.line(path), problem, **{"field": dotted(path)[:200], **facts})

    def deny(self, path: Path, words: str, problem: str, **facts: Any) -> BadInput:
        """As its admission hook would."""
        return self.refuse(path, _DENIED + words.strip(), problem, **facts)

    def wrong_type(self, path: Path, value: Any, wanted: str) -> BadInput:
        field = ".".join(str(part) for part in path if isinstance(part, str))
        words = f"{_WRONG_TYPE} {_type(value)} into Go struct field Job.{field} of type {wanted}"
        return self.refuse(path, words, _WANTED[wanted])

    # --- values of a kind; nothing is nothing, whatever was expected ---

    def line(self, path: Path) -> int | None:
        """Of the value, or of the nearest thing around it that stands somewhere."""
        if not self._has_lines:
            return None
        for length in range(len(path), 0, -1):
            mark = self._marks.keys.get(path[:length]) or self._marks.values.get(path[:length])
            if mark is not None:
                return mark.line
        return None

    def mapping(self, value: Any, path: Path) -> Mapping[str, Any]:
        if value is None:
            return {}
        if not isinstance(value, Mapping):
            raise self.wrong_type(path, value, "map[string]interface {}")
        return value

    def items(self, value: Any, path: Path) -> list[Any]:
        if value is None:
            return []
        if not isinstance(value, list):
            raise self.wrong_type(path, value, "[]interface {}")
        return value

    def text(self, value: Any, path: Path) -> str:
        """A number or a yes is taken as it is written: `name: 1`."""
        if value is None:
            return ""
        if isinstance(value, Mapping | list):
            raise self.wrong_type(path, value, "string")
        mark = self._marks.values.get(path)
        if not isinstance(value, str) and mark is not None and mark.written is not None:
            return mark.written
        return str(value).lower() if isinstance(value, bool) else str(value)

    def whole(self, value: Any, path: Path) -> int | None:
        """`"2"` is a number too: people quote amounts."""
        if value is None:
            return None
        if isinstance(value, str) and value.strip().lstrip("-").isascii() and value.strip().lstrip("-").isdecimal():
            value = int(value) if len(value) < 12 else value
        if isinstance(value, bool) or not isinstance(value, int) or abs(value) >= 1 << 31:
            raise self.wrong_type(path, value, "int32")
        return value


def no_such_queue(name: str) -> BadInput:
    """Also said of one that is there, to those who may not use it: they learn nothing of it."""
    words = f'{_DENIED}unable to find job queue: queues.scheduling.volcano.sh "{name[:80]}" not found;'
    return refused(words, problem=NO_SUCH_QUEUE, value=name[:80])


def dotted(path: Path) -> str:
    """`spec.tasks[0].template`: as their own messages have it."""
    written = ""
    for part in path:
        written += f"[{part}]" if isinstance(part, int) else f".{part}" if written else part
    return written


def _type(value: Any) -> str:
    if isinstance(value, bool):
        return "bool"
    if isinstance(value, int | float):
        return "number"
    if isinstance(value, str):
        return "string"
    return "array" if isinstance(value, list) else "object"
