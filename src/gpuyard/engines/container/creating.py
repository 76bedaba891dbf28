"""What the engine is asked to make for one replica. Pure: a request and the engine's abilities in, plain data out."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from gpuyard.domain.cluster import Card
from gpuyard.domain.people import BLOCK, FIRST_BLOCK
from gpuyard.engines.container import names
from gpuyard.engines.seam import LaunchRequest
from gpuyard.engines.variables import CONTROL_NODES, card_variables

TOOLBOX, INSIDE = "/opt/yard", "/run/yard/inside"
PORTER = f"{INSIDE}/porter.py"
REQUEST, LOG, DOOR, BEACON, WORK, SHIPPED = (
    "/run/yard/request.json",
    "/run/yard/log",
    "/run/yard/door",
    "/run/yard/beacon",
    "/run/yard/work",
    "/run/yard/shipped.tar",
)

# Enough for apt, pip, conda and sudo as root of one's own numbers; no device nodes, no raw packets, no mounting.
CAPABILITIES = (
    *("CHOWN", "DAC_OVERRIDE", "FOWNER", "FSETID", "KILL", "SETGID", "SETUID", "SETPCAP", "SETFCAP"),
    *("NET_BIND_SERVICE", "SYS_CHROOT"),
)


# What the runtimes of the cards' makers hear when nobody else says more: one of them may be the engine's usual runtime,
# and then reads it for every container.
NO_CARDS = {"NVIDIA_VISIBLE_DEVICES": "void", "ASCEND_VISIBLE_DEVICES": ""}


@dataclass(frozen=True, slots=True)
class Source:
    """Something of the machine shown inside. Every source is made by us before the engine is asked."""

    outside: str
    inside: str
    read_only: bool = False


@dataclass(frozen=True, slots=True)
class EngineFacts:
    """What the engine is able to do, from what it says of itself."""

    is_podman: bool
    runtimes: frozenset[str] = frozenset()
    cdi_devices: bool = False  # it takes cards by their CDI names, and this machine has names for NVIDIA's
    most_files: int = 1024  # its own hard limits: a container cannot have more
    most_processes: int = 1024
    seccomp: str = ""  # the file of kernel calls that is sent with every container; empty: the engine has its own


@dataclass(frozen=True, slots=True)
class Plan:
    """Everything about one replica's container that is settled before it is made."""

    request: LaunchRequest
    image: str  # by id
    sources: tuple[Source, ...]
    cards: tuple[Card, ...]
    control_nodes: tuple[str, ...]  # with real cards
    rdma_nodes: tuple[str, ...]  # with the machine's own network
    network: str | None  # None: the machine's own
    command: tuple[str, ...]
    pids_limit: int
    mark: str


def has_block(request: LaunchRequest, engine: EngineFacts) -> bool:
    """Whether the owner is root inside, over a block of numbers of their own."""
    return engine.is_podman and request.uid >= FIRST_BLOCK


def identity(request: LaunchRequest, engine: EngineFacts) -> tuple[int, int]:
    """Who the first process is, as the machine counts."""
    return (request.uid, request.uid) if has_block(request, engine) else (request.uid, request.gid)


def config(plan: Plan, engine: EngineFacts) -> dict[str, Any]:
    """The body of the engine's `create`. What an image says of entry, user, health and labels does not count."""
    request = plan.request
    inside_root = has_block(request, engine)
    body: dict[str, Any] = {
        "Image": plan.image,
        "Entrypoint": list(plan.command),
        "Cmd": [],
        "User": "0:0" if inside_root else f"{request.uid}:{request.gid}",
        "WorkingDir": "/",
        "Env": [f"{name}={value}" for name, value in sorted(engine_variables(plan).items())],
        "Labels": names.labels(request.id, plan.mark),
        "Healthcheck": {"Test": ["NONE"]},
        "StopSignal": "SIGTERM",
        "Tty": False,
        "OpenStdin": False,
        "HostConfig": _host_config(plan, engine),
    }
    if plan.network is not None:
        body["Hostname"] = names.host_name(request)
        body["NetworkingConfig"] = {
            "EndpointsConfig": {plan.network: {"Aliases": [request.id.short, *request.aliases]}}
        }
    return body


def engine_variables(plan: Plan) -> dict[str, str]:
    """Only what the engine's own hooks read; an image's word for it must not count. The rest is told to the porter."""
    return NO_CARDS | card_variables(plan.request.allotment.device, plan.cards, hidden=is_hidden(plan.cards))


def is_hidden(cards: Sequence[Card]) -> bool:
    """Only the given nodes exist inside; stand-ins keep their names."""
    return any(not card.simulated for card in cards)


