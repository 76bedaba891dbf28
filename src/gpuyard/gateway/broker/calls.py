"""One request through a door: knock, ask, wait for the answer and for what may follow, none of it for ever."""

from __future__ import annotations

import signal
import time

from gpuyard.engines.inside import wire
from gpuyard.gateway.broker.doors import Closed, Door, NotYet

TYPE_CHECKING = False  # loading typing costs the broker memory
if TYPE_CHECKING:
    import socket
    from collections.abc import Callable, Sequence
    from typing import Any

    from gpuyard.engines.inside.loop import Loop

    End = dict[str, int | None]
    Answered = Callable[[dict[str, Any], list[int]], None]

_OPENING_SECONDS = 5.0
_ANSWER_SECONDS = 10.0
_AGAIN_SECONDS = 0.02
_REPEATABLE = ("ping", "net", "services")  # asked twice, nothing happens twice

LOST: End = {"ended": 128 + signal.SIGHUP, "signal": int(signal.SIGHUP)}


def read_end(message: dict[str, Any]) -> End:
    code, number = message.get("ended"), message.get("signal")
    if type(code) is not int or not 0 <= code <= 255:
        return LOST
    return {"ended": code, "signal": number if type(number) is int and 0 < number <= 64 else None}


class Call:
    """`answered` is called once, with the answer or a refusal, and the descriptors, which are the callee's to close.
    A call that stays open afterwards tells the end of what it started through `ended`; when it is lost, as hung up."""

    def __init__(self, loop: Loop, door: Door, message: dict[str, Any], fds: Sequence[int], answered: Answered) -> None:
        self._loop, self._door, self._message, self._fds = loop, door, message, fds
        self._answered: Answered | None = answered
        self._ended: Callable[[End], None] | None = None
        self._sock: socket.socket | None = None
        self._has_asked_for_porter = self._may_open = False
        now = time.monotonic()
        self._until, self._again_at = now + _OPENING_SECONDS, now
        self._again_until = self._until

    def is_waiting(self) -> bool:
        """For the door to open; it wants to be swept soon."""
        return self._answered is not None and self._sock is None

    def sweep(self, now: float) -> None:
        if self._answered is None:
            return
        if self._sock is not None:
            if now > self._until:
                self._fail("failed", "the porter does not answer")
        elif now >= self._again_at:
            self._again_at = now + _AGAIN_SECONDS
            self._knock(now)

    def _knock(self, now: float) -> None:
        sock = None
        try:
            sock = self._door.knock()
            wire.send(sock, self._message, self._fds)
        except NotYet as problem:
            if not self._has_asked_for_porter:
                self._has_asked_for_porter = True
                self._may_open = self._door.may_open_soon()
            if now > self._until or not self._may_open:
                self._fail("closed", str(problem))
            return
        except (Closed, wire.Gone, wire.Malformed, OSError) as problem:
            if sock is not None:
                wire.hang_up(sock)
            self._fail("closed", str(problem))
            return
        self._sock, self._until = sock, now + _ANSWER_SECONDS
        self._loop.watch(sock.fileno(), self._hear)

    def _hear(self) -> None:
        assert self._sock is not None
        try:
            message, fds = wire.receive(self._sock)
        except BlockingIOError:
            return
        except wire.Malformed as problem:
            self._mistrust(str(problem))
            return
        except (wire.Gone, OSError):
            self._lose()
            return
        if self._answered is not None:
            answered, self._answered = self._answered, None
            answered(message, fds)
            return
        wire.close_all(fds)
        self._tell_end(read_end(message))

    def stay(self, ended: Callable[[End], None]) -> None:
        """Keep the way open after the answer."""
        self._ended = ended

    def say(self, message: dict[str, Any]) -> None:
        if self._sock is not None:
            try:
                wire.send(self._sock, message)
            except (wire.Gone, OSError):  # its end will be noticed by listening
                return

    def _tell_end(self, end: End) -> None:
        ended, self._ended = self._ended, None
        self.close()
        if ended is not None:
            ended(end)

    def _mistrust(self, detail: str) -> None:
        """Who talks nonsense once is not asked again."""
        if self._answered is None:
            self._tell_end(LOST)
        else:
            self._fail("failed", f"the porter cannot be understood: {detail}")

    def _lose(self) -> None:
        if self._answered is None:
            self._tell_end(LOST)
        elif self._message["do"] in _REPEATABLE and time.monotonic() < self._again_until:
            self._let_go()  # there was a crowd at the door
        else:
            self._fail("failed", "the porter went away")

    def _fail(self, error: str, detail: str) -> None:
        answered, self._answered = self._answered, None
        self.close()
        if answered is not None:
            answered({"ok": False, "error": error, "detail": detail}, [])

    def close(self) -> None:
        """Let go. Inside, that hangs up."""
        self._answered = self._ended = None
        self._let_go()

    def _let_go(self) -> None:
        if self._sock is not None:
            self._loop.forget(self._sock.fileno())
            wire.hang_up(self._sock)
            self._sock = None
