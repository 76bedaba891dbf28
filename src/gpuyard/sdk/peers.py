"""Who is at the other end of a connection that stays on this machine, as the kernel knows it.

A port belongs to nobody: while the server is away, any program may listen there, a job's as well, and would be sent
the secrets meant for the server. So before anything is sent unprotected, the kernel is asked whose process listens and
whose took the connection. Both must be the server's user.
"""

from __future__ import annotations

import os
import socket
import struct
import sys
from collections.abc import Collection, Iterator
from typing import NamedTuple

from gpuyard.sdk.errors import ServerUnreachable

TABLES = "/proc/self/net"
_ROOT = 0
_ANYWHERE = {socket.AF_INET: "0.0.0.0", socket.AF_INET6: "::"}  # noqa: S104


class Stranger(ConnectionRefusedError):
    """Somebody else listens where the server should."""

    def __init__(self, port: int, uid: int) -> None:
        super().__init__(f"port {port} of this machine is served by {user_called(uid)}, not by the gpuyard server")
        self.port = port
        self.uid = uid


class OtherEnd(NamedTuple):
    """Users by their numbers. Who listens is looked up first: had a stranger listened and left since, the connection
    would be reset by then, or be seen as taken."""

    listening: tuple[int, ...]  # nobody: none
    took: int | None  # root while it waits to be taken; None when there is no such connection any more


class End(NamedTuple):
    address: str
    port: int


def require_user(sock: socket.socket, trusted: Collection[int | None]) -> None:
    """Raises Stranger unless the process at the other end is root's or of one of these users. What is on another
    machine is not looked at, nor is anything on systems that do not tell."""
    here, there = End(*sock.getsockname()[:2]), End(*sock.getpeername()[:2])
    if sys.platform != "linux" or not _stays_here(here.address, there.address):
        return
    found = by_question(sock.family, here, there) or by_tables(here, there)
    if not found.listening or found.took is None:
        raise ConnectionRefusedError(f"nobody listens on port {there.port} of this machine any more")
    for uid in (*found.listening, found.took):
        if uid != _ROOT and uid not in trusted:
            raise Stranger(there.port, uid)


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


# --- by asking about these very sockets (sock_diag(7)) --------------------------------------------------------------

_SOCK_DIAG, _BY_FAMILY, _REQUEST, _ERROR = 4, 20, 1, 2
_HEAD, _QUESTION, _PORTS = struct.Struct("=IHHII"), struct.Struct("=BBxxI"), struct.Struct("!HH")
_NO_INTERFACE_NO_COOKIE = bytes(4) + b"\xff" * 8
_STATE_AT, _USER_AT = 17, 80
_LISTEN = 10


def by_question(family: socket.AddressFamily | int, here: End, there: End) -> OtherEnd | None:
    """In no time, however many connections there are. None where the kernel does not answer such questions."""
    anywhere = End(_ANYWHERE[socket.AddressFamily(family)], 0)
    try:
        with socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, _SOCK_DIAG) as kernel:
            if _asked(kernel, family, here, there) is None:  # our own end is there in any case
                return None
            listener = _asked(kernel, family, there, anywhere)
            taken = _asked(kernel, family, there, here)
    except OSError:
        return None
    is_taken = taken is not None and taken[0] != _LISTEN
    return OtherEnd((listener[1],) if listener else (), taken[1] if taken and is_taken else None)


def _asked(kernel: socket.socket, family: int, near: End, far: End) -> tuple[int, int] | None:
    """The state and the user of the socket with these ends, or of the one that listens at the near end."""
    addresses = b"".join(socket.inet_pton(family, _plain(end.address)).ljust(16, b"\0") for end in (near, far))
    sought = _PORTS.pack(near.port, far.port) + addresses + _NO_INTERFACE_NO_COOKIE
    question = _QUESTION.pack(family, socket.IPPROTO_TCP, 0xFFFFFFFF) + sought
    kernel.send(_HEAD.pack(_HEAD.size + len(question), _BY_FAMILY, _REQUEST, 1, 0) + question)
    answer = kernel.recv(4096)
    if _HEAD.unpack_from(answer)[1] == _ERROR:
        return None
    return answer[_STATE_AT], int.from_bytes(answer[_USER_AT : _USER_AT + 4], sys.byteorder)


def _plain(address: str) -> str:
    return address.partition("%")[0]


# --- by reading through all there are -------------------------------------------------------------------------------

_LISTENING = "0A"
_ANY = ("00000000", "0" * 32)


class _Row(NamedTuple):
    near: str  # address:port as the kernel writes them
    far: str
    state: str
    uid: int


def by_tables(here: End, there: End) -> OtherEnd:
    """A socket for IPv6 may serve IPv4 as well."""
    for table, near, far in _places(there, here):
        found = _read(table, near, far)
        if found.took is not None:
            return found
    return OtherEnd((), None)


def _places(there: End, here: End) -> Iterator[tuple[str, str, str]]:
    if ":" in there.address:
        yield "tcp6", _written_v6(*there), _written_v6(*here)
    else:
        yield "tcp", _written_v4(*there), _written_v4(*here)
        yield (
            "tcp6",
            _written_v6(f"::ffff:{there.address}", there.port),
            _written_v6(f"::ffff:{here.address}", here.port),
        )


def _written_v4(address: str, port: int) -> str:
    return f"{struct.unpack('=I', socket.inet_aton(address))[0]:08X}:{port:04X}"


def _written_v6(address: str, port: int) -> str:
    words = struct.unpack("=4I", socket.inet_pton(socket.AF_INET6, _plain(address)))
    return f"{''.join(f'{word:08X}' for word in words)}:{port:04X}"


def _read(table: str, near: str, far: str) -> OtherEnd:
    """Those that listen come first in the table."""
    exact, any_address, took = list[int](), list[int](), None
    port = near.rpartition(":")[2]
    for row in _rows(table):
        if row.state == _LISTENING and row.near == near:
            exact.append(row.uid)
        elif row.state == _LISTENING and row.near in (f"{any_of}:{port}" for any_of in _ANY):
            any_address.append(row.uid)
        elif row.near == near and row.far == far:
            took = row.uid
    return OtherEnd(tuple(exact or any_address), took)


def _rows(table: str) -> Iterator[_Row]:
    try:
        with open(os.path.join(TABLES, table), encoding="ascii") as file:
            next(file)
            for line in file:
                parts = line.split(None, 8)
                yield _Row(parts[1], parts[2], parts[3], int(parts[7]))
    except FileNotFoundError:  # a machine without IPv6
        return