def _host_config(plan: Plan, engine: EngineFacts) -> dict[str, Any]:
    allotment = plan.request.allotment
    host: dict[str, Any] = {
        "NanoCpus": allotment.cpu_milli * 1_000_000,
        "Memory": allotment.memory,
        "MemorySwap": allotment.memory,
        "PidsLimit": plan.pids_limit,
        "ShmSize": allotment.shm,
        "IpcMode": "private",
        # Both, always: an engine that is given one forgets its own default for the other.
        "Ulimits": [
            _ulimit("nofile", engine.most_files),
            _ulimit("nproc", engine.most_processes),
            _ulimit("core", 0),
        ],
        "CapDrop": ["ALL"],
        "CapAdd": list(CAPABILITIES) if has_block(plan.request, engine) else [],
        "SecurityOpt": ["no-new-privileges", *([f"seccomp={engine.seccomp}"] if engine.seccomp else [])],
        "Mounts": [_mount(source) for source in plan.sources],
        "NetworkMode": "host" if plan.network is None else plan.network,
        "LogConfig": _log_config(engine),
        "RestartPolicy": {"Name": ""},
        "AutoRemove": False,
    }
    if has_block(plan.request, engine):
        uid = plan.request.uid
        host["UsernsMode"] = f"auto:uidmapping=0:{uid}:{BLOCK},gidmapping=0:{uid}:{BLOCK},size={BLOCK}"
    elif not engine.is_podman:
        host["UsernsMode"] = "host"  # a docker that maps all of its containers alike does not know the owner's number
    if plan.network is None and plan.request.peers:  # on the machine's own network they are all here
        host["ExtraHosts"] = [f"{name}:127.0.0.1" for name in plan.request.peers]
    host |= card_access(plan, engine)
    host["Devices"] = [*host.get("Devices", ()), *(_device(path) for path in plan.rdma_nodes)]
    return host


def first_number(body: Mapping[str, Any]) -> int | None:
    """Which number root inside has outside; None when it is no other."""
    found = re.match(r"auto:uidmapping=0:(\d+):", str((body.get("HostConfig") or {}).get("UsernsMode") or ""))
    return int(found[1]) if found else None


def card_access(plan: Plan, engine: EngineFacts) -> dict[str, Any]:
    """Real cards by the best way the engine has: by name (CDI), by NVIDIA's runtime, or node by node. Podman takes the
    name of a runtime and does nothing with it."""
    cards = [card for card in plan.cards if not card.simulated]
    if not cards:
        return {}
    if plan.request.allotment.device == "nvidia" and engine.cdi_devices:
        ids = [f"nvidia.com/gpu={card.index}" for card in cards]
        return {"DeviceRequests": [{"Driver": "cdi", "DeviceIDs": ids}]}
    if plan.request.allotment.device == "nvidia" and "nvidia" in engine.runtimes and not engine.is_podman:
        return {"Runtime": "nvidia"}
    nodes = [card.path for card in cards if card.path.startswith("/dev/")]
    return {"Devices": [_device(path) for path in (*nodes, *plan.control_nodes)]}


def control_nodes(device: str, cards: Sequence[Card], there: Sequence[str]) -> tuple[str, ...]:
    """The nodes that every job with such a card opens besides, as far as the machine has them."""
    if not is_hidden(cards):
        return ()
    return tuple(path for path in CONTROL_NODES.get(device, ()) if path in there)


def digest(body: Mapping[str, Any]) -> str:
    """Tells containers apart that would be made differently. Image and labels do not count here."""
    rest = {key: value for key, value in body.items() if key not in ("Image", "Labels")}
    return hashlib.sha256(json.dumps(rest, sort_keys=True).encode()).hexdigest()


def _ulimit(name: str, number: int) -> dict[str, Any]:
    return {"Name": name, "Soft": number, "Hard": number}


def _mount(source: Source) -> dict[str, Any]:
    """With all that is mounted below it: a part of it alone is more than the kernel lets a user namespace have. How it
    propagates is left to the engine (privately): podman takes a word on that for a wish to leave out what is below."""
    return {"Type": "bind", "Source": source.outside, "Target": source.inside, "ReadOnly": source.read_only}


def _device(path: str) -> dict[str, str]:
    return {"PathOnHost": path, "PathInContainer": path, "CgroupPermissions": "rw"}


def _log_config(engine: EngineFacts) -> dict[str, Any]:
    """Output goes to our own file; here only what goes wrong before that, and never much."""
    if engine.is_podman:
        return {"Type": "k8s-file", "Config": {"max-size": "1m"}}
    return {"Type": "json-file", "Config": {"max-size": "1m", "max-file": "1"}}
