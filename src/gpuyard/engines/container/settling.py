"""Writes down what became of a replica: that it begins, that it runs, and, once and for all, how it ended. Then clears
away what the engine still holds of it."""

from __future__ import annotations

import logging
import os
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from gpuyard.domain.workload import ReplicaId
from gpuyard.engines.container import endings
from gpuyard.engines.container.client import EngineAway, Refused
from gpuyard.engines.container.containers import Containers, Found, Listed
from gpuyard.engines.container.keeping import Keeping
from gpuyard.engines.container.networks import Networks
from gpuyard.engines.container.watch import Watch
from gpuyard.engines.news import News
from gpuyard.engines.process.layout import Layout
from gpuyard.engines.process.supervision import cgroups, processes, record

log = logging.getLogger(__name__)

BOOT_ID = "/proc/sys/kernel/random/boot_id"
CGROUPS = "/sys/fs/cgroup"
_LOCK_SECONDS = 5.0
_AGREE_SECONDS = 3.0  # so long an engine may say of a dead process that it runs; then its guard is dead too
_AGAIN_SECONDS = 2.0
_PATIENCE_SECONDS = 60.0  # so long we wait for an absent engine's word on how a dead one ended


class Settler:
    def __init__(
        self,
        layout: Layout,
        containers: Containers,
        networks: Networks,
        keeping: Keeping,
        watch: Watch,
        news: News,
    ) -> None:
        self._layout = layout
        self._containers = containers
        self._networks = networks
        self._keeping = keeping
        self._watch = watch
        self._news = news
        self._boot_id = processes.boot_id(BOOT_ID)
        self._oom_kills: dict[ReplicaId, int] = {}
        self._dead_since: dict[ReplicaId, float] = {}

    # --- beginning ------------------------------------------------------------------------------------------------

    def begin(self, id: ReplicaId, container: str, memory: int) -> bool:
        """From here on it has begun, for everybody and for good. False when it was stopped before."""
        folder = self._folder(id)
        lock = _lock(folder)
        if lock is None:
            raise EngineAway("the replica's folder is in use")
        try:
            if record.exists(folder, record.TOMBSTONE):
                return False
            status = {
                "life": record.STARTING,
                "boot_id": self._boot_id,
                "begun_at": time.time(),
                "container": container,
                "memory": memory,
            }
            record.write(folder, record.STATUS, status)
            return True
        finally:
            os.close(lock)

    def bury(self, id: ReplicaId) -> bool:
        """Leave a mark that it must never begin. False when it has begun."""
        folder = self._folder(id)
        lock = _lock(folder)
        if lock is None:
            return False
        try:
            return record.bury(folder)
        finally:
            os.close(lock)

    def has_started(self, id: ReplicaId) -> bool:
        """Whether the engine has started it, in this attempt, and perhaps nobody lived to note that."""
        status = record.read(self._folder(id), record.STATUS) or {}
        found = self._containers.look(status["container"])
        return found is not None and found.has_begun_since(status["begun_at"])

    def note_running(self, id: ReplicaId) -> None:
        """It was started. One that has ended by now did run."""
        status = record.read(self._folder(id), record.STATUS) or {}
        found = self._containers.look(status["container"])
        self._note_started(id, status, found)
        self.settle(id, 0)

    def _note_started(self, id: ReplicaId, status: Mapping[str, Any], found: Found | None) -> None:
        start = processes.start_time(found.pid) if found and found.pid else None
        job = {"pid": found.pid, "start": start} if found and start is not None else {"pid": 0, "start": 0}
        running = {
            **status,
            "life": record.RUNNING,
            "started_at": time.time(),
            "job": job,
            "cgroup": group_of(job["pid"]) if job["pid"] else None,
        }
        record.write(self._folder(id), record.STATUS, running, durable=False)
        self._tell(id)

    # --- stopping -------------------------------------------------------------------------------------------------

    def ask_to_stop(self, id: ReplicaId, grace: float) -> float:
        """Note it for whoever comes later. Asked again, only a shorter time counts. Returns what is left of it."""
        folder, until = self._folder(id), time.time() + max(0.0, grace)
        asked = record.read(folder, record.STOP)
        if asked is None or float(asked.get("until", 0.0)) > until:
            record.write(folder, record.STOP, {"grace": grace, "until": until})
        return self._seconds_left(id)

    def is_stop_asked(self, id: ReplicaId) -> bool:
        return record.exists(self._folder(id), record.STOP)

    def _seconds_left(self, id: ReplicaId) -> float:
        """Not more than was asked for, whatever the clock was set to meanwhile."""
        asked = record.read(self._folder(id), record.STOP) or {}
        grace, until = float(asked.get("grace", 0.0)), float(asked.get("until", 0.0))
        return max(0.0, min(grace, until - time.time()))

    # --- ending ---------------------------------------------------------------------------------------------------

    def is_well(self, status: Mapping[str, Any]) -> bool:
        """It runs, by the word of the kernel."""
        job = status.get("job") or {"pid": 0, "start": 0}
        is_now = status.get("boot_id") == self._boot_id
        return bool(job["pid"]) and is_now and processes.is_alive(job["pid"], job["start"])

    def settle(self, id: ReplicaId, oom_kills: int) -> None:
        """Look at it, with the engine's help if need be, and write down what is found."""
        if oom_kills:
            self._oom_kills[id] = oom_kills
        status = record.read(self._folder(id), record.STATUS)
        if status is None:
            return
        if status.get("life") == record.ENDED:
            self._clear(id, status)
        elif self.is_well(status):
            self._follow(id, status)
        elif self.settle_alone(id) is None:
            self._settle_with_engine(id, status)
        else:
            self._clear(id, status)

    def settle_alone(self, id: ReplicaId) -> dict[str, Any] | None:
        """How it ended, as far as that is known without the engine."""
        folder = self._folder(id)
        status = record.read(folder, record.STATUS)
        if status is None or status.get("life") == record.ENDED or self.is_well(status):
            return status if status and status.get("life") == record.ENDED else None
        if status.get("boot_id") != self._boot_id:
            return self._finish(id, endings.lost() | {"how": record.REBOOTED})
        told = endings.read_end(os.path.join(folder, "door")) if status.get("life") == record.RUNNING else None
        if told is None:
            return None
        oom = self._oom_kills.get(id, 0)
        return self._finish(id, endings.told_by_porter(told, was_stopped=self.is_stop_asked(id), oom_kills=oom))

    def fail(self, id: ReplicaId, said: str) -> None:
        """The engine would not start it, and said so."""
        self._finish(id, endings.refused(id, said))
        self._clear(id, record.read(self._folder(id), record.STATUS) or {})

    def _follow(self, id: ReplicaId, status: Mapping[str, Any]) -> None:
        if not self._watch.follow(id, Path(self._folder(id)), status["job"], status.get("cgroup") or {}):
            self._watch.look_later(id, 0.0)
        elif self.is_stop_asked(id):
            self._watch.stop(id, self._seconds_left(id))

    def _settle_with_engine(self, id: ReplicaId, status: Mapping[str, Any]) -> None:
        try:
            found = self._containers.look(status["container"])
            how = self._judge(id, status, found)
        except (EngineAway, Refused) as problem:
            how = self._wait_for_engine(id, status, problem)
        if how is not None:
            self._finish(id, how)
            self._clear(id, status)

    def _judge(self, id: ReplicaId, status: Mapping[str, Any], found: Found | None) -> dict[str, Any] | None:
        """None: not known yet; it is looked at again."""
        was_stopped = self.is_stop_asked(id)
        if found is None:
            return endings.lost() | ({"how": record.STOPPED} if was_stopped else {})
        if status.get("life") == record.STARTING and not found.has_begun_since(status["begun_at"]):
            return {"how": record.STOPPED, "exit_code": None, "signal": None, "detail": ""} if was_stopped else None
        if found.is_over:
            words = self._containers.last_words(found.id)
            oom = self._oom_kills.get(id, 0)
            return endings.told_by_engine(found.exit_code, words, was_stopped=was_stopped, oom_kills=oom)
        if found.pid and processes.start_time(found.pid) is not None:
            self._note_started(id, status, found)  # whoever started it died before writing that down
            self._watch.look_later(id, 0.0)
            return None
        return self._wait_for_agreement(id, was_stopped=was_stopped)

    def _wait_for_agreement(self, id: ReplicaId, *, was_stopped: bool) -> dict[str, Any] | None:
        """The process is dead and the engine does not know it: its guard (conmon) was killed."""
        if self._dead_for(id) > _AGREE_SECONDS:
            return endings.lost() | ({"how": record.STOPPED} if was_stopped else {})
        self._watch.look_later(id, 0.1)
        return None

    def _wait_for_engine(self, id: ReplicaId, status: Mapping[str, Any], problem: Exception) -> dict[str, Any] | None:
        if status.get("life") == record.RUNNING and self._dead_for(id) > _PATIENCE_SECONDS:
            log.warning("%s has ended, and the engine cannot say how: %s", id, problem)
            return endings.lost() | ({"how": record.STOPPED} if self.is_stop_asked(id) else {})
        self._watch.look_later(id, 1.0)
        return None

    def _dead_for(self, id: ReplicaId) -> float:
        now = time.monotonic()
        return now - self._dead_since.setdefault(id, now)

    def _finish(self, id: ReplicaId, how: Mapping[str, Any]) -> dict[str, Any] | None:
        """The end, once written, never changes. None: somebody else is at it."""
        folder = self._folder(id)
        lock = _lock(folder)
        if lock is None:
            self._watch.look_later(id, 0.5)
            return None
        try:
            status = record.read(folder, record.STATUS) or {}
            if status.get("life") == record.ENDED:
                return status
            ended = {**status, "life": record.ENDED, "ended_at": time.time(), **how}
            record.write(folder, record.STATUS, ended)
        except OSError as problem:  # a full disk is waited out
            log.warning("the end of %s cannot be written down yet: %s", id, problem)
            self._watch.look_later(id, 1.0)
            return None
        finally:
            os.close(lock)
        self._oom_kills.pop(id, None)
        self._dead_since.pop(id, None)
        self._tell(id)
        return ended

    def _tell(self, id: ReplicaId) -> None:
        self._news.note(id)
        self._news.tell()

    # --- clearing away --------------------------------------------------------------------------------------------

    def _clear(self, id: ReplicaId, status: Mapping[str, Any]) -> None:
        """What cannot be taken away now is tried again; podman, for one, refuses once when a guard was killed."""
        self._layout.live_mark(id).unlink(missing_ok=True)
        container = status.get("container")
        try:
            if container and not self._keeping.holds(id.workload, container):
                self._containers.remove(container)
            self._clear_network(id.workload)
        except (EngineAway, Refused) as problem:
            log.info("what is left of %s could not be taken away yet: %s", id, problem)
            self._watch.look_later(id, _AGAIN_SECONDS)

    def _clear_network(self, workload: str) -> None:
        is_needed = any(id.workload == workload for id in self._layout.live_ids())
        if not is_needed and workload not in self._keeping.workloads():
            self._networks.remove(workload)

    def clear_strays(self, launching: set[str], old_seconds: float) -> None:
        """Containers and networks with our mark that no living replica needs: whoever made them died too early."""
        live = {id.workload for id in self._layout.live_ids()} | launching
        kept = self._keeping.workloads()
        for listed in self._containers.ours():
            if self._is_stray(listed, launching, old_seconds):
                log.warning("removing the container %s of %s, which nobody needs", listed.id[:12], listed.replica)
                self._containers.remove(listed.id)
        for workload in self._networks.ours() - live - kept:
            self._networks.remove(workload)

    def _is_stray(self, listed: Listed, launching: set[str], old_seconds: float) -> bool:
        id = listed.replica
        if id.workload in launching or self._keeping.holds(id.workload, listed.id):
            return False
        status = record.read(self._folder(id), record.STATUS)
        if status is not None and status.get("life") != record.ENDED and status.get("container") == listed.id:
            return False
        return status is not None or time.time() - listed.created_at > old_seconds

    def _folder(self, id: ReplicaId) -> str:
        return str(self._layout.replica(id))


def group_of(pid: int) -> dict[str, Any] | None:
    """The cgroup of a container's first process, as `cgroups` describes one."""
    try:
        own = cgroups.own_groups(f"/proc/{pid}/cgroup")
    except OSError:
        return None
    if os.path.exists(os.path.join(CGROUPS, "cgroup.controllers")):
        return {"version": 2, "dirs": {"unified": CGROUPS + own.get("", "/").rstrip("/")}}
    wanted = ("freezer", "pids", "memory", "cpu", "cpuacct")
    dirs = {name: f"{CGROUPS}/{name}{own[name]}" for name in wanted if name in own}
    return {"version": 1, "dirs": {name: folder for name, folder in dirs.items() if os.path.isdir(folder)}}


def _lock(folder: str) -> int | None:
    """The folder's lock; others hold it only for moments."""
    until = time.monotonic() + _LOCK_SECONDS
    while True:
        try:
            lock = record.take_lock(folder)
        except FileNotFoundError:
            return None
        if lock is not None or time.monotonic() > until:
            return lock
        time.sleep(0.002)
