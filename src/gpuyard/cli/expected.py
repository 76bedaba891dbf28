"""When something starts or ends, as two moments that are no more exact than they are: `~14:20 (by 16:00)`."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

from gpuyard.cli.output import parse_time, short_time
from gpuyard.cli.phrases import say

if TYPE_CHECKING:
    from gpuyard.sdk.results import Estimate

MINUTE, HOUR, DAY = 60.0, 3600.0, 86400.0
# (when it is less than this away, it is told to so many seconds)
STEPS = ((10 * MINUTE, MINUTE), (2 * HOUR, 5 * MINUTE), (12 * HOUR, 15 * MINUTE), (3 * DAY, HOUR))
COARSEST = 6 * HOUR


def in_table(estimate: Estimate | None, what: str) -> str:
    """For a cell; `what` is start or end. Empty when nobody knows."""
    found = _moments(estimate)
    if found is None:
        return ""
    now, middle, late = found
    if late - now < timedelta(seconds=MINUTE):
        return say(f"expected.{what}.soon")
    return say(f"expected.{what}.short", middle=clock(middle, now), late=clock(late, now, up=True))


def in_words(estimate: Estimate | None, what: str) -> str:
    """For a line of its own: also why nobody knows."""
    if estimate is not None and estimate.unknown:
        return estimate.unknown
    found = _moments(estimate)
    if found is None:
        return ""
    now, middle, late = found
    if late - now < timedelta(seconds=MINUTE):
        return say("expected.any_moment")
    told = say(
        "expected.words",
        middle=clock(middle, now),
        away=away((middle - now).total_seconds()),
        late=clock(late, now, up=True),
    )
    return f"{told} {say('expected.rough')}" if estimate is not None and estimate.rough else told


def _moments(estimate: Estimate | None) -> tuple[datetime, datetime, datetime] | None:
    middle = parse_time(estimate.p50) if estimate is not None else None
    late = parse_time(estimate.p90) if estimate is not None else None
    return None if middle is None or late is None else (datetime.now(UTC), middle, late)


def step(seconds: float) -> float:
    """How exactly a moment that far away can be told."""
    return next((size for below, size in STEPS if seconds < below), COARSEST)


def clock(at: datetime, now: datetime, *, up: bool = False) -> str:
    """The time of day, with the date unless it is today; the late moment is never told too early."""
    size = step((at - now).total_seconds())
    local = at.astimezone()
    midnight = local.replace(hour=0, minute=0, second=0, microsecond=0)
    into = (local - midnight).total_seconds()
    rounded = midnight + timedelta(seconds=size * (-(-into // size) if up else round(into / size)))
    today = now.astimezone().date() == rounded.date()
    return rounded.strftime("%H:%M" if today else "%m-%d %H:%M")


def away(seconds: float) -> str:
    """`40m`, `5h`, `3d4h`: as exactly as the moment itself."""
    size = step(seconds)
    return short_time(max(MINUTE, size * round(seconds / size)))
