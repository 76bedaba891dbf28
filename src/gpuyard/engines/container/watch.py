"""Watches over every running container by its first process: hears its end from the kernel, carries out stops, bounds
logs and counts memory kills. None of that needs the engine."""

from __future__ import annotations

import contextlib
import logging
import os
import select
import signal
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from gpuyard.domain.workload import ReplicaId
from gpuyard.engines.container.creating import PORTER
from gpuyard.engines.process.supervision import cgroups, processes, record
from gpuyard.engines.process.supervision.logbound import LogBound

log = logging.getLogger(__name__)

_TICK_SECONDS = 0.2
_STUBBORN_SECONDS = 2.0  # after SIGKILL; then everything in its group is killed one by one, again and again
_OOM_SECONDS = 0.5


class Followed:
    """One running container."""

    def __init__(self, folder: str, fd: int, pid: int, group: dict[str, Any], log_limit: int) -> None:
        self.fd, self.pid = fd, pid
        self.kill_at: float | None = None
        self.is_told = False
        self.oom_kills = 0
        self._group = cgroups.open_group(group) if group.get("dirs") else None
        self._log = os.open(os.path.join(folder, record.LOG), os.O_RDWR | os.O_APPEND | os.O_CLOEXEC)
        self._bound = LogBound(folder, self._log, log_limit)
        self._log_due = self._oom_due = 0.0
        self._stubborn_at: float | None = None

    def tick(self, now: float) -> float:
        """Do what is due. Returns when the next thing is."""
        if now >= self._log_due:
            self._log_due = now + self._bound.check()
        if now >= self._oom_due:
            self._oom_due = now + _OOM_SECONDS
            self._count_oom()
        if self.kill_at is not None:
            self._stop(now)
        return min(self._log_due, self._oom_due, now + _TICK_SECONDS)

    def _count_oom(self) -> None:
        with contextlib.suppress(OSError):
            self.oom_kills = max(self.oom_kills, self._group.oom_kills() if self._group else 0)

    def _stop(self, now: float) -> None:
        assert self.kill_at is not None
        if now < self.kill_at:
            if not self.is_told and _listens(self.pid):
                self.is_told = self._send(signal.SIGTERM)
            return
        if self._stubborn_at is None:
            self._stubborn_at = now + _STUBBORN_SECONDS
            self._free_cpu()
            self._send(signal.SIGKILL)
        elif now >= self._stubborn_at and self._group is not None:
            self._stubborn_at = now + _STUBBORN_SECONDS
            with contextlib.suppress(OSError):
                self._group.kill()

    def _free_cpu(self) -> None:
        if self._group is not None:
            try:
                self._group.free_cpu()
            except OSError as problem:  # it dies all the same, only slower
                log.info("the limit of cpu time could not be lifted: %s", problem)

    def _send(self, number: int) -> bool:
        try:
            signal.pidfd_send_signal(self.fd, number)
        except ProcessLookupError:
            return True
        except OSError:
            log.exception("a signal could not be sent")
            return False
        return True

    def let_go(self, *, has_ended: bool) -> None:
        if has_ended:
            self._count_oom()
            self._bound.settle()
        os.close(self._log)
        os.close(self.fd)


def _listens(pid: int) -> bool:
    """The first process of a container is deaf to whatever it has not asked for, as it is while it starts. Before that
    it is the runtime's own, which does listen, but what it heard is lost when it becomes the porter."""
    try:
        with open(f"/proc/{pid}/cmdline", "rb") as file:
            if PORTER.encode() not in file.read().split(b"\0"):
                return False
        with open(f"/proc/{pid}/status", encoding="utf-8", errors="replace") as file:
            caught = next(line for line in file if line.startswith("SigCgt:"))
    except (OSError, StopIteration):
        return False
    return bool(int(caught.split()[1], 16) & 1 << (signal.SIGTERM - 1))


class Watch:
    def __init__(self, log_limit: int, has_ended: Callable[[ReplicaId, int], None]) -> None:
        """`has_ended` is called in the watch's own thread, with how many of its processes the kernel killed for their
        memory; it must not take long."""
        self._log_limit = log_limit
        self._has_ended = has_ended
        self._lock = threading.Lock()
        self._followed: dict[ReplicaId, Followed] = {}
        self._later: dict[ReplicaId, float] = {}
        self._is_over = False
        self._ears, self._mouth = os.pipe2(os.O_NONBLOCK | os.O_CLOEXEC)
        self._thread = threading.Thread(target=self._run, name="container-watch", daemon=True)
        self._thread.start()

    def follow(self, id: ReplicaId, folder: Path, job: dict[str, Any], group: dict[str, Any]) -> bool:
        """From now on its end is heard. False when it has ended already."""
        with self._lock:
            if id in self._followed or self._is_over:
                return True
            try:
                fd = os.pidfd_open(job["pid"])
            except OSError:
                return False
            if not processes.is_alive(job["pid"], job["start"]):  # after opening: now the number cannot change hands
                os.close(fd)
                return False
            try:
                self._followed[id] = Followed(str(folder), fd, job["pid"], group, self._log_limit)
            except OSError:
                os.close(fd)
                raise
        self._wake()
        return True

    def stop(self, id: ReplicaId, seconds: float) -> None:
        """A signal now, the end after so long. Asked again, only a shorter time counts."""
        until = time.monotonic() + max(0.0, seconds)
        with self._lock:
            followed = self._followed.get(id)
            if followed is not None:
                followed.kill_at = until if followed.kill_at is None else min(followed.kill_at, until)
        self._wake()

    def look_later(self, id: ReplicaId, seconds: float) -> None:
        """`has_ended` is called for it again after a while."""
        with self._lock:
            self._later[id] = time.monotonic() + seconds
        self._wake()

    def close(self) -> None:
        if not self._thread.is_alive():
            return
        self._is_over = True
        self._wake()
        self._thread.join()
        with self._lock:
            for followed in self._followed.values():
                followed.let_go(has_ended=False)
            self._followed.clear()
        os.close(self._ears)
        os.close(self._mouth)

    def _wake(self) -> None:
        with contextlib.suppress(BlockingIOError, OSError):
            os.write(self._mouth, b".")

    def _run(self) -> None:
        patience = _TICK_SECONDS
        while not self._is_over:
            with self._lock:
                by_fd = {followed.fd: id for id, followed in self._followed.items()}
            poll = select.poll()
            for fd in (self._ears, *by_fd):
                poll.register(fd, select.POLLIN)
            ready = {fd for fd, _ in poll.poll(int(patience * 1000) + 1)}
            if self._ears in ready:
                with contextlib.suppress(BlockingIOError):
                    os.read(self._ears, 4096)
            self._tell_ended([by_fd[fd] for fd in ready if fd in by_fd])
            patience = self._tick()

    def _tell_ended(self, ids: list[ReplicaId]) -> None:
        for id in ids:
            with self._lock:
                followed = self._followed.pop(id, None)
            if followed is not None:
                followed.let_go(has_ended=True)
                self._has_ended(id, followed.oom_kills)

    def _tick(self) -> float:
        """Returns for how long nothing is due."""
        now = time.monotonic()
        with self._lock:
            followed = list(self._followed.values())
            due = [id for id, at in self._later.items() if at <= now]
            for id in due:
                del self._later[id]
            next_at = min(self._later.values(), default=now + 1.0)
        for one in followed:
            next_at = min(next_at, one.tick(now))
        for id in due:
            self._has_ended(id, 0)
        return max(0.001, min(1.0, next_at - time.monotonic()))
