"""Ports on loopback for those who begin to listen only later, or again and again."""

from __future__ import annotations

import errno
import random
import socket
from pathlib import Path

_RANGE = Path("/proc/sys/net/ipv4/ip_local_port_range")
_LOWEST, _HIGHEST = 10_000, 65_535


def a_port() -> int:
    """Nobody else is given it while these tests run: the kernel gives it to nobody who asks for any port, so neither
    does it become the near end of a connection, and other tests beside these see that it is claimed."""
    first, last = map(int, _RANGE.read_text().split())
    aside = [port for port in range(_LOWEST, _HIGHEST + 1) if not first <= port <= last]
    for port in random.SystemRandom().sample(aside, len(aside)):
        if _is_free(port) and _claim(port):
            return port
    raise AssertionError("every port that the kernel gives to nobody is taken")


def same_ports() -> tuple[str, ...]:
    """Options of `yard up` for a server that is started again where it was."""
    return "--port", str(a_port()), "--gateway-port", "0", "--ssh-port", "0"


def _is_free(port: int) -> bool:
    with socket.socket() as probe:
        try:
            probe.bind(("127.0.0.1", port))
        except OSError as problem:
            if problem.errno != errno.EADDRINUSE:
                raise
            return False
    return True


def _claim(port: int) -> bool:
    """By a name that is of this network namespace, as ports are. It is let go of when this process ends."""
    with socket.socket(socket.AF_UNIX) as claim:
        try:
            claim.bind(f"\0gpuyard-tests-port-{port}")
        except OSError as problem:
            if problem.errno != errno.EADDRINUSE:
                raise
            return False
        claim.detach()
    return True
