"""Moments that a caller names: one way to write them, for every route that takes one."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Annotated

from pydantic import Field, StringConstraints

from gpuyard.domain.errors import BadInput
from gpuyard.domain.problems import Problem
from gpuyard.domain.reasons import Code, because

# With a zone: the server's own is nobody else's. A plain number is no moment.
PATTERN = r"^\d{4}-\d\d-\d\dT\d\d:\d\d(:\d\d(\.\d{1,6})?)?(Z|[+-]\d\d:\d\d)$"
When = Annotated[
    str,
    StringConstraints(pattern=PATTERN, max_length=40),
    Field(description="ISO 8601", examples=["2026-11-15T08:30Z"]),
]


def moment_of(at: str, text: str | None) -> float | None:
    """Seconds; None where none is named. What looks like a moment may still be none: the 31st of June, or one before
    the year 1 where the sun rises first."""
    try:
        return datetime.fromisoformat(text).astimezone(UTC).timestamp() if text else None
    except (ValueError, OverflowError):
        raise BadInput(because(Code.BAD_VALUE, at=at, value=text, problem=Problem.INSTANT)) from None
