"""Finds the container engine of this machine, or starts one, and learns what it can do."""

from __future__ import annotations

import os
import socket
import struct
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from gpuyard.engines.container.client import EngineClient, about
from gpuyard.engines.container.creating import EngineFacts
from gpuyard.engines.container.service import OwnService

USUAL_SOCKETS = ("/run/podman/podman.sock", "/var/run/docker.sock")
CDI_FOLDERS = ("/etc/cdi", "/var/run/cdi")
_USUAL_FILES, _USUAL_PROCESSES = 1024, 1024
_NO_LIMIT = 1 << 20


class NoEngine(Exception):
    """There is none, and why none could be started."""


@dataclass(frozen=True, slots=True)
class FoundEngine:
    client: EngineClient
    facts: EngineFacts
    let_go: Callable[[], None] = lambda: None  # ends the service if it is ours; what runs goes on without


def sockets(asked_for: str, environment: Mapping[str, str]) -> list[str]:
    """Where an engine may answer, best first. Only sockets of this machine: folders are shown to containers by path."""
    if asked_for:
        return [asked_for.removeprefix("unix://")]
    named = environment.get("DOCKER_HOST", "")
    return [*([named.removeprefix("unix://")] if named.startswith("unix://") else []), *USUAL_SOCKETS]


def find_engine(data: Path, asked_for: str = "", insecure_registries: Sequence[str] = ()) -> FoundEngine:
    """One that answers; otherwise podman, started as ours. Raises NoEngine."""
    for path in sockets(asked_for, os.environ):
        said = about(path)
        if said is not None:
            return FoundEngine(EngineClient(path), facts_of(said, path))
    if asked_for:
        raise NoEngine(f"no container engine answers on {asked_for}")
    if OwnService.program() is None:
        raise NoEngine("neither podman nor docker was found on this machine")
    return _start_own(OwnService(data, insecure_registries=insecure_registries))


def _start_own(service: OwnService) -> FoundEngine:
    service.ensure()
    said = about(service.socket) if service.wait() else None
    if said is None:
        raise NoEngine(f"podman was started and does not answer on {service.socket}")
    client = EngineClient(service.socket)
    client.on_news(lambda is_away: service.heed(client.away_seconds) if is_away else None)
    return FoundEngine(client, facts_of(said, service.socket), service.end)


def facts_of(said: Mapping[str, Any], path: str) -> EngineFacts:
    """From its own words, and from what the kernel says of its process."""
    components = (said.get("Version") or {}).get("Components") or ()
    is_podman = any("podman" in str(part.get("Name", "")).lower() for part in components)
    files, processes = limits_of(_peer(path))
    return EngineFacts(
        is_podman=is_podman,
        runtimes=frozenset(said.get("Runtimes") or ()),
        cdi_devices=bool(said.get("CDISpecDirs")) and _names_nvidia(said["CDISpecDirs"]),
        most_files=files,
        most_processes=processes,
    )


def _names_nvidia(folders: Sequence[str]) -> bool:
    return any("nvidia" in path.name for folder in folders for path in Path(folder).glob("*.*"))


def _peer(path: str) -> int:
    """The process that listens on a socket."""
    with socket.socket(socket.AF_UNIX) as asking:
        asking.connect(path)
        pid, _, _ = struct.unpack("3i", asking.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, 12))
    return int(pid)


def limits_of(pid: int) -> tuple[int, int]:
    """How many files and processes a process of this one may have at most."""
    try:
        text = Path(f"/proc/{pid}/limits").read_text(encoding="ascii")
    except OSError:
        return _USUAL_FILES, _USUAL_PROCESSES
    return (
        _hard_limit(text, "Max open files", _USUAL_FILES),
        _hard_limit(text, "Max processes", _USUAL_PROCESSES),
    )


def _hard_limit(text: str, name: str, usual: int) -> int:
    for line in text.splitlines():
        if line.startswith(name):
            word = line[len(name) :].split()[1]
            return min(int(word), _NO_LIMIT) if word.isdigit() else _NO_LIMIT
    return usual
