"""Whose pull is next. Pure.

A registry may be slow or say nothing for an hour, so nobody may hold all places: one user has few, the last half of
all is for those who have none, and of those who wait comes first who has the fewest under way, then who waited longest.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

MOST_AT_ONCE = 8
MOST_OF_ONE = 2


def next_turn(line: Sequence[tuple[str, Sequence[str]]], under_way: Sequence[str]) -> tuple[str, str] | None:
    """The image to be fetched now and in whose name; None: all have to wait.

    `line` is the images that wait, the longest wait first, each with the users who wait for it; `under_way` is in whose
    name each pull goes on.
    """
    counts = Counter(under_way)
    may = [
        (counts[user], place, image, user)
        for place, (image, users) in enumerate(line)
        for user in users
        if may_begin(counts, user)
    ]
    return min(may)[2:] if may else None


def may_begin(counts: Counter[str], user: str) -> bool:
    if not counts[user]:
        return counts.total() < MOST_AT_ONCE
    return counts[user] < MOST_OF_ONE and counts.total() < MOST_AT_ONCE // 2
