"""When a replica last saved its work: from its beacon, or from the newest file of its checkpoint folder.

Both are in the hands of users' code. Nothing is opened that could make us wait, little is read, and a checkpoint folder
is looked for in the job's own view of the machine and with its owner's rights, so that whatever lies or links there,
nothing comes out that the job could not see itself. Every such look has a thread of its own: a folder on a disk that no
longer answers keeps nobody else's waiting.
"""

from __future__ import annotations

import contextlib
import json
import os
import stat
import threading
import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from gpuyard.domain.usage import Progress
from gpuyard.domain.workload import ReplicaId
from gpuyard.engines.process.layout import Layout
from gpuyard.engines.process.requests import BEACON
from gpuyard.engines.process.supervision import linux, processes, record

_PATIENCE_SECONDS = 2.0
_MOST_LOOKS = 8  # at once
_MOST_ENTRIES, _DEPTH = 1000, 3
_MOST_BEACON_BYTES = 256
_MOST_STEP = 2**53  # what JSON everywhere can carry
_CLOCK_SECONDS = 2.0  # so far in the future a time may be by accident
_WRITING_SECONDS = 1.0  # a file that changed so shortly ago is not yet believed to be whole


class ProgressReader:
    def __init__(self, layout: Layout) -> None:
        self._layout = layout
        self._looks = Looks()

    def read(self, replicas: Iterable[ReplicaId]) -> dict[ReplicaId, Progress]:
        beacons: dict[ReplicaId, Progress] = {}
        looks: dict[ReplicaId, Callable[[], float | None]] = {}
        for id in replicas:
            folder = str(self._layout.replica(id))
            status, request = record.read(folder, record.STATUS), record.read(folder, record.REQUEST)
            if not status or not request or not status.get("started_at"):
                continue
            until = status.get("ended_at") or time.time()
            beacon = read_beacon(str(self._layout.beacon(id)), status["started_at"], until)
            if beacon is not None:
                beacons[id] = beacon
            if request.get("checkpoint"):
                looks[id] = _Look(request, status)
        files = self._looks.answers(looks, _PATIENCE_SECONDS)
        found = {id: _newer(beacons.get(id), files.get(id)) for id in beacons.keys() | files.keys()}
        return {id: progress for id, progress in found.items() if progress is not None}


def _newer(beacon: Progress | None, file: float | None) -> Progress | None:
    """The step is the last one that was told, also when a file came after it."""
    if beacon is None or file is None or beacon.saved_at >= file:
        return beacon if beacon or file is None else Progress(file)
    return Progress(file, beacon.step)


# --- the beacon ---------------------------------------------------------------------------------------------------


def read_beacon(folder: str, started_at: float, now: float) -> Progress | None:
    """The file's time says when; what it says of the step is believed when it is a number, bare or in JSON."""
    try:
        fd = os.open(os.path.join(folder, BEACON), os.O_PATH | os.O_NOFOLLOW | os.O_CLOEXEC)
    except OSError:
        return None
    try:
        found = os.fstat(fd)
        if not stat.S_ISREG(found.st_mode) or found.st_mtime > now + _CLOCK_SECONDS:
            return None
        return Progress(min(max(found.st_mtime, started_at), now), _read_step(fd))
    finally:
        os.close(fd)


