"""Carries bytes, and nothing but bytes, from a socket that a user's program holds the other end of.

Such a program can send open sockets along with its bytes, and whoever reads is the one to close them: for as long as
the program chose (see `wire.close_all`). Here only a thread of its own waits. Newer systems need none of this.
"""

from __future__ import annotations

import _thread
import socket

_PIECE = 64 << 10


def relayed(outer: socket.socket) -> socket.socket:
    """Another end for the same conversation, which is safe to read from. `outer` is the relay's from here on."""
    inner, ours = socket.socketpair()
    for sock in (outer, inner):
        sock.setblocking(True)
    left = [2]
    lock = _thread.allocate_lock()

    def carry(source: socket.socket, target: socket.socket) -> None:
        try:
            while piece := source.recv(_PIECE):
                target.sendall(piece)
        except OSError:
            _shut(source, socket.SHUT_RD)
        _shut(target, socket.SHUT_WR)
        with lock:
            left[0] -= 1
            is_last = left[0] == 0
        if is_last:
            outer.close()
            inner.close()

    _thread.start_new_thread(carry, (outer, inner))
    _thread.start_new_thread(carry, (inner, outer))
    ours.setblocking(False)
    return ours


def _shut(sock: socket.socket, how: int) -> None:
    try:
        sock.shutdown(how)
    except OSError:  # it is gone
        return
