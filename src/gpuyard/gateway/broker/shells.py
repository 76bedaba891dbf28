"""A shell for one asker: the bytes of its terminal on a plain stream. Nothing is kept, and nothing is dropped: when the
asker is slow, the shell waits."""

from __future__ import annotations

import errno
import fcntl
import os
import socket
import struct
import termios
import time

from gpuyard.engines.inside.loop import READ, WRITE
from gpuyard.gateway.broker.alarm import Alarm, Stalled
from gpuyard.gateway.broker.terminals import read_size

TYPE_CHECKING = False  # loading typing costs the broker memory
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from gpuyard.engines.inside.loop import Loop

_PIECE = 64 << 10
_MOST_TYPED = 256 << 10
_LAST_WORDS_SECONDS = 10.0


class Shell:
    """Between the terminal, whose owner holds it too, and a stream that is only ours and the asker's."""

    def __init__(self, loop: Loop, alarm: Alarm, terminal: int, replica: str, over: Callable[[], None]) -> None:
        self._loop, self._alarm, self._terminal, self._replica, self._over = loop, alarm, terminal, replica, over
        self._stream, self.theirs = socket.socketpair()
        self._stream.setblocking(False)
        self._shown = self._typed = b""
        self._close_at: float | None = None
        os.set_blocking(terminal, False)
        self._watch()

    def set_up(self, modes: dict[int, int]) -> None:
        """The asker's own terminal is set so; keys and modes as SSH numbers them."""
        from gpuyard.gateway.ssh.terminals import set_modes

        try:
            with self._alarm.over(self._terminal):
                set_modes(self._terminal, modes)
        except Stalled:  # then it stays as the kernel has it
            return

    def resize(self, told: dict[str, Any]) -> None:
        if self._terminal >= 0:
            fcntl.ioctl(self._terminal, termios.TIOCSWINSZ, struct.pack("HHHH", *read_size(told), 0, 0))

    def finish(self) -> None:
        """The shell has ended: what it said last is still passed on."""
        self._close_at = time.monotonic() + _LAST_WORDS_SECONDS
        self._typed = b""
        self._pass_on()

    def sweep(self, now: float) -> None:
        if self._close_at is not None and now >= self._close_at:
            self.close()

    def close(self) -> None:
        self._close_terminal()
        if self._stream.fileno() >= 0:
            self._loop.forget(self._stream.fileno())
            self._stream.close()
            self.theirs.close()
            self._over()

    def _close_terminal(self) -> None:
        if self._terminal >= 0:
            self._loop.forget(self._terminal)
            os.close(self._terminal)
            self._terminal = -1

    def _watch(self) -> None:
        if self._terminal >= 0:
            events = (READ if len(self._shown) < _PIECE else 0) | (WRITE if self._typed else 0)
            if events:
                self._loop.watch(self._terminal, self._pass_on, events)
            else:  # it would call all the time once nobody has it open inside
                self._loop.forget(self._terminal)
        if self._stream.fileno() >= 0:
            takes_more = len(self._typed) < _MOST_TYPED and self._close_at is None
            events = (READ if takes_more else 0) | (WRITE if self._shown else 0)
            self._loop.watch(self._stream.fileno(), self._pass_on, events)

    def _pass_on(self) -> None:
        try:
            with self._alarm.over(self._terminal):
                self._serve_terminal()
            self._serve_stream()
        except OSError:  # the asker has gone
            self.close()
            return
        except Stalled:
            self._alarm.blame(self._replica)
            self.close()
            return
        if self._close_at is not None and self._terminal < 0 and not self._shown:
            self.close()
        else:
            self._watch()

    def _serve_terminal(self) -> None:
        try:
            if self._typed and self._terminal >= 0:
                self._typed = self._typed[os.write(self._terminal, self._typed[:4096]) :]
        except BlockingIOError:
            pass
        try:
            while self._terminal >= 0 and len(self._shown) < _PIECE:
                piece = os.read(self._terminal, _PIECE)
                if not piece:
                    raise OSError(errno.EIO, "closed")
                self._shown += piece
        except BlockingIOError:
            if self._close_at is not None:
                self._close_terminal()  # it has ended and there is no more, though somebody may still have it open
        except OSError:
            self._close_terminal()

    def _serve_stream(self) -> None:
        try:
            if self._shown:
                self._shown = self._shown[self._stream.send(self._shown, socket.MSG_NOSIGNAL) :]
        except BlockingIOError:
            pass
        if len(self._typed) >= _MOST_TYPED or self._close_at is not None:
            return
        try:
            piece = self._stream.recv(_PIECE)
        except BlockingIOError:
            return
        if not piece:
            raise BrokenPipeError
        self._typed += piece
