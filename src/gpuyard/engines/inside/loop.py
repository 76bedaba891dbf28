"""One loop for everything the porter waits for. The broker outside waits in the same way."""

from __future__ import annotations

import select
import sys

TYPE_CHECKING = False  # loading typing would cost every workload a part of its start
if TYPE_CHECKING:
    from collections.abc import Callable

READ, WRITE = select.POLLIN, select.POLLOUT
_MOST_COMPLAINTS = 20


class Loop:
    def __init__(self, name: str) -> None:
        self._name = name  # who complains
        self._poll = select.poll()
        self._calls: dict[int, Callable[[], None]] = {}
        self._complaints = 0

    def watch(self, fd: int, call: Callable[[], None], events: int = READ) -> None:
        self._calls[fd] = call
        self._poll.register(fd, events)

    def forget(self, fd: int) -> None:
        if self._calls.pop(fd, None) is not None:
            self._poll.unregister(fd)

    def turn(self, patience: float) -> None:
        """Wait at most so long, then serve whoever is ready."""
        for fd, _ in self._poll.poll(int(patience * 1000) + 1):
            call = self._calls.get(fd)
            if call is not None:  # one served before it may have closed it
                self.guard(call)

    def guard(self, call: Callable[[], None]) -> None:
        """Whoever comes cannot end the loop: with the porter's the workload would end."""
        try:
            call()
        except Exception as problem:
            self._complaints += 1
            if self._complaints <= _MOST_COMPLAINTS:
                print(f"{self._name}: {type(problem).__name__}: {problem}", file=sys.stderr, flush=True)
