"""Visitors nobody knows yet: how many may stand at a door at a time, all together and from one address.

Who came through a proxy the admin trusts is not counted by that proxy's address: everybody would be one visitor.
"""

from __future__ import annotations

import ipaddress
from collections.abc import Iterable

from gpuyard.access.limits import network_of

_Network = ipaddress.IPv4Network | ipaddress.IPv6Network


class Proxies:
    """Addresses and networks whose word about their visitors is believed."""

    def __init__(self, told: Iterable[str] = ()) -> None:
        self._networks: list[_Network] = [ipaddress.ip_network(each, strict=False) for each in told]

    def __contains__(self, address: str) -> bool:
        return bool(self._networks) and _is_in(address, self._networks)

    def visitor(self, through: str, told: Iterable[bytes]) -> str:
        """Who came `through` a proxy, by its X-Forwarded-For: the last one in it that is no proxy itself. What stands
        before that is the visitor's own word. Without a usable address it is the proxy."""
        named = b",".join(told).decode("latin-1").split(",")
        for each in reversed(named):
            address = _plain(each)
            if address is None:
                return through
            if address not in self:
                return address
        return through


def _plain(text: str) -> str | None:
    try:
        return str(ipaddress.ip_address(text.strip()))
    except ValueError:
        return None


def _is_in(address: str, networks: list[_Network]) -> bool:
    plain = _plain(address.partition("%")[0])
    if plain is None:
        return False
    parsed = ipaddress.ip_address(plain)
    mapped = parsed.ipv4_mapped if isinstance(parsed, ipaddress.IPv6Address) else None
    return any((mapped or parsed) in network for network in networks)


class Strangers:
    """Counts them. Whoever is let in by `come` is taken off by `go`, once: when they are known, or gone."""

    def __init__(self, most: int, most_per_address: int, proxies: Proxies | None = None) -> None:
        self._most, self._most_per_address = most, most_per_address
        self._proxies = proxies or Proxies()
        self._there: dict[str, int] = {}
        self._all = 0

    def come(self, peer: str) -> bool:
        """False when there are too many already."""
        network = network_of(peer)
        there = self._there.get(network, 0)
        if self._all >= self._most or (there >= self._most_per_address and peer not in self._proxies):
            return False
        self._there[network] = there + 1
        self._all += 1
        return True

    def go(self, peer: str) -> None:
        network = network_of(peer)
        self._all -= 1
        self._there[network] -= 1
        if not self._there[network]:
            del self._there[network]
