"""How often something may be tried: strictly by account, generously by address. Counted before any work is done.

Kept in memory: a restart forgives, which costs an attacker more than it gives.
"""

from __future__ import annotations

import ipaddress
import threading
from dataclasses import dataclass

from gpuyard.domain.errors import TooMany
from gpuyard.domain.reasons import Code, because

MOST_KEYS = 20_000
WINDOW_SECONDS = 300.0


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


class LoginLimits:
    """Everything a try to log in is counted by.

    Strictly by account, and by account and address: those who guess at one account from one place are not let off
    when its owner logs in elsewhere. Generously by address alone, because a whole office may be behind one.
    """

    def __init__(self) -> None:
        self._by_both = TryLimit()
        self._by_account = TryLimit()
        self._by_address = AddressLimit()

    def count(self, account: str, address: str, now: float) -> None:
        """Count one try, or refuse it. One that is refused counts nowhere: not against the account, nor the office."""
        network = network_of(address)
        both = _both(account, network)
        self._by_both.count(both, now)
        try:
            self._by_account.count(account, now)
        except TooMany:
            self._by_both.take_back(both)
            raise
        try:
            self._by_address.count(network, now)
        except TooMany:
            self._by_both.take_back(both)
            self._by_account.take_back(account)
            raise

    def went_well(self, account: str, address: str) -> None:
        """The right password: start over."""
        network = network_of(address)
        self._by_both.forgive(_both(account, network))
        self._by_account.forgive(account)
        self._by_address.take_back(network)

    def take_back(self, account: str, address: str) -> None:
        """This one try does not count."""
        network = network_of(address)
        self._by_both.take_back(_both(account, network))
        self._by_account.take_back(account)
        self._by_address.take_back(network)


def _both(account: str, network: str) -> str:
    return f"{network} {account}"


class TryLimit:
    """Counts tries by key: ten are free, then the waits double. Forgets after a quiet while."""

    def __init__(
        self, *, free: int = 10, window_seconds: float = WINDOW_SECONDS, longest_wait_seconds: float = 300.0
    ) -> None:
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


class AddressLimit:
    """Counts tries by address: a hundred are free, and come back evenly over five minutes, so that a place where many
    people mistype all day long is never shut for long."""

    def __init__(self, *, free: int = 100, window_seconds: float = WINDOW_SECONDS) -> None:
        self._free = free
        self._per_second = free / window_seconds
        self._tries: dict[str, tuple[float, float]] = {}  # how many weigh on it, and when that was so
        self._lock = threading.Lock()

    def count(self, network: str, now: float) -> None:
        """Count one try, or refuse it."""
        with self._lock:
            weight = self._weight(network, now) + 1.0
            if weight > self._free:
                wait = (weight - self._free) / self._per_second
                raise TooMany(because(Code.TOO_MANY_TRIES, seconds=int(wait) + 1), wait)
            if network not in self._tries:
                self._make_room(now)
            self._tries[network] = (weight, now)

    def take_back(self, network: str) -> None:
        """It went well: this one try does not count."""
        with self._lock:
            if network in self._tries:
                weight, at = self._tries[network]
                self._tries[network] = (max(0.0, weight - 1.0), at)

    def _weight(self, network: str, now: float) -> float:
        weight, at = self._tries.get(network, (0.0, now))
        return max(0.0, weight - max(0.0, now - at) * self._per_second)

    def _make_room(self, now: float) -> None:
        if len(self._tries) < MOST_KEYS:
            return
        self._tries = {key: tries for key, tries in self._tries.items() if self._weight(key, now) > 0}
        while len(self._tries) >= MOST_KEYS:
            self._tries.pop(next(iter(self._tries)))


class Ration:
    """Counts by key within an hour that begins with the first; what to do with the number is the caller's."""

    def __init__(self, window_seconds: float = 3600.0) -> None:
        self._window = window_seconds
        self._given: dict[str, tuple[int, float]] = {}  # how many, and when the hour ends
        self._lock = threading.Lock()

    def take(self, key: str, now: float) -> tuple[int, float]:
        """The number of this one in its hour, from 1 on, and when that hour ends."""
        with self._lock:
            number, until = self._given.get(key, (0, 0.0))
            if not until - self._window <= now < until:
                number, until = 0, now + self._window
            self._given[key] = (number + 1, until)
            return number + 1, until
