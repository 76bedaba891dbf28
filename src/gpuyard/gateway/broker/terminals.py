"""Terminals that the broker holds: a shell goes on while nobody looks, and shows its last page to who comes back.

On the stream to the gateway, both ways, frames: one byte that says what, four bytes of length, and so much of it.
`d` data, `r` {"rows":, "cols":}, `e` {"code":} the end.
"""

from __future__ import annotations

import errno
import fcntl
import json
import os
import secrets
import socket
import struct
import termios
import time
from collections import deque

from gpuyard.engines.inside.loop import READ, WRITE
from gpuyard.gateway.broker.alarm import Alarm, Stalled

TYPE_CHECKING = False  # loading typing costs the broker memory
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from gpuyard.engines.inside.loop import Loop
    from gpuyard.gateway.broker.calls import Call, End

UNATTENDED_SECONDS = 30 * 60.0
_MOST_REPLAYED = 256 << 10
_MOST_QUEUED = 1 << 20
_MOST_TYPED = 256 << 10
_MOST_FRAME = 1 << 20
_KEPT_PIECE = 4 << 10  # many small ones would cost more than what is in them
_PIECE = 64 << 10
_SLOT_SECONDS, _SLOT_BYTES = 0.05, 1 << 20  # a shell that floods gets no more of the broker's time than this
_DRAIN_SECONDS = 0.5
_LAST_WORDS_SECONDS = 10.0
_HEAD = struct.Struct(">cI")


class Terminal:
    """One shell. Everybody who is attached sees the same."""

    def __init__(self, loop: Loop, alarm: Alarm, fd: int, call: Call, *, replica: str, is_kept: bool) -> None:
        self.id = secrets.token_urlsafe(12)
        self.since = time.time()
        self._loop, self._alarm, self._fd, self._call = loop, alarm, fd, call
        self._replica, self._is_kept = replica, is_kept
        self._listeners: set[Listener] = set()
        self._replay: deque[bytes] = deque()
        self._replay_bytes = 0
        self._typed = b""
        self._slot_ends, self._slot_left = 0.0, _SLOT_BYTES
        self._is_resting = False
        self.is_over = False
        self._leave_at = time.monotonic() + UNATTENDED_SECONDS
        os.set_blocking(fd, False)
        self._watch()
        call.stay(self._has_ended)

    @property
    def attached(self) -> int:
        return len(self._listeners)

    def attach(self, sock: socket.socket) -> None:
        listener = Listener(self._loop, self, sock)
        self._listeners.add(listener)
        if self._replay:
            listener.tell(b"d", b"".join(self._replay))

    def detach(self, listener: Listener) -> None:
        self._listeners.discard(listener)
        if not self._listeners:
            self._leave_at = time.monotonic() + (UNATTENDED_SECONDS if self._is_kept else 0.0)

    def sweep(self, now: float) -> None:
        for listener in list(self._listeners):
            listener.sweep(now)
        if self._is_resting and now >= self._slot_ends:
            self._is_resting = False
            self._watch()
        if not self._listeners and not self.is_over and now >= self._leave_at:
            self.close()

    def is_busy(self) -> bool:
        return self._is_resting or (not self._is_kept and not self._listeners)

    def can_be_forgotten(self) -> bool:
        return self.is_over and not self._listeners

    def resize(self, rows: int, cols: int) -> None:
        if self._fd >= 0:
            fcntl.ioctl(self._fd, termios.TIOCSWINSZ, struct.pack("HHHH", rows, cols, 0, 0))

    def type(self, data: bytes) -> None:
        self._typed += data
        self._watch()

    def takes_more(self) -> bool:
        return len(self._typed) < _MOST_TYPED

    def close(self) -> None:
        """Hang up."""
        self._call.close()
        self._end(None)

    def _watch(self) -> None:
        if self._fd >= 0 and not self._is_resting:
            self._loop.watch(self._fd, self._serve, READ | WRITE if self._typed else READ)

    def _serve(self) -> None:
        try:
            with self._alarm.over(self._fd):
                self._write()
                self._read()
        except BlockingIOError:
            return
        except OSError as problem:
            if problem.errno != errno.EIO:  # EIO: nobody has it open inside any more; the code is still to come
                self.close()
            self._close_fd()
        except Stalled:
            self._alarm.blame(self._replica)
            self.close()

    def _write(self) -> None:
        if not self._typed:
            return
        try:
            self._typed = self._typed[os.write(self._fd, self._typed[:4096]) :]
        except BlockingIOError:
            return
        self._watch()
        for listener in self._listeners:
            listener.watch()  # it may be listened to again

    def _read(self) -> None:
        now = time.monotonic()
        if now >= self._slot_ends:
            self._slot_ends, self._slot_left = now + _SLOT_SECONDS, _SLOT_BYTES
        piece = os.read(self._fd, _PIECE)
        if not piece:
            raise OSError(errno.EIO, "closed")
        self._show(piece)
        self._slot_left -= len(piece)
        if self._slot_left <= 0:
            self._is_resting = True
            self._loop.forget(self._fd)

    def _show(self, piece: bytes) -> None:
        if self._is_kept:
            if self._replay and len(self._replay[-1]) < _KEPT_PIECE:
                self._replay[-1] += piece
            else:
                self._replay.append(piece)
            self._replay_bytes += len(piece)
            while self._replay_bytes - len(self._replay[0]) >= _MOST_REPLAYED:
                self._replay_bytes -= len(self._replay.popleft())
        for listener in list(self._listeners):
            listener.tell(b"d", piece)

    def _has_ended(self, end: End) -> None:
        """What the shell said last may still lie in the terminal."""
        until = time.monotonic() + _DRAIN_SECONDS
        self._typed = b""
        try:
            with self._alarm.over(self._fd):
                while self._fd >= 0 and time.monotonic() < until:
                    piece = os.read(self._fd, _PIECE)
                    if not piece:
                        break
                    self._show(piece)
        except (OSError, Stalled):  # there is no more
            pass
        self._end(end["ended"])

    def _end(self, code: int | None) -> None:
        if self.is_over:
            return
        self.is_over = True
        self._close_fd()
        for listener in list(self._listeners):
            listener.finish(code)

    def _close_fd(self) -> None:
        if self._fd >= 0:
            self._loop.forget(self._fd)
            os.close(self._fd)
            self._fd = -1


