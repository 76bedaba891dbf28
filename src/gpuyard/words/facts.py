"""The facts of a reason, made fit to be shown: amounts as people write them, names harmless on a terminal.

Facts come from old rows, other programs and users. Nothing here raises, whatever they hold.
"""

from __future__ import annotations

import math
import re
import unicodedata
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

from gpuyard.domain.resources import show_bytes, show_milli

LONGEST_TEXT = 400
MOST_LISTED = 5
LARGEST_NUMBER = 10**18

_ANSI = re.compile(
    r"\x1b\[[0-?]*[ -/]*[@-~]"  # colours and cursor movements
    r"|\x1b[\]PX^_][^\x07\x1b]*(?:\x07|\x1b\\|$)"  # window titles, links and other strings
    r"|\x9b[0-?]*[ -/]*[@-~]"
    r"|\x1b[ -/]*[0-~]"
)
_HARMFUL = {"Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp"}


def clean(text: str) -> str:
    """Without anything that moves a cursor, changes a colour or turns the direction of writing; on one line."""
    if text.isascii() and text.isprintable() and len(text) <= LONGEST_TEXT:
        return " ".join(text.split())  # most are, and lists of thousands are told
    text = _ANSI.sub("", text[: LONGEST_TEXT * 10])
    shown = "".join(c if unicodedata.category(c) not in _HARMFUL else " " if c.isspace() else "" for c in text)
    shown = " ".join(shown.split())
    return shown if len(shown) <= LONGEST_TEXT else shown[: LONGEST_TEXT - 1] + "…"


def number(value: Any) -> float | int | None:
    """A usable number, or None: booleans, NaN, infinities and absurd sizes are not."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return value if -LARGEST_NUMBER <= value <= LARGEST_NUMBER else None


def plain(value: Any) -> str:
    """Any fact as text; empty when there is nothing to show."""
    if value is None:
        return ""
    if isinstance(value, str):
        return clean(value)
    if isinstance(value, bool):
        return "true" if value else "false"
    known = number(value)
    if known is not None:
        return f"{known:g}" if isinstance(known, float) and abs(known) < 1e6 else str(known)
    if isinstance(value, int | float):
        return "?"
    if isinstance(value, Mapping):
        return clean(", ".join(f"{plain(k)}={plain_leaf(v)}" for k, v in list(value.items())[:MOST_LISTED]))
    if isinstance(value, Sequence | set | frozenset) and not isinstance(value, bytes | bytearray):
        return clean(", ".join(plain_leaf(item) for item in list(value)[:MOST_LISTED]))
    return clean(type(value).__name__)


def plain_leaf(value: Any) -> str:
    """Inside a list or a mapping only simple values are shown, so that nesting costs nothing."""
    return "…" if isinstance(value, Mapping | Sequence) and not isinstance(value, str) else plain(value)


def listed(value: Any, comma: str) -> tuple[str, int]:
    """The first few of a list, and how many more there are. A single value counts as a list of one."""
    if isinstance(value, str) or not isinstance(value, Sequence | set | frozenset):
        return plain(value), 0
    items = [text for text in (plain_leaf(item) for item in list(value)[:MOST_LISTED]) if text]
    return comma.join(items), max(0, len(value) - MOST_LISTED)


def all_end_with(value: Any, end: str) -> bool:
    """Whether it is a list of texts, not empty, that all end so."""
    return isinstance(value, list) and bool(value) and all(isinstance(t, str) and t.endswith(end) for t in value)


def milli(value: Any) -> str:
    """Thousandths of cores or cards."""
    known = number(value)
    return plain(value) if known is None else show_milli(round(known))


def memory(value: Any) -> str:
    known = number(value)
    return plain(value) if known is None else show_bytes(round(known))


def moment(value: Any) -> str:
    """Epoch seconds in UTC, always in this one form: the command and the console find it and tell it by the reader's
    own clock."""
    known = number(value)
    if known is None:
        return plain(value)
    try:
        return datetime.fromtimestamp(known, UTC).strftime("%Y-%m-%d %H:%M:%S UTC")
    except (OverflowError, OSError, ValueError):
        return plain(value)


def in_rough(seconds: float, units: tuple[str, str, str, str], gap: str) -> str:
    """`45 s`, `3 min`, `2 h 10 min`, `4 d 2 h`: no finer than it matters."""
    if seconds < 60:
        return f"{seconds:.0f}{units[0]}"
    minutes = round(seconds / 60)
    if minutes < 60:
        return f"{minutes}{units[1]}"
    days, hours = divmod(round(minutes / 60), 24)
    if minutes >= 24 * 60 and days:
        return f"{days}{units[3]}{gap}{hours}{units[2]}" if hours else f"{days}{units[3]}"
    hours, minutes = divmod(minutes, 60)
    return f"{hours}{units[2]}{gap}{minutes}{units[1]}" if minutes else f"{hours}{units[2]}"
