"""The steps from the first schema to the newest one. Each file in `versions` is one step and never changes again."""

from __future__ import annotations

from typing import Final

REVISIONS: Final = ("0001", "0002", "0003", "0004", "0005", "0006", "0007", "0008", "0009", "0010", "0011")
"""Every step, oldest first. Kept here as well so that opening an up-to-date database need not load the tool."""

NEWEST: Final = REVISIONS[-1]