class Listener:
    """One stream to the gateway. A slow one gets the latest; what it missed it does not get."""

    def __init__(self, loop: Loop, terminal: Terminal, sock: socket.socket) -> None:
        self._loop, self._terminal, self._sock = loop, terminal, sock
        self._queue: deque[bytes] = deque()
        self._queued = 0
        self._heard = b""
        self._close_at: float | None = None
        self._has_said_all = False
        sock.setblocking(False)
        self.watch()

    def tell(self, kind: bytes, payload: bytes) -> None:
        if kind == b"d" and len(self._queue) > 1:  # the first may be half sent
            last = self._queue[-1]
            if last[:1] == b"d" and len(last) < _KEPT_PIECE:
                self._queued -= len(self._queue.pop())
                payload = last[_HEAD.size :] + payload
        self._queue.append(_HEAD.pack(kind, len(payload)) + payload)
        self._queued += len(self._queue[-1])
        while self._queued > _MOST_QUEUED and len(self._queue) > 2:
            self._queued -= len(self._queue[1])  # the first may be half sent
            del self._queue[1]
        self._send()

    def finish(self, code: int | None) -> None:
        self._close_at = time.monotonic() + _LAST_WORDS_SECONDS
        self.tell(b"e", json.dumps({"code": code}).encode())

    def sweep(self, now: float) -> None:
        if self._close_at is not None and now >= self._close_at:
            self._close()

    def watch(self) -> None:
        """While the shell takes no more, nothing more is read from here."""
        wanted = READ if self._terminal.takes_more() or self._close_at is not None else 0
        self._loop.watch(self._sock.fileno(), self._serve, wanted | (WRITE if self._queue else 0))

    def _serve(self) -> None:
        self._send()
        if self._sock.fileno() >= 0 and (self._terminal.takes_more() or self._close_at is not None):
            self._receive()

    def _send(self) -> None:
        if self._sock.fileno() < 0:
            return
        try:
            while self._queue:
                sent = self._sock.send(self._queue[0], socket.MSG_NOSIGNAL)
                self._queued -= sent
                if sent < len(self._queue[0]):
                    self._queue[0] = self._queue[0][sent:]
                else:
                    self._queue.popleft()
            if self._close_at is not None and not self._has_said_all:
                self._say_no_more()
        except BlockingIOError:
            self.watch()
            return
        except OSError:
            self._close()
            return
        self.watch()

    def _say_no_more(self) -> None:
        """The other side closes once it has read all. Closed by us, what somebody types just now would break the
        stream, and with it what they have not read yet."""
        self._has_said_all = True
        self._sock.shutdown(socket.SHUT_WR)

    def _receive(self) -> None:
        try:
            piece = self._sock.recv(_PIECE)
        except BlockingIOError:
            return
        except OSError:
            piece = b""
        if not piece:
            self._close()
            return
        if self._close_at is not None:  # for nobody any more
            return
        self._heard += piece
        try:
            self._heed()
            self.watch()
        except (ValueError, TypeError, KeyError):  # no frame of ours
            self._close()

    def _heed(self) -> None:
        while len(self._heard) >= _HEAD.size:
            kind, length = _HEAD.unpack_from(self._heard)
            if length > _MOST_FRAME:
                raise ValueError("a frame that is too large")
            if len(self._heard) < _HEAD.size + length:
                return
            payload = self._heard[_HEAD.size : _HEAD.size + length]
            self._heard = self._heard[_HEAD.size + length :]
            if kind == b"d":
                self._terminal.type(payload)
            elif kind == b"r":
                self._terminal.resize(*read_size(json.loads(payload)))

    def _close(self) -> None:
        if self._sock.fileno() >= 0:
            self._loop.forget(self._sock.fileno())
            self._sock.close()
            self._terminal.detach(self)


