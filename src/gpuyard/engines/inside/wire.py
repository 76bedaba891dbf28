"""Messages on the door's socket: JSON text of bounded size, with file descriptors beside it."""

from __future__ import annotations

import _socket
import json
import os
import struct

TYPE_CHECKING = False  # loading typing would cost every workload a part of its start
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from typing import Any

MOST_BYTES = 60_000
MOST_FDS = 3
_INT = struct.calcsize("i")


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
        text, beside, flags, _ = sock.recvmsg(
            MOST_BYTES + 1, _socket.CMSG_SPACE(MOST_FDS * _INT), _socket.MSG_CMSG_CLOEXEC
        )
    except ConnectionResetError as problem:
        raise Gone from problem
    fds = _descriptors(beside)
    try:
        if not text and not fds:
            raise Gone
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
    for fd in fds:
        os.close(fd)
