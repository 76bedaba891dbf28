"""Replicas are handed to the engine in the background: a slow start never holds up the loop."""

from __future__ import annotations

import logging
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Executor
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from queue import Empty, SimpleQueue
from typing import TypeVar

from gpuyard.control.job_keys import JobKeys
from gpuyard.dialects.inside import told
from gpuyard.domain.errors import EngineError, EngineUnsure, EngineWaits
from gpuyard.domain.people import Group, User
from gpuyard.domain.reasons import Reason
from gpuyard.domain.told import SmallFile, is_host_name
from gpuyard.domain.workload import Kind, Replica, ReplicaId, Workload
from gpuyard.engines.seam import Engine, LaunchesQuickly, LaunchRequest, MakesRooms, SharesNetwork

log = logging.getLogger(__name__)

T = TypeVar("T")
Attempt = tuple[Workload, list[LaunchRequest]]  # and what to launch for it
Key = tuple[str, int]  # a workload and the number of its attempt


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

    def __init__(self, engine: Engine, executor: Executor, wake: Callable[[], None], keys: JobKeys) -> None:
        self._engine = engine
        self._keys = keys
        self._executor = executor
        self._wake = wake
        self._under_way: set[Key] = set()
        self._put_off: dict[Key, Attempt] = {}  # those that wait for something; they hold no thread
        self._results: SimpleQueue[LaunchResult] = SimpleQueue()
        self._waits: SimpleQueue[tuple[Key, Reason]] = SimpleQueue()

    def is_launching(self, workload: Workload) -> bool:
        return (workload.id, workload.attempts_made) in self._under_way

    def begin(self, attempts: Sequence[tuple[Workload, list[LaunchRequest]]]) -> None:
        """Hand these to the engine: each by a thread of its own, or all by one where a start takes no time."""
        fresh: list[Attempt] = []
        for workload, requests in attempts:
            key = (workload.id, workload.attempts_made)
            if key not in self._under_way:
                self._under_way.add(key)
                fresh.append((workload, requests))
        if isinstance(self._engine, LaunchesQuickly):
            if fresh:
                self._executor.submit(self._launch, fresh)
        else:
            for attempt in fresh:
                self._executor.submit(self._launch, [attempt])

    def withdraw(self, workload: Workload) -> bool:
        """Nobody wants this attempt any more: if it only waits for something, it is not asked for again. False when it
        is being launched in this moment."""
        key = (workload.id, workload.attempts_made)
        if self._put_off.pop(key, None) is None:
            return False
        self._under_way.discard(key)
        return True

    def results(self) -> list[LaunchResult]:
        """Everything that came back since the last time."""
        found = _all_of(self._results)
        self._under_way.difference_update((result.workload, result.attempt) for result in found)
        return found

    def waits(self) -> list[tuple[Key, Reason]]:
        """Who was put off since the last time, and what they wait for."""
        return _all_of(self._waits)

    def _launch(self, attempts: Sequence[Attempt]) -> None:
        makes_rooms = isinstance(self._engine, MakesRooms) and self._engine.makes_rooms
        for workload, requests in attempts:
            key = (workload.id, workload.attempts_made)
            try:
                is_shared = isinstance(self._engine, SharesNetwork) and self._engine.shares_network(workload.group)
                told_all = tell(workload, requests, self._keys_at, makes_rooms=makes_rooms, own_ports=is_shared)
                result = self._launch_all(key, told_all)
            except EngineWaits as waits:
                self._put_off[key] = (workload, requests)
                self._waits.put((key, waits.reason))
                waits.then(partial(self._again, key))
                continue
            except Exception:  # a mistake in the engine: nobody knows what became of it, so it is asked for again
                log.exception("launching %s", key[0])
                result = LaunchResult(*key, {}, unsure=True)
            self._results.put(result)
        self._wake()

    def _again(self, key: Key) -> None:
        attempt = self._put_off.pop(key, None)
        if attempt is not None:
            with suppress(RuntimeError):  # the server ends in this very moment
                self._executor.submit(self._launch, [attempt])

    def _keys_at(self, workload: str, folder: str) -> tuple[SmallFile, ...]:
        """None where the engine cannot show them: the machine's own people have keys of their own there."""
        files = self._keys.files(workload, folder)
        if not isinstance(self._engine, MakesRooms) or any(self._engine.file_refusal(file.path) for file in files):
            return ()
        return files

    def _launch_all(self, key: tuple[str, int], requests: Iterable[LaunchRequest]) -> LaunchResult:
        handles: dict[ReplicaId, str] = {}
        for request in requests:
            try:
                handles[request.id] = self._engine.launch(request)
            except EngineWaits:
                raise
            except EngineUnsure:
                return LaunchResult(*key, {}, unsure=True)
            except EngineError as error:
                detail = str(error.reason.facts.get("detail", error))
                return LaunchResult(*key, handles, request.id, detail, error.reason)
            except OSError as error:
                log.exception("launching %s", request.id)
                return LaunchResult(*key, handles, request.id, f"{error.strerror or error}")
        return LaunchResult(*key, handles)


def _all_of(queue: SimpleQueue[T]) -> list[T]:
    found: list[T] = []
    while True:
        try:
            found.append(queue.get_nowait())
        except Empty:
            return found


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


def tell(
    workload: Workload,
    requests: Sequence[LaunchRequest],
    keys_at: Callable[[str, str], tuple[SmallFile, ...]] = lambda workload, folder: (),
    *,
    makes_rooms: bool,
    own_ports: bool = False,
) -> Iterator[LaunchRequest]:
    """With what replicas that came through a front door expect to find, one after the other: of thousands each may be
    told of all the others. Pure; the job's own variables win."""
    if workload.spec.origin is None:
        yield from requests
        return
    each = [told(workload, request.id, own_ports=own_ports) for request in requests]
    peers = tuple(dict.fromkeys(name for one in each for name in one.aliases if is_host_name(name)))
    known, by_address = frozenset(peers), dict[str, str]()
    keys = {folder: keys_at(workload.id, folder) for folder in {one.keys for one in each} if folder}
    for request, one in zip(requests, each, strict=True):
        if makes_rooms:
            own = tuple(name for name in one.aliases if name in known)
            files = (*one.files, *keys.get(one.keys, ()))
            yield replace(_with_variables(request, one.env), aliases=own, peers=peers, files=files)
        else:
            by_address.update((text, _by_address(text, known)) for _, text in one.env if text not in by_address)
            env = [(name, by_address[text]) for name, text in one.env]
            yield replace(_with_variables(request, env), files=one.files)


def _with_variables(request: LaunchRequest, env: Sequence[tuple[str, str]]) -> LaunchRequest:
    own = {name for name, _ in request.env}
    return replace(request, env=(*((name, value) for name, value in env if name not in own), *request.env))


def _by_address(text: str, names: frozenset[str]) -> str:
    """Where names mean nothing all replicas are on this machine, which has this address."""
    return _HOST.sub(lambda found: "127.0.0.1" if found.group() in names else found.group(), text)


_HOST = re.compile(r"[a-z0-9](?:[a-z0-9.-]*[a-z0-9])?")