def _read_step(path_fd: int) -> int | None:
    try:
        fd = os.open(f"/proc/self/fd/{path_fd}", os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError:  # its owner holds a lease on it
        return None
    try:
        text = os.read(fd, _MOST_BEACON_BYTES)
    finally:
        os.close(fd)
    try:
        told = json.loads(text)
    except ValueError:
        return None
    step = told.get("step") if isinstance(told, dict) else told
    return step if type(step) is int and 0 <= step <= _MOST_STEP else None


# --- the checkpoint folder ----------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _Look:
    """Finds the newest file. Called in a thread that ends afterwards: it gives up the server's rights for good."""

    request: Mapping[str, Any]
    status: Mapping[str, Any]

    def __call__(self) -> float | None:
        fd = self._open_folder()
        if fd is None:
            return None
        try:
            newest = NewestFile(self.status["begun_at"], self.status.get("ended_at") or time.time() - _WRITING_SECONDS)
            newest.look_into(fd, _DEPTH)
            return None if newest.at is None else max(newest.at, self.status["started_at"])
        finally:
            os.close(fd)

    def _open_folder(self) -> int | None:
        identity, has_ended = self.request["identity"], "ended_at" in self.status
        found = self._place_known() if has_ended and self.request["room"] else self._place_seen()
        if found is None:
            return None
        root, path = found
        try:
            if identity:
                linux.use_rights_of(identity["uid"], identity["gid"])
            return linux.open_in_root(root, path, os.O_RDONLY | os.O_DIRECTORY | os.O_NONBLOCK)
        finally:
            os.close(root)

    def _place_seen(self) -> tuple[int, str] | None:
        """In the view of the machine that the running job has."""
        job = self.status["job"]
        root = _open_root(f"/proc/{job['pid']}/root" if self.request["room"] else "/")
        if self.request["room"] and not processes.is_alive(job["pid"], job["start"]):
            os.close(root)  # looked at after opening: it may have been a later process's
            return None
        return root, self.request["checkpoint"]

    def _place_known(self) -> tuple[int, str] | None:
        """Its view went with it; folders of its own are found all the same."""
        place = self.request.get("checkpoint_place")
        return (_open_root(place["root"]), place["path"]) if place else None


def _open_root(path: str) -> int:
    return os.open(path, os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC)


class NewestFile:
    """The newest time of a regular file between two moments. At most so many entries are looked at; of folders the one
    that changed last comes first."""

    def __init__(self, since: float, until: float) -> None:
        self._since, self._until = since, until
        self._left = _MOST_ENTRIES
        self.at: float | None = None

    def look_into(self, folder: int, depth: int) -> None:
        inner: list[tuple[float, str]] = []
        with os.scandir(folder) as entries:
            for entry in entries:
                self._left -= 1
                if self._left < 0:
                    return
                try:
                    found = entry.stat(follow_symlinks=False)
                except OSError:  # it has just gone
                    continue
                if stat.S_ISREG(found.st_mode):
                    self._note(found.st_mtime)
                elif stat.S_ISDIR(found.st_mode):
                    inner.append((found.st_mtime, entry.name))
        for _, name in sorted(inner, reverse=True) if depth > 1 else ():
            self._look_into_inner(folder, name, depth - 1)

    def _look_into_inner(self, folder: int, name: str, depth: int) -> None:
        flags = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
        try:
            fd = os.open(name, flags, dir_fd=folder)
        except OSError:
            return
        try:
            self.look_into(fd, depth)
        finally:
            os.close(fd)

    def _note(self, at: float) -> None:
        if self._since <= at <= self._until and (self.at is None or at > self.at):
            self.at = at


class Looks:
    """Runs looks side by side, each in a thread of its own. One that does not come back in time is left behind: its
    answer is given the next time, and until then it is not asked again."""

    def __init__(self) -> None:
        self._changed = threading.Condition()
        self._under_way: set[ReplicaId] = set()
        self._answers: dict[ReplicaId, float] = {}

    def answers(self, looks: Mapping[ReplicaId, Callable[[], float | None]], patience: float) -> dict[ReplicaId, float]:
        until = time.monotonic() + patience
        with self._changed:
            for id, look in looks.items():
                if id in self._under_way:
                    continue
                if not self._wait(lambda: len(self._under_way) < _MOST_LOOKS, until):
                    break
                self._under_way.add(id)
                threading.Thread(target=self._run, args=(id, look), name="checkpoint-look", daemon=True).start()
            self._wait(lambda: not self._under_way & looks.keys(), until)
            answers, self._answers = self._answers, {}
        return {id: at for id, at in answers.items() if id in looks}

    def _wait(self, condition: Callable[[], bool], until: float) -> bool:
        return self._changed.wait_for(condition, max(0.0, until - time.monotonic()))

    def _run(self, id: ReplicaId, look: Callable[[], float | None]) -> None:
        at: float | None = None
        try:
            with contextlib.suppress(OSError):  # not there, not open to its owner, or the job has just ended
                at = look()
        finally:
            with self._changed:
                self._under_way.discard(id)
                if at is not None:
                    self._answers[id] = at
                self._changed.notify_all()
