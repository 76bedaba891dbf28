"""A terminal that comes through a door is in its owner's hands too, and can be made to keep whoever reads it waiting.
Nobody waits there longer than this, and not often."""

from __future__ import annotations

import os
import signal
import time

_STALL_SECONDS = 0.1
_BLAMED_SECONDS = 60.0


class Stalled(Exception):
    """It kept us waiting."""


class Alarm:
    """`with alarm:` around what could wait. A replica that made it ring on purpose is left alone for a while."""

    def __init__(self) -> None:
        self._is_set = False
        self._blamed: dict[str, float] = {}
        signal.signal(signal.SIGALRM, self._ring)

    def _ring(self, number: int, frame: object) -> None:
        if self._is_set:
            raise Stalled

    def __enter__(self) -> None:
        self._is_set = True
        signal.setitimer(signal.ITIMER_REAL, _STALL_SECONDS)

    def __exit__(self, *_: object) -> None:
        self._is_set = False
        signal.setitimer(signal.ITIMER_REAL, 0)

    def is_meddled_with(self, terminal: int, replica: str) -> bool:
        """Asked after it rang: on a machine that is very busy it may have rung for no reason."""
        if not os.get_blocking(terminal):
            return False
        now = time.monotonic()
        self._blamed = {name: until for name, until in self._blamed.items() if until > now}
        self._blamed[replica] = now + _BLAMED_SECONDS
        return True

    def is_blamed(self, replica: str) -> bool:
        return self._blamed.get(replica, 0.0) > time.monotonic()
