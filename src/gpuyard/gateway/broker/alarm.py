"""A terminal that comes through a door is in its owner's hands too, and can be made to keep whoever reads it waiting.
Nobody waits there longer than this, and not often."""

from __future__ import annotations

import os
import signal
import time

TYPE_CHECKING = False  # loading typing costs the broker memory
if TYPE_CHECKING:
    from types import TracebackType

_STALL_SECONDS = 0.1
_BLAMED_SECONDS = 60.0


class Stalled(Exception):
    """It kept us waiting."""


class Alarm:
    """`with alarm.over(terminal):` around what could wait. It rings only once the terminal was made to let one wait: on
    a machine that is very busy a moment may take long, too, and whoever is torn away between reading and keeping has
    lost what was read. A replica that made it ring is left alone for a while."""

    def __init__(self) -> None:
        self._terminal: int | None = None
        self._blamed: dict[str, float] = {}
        signal.signal(signal.SIGALRM, self._ring)

    def over(self, terminal: int) -> Alarm:
        self._terminal = terminal
        return self

    def _ring(self, number: int, frame: object) -> None:
        if self._terminal is not None and _lets_wait(self._terminal):
            raise Stalled

    def __enter__(self) -> None:
        signal.setitimer(signal.ITIMER_REAL, _STALL_SECONDS, _STALL_SECONDS)

    def __exit__(
        self, kind: type[BaseException] | None, problem: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._terminal = None
        signal.setitimer(signal.ITIMER_REAL, 0)

    def blame(self, replica: str) -> None:
        now = time.monotonic()
        self._blamed = {name: until for name, until in self._blamed.items() if until > now}
        self._blamed[replica] = now + _BLAMED_SECONDS

    def is_blamed(self, replica: str) -> bool:
        return self._blamed.get(replica, 0.0) > time.monotonic()


def _lets_wait(terminal: int) -> bool:
    """We had set it not to; whoever holds it too can set it back."""
    try:
        return os.get_blocking(terminal)
    except OSError:  # closed by us just now
        return False
