"""The process engine: tells supervisors what to do and reads what they recorded. Nothing that matters is in memory."""

from __future__ import annotations

import errno
import logging
import os
import socket
import sys
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from gpuyard.devices.probe import DeviceProbe
from gpuyard.domain.cluster import Card, Node
from gpuyard.domain.errors import EngineError, EngineUnsure
from gpuyard.domain.places import Root
from gpuyard.domain.reasons import Code, Reason, because
from gpuyard.domain.resources import GIB
from gpuyard.domain.workload import Life, ReplicaId, Seen
from gpuyard.engines.disk import RESERVE_BYTES, Disk
from gpuyard.engines.folders import keeps_access_lists, prepare_roots
from gpuyard.engines.process import machine as this_machine
from gpuyard.engines.process import people, starter, verdicts
from gpuyard.engines.process.cards import CardWatch
from gpuyard.engines.process.layout import Layout
from gpuyard.engines.process.progress import ProgressReader
from gpuyard.engines.process.replicas import Replicas
from gpuyard.engines.process.requests import OPEN_TO_GROUP, USUAL_UMASK, Machine, door_note, render
from gpuyard.engines.process.rooms import check_mounts, file_refusal, find_programs
from gpuyard.engines.process.supervision import cgroups, record, removal
from gpuyard.engines.process.wake import WakeBell
from gpuyard.engines.seam import HolderLook, LaunchRequest, Progress, Usage

log = logging.getLogger(__name__)

BOOT_ID = Path("/proc/sys/kernel/random/boot_id")
CGROUPS = Path("/sys/fs/cgroup")
_LAUNCH_SECONDS = 60.0
_LOCK_SECONDS = 2.0  # a supervisor records that it has begun, or has cleaned up behind a usual job, long before this


