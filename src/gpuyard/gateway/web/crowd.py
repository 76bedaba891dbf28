"""How many requests and WebSockets one person may have open at a time, so that nobody takes the gateway alone."""

from __future__ import annotations

MOST_PER_USER = 512


class Crowd:
    def __init__(self, most_per_user: int = MOST_PER_USER) -> None:
        self._most = most_per_user
        self._there: dict[str, int] = {}

    def come(self, user: str) -> bool:
        """False when there are too many of theirs already."""
        there = self._there.get(user, 0)
        if there >= self._most:
            return False
        self._there[user] = there + 1
        return True

    def go(self, user: str) -> None:
        left = self._there[user] - 1
        if left:
            self._there[user] = left
        else:
            del self._there[user]
