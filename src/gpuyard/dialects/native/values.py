"""Readers of single values: each returns the domain's form of what was found, or raises what is wrong with it."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeVar

from gpuyard.dialects.native.marks import Found, describe, nearest
from gpuyard.domain.problems import Problem
from gpuyard.domain.resources import MAX_SECONDS, MIB, parse_bytes, parse_cards, parse_cpu, parse_duration

LONGEST_TEXT = 4096
LEAST_MEMORY = MIB
LARGEST_NUMBER = 10**18

# Marks and overrides of writing direction: they make a text read differently from what it does.
_TURNS_TEXT = frozenset("\u200e\u200f\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069")
_NO_TIME = re.compile(r"0+(?:\.0+)?[smhd]?")

T = TypeVar("T")


def text(found: Found, *, limit: int = LONGEST_TEXT, lines: bool = False, secret: bool = False) -> str:
    """Text without control characters. `lines` allows line breaks and tabs, as commands and certificates need them."""
    value = _present(found)
    if not isinstance(value, str):
        raise found.wrong(Problem.TEXT, show=not secret)
    odd = control_character(value, lines=lines)
    if odd:
        raise found.wrong(Problem.CONTROL_CHARACTER, {"character": describe(odd)}, show=not secret)
    if len(value.encode()) > limit:
        raise found.wrong(Problem.TOO_LONG, {"limit": limit}, show=not secret)
    return value


def _present(found: Found) -> Any:
    if found.value is None:
        raise found.wrong(Problem.NO_VALUE)
    return found.value


def control_character(value: str, *, lines: bool) -> str:
    """The first character that must not be in a text; empty when there is none."""
    for character in value:
        if lines and character in "\n\t":
            continue
        if unicodedata.category(character) in ("Cc", "Cs", "Zl", "Zp") or character in _TURNS_TEXT:
            return character
    return ""


def as_written(found: Found, *, limit: int, secret: bool = False) -> str:
    """Text, or a number or boolean taken as it is written: `0.10` stays `0.10`, where only text makes sense anyway."""
    value = found.value
    if isinstance(value, bool):
        found = Found(found.written or str(value).lower(), found.path, found.findings)
    elif isinstance(value, int | float) and (found.written or _usable(value)):
        found = Found(found.written or repr(value), found.path, found.findings)
    return text(found, limit=limit, lines=True, secret=secret)


def name(rule: re.Pattern[str], problem: Problem) -> Callable[[Found], str]:
    """A reader of names that obey a rule."""

    def read(found: Found) -> str:
        value = text(found)
        if rule.fullmatch(value):
            return value
        raise found.wrong(*_wrong_name(value, problem))

    return read


def key_name(rule: re.Pattern[str], problem: Problem) -> Callable[[Found], str]:
    """A reader of the key of a value, where keys are names chosen by the user."""

    def read(found: Found) -> str:
        key = str(found.path[-1])
        if rule.fullmatch(key):
            return key
        raise found.wrong_key(*_wrong_name(key, problem))

    return read


def _wrong_name(value: str, problem: Problem) -> tuple[Problem, Mapping[str, Any]]:
    """Letters that only look like ours are told by their Unicode name, since nobody sees the difference."""
    odd = next((character for character in value if not character.isascii()), "")
    return (Problem.ODD_CHARACTER, {"character": describe(odd)}) if odd else (problem, {})


def whole_number(least: int, most: int) -> Callable[[Found], int]:
    def read(found: Found) -> int:
        value = _present(found)
        if isinstance(value, bool) or not isinstance(value, int) or not least <= value <= most:
            raise found.wrong(Problem.WHOLE_NUMBER, {"least": least, "most": most})
        return value

    return read


def yes_or_no(found: Found) -> bool:
    value = _present(found)
    if not isinstance(value, bool):
        raise found.wrong(Problem.BOOLEAN)
    return value


def one_of(allowed: Sequence[str]) -> Callable[[Found], str]:
    def read(found: Found) -> str:
        value = text(found)
        if value in allowed:
            return value
        close = nearest(value, allowed)
        raise found.wrong(Problem.ONE_OF, {"allowed": list(allowed)} | ({"nearest": close} if close else {}))

    return read


def _amount(
    parse: Callable[[str], T], problem: Problem, facts: Mapping[str, Any] | None = None
) -> Callable[[Found], T]:
    """A number, or text with a unit; the domain's own parser decides."""

    def read(found: Found) -> T:
        value = _present(found)
        try:
            return parse(_as_amount_text(value))
        except ValueError as error:
            raise found.wrong(problem, facts) from error

    return read


def _as_amount_text(value: Any) -> str:
    if isinstance(value, str):
        return value
    if isinstance(value, bool) or not isinstance(value, int | float) or not _usable(value):
        raise ValueError("not an amount")
    return repr(value)


def _usable(value: int | float) -> bool:
    return abs(value) < LARGEST_NUMBER  # not so for NaN and the infinities


cpu = _amount(parse_cpu, Problem.CPU)
cards = _amount(parse_cards, Problem.CARDS)
_any_bytes = _amount(parse_bytes, Problem.BYTES)


def memory(found: Found) -> int:
    """Bytes. `memory: 16` means sixteen bytes, which nobody wants: it is refused with the spelling that was meant."""
    value = _any_bytes(found)
    if value < LEAST_MEMORY:
        raise found.wrong(Problem.TOO_FEW_BYTES, {"least": LEAST_MEMORY})
    return value


def duration(most: float = MAX_SECONDS, least: float | None = None) -> Callable[[Found], float]:
    """Seconds, exact to the thousandth; more than nothing, unless `least` says that nothing will do."""

    def parse(written: str) -> float:
        if least == 0 and _NO_TIME.fullmatch(written.strip()):
            return 0.0
        seconds = round(parse_duration(written), 3)
        if not 0 < seconds <= most:
            raise ValueError("out of bounds")
        return seconds

    return _amount(parse, Problem.DURATION, {"most": most})
