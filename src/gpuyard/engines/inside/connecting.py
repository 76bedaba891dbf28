"""Connections to what listens inside: a port of the loopback, or a socket file."""

from __future__ import annotations

import _socket
import errno
import os
import time

from .house import BadRequest, number, text
from .loop import WRITE

TYPE_CHECKING = False  # loading typing would cost every workload a part of its start
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from typing import Any

    from .house import House

    Tell = Callable[[dict[str, Any], Sequence[int]], None]

_PATIENCE_SECONDS = 5.0
_LOOPBACKS = ((_socket.AF_INET, "127.0.0.1"), (_socket.AF_INET6, "::1"))


class Connecting:
    """One connection on its way. Ends with an answer, or when the asker leaves."""

    def __init__(self, house: House, message: Mapping[str, Any], tell: Tell) -> None:
        self._house, self._tell = house, tell
        self._until = time.monotonic() + _PATIENCE_SECONDS
        self._sock: _socket.socket | None = None
        self._is_over = False
        self._first_code = 0  # what 127.0.0.1 said counts, also where there is no ::1
        if "port" in message:
            port = number(message["port"], "port", 1, 65535)
            self._targets = [(family, (address, port)) for family, address in _LOOPBACKS]
            self._path = ""
        elif "path" in message:
            self._targets = []
            self._path = os.path.join(house.door, text(message["path"], "path"))
        else:
            raise BadRequest("neither port nor path")
        self.sweep(0.0)

    def sweep(self, now: float) -> None:
        """Begin, and begin again where the other side was busy for a moment."""
        if self._is_over:
            return
        if now > self._until:
            self._refuse("failed", "nobody answered")
        elif self._sock is None:
            self._try_path() if self._path else self._try_next_port()

    def leave(self) -> None:
        self._is_over = True
        self._let_go()

    def hear(self, message: Mapping[str, Any]) -> None:
        """Nothing more can be said to it."""

    def _try_path(self) -> None:
        sock = _socket.socket(_socket.AF_UNIX, _socket.SOCK_STREAM | _socket.SOCK_CLOEXEC | _socket.SOCK_NONBLOCK)
        try:
            folder = os.open(os.path.dirname(self._path), os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC)
            try:  # through the descriptor, the address is short however long the path is
                code = sock.connect_ex(f"/proc/self/fd/{folder}/{os.path.basename(self._path)}")
            finally:
                os.close(folder)
        except OSError as problem:
            code = problem.errno or errno.EINVAL
        if code == 0:
            self._give(sock)
            return
        sock.close()
        if code != errno.EAGAIN:  # that would be: it listens and is busy
            self._refuse_for(code)

    def _try_next_port(self) -> None:
        family, address = self._targets.pop(0)
        try:
            sock = _socket.socket(family, _socket.SOCK_STREAM | _socket.SOCK_CLOEXEC | _socket.SOCK_NONBLOCK)
        except OSError as problem:
            self._after(problem.errno or errno.EINVAL)
            return
        code = sock.connect_ex(address)
        if code == 0:
            self._give(sock)
        elif code == errno.EINPROGRESS:
            self._sock = sock
            self._house.loop.watch(sock.fileno(), self._is_decided, WRITE)
        else:
            sock.close()
            self._after(code)

    def _is_decided(self) -> None:
        assert self._sock is not None
        code = self._sock.getsockopt(_socket.SOL_SOCKET, _socket.SO_ERROR)
        if code == 0:
            sock, self._sock = self._sock, None
            self._house.loop.forget(sock.fileno())
            self._give(sock)
            return
        self._let_go()
        self._after(code)

    def _after(self, code: int) -> None:
        self._first_code = self._first_code or code
        if self._targets:
            self._try_next_port()
        else:
            self._refuse_for(self._first_code)

    def _give(self, sock: _socket.socket) -> None:
        self._is_over = True
        if sock.family != _socket.AF_UNIX:
            sock.setsockopt(_socket.IPPROTO_TCP, _socket.TCP_NODELAY, 1)
        try:
            self._tell({"ok": True}, [sock.fileno()])
        finally:
            sock.close()

    def _refuse_for(self, code: int) -> None:
        kinds = {errno.ENOENT: "not_found", errno.ENOTDIR: "not_found", errno.ECONNREFUSED: "refused"}
        kinds |= {errno.EACCES: "denied", errno.EPERM: "denied"}
        self._refuse(kinds.get(code, "failed"), os.strerror(code))

    def _refuse(self, kind: str, detail: str) -> None:
        self._is_over = True
        self._let_go()
        self._tell({"ok": False, "error": kind, "detail": detail}, ())

    def _let_go(self) -> None:
        if self._sock is not None:
            self._house.loop.forget(self._sock.fileno())
            self._sock.close()
            self._sock = None
