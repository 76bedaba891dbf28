"""Where the platform itself listens: on both families of addresses, and where no job sits.

`localhost` is 127.0.0.1 and ::1, and browsers ask the second first. Whoever listens on the one that we left free is
asked in our place, so we have both or none.
"""

from __future__ import annotations

import errno
import socket
import time
from pathlib import Path

from gpuyard.engines.process.squatters import Squatter, end_squatters, find_squatters

BESIDE = {"127.0.0.1": "::1", "::1": "127.0.0.1", "0.0.0.0": "::", "::": "0.0.0.0", "localhost": "::1"}  # noqa: S104
FREED_SECONDS = 10.0  # what is killed may take a moment to be gone
AGAIN_SECONDS = 0.05
WAITING = 1024
_NO_SUCH_FAMILY = (errno.EADDRNOTAVAIL, errno.EAFNOSUPPORT)

Listeners = tuple[socket.socket, ...]
"""One for each family, all on one port."""


class PortTaken(OSError):
    """By somebody who is none of our jobs."""

    def __init__(self, port: int, squatters: list[Squatter]) -> None:
        by = ", ".join(map(str, squatters)) or "somebody who cannot be seen from here"
        super().__init__(errno.EADDRINUSE, f"port {port} is taken by {by}")


def listen(host: str, port: int, data: Path, sharers: int = 1) -> list[Listeners]:
    """For each of those who share the port, sockets of their own, among which the kernel deals out visitors. A job of
    this data folder that sits there is ended."""
    deadline = time.monotonic() + FREED_SECONDS
    while True:
        try:
            return _listen(_addresses(host), port, sharers)
        except OSError as problem:
            if problem.errno != errno.EADDRINUSE:
                raise
        squatters = find_squatters(port, data) if port else []
        if (port and not (squatters and end_squatters(squatters, port, data))) or time.monotonic() > deadline:
            raise PortTaken(port, squatters)
        time.sleep(AGAIN_SECONDS)


def close(listeners: Listeners) -> None:
    for listener in listeners:
        listener.close()


def _addresses(host: str) -> list[str]:
    plain = host.strip("[]")
    return [plain, *([BESIDE[plain]] if plain in BESIDE else [])]


def _listen(addresses: list[str], port: int, sharers: int) -> list[Listeners]:
    """They are tried without sharing first: with it, two platforms would share a port."""
    alone = _open_all(addresses, port, shares=False)
    if sharers == 1:
        return [alone]
    port = alone[0].getsockname()[1]
    close(alone)
    opened: list[Listeners] = []
    try:
        for _ in range(sharers):
            opened.append(_open_all(addresses, port, shares=True))
    except OSError:
        for listeners in opened:
            close(listeners)
        raise
    return opened


def _open_all(addresses: list[str], port: int, *, shares: bool) -> Listeners:
    opened: list[socket.socket] = []
    try:
        for address in addresses:
            try:
                opened.append(_open(address, port, shares=shares))
            except OSError as problem:
                if not opened or problem.errno not in _NO_SUCH_FAMILY:
                    raise
            port = opened[0].getsockname()[1]
    except OSError:
        close(tuple(opened))
        raise
    return tuple(opened)


def _open(address: str, port: int, *, shares: bool) -> socket.socket:
    is_v6 = ":" in address
    listener = socket.socket(socket.AF_INET6 if is_v6 else socket.AF_INET, socket.SOCK_STREAM)
    try:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        if shares:
            listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
        if is_v6:
            listener.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 1)
        listener.bind((address, port))
        listener.listen(WAITING)
    except OSError:
        listener.close()
        raise
    return listener
