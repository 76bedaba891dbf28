"""Params files: one `key=value` per line, the value as it stands, with its `=`, its quotes and its spaces.

Blank lines and lines that begin with `#` say nothing. A line that begins with a TAB goes on with the value above it, so
that a command of several lines can be written. Indentation that all lines share does not count.
"""

from __future__ import annotations

import posixpath
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

MAX_BYTES = 64 * 1024
GOES_ON = "\t"
FLAGS = "# The rest was given as flags, which stand in no line of a file."
VERBATIM = frozenset({"command"})  # quotes around the whole of it may be meant for the shell
_KEY = re.compile(r"[A-Za-z_][A-Za-z0-9_-]{0,63}\Z")
_QUOTED = re.compile(r"([\"'])([^\"']*)\1\Z")


@dataclass(frozen=True, slots=True)
class Entry:
    key: str
    value: str
    line: int
    is_flag: bool = False

    @property
    def line_in_file(self) -> int | None:
        """As people can find it; a flag is known by its name alone."""
        return None if self.is_flag else self.line


@dataclass(frozen=True, slots=True)
class Mistake:
    text: str
    line: int


def split(text: str) -> tuple[list[Entry], list[Mistake]]:
    """What the lines say, and what of them says nothing that could be meant."""
    entries: list[Entry] = []
    mistakes: list[Mistake] = []
    are_flags = False
    for number, line in enumerate(_lines(text), 1):
        if line.startswith(GOES_ON) and entries:
            entries[-1] = replace(entries[-1], value=f"{entries[-1].value}\n{line[1:]}")
            continue
        written = line.strip()
        are_flags = are_flags or written == FLAGS
        if not written or written.startswith("#"):
            continue
        key, equals, value = line.partition("=")
        if not equals or not _KEY.match(key.strip()):
            mistakes.append(Mistake(f'expected key=value, found "{_shown(written)}"', number))
            continue
        entries.append(Entry(key.strip(), value, number, are_flags))
    whole = [replace(entry, value=_value(entry)) for entry in entries]
    return whole, [*mistakes, *_twice(whole)]


def _lines(text: str) -> list[str]:
    """Without the indentation that all lines share, as in a file written from within a script."""
    lines = text.removeprefix("\ufeff").replace("\r\n", "\n").split("\n")
    indents = [line[: len(line) - len(line.lstrip(" \t"))] for line in lines if line.strip()]
    shared = len(posixpath.commonprefix(indents)) if indents else 0
    return [line[shared:] if line.strip() else line for line in lines]


def _value(entry: Entry) -> str:
    value = entry.value.strip()
    match = _QUOTED.match(value)
    return match.group(2) if match and entry.key not in VERBATIM else value


def _twice(entries: Sequence[Entry]) -> list[Mistake]:
    first: dict[str, int] = {}
    found = []
    for entry in entries:
        if entry.key in first:
            found.append(Mistake(f'key "{entry.key}" is given twice, first in line {first[entry.key]}', entry.line))
        first.setdefault(entry.key, entry.line)
    return found


def _shown(written: str) -> str:
    return written if len(written) <= 40 else written[:40] + "..."


def join(pairs: Iterable[tuple[str, str]]) -> str:
    """Lines that `split` reads as the same pairs. Spaces at the ends of a value are lost."""
    return "".join(f"{key}={value.strip().replace(chr(10), chr(10) + GOES_ON)}\n" for key, value in pairs)


def with_flags(text: str, flags: Iterable[tuple[str, str]]) -> str:
    """A file and the flags beside it: what the file says wins. The file's lines keep their numbers."""
    said = {entry.key for entry in split(text)[0]}
    more = join((key, value) for key, value in flags if key not in said)
    file = "\n".join(_lines(text))
    if not more:
        return file
    return file + ("\n" if file and not file.endswith("\n") else "") + f"{FLAGS}\n{more}"
