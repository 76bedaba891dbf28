"""Finds the container engine of this machine, or starts one, and learns what it can do."""

from __future__ import annotations

import logging
import os
import re
import socket
import struct
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from gpuyard.engines.container.client import EngineClient, about
from gpuyard.engines.container.creating import EngineFacts
from gpuyard.engines.container.service import HOME, PROFILES, OwnService, keep_seccomp

log = logging.getLogger(__name__)

PODMAN_SOCKET, DOCKER_SOCKET = "/run/podman/podman.sock", "/var/run/docker.sock"
CDI_FOLDERS = ("/etc/cdi", "/var/run/cdi")
_PODMAN_TAKES_NAMES = (5, 4)  # of cards, over this API; those before take them and do nothing with them
_USUAL_FILES, _USUAL_PROCESSES = 1024, 1024
_NO_LIMIT = 1 << 20


class NoEngine(Exception):
    """There is none, and why none could be started."""


@dataclass(frozen=True, slots=True)
class FoundEngine:
    client: EngineClient
    facts: EngineFacts
    let_go: Callable[[], None] = lambda: None  # ends the service if it is ours; what runs goes on without


def sockets(asked_for: str, environment: Mapping[str, str], *, has_podman: bool) -> list[str]:
    """Where an engine may answer, best first. Only sockets of this machine: folders are shown to containers by path.
    Docker only when it is meant or there is no podman: with podman people are root of their own numbers."""
    if asked_for:
        return [asked_for.removeprefix("unix://")]
    named = environment.get("DOCKER_HOST", "")
    meant = [named.removeprefix("unix://")] if named.startswith("unix://") else []
    return [*meant, PODMAN_SOCKET, *([] if has_podman else [DOCKER_SOCKET])]


def find_engine(data: Path, asked_for: str = "", insecure_registries: Sequence[str] = ()) -> FoundEngine:
    """One that answers and is fit; otherwise podman, started as ours. Raises NoEngine."""
    has_podman, problems = OwnService.program() is not None, []
    for path in sockets(asked_for, os.environ, has_podman=has_podman):
        said = about(path)
        problem = "" if said is None else unfit(said)
        if problem:
            problems.append(f"the container engine on {path} {problem}")
        elif said is not None:
            return _take(said, path, data)
    if asked_for:
        raise NoEngine(problems[0] if problems else f"no container engine answers on {asked_for}")
    if not has_podman:
        raise NoEngine(problems[0] if problems else "neither podman nor docker was found on this machine")
    return _start_own(OwnService(data, insecure_registries=insecure_registries))


def unfit(said: Mapping[str, Any]) -> str:
    """Why nobody's work may run there, from the engine's own words; empty when it may."""
    options = [str(option) for option in said.get("SecurityOptions") or ()]
    if any(option.startswith("name=rootless") for option in options):
        return "runs without root and cannot give each person numbers of their own"
    if not any(option.startswith("name=seccomp") and "unconfined" not in option for option in options):
        return "lets containers make every kernel call (no seccomp profile)"
    return ""


def _take(said: Mapping[str, Any], path: str, data: Path) -> FoundEngine:
    """Docker lets nobody without rights make namespaces; podman does, for containers in containers."""
    facts = facts_of(said, path)
    if facts.is_podman:
        profile = keep_seccomp(data / HOME)
        if profile is None:
            where = " or ".join(map(str, PROFILES))
            raise NoEngine(f"the podman on {path} comes without a list of kernel calls to be tightened ({where})")
        facts = replace(facts, seccomp=str(profile))
    if not facts.is_podman and not said.get("LiveRestoreEnabled"):
        log.warning('docker ends all work when it is restarted, unless its daemon.json says "live-restore": true')
    return FoundEngine(EngineClient(path), facts)


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
        cdi_devices=_names_nvidia(card_folders(said, is_podman=is_podman)),
        most_files=files,
        most_processes=processes,
    )


def card_folders(said: Mapping[str, Any], *, is_podman: bool) -> Sequence[str]:
    """Where the engine finds what cards are called. Docker tells; podman does not, and has the usual ones."""
    if not is_podman:
        return said.get("CDISpecDirs") or ()
    version = re.match(r"(\d+)\.(\d+)", str(said.get("ServerVersion") or ""))
    is_able = version is not None and (int(version[1]), int(version[2])) >= _PODMAN_TAKES_NAMES
    return CDI_FOLDERS if is_able else ()


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
