"""What a check of the doctor's ends in."""

from __future__ import annotations

from dataclasses import dataclass

GOOD, DOUBTFUL, BROKEN = "✓", "!", "✗"


@dataclass(frozen=True, slots=True)
class Finding:
    check: str
    mark: str
    sentence: str
