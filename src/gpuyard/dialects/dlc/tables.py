"""Tables as dlc draws them, and the plain columns that programs split at white space."""

from __future__ import annotations

import re
from collections.abc import Sequence

Row = Sequence[str]
_CONTROL = re.compile("[\x00-\x1f\x7f-\x9f\u200e\u200f\u202a-\u202e\u2066-\u2069]")


def plain(text: str) -> str:
    """Nothing in it moves the cursor, colours the terminal or begins a line: such characters are shown by number."""
    return _CONTROL.sub(lambda found: " " if found.group() in "\n\t" else f"\\x{ord(found.group()):02x}", text)


def boxed(headers: Row, rows: Sequence[Row]) -> str:
    """
    +------+
    | Name |
    +------+
    +------+

    so without rows: the heading has its line, and the table its own.
    """
    rows = [[plain(cell) for cell in row] for row in rows]
    widths = [max(map(len, column)) for column in zip(headers, *rows, strict=True)]
    rule = "+" + "+".join("-" * (width + 2) for width in widths) + "+"
    head = "|" + "|".join(f" {name:^{width}} " for name, width in zip(headers, widths, strict=True)) + "|"
    body = ["|" + "|".join(f" {cell:{width}} " for cell, width in zip(row, widths, strict=True)) + "|" for row in rows]
    return "\n".join([rule, head, rule, *body, rule])


def columns(headers: Row, rows: Sequence[Row]) -> str:
    """No cell is empty or has a space within, so that the n-th word of a line is always its n-th column."""
    cells = [[plain(cell).replace(" ", "_") or "-" for cell in row] for row in rows]
    widths = [max(map(len, column)) for column in zip(headers, *cells, strict=True)]
    lines = ["  ".join(f"{cell:{width}}" for cell, width in zip(row, widths, strict=True)) for row in (headers, *cells)]
    return "\n".join(line.rstrip() for line in lines)