class ProcessEngine:
    """Replicas as processes of this machine."""

    name = "process"

    def __init__(
        self,
        data: Path,
        *,
        devices: Sequence[DeviceProbe] = (),
        log_limit_bytes: int = GIB,
        pids_limit: int = 0,
        disk_reserve_bytes: int = RESERVE_BYTES,
        cgroup_root: Path = CGROUPS,
        boot_id_path: Path = BOOT_ID,
        server_path: str | None = None,
        further_roots: Sequence[Root] = (),
    ) -> None:
        layout = Layout(data.resolve())
        roots = (layout.root, *further_roots)
        layout.prepare()
        prepare_roots(roots)
        path = os.environ.get("PATH", "") if server_path is None else server_path
        self._layout = layout
        self._disk = Disk(layout.data, disk_reserve_bytes)
        self._probes = tuple(devices)
        self._machine = Machine(
            layout=layout,
            programs=find_programs(path, sys.base_prefix, sys.prefix),
            is_root=os.geteuid() == 0,
            log_limit_bytes=log_limit_bytes,
            pids_limit=pids_limit,
            boot_id_path=str(boot_id_path),
            roots=roots,
            umask=OPEN_TO_GROUP if not keeps_access_lists(roots) else USUAL_UMASK,
        )
        self.makes_rooms = self._machine.is_root
        self._cgroup_root = cgroup_root
        self._node = socket.gethostname()
        self._replicas = Replicas(
            layout, cgroups.find_parent(str(cgroup_root), this_machine.OWN_GROUPS), str(boot_id_path)
        )
        self._cards = CardWatch(self._replicas)
        self._bell = WakeBell(layout.run)
        self._progress = ProgressReader(layout)

    # --- the five verbs -------------------------------------------------------------------------------------------

    def nodes(self) -> Sequence[Node]:
        cards = self._cards.name_holders([card for probe in self._probes for card in probe.look()])
        cpu, memory = this_machine.cpu_milli(self._cgroup_root), this_machine.memory(self._cgroup_root)
        return [Node(self._node, cpu, memory, tuple(cards), self._disk.state())]

    def launch(self, request: LaunchRequest) -> str:
        self._refuse_what_cannot_be(request)
        folder = self._layout.replica(request.id)
        handle = str(folder.relative_to(self._layout.data))
        if record.exists(str(folder), record.STATUS) or record.exists(str(folder), record.TOMBSTONE):
            return handle
        _refuse_taken_ports(request)
        try:
            self._prepare(request, folder)
        except OSError as problem:
            log.warning("the folder of %s could not be made: %s", request.id, problem)
            raise _launch_failed(
                request.id, f"its folder could not be made: {problem.strerror or problem}"
            ) from problem
        self._start(request.id, folder)
        return handle

    def observe(self, replicas: Mapping[ReplicaId, str | None]) -> Mapping[ReplicaId, Seen]:
        return {id: self._look(id) for id in replicas}

    def stop(self, id: ReplicaId, handle: str | None, grace_seconds: float) -> None:
        folder = str(self._layout.replica(id))
        os.makedirs(folder, mode=0o700, exist_ok=True)
        self._bell.note(id)  # one that never began has no supervisor to tell of it
        status = record.read(folder, record.STATUS)
        if status is None and self._bury(folder):
            return
        if status is not None and status.get("life") == record.ENDED:
            return
        _ask_to_stop(folder, grace_seconds)
        self._replicas.poke(record.read(folder, record.STATUS) or {})

    def sweep(self, known: Iterable[ReplicaId]) -> Sequence[ReplicaId]:
        keep = set(known)
        strays = []
        for id in self._layout.live_ids():
            life = self._look(id).life
            if life is Life.ENDED or (life is Life.ABSENT and self._is_old(id)):
                self._forget_live_mark(id)
            elif life is not Life.ABSENT and id not in keep:
                self.stop(id, None, 0.0)
                strays.append(id)
        self._replicas.end_stray_groups()
        return strays

    def on_change(self, call: Callable[[], None]) -> None:
        self._bell.add(call)

    def changed(self) -> frozenset[ReplicaId] | None:
        return self._bell.heard()

    def close(self) -> None:
        self._bell.close()
        self._cards.close()
        for probe in self._probes:
            probe.close()

    # --- what it can do besides -----------------------------------------------------------------------------------

    def file_refusal(self, path: str) -> Reason | None:
        return file_refusal(path, is_root=self._machine.is_root)

    def shares_network(self, group: str) -> bool:
        """Everything is on the machine's own."""
        return True

    def usage(self, replicas: Iterable[ReplicaId]) -> Mapping[ReplicaId, Usage]:
        return self._replicas.usage(replicas, self._probes)

    def holders(self) -> HolderLook | None:
        return self._cards.holders(self._node)

    def progress(self, replicas: Mapping[ReplicaId, str | None]) -> Mapping[ReplicaId, Progress]:
        return self._progress.read(replicas)

    def log_path(self, id: ReplicaId) -> Path:
        return self._layout.replica(id) / record.LOG

    def forget(self, workload: str) -> None:
        for id in self._layout.replicas_of(workload):
            folder = self._layout.replica(id)
            lock = _lock_patiently(str(folder)) if self._look(id).life in (Life.ENDED, Life.ABSENT) else None
            if lock is None:
                raise EngineError(because(Code.ENGINE_CANNOT, engine=self.name, what=f"forget {id} while it is in use"))
            try:
                removal.remove_tree(str(folder))
            finally:
                os.close(lock)
            self._forget_live_mark(id)
        removal.remove_tree(str(self._layout.workload(workload)))

    # --- pieces ---------------------------------------------------------------------------------------------------

    def _refuse_what_cannot_be(self, request: LaunchRequest) -> None:
        if self._machine.is_root and (request.uid <= 0 or request.gid <= 0):
            raise EngineError(because(Code.ENGINE_CANNOT, engine=self.name, what="run work as root"))
        if request.mounts and not self._machine.is_root:
            raise EngineError(
                because(Code.ENGINE_CANNOT, engine=self.name, what="mount folders unless it runs as root")
            )
        check_mounts(request.mounts, self._layout.data, self._machine.roots)
        for refusal in filter(None, (self.file_refusal(file.path) for file in request.files)):
            raise EngineError(refusal)

    def _prepare(self, request: LaunchRequest, folder: Path) -> None:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        people.make_folders(request, self._layout, self._machine.roots, is_root=self._machine.is_root)
        if self._machine.is_root:
            people.write_names(request, folder, self._layout.home(request.owner))
            people.write_told(request, folder)
        group = self._replicas.group_for(request.id)
        cards = self._given_cards(request)
        record.write(str(folder), record.DOOR, door_note(request, is_root=self._machine.is_root), durable=False)
        record.write(str(folder), record.REQUEST, render(request, self._machine, cards, group))
        self._layout.live_mark(request.id).touch()
        self._cards.note_given(request.id, cards)

    def _given_cards(self, request: LaunchRequest) -> list[Card]:
        wanted = {share.index for share in request.allotment.cards}
        if not wanted:
            return []
        known = [card for probe in self._probes for card in probe.look() if card.device == request.allotment.device]
        given = [card for card in known if card.index in wanted]
        if len(given) != len(wanted):
            raise _launch_failed(request.id, f"this machine does not have all of the cards {sorted(wanted)}")
        return given

    def _start(self, id: ReplicaId, folder: Path) -> None:
        try:
            answer = starter.start(folder)
        except OSError as problem:
            raise _launch_failed(id, f"its supervisor could not be started: {problem}") from problem
        if answer is starter.Answer.UNSURE:
            raise EngineUnsure(
                because(Code.LAUNCH_FAILED, detail="its supervisor did not answer in time", replica=id.short)
            )
        if answer is starter.Answer.REFUSED:
            self._forget_live_mark(id)
        if answer is starter.Answer.FAILED and not record.exists(str(folder), record.STATUS):
            self._forget_live_mark(id)
            raise _launch_failed(id, f"its supervisor failed: {starter.last_words(folder)}")

    def _look(self, id: ReplicaId) -> Seen:
        folder = self._layout.replica(id)
        status = record.read(str(folder), record.STATUS)
        if status is None:
            return Seen(Life.STARTING) if self._is_being_begun(str(folder)) else Seen()
        if status.get("life") != record.ENDED and not self._replicas.is_supervised(status):
            status = self._settle(id, folder)
        return verdicts.seen(id, status, self._node)

    def _is_being_begun(self, folder: str) -> bool:
        """A supervisor that holds the lock and has recorded nothing yet."""
        if not os.path.isdir(folder) or record.exists(folder, record.TOMBSTONE):
            return False
        return record.is_locked(folder)

    def _settle(self, id: ReplicaId, folder: Path) -> dict[str, Any]:
        """Nobody watches over it any more. End what is left of it, then write down once and for all how it ended."""
        lock = record.take_lock(str(folder))
        status = record.read(str(folder), record.STATUS) or {}
        if lock is None:
            return status
        try:
            if status.get("life") == record.ENDED:
                return status
            rebooted = self._replicas.is_of_another_boot(status)
            if not rebooted and not self._replicas.end_remains(id, status):
                return status
            how = record.REBOOTED if rebooted else record.LOST
            status |= {"life": record.ENDED, "how": how, "exit_code": None, "ended_at": time.time()}
            record.write(str(folder), record.STATUS, status)
        finally:
            os.close(lock)
        self._forget_live_mark(id)
        return status

    def _bury(self, folder: str) -> bool:
        """Leave a mark that it must never begin. False when it has begun or is about to."""
        lock = _lock_patiently(folder)
        if lock is None:
            return False
        try:
            return record.bury(folder)
        finally:
            os.close(lock)

    def _is_old(self, id: ReplicaId) -> bool:
        """A mark that precedes its replica by more than any launch takes."""
        try:
            return time.time() - self._layout.live_mark(id).stat().st_mtime > _LAUNCH_SECONDS
        except FileNotFoundError:
            return False

    def _forget_live_mark(self, id: ReplicaId) -> None:
        self._layout.live_mark(id).unlink(missing_ok=True)