def read_size(told: dict[str, Any]) -> tuple[int, int]:
    """Rows and columns, kept within what a screen may have."""
    rows, cols = int(told.get("rows", 24)), int(told.get("cols", 80))
    return max(1, min(rows, 10_000)), max(1, min(cols, 10_000))


class Terminals:
    """All there are: by user and replica."""

    def __init__(self, loop: Loop, most_per_user: int) -> None:
        self._loop, self._most = loop, most_per_user
        self._all: dict[tuple[str, str], dict[str, Terminal]] = {}

    def add(self, user: str, replica: str, terminal: Terminal) -> None:
        self._all.setdefault((user, replica), {})[terminal.id] = terminal

    def find(self, user: str, replica: str, id: str) -> Terminal | None:
        """Only one's own, and only in this replica."""
        found = self._all.get((user, replica), {}).get(id)
        return found if found is not None and not found.is_over else None

    def of(self, user: str, replica: str) -> list[Terminal]:
        return [terminal for terminal in self._all.get((user, replica), {}).values() if not terminal.is_over]

    def has_room_for(self, user: str) -> bool:
        held = sum(len(terminals) for (owner, _), terminals in self._all.items() if owner == user)
        return held < self._most

    def sweep(self, now: float) -> None:
        for key, terminals in list(self._all.items()):
            for terminal in list(terminals.values()):
                self._loop.guard(_sweeping(terminal, now))
                if terminal.can_be_forgotten():
                    del terminals[terminal.id]
            if not terminals:
                del self._all[key]

    def is_busy(self) -> bool:
        return any(terminal.is_busy() for terminals in self._all.values() for terminal in terminals.values())

    def close(self) -> None:
        for terminals in self._all.values():
            for terminal in terminals.values():
                terminal.close()


def _sweeping(terminal: Terminal, now: float) -> Callable[[], None]:
    return lambda: terminal.sweep(now)
