"""Messages on the door's socket: JSON text of bounded size, with file descriptors beside it."""

from __future__ import annotations

import _socket
import _thread
import json
import os
import stat
import struct

TYPE_CHECKING = False  # loading typing would cost every workload a part of its start
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from typing import Any

MOST_BYTES = 60_000
MOST_FDS = 3
_INT = struct.calcsize("i")
_ROOM = _socket.CMSG_SPACE(253 * _INT) + _socket.CMSG_SPACE(3 * _INT)  # for all that can come: see `close_all`
_NO_WAITING = struct.pack("ii", 0, 0)
_MOST_UNREAD = 10_000


class Gone(Exception):
    """The other side has closed."""


class Malformed(Exception):
    """What came is no message."""


def send(sock: _socket.socket, message: Mapping[str, Any], fds: Sequence[int] = ()) -> None:
    """All at once or not at all. The other side gets descriptors of its own; ours stay open."""
    text = json.dumps(message).encode("utf-8", "surrogateescape")
    if len(text) > MOST_BYTES:
        raise Malformed("the message is too large")
    beside = [(_socket.SOL_SOCKET, _socket.SCM_RIGHTS, struct.pack(f"{len(fds)}i", *fds))] if fds else []
    try:
        sock.sendmsg([text], beside, _socket.MSG_NOSIGNAL)
    except (BrokenPipeError, ConnectionResetError) as problem:
        raise Gone from problem


def receive(sock: _socket.socket) -> tuple[dict[str, Any], list[int]]:
    """A message and the descriptors that came with it, which are the caller's to close."""
    try:
        text, beside, flags, _ = sock.recvmsg(MOST_BYTES + 1, _ROOM, _socket.MSG_CMSG_CLOEXEC)
    except ConnectionResetError as problem:
        raise Gone from problem
    fds = _descriptors(beside)
    try:
        if not text and not fds:
            raise Gone
        if len(fds) > MOST_FDS:
            raise Malformed("too many descriptors")
        return _read(text, flags), fds
    except (Gone, Malformed):
        close_all(fds)
        raise


def _read(text: bytes, flags: int) -> dict[str, Any]:
    if flags & (_socket.MSG_TRUNC | _socket.MSG_CTRUNC) or len(text) > MOST_BYTES:
        raise Malformed("the message is too large")
    try:
        message = json.loads(text)
    except (ValueError, RecursionError) as problem:
        raise Malformed("the message is not JSON") from problem
    if not isinstance(message, dict):
        raise Malformed("the message is not an object")
    return message


def _descriptors(beside: Sequence[tuple[int, int, bytes]]) -> list[int]:
    found: list[int] = []
    for level, kind, data in beside:
        if level == _socket.SOL_SOCKET and kind == _socket.SCM_RIGHTS:
            whole = len(data) - len(data) % _INT
            found += struct.unpack(f"{whole // _INT}i", data[:whole])
    return found


def close_all(fds: Sequence[int]) -> None:
    """Whoever sent a socket may have chosen that its last holder waits, for hours, until all it holds is delivered. So
    we hold all that is sent, where the kernel would throw away for us what there is no room for; take that choice back;
    and, as its maker may be faster, let nobody wait for the closing."""
    sockets = []
    for fd in fds:
        if stat.S_ISSOCK(os.fstat(fd).st_mode):
            sockets.append(fd)
        else:
            os.close(fd)
    if sockets:
        _thread.start_new_thread(_close_sockets, (sockets,))


def _close_sockets(fds: Sequence[int]) -> None:
    for fd in fds:
        sock = _socket.socket(fileno=fd)
        try:
            sock.setsockopt(_socket.SOL_SOCKET, _socket.SO_LINGER, _NO_WAITING)
        finally:
            sock.close()


def hang_up(sock: _socket.socket) -> None:
    """Close a connection to somebody not trusted: first what they sent and nobody has read, for the same reason."""
    try:
        sock.shutdown(_socket.SHUT_RDWR)  # from here on nothing more comes
        sock.setsockopt(_socket.SOL_SOCKET, _socket.SO_PASSCRED, 1)  # tells an empty message from the end
        for _ in range(_MOST_UNREAD):
            try:
                text, beside, _, _ = sock.recvmsg(1, _ROOM, _socket.MSG_CMSG_CLOEXEC)
            except ConnectionResetError:  # told once, before what lies there
                continue
            close_all(_descriptors(beside))
            if not text and not beside:
                return
    except OSError:  # it was never connected
        return
    finally:
        sock.close()
