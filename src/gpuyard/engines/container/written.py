"""What running containers have written on the machine's own disk: in their layers, volumes of their images and folders
of ours.

The usual file system has no bound for a folder, so they are measured: by `du`, gently and outside of this process, and
only after the disk has changed by more than matters. Between two looks somebody may write beyond the limit; what is
kept back of the disk is for that.
"""

from __future__ import annotations

import logging
import os
import shutil
import subprocess
import threading
import time
from collections.abc import Callable, Iterable, Mapping, Sequence

from gpuyard.domain.workload import ReplicaId
from gpuyard.engines.container.client import EngineAway, Refused
from gpuyard.engines.container.containers import Containers
from gpuyard.engines.container.places import Places
from gpuyard.engines.process.layout import Layout
from gpuyard.engines.process.supervision import record
from gpuyard.engines.seam import DiskUse

log = logging.getLogger(__name__)

LOOK_SECONDS = 10.0
_ALL_SECONDS = 600.0  # so often everybody is measured even if the disk seems not to have changed
_DU_SECONDS, _PATIENCE_SECONDS = 120.0, 0.3
_MATTERS_PART = 100  # a change of the disk by this part of the limit is worth a look
_TO_CLEAN_UP_PART = 20  # so much more may one that was over its limit write when it is started again
_NOTE = "written.json"
_OURS = ("door", "beacon", "work")


class LayerWatch:
    """A thread of its own: a large layer takes a while."""

    def __init__(
        self, layout: Layout, containers: Containers, places: Places, limit: int, look_seconds: float = LOOK_SECONDS
    ) -> None:
        self._layout, self._containers, self._places = layout, containers, places
        self._limit = limit
        self._every = look_seconds
        self._folders: dict[ReplicaId, tuple[str, ...]] = {}
        self._uses: Mapping[ReplicaId, DiskUse] = {}
        self._free = 0
        self._looked_at = float("-inf")
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._run, name="container-disk", daemon=True)
        if limit:
            self._thread.start()

    def uses(self) -> Mapping[ReplicaId, DiskUse]:
        """As they were last measured."""
        return self._uses

    def close(self) -> None:
        self._over.set()
        if self._thread.is_alive():
            self._thread.join()

    def _run(self) -> None:
        while not self._over.wait(self._every):
            try:
                self.look()
            except Exception:  # the next look may go well, and nobody else bounds what they write
                log.exception("measuring what containers have written failed; trying again")

    def look(self) -> None:
        """Measure everybody, when anybody can have written enough to matter."""
        self._follow(self._running())
        now, everywhere = time.monotonic(), [folder for some in self._folders.values() for folder in some]
        free = _free_bytes([str(self._layout.data), *everywhere])
        is_new = bool(self._folders.keys() - self._uses.keys())
        has_changed = abs(free - self._free) > self._limit // _MATTERS_PART
        if not (is_new or has_changed or now - self._looked_at > _ALL_SECONDS):
            self._uses = {id: use for id, use in self._uses.items() if id in self._folders}
            return
        self._free, self._looked_at = free, now
        uses: dict[ReplicaId, DiskUse] = {}
        for id, folders in self._folders.items():
            used = measure(folders, _DU_SECONDS, self._over.is_set)
            uses[id] = DiskUse(used, self._allowed(id, used))
        self._uses = uses

    def _running(self) -> dict[ReplicaId, str]:
        """With their containers."""
        found = {id: record.read(str(self._layout.replica(id)), record.STATUS) or {} for id in self._layout.live_ids()}
        return {id: str(status["container"]) for id, status in found.items() if status.get("life") == record.RUNNING}

    def _follow(self, running: Mapping[ReplicaId, str]) -> None:
        """Ask the engine once for each where it writes."""
        for gone in self._folders.keys() - running.keys():
            del self._folders[gone]
        for id in running.keys() - self._folders.keys():
            try:
                found = self._containers.look(running[id])
            except (EngineAway, Refused):
                continue  # the next look asks again
            if found is not None and found.layer:
                ours = [str(self._layout.replica(id) / name) for name in _OURS]
                self._folders[id] = (found.layer, *found.volumes, *ours)

    def _allowed(self, id: ReplicaId, used: int) -> int:
        """One that is kept and was over its limit before may be started again to clean up, and has a little room for
        it. What it held then is noted beside it."""
        request = record.read(str(self._layout.replica(id)), record.REQUEST) or {}
        keeps = request.get("keeps")
        if not keeps or not self._places.kept(keeps).is_dir():
            return self._limit
        folder = str(self._places.kept(keeps))
        note = record.read(folder, _NOTE) or {}
        before = note.get("before", 0) if note.get("attempt") == id.attempt else note.get("used", 0)
        record.write(folder, _NOTE, {"attempt": id.attempt, "before": before, "used": used}, durable=False)
        return max(self._limit, int(before) + self._limit // _TO_CLEAN_UP_PART)


def measure(folders: Sequence[str], seconds: float, is_over: Callable[[], bool] = lambda: False) -> int:
    """Bytes on disk, as far as they could be counted in this time."""
    there, until = [folder for folder in folders if os.path.isdir(folder)], time.monotonic() + seconds
    with subprocess.Popen(
        [*_gently(), "du", "-x0B1", "--max-depth=1", "--", *there],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,  # files come and go while it counts
    ) as du:
        while True:
            try:
                said, _ = du.communicate(timeout=_PATIENCE_SECONDS)
                return counted(said, there)
            except subprocess.TimeoutExpired:
                if is_over() or time.monotonic() > until:
                    du.kill()


def counted(said: bytes, folders: Sequence[str]) -> int:
    """The sum of what `du` tells: of each folder, or of those parts of it that it came to before it was stopped."""
    names, whole, parts = {os.fsencode(folder) for folder in folders}, 0, 0
    for entry in said.split(b"\0")[:-1]:
        size, _, name = entry.partition(b"\t")
        if name in names:
            whole, parts = whole + int(size), 0
        else:
            parts += int(size)
    return whole + parts


def _gently() -> list[str]:
    """Behind everybody else at processor and disk."""
    nice, ionice = shutil.which("nice"), shutil.which("ionice")
    return [*([nice, "-n", "19"] if nice else []), *([ionice, "-c", "3"] if ionice else [])]


def _free_bytes(folders: Iterable[str]) -> int:
    """Of all the disks they lie on."""
    found: dict[int, int] = {}
    for folder in folders:
        try:
            device, disk = os.stat(folder).st_dev, os.statvfs(folder)
        except OSError:
            continue
        found[device] = disk.f_bfree * disk.f_frsize
    return sum(found.values())
