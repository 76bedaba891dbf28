"""One network per workload: its replicas find each other by name, and nobody else is there."""

from __future__ import annotations

import ipaddress
import socket
import struct
import threading
from collections.abc import Iterable
from functools import partial
from pathlib import Path
from typing import Any

from aiodocker import Docker

from gpuyard.engines.container import names
from gpuyard.engines.container.client import EngineClient, Refused
from gpuyard.engines.container.firewall import Firewall

HOSTS_BITS = 6  # 61 replicas of one workload on one machine
ROUTES = Path("/proc/net/route")
_MOST_TRIES = 20

Net = ipaddress.IPv4Network


class NoRoom(Exception):
    """Every subnet of the pool is taken."""


class Networks:
    def __init__(self, client: EngineClient, firewall: Firewall, mark: str, pool: str, *, isolates: bool) -> None:
        self._client = client
        self._firewall = firewall
        self._mark = mark
        self._pool = ipaddress.IPv4Network(pool)
        self._isolates = isolates
        self._lock = threading.Lock()

    def ensure(self, workload: str) -> str:
        """The workload's network, made now if it is not there. First the rules that close it off; and once more,
        because docker puts its own, which let everything out, before them with every network."""
        self._firewall.ensure()
        name = names.network_name(workload)
        with self._lock:
            there = self._client.call(_list)
            if any(network["Name"] == name for network in there):
                return name
            self._make(workload, name, _subnets(there))
        self._firewall.ensure()
        return name

    def remove(self, workload: str) -> None:
        """Left alone while somebody is still in it, and when it is not there."""
        name = names.network_name(workload)

        async def ask(docker: Docker) -> None:
            await docker._query_json(f"networks/{name}", method="DELETE")

        try:
            self._client.call(ask)
        except Refused:  # in use, or gone already; the next sweep sees
            return

    def ours(self) -> set[str]:
        """The workloads that have a network here."""
        found = [network.get("Labels") or {} for network in self._client.call(_list)]
        return {labels[names.WORKLOAD] for labels in found if labels.get(names.DATA) == self._mark}

    def _make(self, workload: str, name: str, taken: list[Net]) -> None:
        for _ in range(_MOST_TRIES):
            subnet = free_subnet(self._pool, [*taken, *routes(ROUTES.read_text(encoding="ascii"))])
            try:
                self._client.call(partial(_create, self._config(workload, name, subnet)))
            except Refused as problem:
                if problem.is_taken and name in problem.message:
                    return
                if "subnet" not in problem.message and "pool" not in problem.message.lower():
                    raise
                taken = [*taken, subnet]  # somebody outside of our view has it
            else:
                return
        raise NoRoom(f"no subnet of {self._pool} could be had")

    def _config(self, workload: str, name: str, subnet: Net) -> dict[str, Any]:
        options = {"com.docker.network.bridge.name": names.bridge_name(self._mark, workload)}
        addresses: dict[str, Any] = {"Config": [{"Subnet": str(subnet)}]}
        if self._isolates:
            options["isolate"] = "true"
        else:
            addresses["Driver"] = "default"  # docker looks for one without a name otherwise, and complains
        return {
            "Name": name,
            "Driver": "bridge",
            "Options": options,
            "IPAM": addresses,
            "Labels": {names.DATA: self._mark, names.WORKLOAD: workload},
        }


async def _list(docker: Docker) -> list[dict[str, Any]]:
    return await docker.networks.list()


async def _create(config: dict[str, Any], docker: Docker) -> None:
    await docker.networks.create(config)


def _subnets(networks: Iterable[dict[str, Any]]) -> list[Net]:
    configs = [config for network in networks for config in (network.get("IPAM") or {}).get("Config") or ()]
    found = [ipaddress.ip_network(config["Subnet"], strict=False) for config in configs if config.get("Subnet")]
    return [subnet for subnet in found if isinstance(subnet, Net)]


def routes(text: str) -> list[Net]:
    """The networks this machine has a way to, from /proc/net/route; not the way to everywhere else."""
    found: list[Net] = []
    for line in text.splitlines()[1:]:
        fields = line.split()
        address, mask = (_address(fields[number]) for number in (1, 7))
        if mask != "0.0.0.0":  # noqa: S104  nothing is bound to it
            found.append(Net(f"{address}/{mask}", strict=False))
    return found


def _address(text: str) -> str:
    return socket.inet_ntoa(struct.pack("<L", int(text, 16)))


def free_subnet(pool: Net, taken: Iterable[Net]) -> Net:
    """The first one that overlaps with nothing."""
    used = [net for net in taken if net.overlaps(pool)]
    for subnet in pool.subnets(new_prefix=max(pool.prefixlen, 32 - HOSTS_BITS)):
        if not any(subnet.overlaps(other) for other in used):
            return subnet
    raise NoRoom(f"every subnet of {pool} is taken")
