"""How things look in a terminal: tables, times, amounts, JSON. Nothing here talks to a server."""

from __future__ import annotations

import json
import os
import re
import shutil
import sys
import unicodedata
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from typing import Any

import click

from gpuyard.cli.labels import label, state_label
from gpuyard.domain.resources import show_bytes

_COLOURS = {
    "running": "green",
    "succeeded": "green",
    "failed": "red",
    "lost": "red",
    "queued": "yellow",
    "paused": "cyan",
}
GAP = "  "
LEAST_LAST, LEAST_OTHER = 20, 8  # columns a table gives to its last column, and leaves to the others


def print_json(value: Any) -> None:
    """Pure JSON on stdout; escaped where the terminal's encoding could not carry it."""
    plain = (sys.stdout.encoding or "").lower().replace("-", "") != "utf8"
    sys.stdout.write(json.dumps(value, ensure_ascii=plain, indent=2) + "\n")


def note(text: str) -> None:
    """A message to the person, apart from the output."""
    click.echo(text, err=True)


def print_table(
    headings: Sequence[str],
    rows: Sequence[Sequence[str]],
    *,
    err: bool = False,
    wrap: bool = False,
    whole: int = 0,
    least_last: int = LEAST_LAST,
) -> None:
    """Columns aligned by what they take on the screen. In a terminal they are cut to fit, the last one goes on in the
    next line with `wrap`, and the first `whole` ones are never cut; in a pipe none is."""
    named = [label(heading) for heading in headings]
    cleaned = [[printable(cell) for cell in row] for row in rows]
    widths = [max(map(width, column)) for column in zip(named, *cleaned, strict=True)]
    if sys.stdout.isatty():
        widths = fitted(widths, shutil.get_terminal_size().columns, whole, least_last)
    for row in [named, *cleaned]:
        lasts = list(wrapped(row[-1], widths[-1])) if wrap else [row[-1]]
        for number, last in enumerate(lasts):
            cells = [*row[:-1], last] if number == 0 else [""] * (len(row) - 1) + [last]
            click.echo(_line(cells, widths), err=err)


def print_fields(fields: Sequence[tuple[str, str]]) -> None:
    """Name and value, one per line; empty values are left out."""
    shown = [(label(name), printable(value)) for name, value in fields if value]
    longest = max((width(name) for name, _ in shown), default=0)
    for name, value in shown:
        click.echo(f"{pad(name, longest)}{GAP}{value}")


def fitted(widths: Sequence[int], room: int, whole: int = 0, least_last: int = LEAST_LAST) -> list[int]:
    """The last column takes what is left; where that is too little, the widest of the others give, but for the first
    `whole` ones."""
    others, last = list(widths[:-1]), widths[-1]
    wanted = min(last, least_last)
    while (giving := others[whole:]) and max(giving) > LEAST_OTHER and _left(others, room) < wanted:
        others[others.index(max(giving), whole)] -= 1
    return [*others, max(1, min(last, _left(others, room)))]


def _left(others: Sequence[int], room: int) -> int:
    return room - sum(others) - len(GAP) * len(others)


def _line(cells: Sequence[str], widths: Sequence[int]) -> str:
    shown = [cut(cell, size) for cell, size in zip(cells, widths, strict=True)]
    padded = [pad(colour(cell), size, width(cell)) for cell, size in zip(shown, widths, strict=True)]
    return GAP.join(padded).rstrip()


def width(text: str) -> int:
    """Columns on the screen: Chinese and other wide signs take two, combining ones none."""
    return sum(
        0 if unicodedata.combining(sign) else 2 if unicodedata.east_asian_width(sign) in "WF" else 1 for sign in text
    )


def pad(text: str, size: int, shown: int | None = None) -> str:
    return text + " " * (size - (width(text) if shown is None else shown))


def cut(text: str, size: int) -> str:
    if width(text) <= size:
        return text
    kept, used = "", 0
    for sign in text:
        used += width(sign)
        if used > size - 1:
            break
        kept += sign
    return kept + "…"


def wrapped(text: str, room: int | None, indent: str = "", hang: str = "") -> Iterator[str]:
    """The text in lines of at most this many columns. Chinese may break anywhere, other words stay whole."""
    line, used, begun = indent, width(indent), False
    for word in _PIECE.findall(text):
        if begun and room is not None and used + width(word.rstrip()) > room:
            yield line.rstrip()
            line, used, word = hang, width(hang), word.lstrip()
        line += word
        used += width(word)
        begun = True
    yield line.rstrip()


# What is not broken: a Latin word or a single Chinese sign, with the signs that close it and the blanks after it.
_PIECE = re.compile(r"[（“]*(?:[一-鿿]|[^\s一-鿿（“，。：；、）！？”]+)[，。：；、）！？”]*\s*|.")


def printable(text: str) -> str:
    """Without control signs: another person's words must not drive this terminal."""
    return "".join(sign if sign.isprintable() else " " for sign in text)


def colour(text: str) -> str:
    if not sys.stdout.isatty() or "NO_COLOR" in os.environ:
        return text
    hue = next((hue for state, hue in _COLOURS.items() if state_label(state) == text), None)
    return text if hue is None else click.style(text, fg=hue)


# --- times and amounts --------------------------------------------------------------------------------------------


def parse_time(text: str | None) -> datetime | None:
    return datetime.fromisoformat(text) if text else None


def local_time(text: str | None) -> str:
    at = parse_time(text)
    return at.astimezone().strftime("%Y-%m-%d %H:%M:%S") if at else ""


def by_local_clock(text: str) -> str:
    """A sentence of the server, its moments by this reader's clock: the server knows of no zone but UTC."""

    def told(match: re.Match[str]) -> str:
        try:
            return local_time(f"{match.group(1)}+00:00")
        except (ValueError, OverflowError):  # somebody's own text, which only looks like one
            return match.group(0)

    return _MOMENT.sub(told, text)


_MOMENT = re.compile(r"(?<!\d)(\d{4}-\d\d-\d\d \d\d:\d\d:\d\d) UTC")  # the one form in which `words` has them


def age(text: str | None) -> str:
    at = parse_time(text)
    return short_time((datetime.now(UTC) - at).total_seconds()) if at else ""


def spent(start: str | None, end: str | None) -> str:
    """From start to end, or to now while it goes on."""
    return short_time(ran_seconds(start, end)) if start else ""


def ran_seconds(start: str | None, end: str | None) -> float:
    begun = parse_time(start)
    return 0.0 if begun is None else ((parse_time(end) or datetime.now(UTC)) - begun).total_seconds()


def short_time(seconds: float) -> str:
    """`7s`, `3m20s`, `5h12m`, `3d4h`."""
    left = max(0, int(seconds))
    parts: list[str] = []
    for unit, size in (("d", 86400), ("h", 3600), ("m", 60), ("s", 1)):
        count, left = divmod(left, size)
        if count or (unit == "s" and not parts):
            parts.append(f"{count}{unit}")
    return "".join(parts[:2])


def number(value: float | None) -> str:
    return "" if value is None else f"{value:.3f}".rstrip("0").rstrip(".")


def amount(value: float | None, resource: str) -> str:
    """Cards and cores as numbers, memory as people write it."""
    if value is None:
        return ""
    return show_bytes(int(value)) if resource in ("memory", "shm") else number(value)
