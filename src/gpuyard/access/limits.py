"""How often something may be tried: ten times in five minutes, then ever longer waits. Counted before any work is done.

Kept in memory: a restart forgives, which costs an attacker more than it gives.
"""

from __future__ import annotations

import ipaddress
import threading
from dataclasses import dataclass

from gpuyard.domain.errors import TooMany
from gpuyard.domain.reasons import Code, because

MOST_KEYS = 20_000


@dataclass(slots=True)
class _Tries:
    count: int
    last: float


def network_of(address: str) -> str:
    """Whom to count tries for. Of IPv6 anybody has 2^64 addresses, so they count as one."""
    try:
        parsed = ipaddress.ip_address(address.partition("%")[0])
    except ValueError:
        return address
    if parsed.version == 4:
        return address
    return str(ipaddress.ip_network((parsed, 64), strict=False))


class TryLimit:
    """Counts tries by key (an address, an account). The caller gives the time."""

    def __init__(self, *, free: int = 10, window_seconds: float = 300.0, longest_wait_seconds: float = 300.0) -> None:
        self._free = free
        self._window = window_seconds
        self._longest = longest_wait_seconds
        self._tries: dict[str, _Tries] = {}
        self._lock = threading.Lock()

    def count(self, key: str, now: float) -> None:
        """Count one try, or refuse it. A refused try is not counted, so that a wait has an end."""
        with self._lock:
            tries = self._tries.get(key)
            if tries is None or now - tries.last >= self._window:
                self._make_room(now)
                self._tries[key] = _Tries(1, now)
                return
            wait = tries.last + self._wait_after(tries.count) - now
            if wait > 0:
                raise TooMany(because(Code.TOO_MANY_TRIES, seconds=int(wait) + 1), wait)
            tries.count, tries.last = tries.count + 1, now

    def forgive(self, key: str) -> None:
        """It went well: start over."""
        with self._lock:
            self._tries.pop(key, None)

    def take_back(self, key: str) -> None:
        """It went well: this one try does not count."""
        with self._lock:
            tries = self._tries.get(key)
            if tries is not None:
                tries.count = max(0, tries.count - 1)

    def _wait_after(self, count: int) -> float:
        if count < self._free:
            return 0.0
        return float(min(2.0 ** (count - self._free + 1), self._longest))

    def _make_room(self, now: float) -> None:
        if len(self._tries) < MOST_KEYS:
            return
        self._tries = {key: tries for key, tries in self._tries.items() if now - tries.last < self._window}
        while len(self._tries) >= MOST_KEYS:
            self._tries.pop(next(iter(self._tries)))
