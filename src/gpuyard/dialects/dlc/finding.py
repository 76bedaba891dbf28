"""The values of a params file, each read by its rule; what is wrong is collected, with its line, in dlc's words."""

from __future__ import annotations

import difflib
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import TypeVar

from gpuyard.dialects.brought import Unused
from gpuyard.dialects.dlc.keys import ALL_KEYS, FALSE, MAY_BE_EMPTY, SPELLED_ELSEWHERE, TRUE
from gpuyard.dialects.dlc.params import Entry
from gpuyard.domain.errors import BadInput
from gpuyard.domain.reasons import Code, Reason
from gpuyard.domain.resources import MIB, parse_bytes, parse_cards, parse_cpu

MOST_TOLD = 50
LONGEST_SHOWN = 60
_WHOLE = re.compile(r"[0-9]{1,9}", re.ASCII)
_BARE = re.compile(r"[0-9]+(?:\.[0-9]+)?", re.ASCII)
_NOTHING = re.compile(r"0+(?:\.0+)?", re.ASCII)
T = TypeVar("T")


@dataclass(slots=True)
class Findings:
    """What was read so far: the values by key, what is wrong, what has no meaning here, what the owner should know."""

    entries: dict[str, Entry]
    problems: list[Reason] = field(default_factory=list)
    unused: list[Unused] = field(default_factory=list)
    warnings: list[Reason] = field(default_factory=list)

    def wrong(self, text: str, line: int | None = None) -> None:
        if len(self.problems) < MOST_TOLD:
            self.problems.append(Reason(Code.DOOR_REFUSED, {"text": text} | ({"line": line} if line else {})))

    def warn(self, key: str, what: str) -> None:
        line = self.entries[key].line_in_file
        facts = {"at": key} | ({"line": line} if line else {}) | {"what": what}
        self.warnings.append(Reason(Code.DOOR_READ_AS, facts))

    def ignore(self, key: str, why: str) -> None:
        self.unused.append(Unused(key, self.entries[key].line_in_file, why))

    def raise_if_any(self) -> None:
        if self.problems:
            raise BadInput(*self.problems)

    def text(self, key: str) -> str:
        """Empty when it is not there, or says nothing."""
        return self.entries[key].value if key in self.entries else ""

    def read(self, key: str, parse: Callable[[str], T], expected: str) -> T | None:
        """What the value means; None when there is none, or after noting what is wrong with it."""
        value = self.text(key)
        if not value:
            return None
        try:
            return parse(value)
        except ValueError:
            self.bad(key, expected)
            return None

    def bad(self, key: str, expected: str) -> None:
        entry = self.entries[key]
        self.wrong(f'invalid argument "{shown(entry.value)}" for "{key}": expected {expected}', entry.line_in_file)


def check_keys(found: Findings) -> None:
    """Keys that nobody knows, and keys whose value was never written. Looking for what was meant takes its time."""
    for key, entry in found.entries.items():
        if len(found.problems) >= MOST_TOLD:
            return
        if key not in ALL_KEYS:
            near = nearest(key, ALL_KEYS)
            meant = f', did you mean "{near}"?' if near else ""
            found.wrong(f'unknown key "{shown(key)}"{meant}', entry.line_in_file)
        elif not entry.value and key not in MAY_BE_EMPTY:
            found.wrong(f'key "{key}" has no value', entry.line_in_file)


def nearest(word: str, known: Sequence[str]) -> str:
    lowered = word[:100].lower().replace("-", "_")
    lowered = SPELLED_ELSEWHERE.get(lowered, lowered)
    if lowered in known:
        return lowered
    return next(iter(difflib.get_close_matches(lowered, known, n=1, cutoff=0.6)), "")


def shown(value: str) -> str:
    line = " ".join(value.split())
    return line if len(line) <= LONGEST_SHOWN else line[:LONGEST_SHOWN] + "..."


# --- what values mean ---------------------------------------------------------------------------------------------


def whole(least: int, most: int) -> Callable[[str], int]:
    def parse(value: str) -> int:
        if not _WHOLE.fullmatch(value) or not least <= int(value) <= most:
            raise ValueError("not in the range")
        return int(value)

    return parse


def truth(value: str) -> bool:
    if value.lower() not in TRUE + FALSE:
        raise ValueError("neither true nor false")
    return value.lower() in TRUE


def cpu(value: str) -> int | None:
    """Thousandths of a core. 0: it does not matter."""
    return None if _NOTHING.fullmatch(value) else parse_cpu(value)


def memory(value: str) -> int | None:
    """Bytes. A bare number counts GB; 0: it does not matter."""
    if _NOTHING.fullmatch(value):
        return None
    amount = parse_bytes(f"{value}G" if _BARE.fullmatch(value) else value)
    if amount < MIB:
        raise ValueError("less than anything needs")
    return amount


gpu = parse_cards
