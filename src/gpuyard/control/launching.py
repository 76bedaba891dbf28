"""Replicas are handed to the engine in the background: a slow start never holds up the loop."""

from __future__ import annotations

import logging
import re
from collections.abc import Callable, Sequence
from concurrent.futures import Executor
from dataclasses import dataclass, replace
from pathlib import Path
from queue import Empty, SimpleQueue

from gpuyard.dialects.inside import told
from gpuyard.domain.errors import EngineError, EngineUnsure
from gpuyard.domain.people import Group, User
from gpuyard.domain.reasons import Reason
from gpuyard.domain.told import Told, is_host_name
from gpuyard.domain.workload import Kind, Replica, ReplicaId, Workload
from gpuyard.engines.seam import Engine, LaunchesQuickly, LaunchRequest, MakesRooms

log = logging.getLogger(__name__)

Attempt = tuple[tuple[str, int], list[LaunchRequest]]  # (workload, number) and what to launch for it


@dataclass(frozen=True, slots=True)
class LaunchResult:
    """What came of handing an attempt to the engine. Neither handles nor failure: nobody knows, try again."""

    workload: str
    attempt: int
    handles: dict[ReplicaId, str]
    failed: ReplicaId | None = None
    detail: str = ""
    reason: Reason | None = None
    unsure: bool = False


class Launcher:
    """Launches attempts on an executor and keeps the results until the loop fetches them."""

    def __init__(self, engine: Engine, executor: Executor, wake: Callable[[], None]) -> None:
        self._engine = engine
        self._executor = executor
        self._wake = wake
        self._under_way: set[tuple[str, int]] = set()
        self._results: SimpleQueue[LaunchResult] = SimpleQueue()

    def is_launching(self, workload: Workload) -> bool:
        return (workload.id, workload.attempts_made) in self._under_way

    def begin(self, attempts: Sequence[tuple[Workload, list[LaunchRequest]]]) -> None:
        """Hand these to the engine: each by a thread of its own, or all by one where a start takes no time."""
        fresh: list[Attempt] = []
        makes_rooms = isinstance(self._engine, MakesRooms) and self._engine.makes_rooms
        for workload, requests in attempts:
            key = (workload.id, workload.attempts_made)
            if key not in self._under_way:
                self._under_way.add(key)
                fresh.append((key, tell(workload, requests, makes_rooms=makes_rooms)))
        if isinstance(self._engine, LaunchesQuickly):
            if fresh:
                self._executor.submit(self._launch, fresh)
        else:
            for attempt in fresh:
                self._executor.submit(self._launch, [attempt])

    def results(self) -> list[LaunchResult]:
        """Everything that came back since the last time."""
        found: list[LaunchResult] = []
        while True:
            try:
                result = self._results.get_nowait()
            except Empty:
                return found
            self._under_way.discard((result.workload, result.attempt))
            found.append(result)

    def _launch(self, attempts: Sequence[Attempt]) -> None:
        for key, requests in attempts:
            try:
                result = self._launch_all(key, requests)
            except Exception:  # a mistake in the engine: nobody knows what became of it, so it is asked for again
                log.exception("launching %s", key[0])
                result = LaunchResult(*key, {}, unsure=True)
            self._results.put(result)
        self._wake()

    def _launch_all(self, key: tuple[str, int], requests: list[LaunchRequest]) -> LaunchResult:
        handles: dict[ReplicaId, str] = {}
        for request in requests:
            try:
                handles[request.id] = self._engine.launch(request)
            except EngineUnsure:
                return LaunchResult(*key, {}, unsure=True)
            except EngineError as error:
                detail = str(error.reason.facts.get("detail", error))
                return LaunchResult(*key, handles, request.id, detail, error.reason)
            except OSError as error:
                log.exception("launching %s", request.id)
                return LaunchResult(*key, handles, request.id, f"{error.strerror or error}")
        return LaunchResult(*key, handles)


def render(
    workload: Workload,
    replica: Replica,
    users: dict[str, User],
    groups: dict[str, Group],
    workdir: Path | None,
    common: Sequence[tuple[str, str]] = (),
) -> LaunchRequest:
    """The request for one replica: pure data, made from what is stored, and from what all workloads have in common."""
    role = workload.spec.role(replica.id.role)
    owner, group = users.get(workload.owner), groups.get(workload.group)
    return LaunchRequest(
        id=replica.id,
        owner=workload.owner,
        uid=owner.uid if owner else 0,
        gid=group.gid if group else 0,
        group=workload.group,
        command=role.command,
        env=(*common, *role.env, ("YARD_NAME", workload.spec.name), ("YARD_REPLICAS", str(role.replicas))),
        allotment=replica.allotment,
        grace_seconds=workload.spec.grace_seconds,
        mounts=role.mounts,
        image=role.image,
        workdir=workdir,
        checkpoint=workload.spec.checkpoint,
        kind=workload.spec.kind,
        ports=tuple(port.number for port in role.ports) if role.replicas == 1 else (),
        keeps=workload.id if workload.spec.kind is Kind.ENV else None,
    )


def tell(workload: Workload, requests: list[LaunchRequest], *, makes_rooms: bool) -> list[LaunchRequest]:
    """With what replicas that came through a front door expect to find. Pure; the job's own variables win."""
    if workload.spec.origin is None:
        return requests
    each = [told(workload, request.id) for request in requests]
    peers = tuple(dict.fromkeys(name for one in each for name in one.aliases if is_host_name(name)))
    return [_with(request, one, peers, makes_rooms) for request, one in zip(requests, each, strict=True)]


def _with(request: LaunchRequest, one: Told, peers: tuple[str, ...], makes_rooms: bool) -> LaunchRequest:
    own = {name for name, _ in request.env}
    env = tuple((name, value) for name, value in one.env if name not in own)
    if not makes_rooms:
        env = tuple((name, _by_address(value, peers)) for name, value in env)
        return replace(request, env=(*env, *request.env), files=one.files)
    aliases = tuple(name for name in one.aliases if is_host_name(name))
    return replace(request, env=(*env, *request.env), aliases=aliases, peers=peers, files=one.files)


def _by_address(text: str, names: tuple[str, ...]) -> str:
    """Where names mean nothing all replicas are on this machine, which has this address."""
    for name in sorted(names, key=len, reverse=True):
        text = re.sub(rf"(?<![A-Za-z0-9.-]){re.escape(name)}(?![A-Za-z0-9-]|\.[A-Za-z0-9])", "127.0.0.1", text)
    return text
