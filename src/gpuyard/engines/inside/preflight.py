"""A look before the start: what plainly cannot run is told in words instead of a number."""

from __future__ import annotations


def check(argv: list[str], cwd: str, path: str) -> dict[str, str] | None:
    return None
