"""How often something may be tried: strictly by account, generously by address. Counted before any work is done.

Tries to log in are counted in the store, for the server and every worker of the gateway alike: whoever is sent away at
one door finds the others shut too. One that is refused costs a look, and writes nothing.
"""

from __future__ import annotations

import hashlib
import ipaddress
import threading
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Protocol

from gpuyard.domain.errors import TooMany
from gpuyard.domain.reasons import Code, because
from gpuyard.store import login_tries
from gpuyard.store.database import Connection, Database
from gpuyard.store.login_tries import Tries

WINDOW_SECONDS = 300.0


def network_of(address: str) -> str:
    """Whom to count tries for. Of IPv6 anybody has 2^64 addresses, so they count as one."""
    try:
        parsed = ipaddress.ip_address(address.partition("%")[0])
    except ValueError:
        return address
    if parsed.version == 4:
        return address
    return str(ipaddress.ip_network((parsed, 64), strict=False))


class Rule(Protocol):
    """Pure: what was tried before and when it is, in; how long to wait, or what was tried then, out."""

    def wait(self, tries: Tries | None, now: float) -> float:
        """Seconds until the next try. 0: now."""
        ...

    def counted(self, tries: Tries | None, now: float) -> Tries:
        """With one more."""
        ...


@dataclass(frozen=True, slots=True)
class TryRule:
    """Ten are free, then the waits double. Forgets after a quiet while. A refused try is not counted, so that a wait
    has an end."""

    free: int = 10
    window_seconds: float = WINDOW_SECONDS
    longest_wait_seconds: float = 300.0

    def wait(self, tries: Tries | None, now: float) -> float:
        if tries is None or self._is_forgotten(tries, now):
            return 0.0
        pause = self._pause_after(tries.count)
        return min(max(0.0, tries.at + pause - now), pause)  # the clocks of two processes may differ a little

    def counted(self, tries: Tries | None, now: float) -> Tries:
        before = 0.0 if tries is None or self._is_forgotten(tries, now) else tries.count
        return Tries(before + 1.0, now)

    def _is_forgotten(self, tries: Tries, now: float) -> bool:
        return now - tries.at >= self.window_seconds

    def _pause_after(self, count: float) -> float:
        if count < self.free:
            return 0.0
        return float(min(2.0 ** min(count - self.free + 1, 64), self.longest_wait_seconds))


@dataclass(frozen=True, slots=True)
class AddressRule:
    """A hundred are free, and come back evenly over five minutes, so that a place where many people mistype all day
    long is never shut for long."""

    free: int = 100
    window_seconds: float = WINDOW_SECONDS

    def wait(self, tries: Tries | None, now: float) -> float:
        return max(0.0, self.counted(tries, now).count - self.free) * self.window_seconds / self.free

    def counted(self, tries: Tries | None, now: float) -> Tries:
        if tries is None:
            return Tries(1.0, now)
        back = max(0.0, now - tries.at) * self.free / self.window_seconds
        return Tries(max(0.0, tries.count - back) + 1.0, now)


_BY_PERSON, _BY_ADDRESS = TryRule(), AddressRule()


class LoginLimits:
    """Everything a try to log in is counted by.

    Strictly by account, and by account and address: those who guess at one account from one place are not let off
    when its owner logs in elsewhere. Generously by address alone, because a whole office may be behind one.
    """

    def __init__(self, database: Database) -> None:
        self._database = database

    def count(self, account: str, address: str, now: float) -> None:
        """Count one try, or refuse it. One that is refused counts nowhere: not against the account, nor the office."""
        rules = _rules(account, address)
        with self._database.read() as conn:
            _refuse_too_many(conn, rules, now)
        with self._database.write() as conn:
            before = _refuse_too_many(conn, rules, now)
            login_tries.remove_before(conn, now - WINDOW_SECONDS)
            login_tries.put(conn, {key: rule.counted(before.get(key), now) for key, rule in rules.items()})

    def went_well(self, account: str, address: str) -> None:
        """The right password: start over."""
        both, by_account, by_address = _rules(account, address)
        with self._database.write() as conn:
            login_tries.remove(conn, (both, by_account))
            _take_back(conn, [by_address])

    def take_back(self, account: str, address: str) -> None:
        """This one try does not count."""
        with self._database.write() as conn:
            _take_back(conn, list(_rules(account, address)))


def _rules(account: str, address: str) -> dict[str, Rule]:
    """By account and address, by account, and by address, in this order."""
    network = network_of(address)
    return {
        _key("both", network, account): _BY_PERSON,
        _key("account", account): _BY_PERSON,
        _key("address", network): _BY_ADDRESS,
    }


def _key(*parts: str) -> str:
    told = "\0".join(parts).encode("utf-8", "surrogatepass")
    return hashlib.sha256(told).hexdigest()


def _refuse_too_many(conn: Connection, rules: Mapping[str, Rule], now: float) -> dict[str, Tries]:
    """What was tried before. Raises TooMany."""
    before = login_tries.get_many(conn, rules)
    wait = max(rule.wait(before.get(key), now) for key, rule in rules.items())
    if wait > 0:
        raise TooMany(because(Code.TOO_MANY_TRIES, seconds=int(wait) + 1), wait)
    return before


def _take_back(conn: Connection, keys: list[str]) -> None:
    before = login_tries.get_many(conn, keys)
    left = {key: Tries(tries.count - 1.0, tries.at) for key, tries in before.items() if tries.count > 1.0}
    login_tries.remove(conn, before)
    login_tries.put(conn, left)


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