def _lock_patiently(folder: str) -> int | None:
    """The folder's lock. A supervisor holds it from before it begins until after it has cleaned up; lookers only for a
    moment."""
    until = time.monotonic() + _LOCK_SECONDS
    while True:
        lock = record.take_lock(folder)
        has_begun = (record.read(folder, record.STATUS) or {}).get("life") in (record.STARTING, record.RUNNING)
        if lock is not None or has_begun or time.monotonic() > until:
            return lock
        time.sleep(0.002)


def _ask_to_stop(folder: str, grace_seconds: float) -> None:
    """Asked again with the same or a longer grace, nothing changes."""
    asked = record.read(folder, record.STOP)
    if asked is None or float(asked.get("grace", 0.0)) > grace_seconds:
        record.write(folder, record.STOP, {"grace": grace_seconds})


def _launch_failed(id: ReplicaId, detail: str) -> EngineError:
    return EngineError(because(Code.LAUNCH_FAILED, detail=detail, replica=id.short))


def _refuse_taken_ports(request: LaunchRequest) -> None:
    for port in request.ports:
        if _is_taken(port):
            raise EngineError(because(Code.PORT_TAKEN, port=port, replica=request.id.short))


def _is_taken(port: int) -> bool:
    """Whether somebody listens there: work shares the machine's own network here."""
    with socket.socket(socket.AF_INET, socket.SOCK_STREAM) as trial:
        trial.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            trial.bind(("", port))
        except OSError as problem:
            return problem.errno == errno.EADDRINUSE
    return False
