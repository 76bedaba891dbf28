"""A clock for the parts of the platform that are told one."""

from __future__ import annotations

import time


class Clock:
    """The real time, moved by hand."""

    def __init__(self) -> None:
        self.ahead = 0.0
        self._stopped_at: float | None = None

    def __call__(self) -> float:
        return self.ahead + (time.time() if self._stopped_at is None else self._stopped_at)

    def stop(self) -> None:
        """It goes on by hand alone, for all that is over after a while, however slow the machine is."""
        self._stopped_at = time.time()
