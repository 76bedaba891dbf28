"""Who is at the other end of a connection that stays on this machine, as the kernel knows it.

A port belongs to nobody: while the server is away, any program may listen there, a job's as well, and would be sent
the secrets meant for the server. So before anything is sent unprotected, the kernel is asked whose process listens and
whose took the connection. Both must be the server's user.
"""

from __future__ import annotations

import os
import socket
import struct
from collections.abc import Collection, Iterator
from typing import NamedTuple

from gpuyard.sdk.errors import ServerUnreachable

TABLES = "/proc/self/net"
_LISTENING = "0A"
_ANY = ("00000000", "0" * 32)
_ROOT = 0


class Stranger(ConnectionRefusedError):
    """Somebody else listens where the server should."""

    def __init__(self, port: int, uid: int) -> None:
        super().__init__(f"port {port} of this machine is served by {user_called(uid)}, not by the gpuyard server")
        self.port = port
        self.uid = uid


class _Row(NamedTuple):
    near: str  # address:port as the kernel writes them
    far: str
    state: str
    uid: int


def require_user(sock: socket.socket, trusted: Collection[int | None]) -> None:
    """Raises Stranger unless the process at the other end is root's or of one of these users. What is on another
    machine is not looked at, nor is anything where there is no such table (no Linux)."""
    here, there = sock.getsockname(), sock.getpeername()
    if not _stays_here(here[0], there[0]) or not os.path.exists(f"{TABLES}/tcp"):
        return
    port = int(there[1])
    for table, near, far in _places(there, here):
        listening, took = _seen(table, near, far)
        if took is None:
            continue
        for uid in (*listening, took):
            if uid != _ROOT and uid not in trusted:
                raise Stranger(port, uid)
        if listening:
            return
        break
    raise ConnectionRefusedError(f"nobody listens on port {port} of this machine any more")


def stranger_told(stranger: Stranger, url: str) -> ServerUnreachable:
    facts = {"url": url, "port": stranger.port, "user": user_called(stranger.uid)}
    return ServerUnreachable("client.stranger", f"{stranger}; nothing was sent there", facts)


def user_called(uid: int) -> str:
    import pwd  # only for those who are told

    try:
        return f"{pwd.getpwuid(uid).pw_name} (uid {uid})"
    except KeyError:
        return f"uid {uid}"


def _stays_here(here: str, there: str) -> bool:
    return here == there or there == "::1" or there.startswith("127.")


def _places(there: tuple[str, int], here: tuple[str, int]) -> Iterator[tuple[str, str, str]]:
    """In which tables, and how written, the other end may stand. A socket for IPv6 may serve IPv4 as well."""
    if ":" in there[0]:
        yield "tcp6", _written_v6(*there[:2]), _written_v6(*here[:2])
    else:
        yield "tcp", _written_v4(*there), _written_v4(*here)
        yield "tcp6", _written_v6(f"::ffff:{there[0]}", there[1]), _written_v6(f"::ffff:{here[0]}", here[1])


def _written_v4(address: str, port: int) -> str:
    return f"{struct.unpack('=I', socket.inet_aton(address))[0]:08X}:{port:04X}"


def _written_v6(address: str, port: int) -> str:
    words = struct.unpack("=4I", socket.inet_pton(socket.AF_INET6, address.partition("%")[0]))
    return f"{''.join(f'{word:08X}' for word in words)}:{port:04X}"


def _seen(table: str, near: str, far: str) -> tuple[list[int], int | None]:
    """Who listens there, and who took the connection: nobody (root) while it waits to be taken, and None when it is not
    in this table. Those that listen come first in the table: had a stranger listened and left since, the connection
    would be reset, or seen as taken."""
    exact, any_address, took = list[int](), list[int](), None
    port = near.rpartition(":")[2]
    for row in _rows(table):
        if row.state == _LISTENING and row.near == near:
            exact.append(row.uid)
        elif row.state == _LISTENING and row.near in (f"{any_of}:{port}" for any_of in _ANY):
            any_address.append(row.uid)
        elif row.near == near and row.far == far:
            took = row.uid
    return exact or any_address, took


def _rows(table: str) -> Iterator[_Row]:
    try:
        with open(f"{TABLES}/{table}", encoding="ascii") as file:
            next(file)
            for line in file:
                parts = line.split(None, 8)
                yield _Row(parts[1], parts[2], parts[3], int(parts[7]))
    except FileNotFoundError:  # a machine without IPv6
        return
