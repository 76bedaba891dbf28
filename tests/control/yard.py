"""A whole platform in one process for tests: a real database, the simulated engine, a clock moved by hand."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import Executor, Future
from dataclasses import replace
from pathlib import Path
from typing import Any

from gpuyard.control.job_keys import JobKeys
from gpuyard.control.loop import Control
from gpuyard.domain.cluster import Node
from gpuyard.domain.people import Group, Membership, Quota, Role, User
from gpuyard.domain.reasons import Code, because
from gpuyard.domain.workload import State, StoryEvent, Wanted, Workload
from gpuyard.engines.simulated import SimulatedEngine
from gpuyard.journal.events import Notes
from gpuyard.settings import ControlSettings
from gpuyard.store import people as people_rows
from gpuyard.store import workloads as workload_rows
from gpuyard.store.control_lock import ControlLock
from gpuyard.store.database import Database

EAGER = ControlSettings(full_pass_seconds=0.0, sweep_seconds=0.0, audit_seconds=0.0, stop_again_seconds=0.0)


class AtOnce(Executor):
    """Runs what it is given before it returns."""

    def submit(self, fn: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Future[Any]:
        future: Future[Any] = Future()
        future.set_result(fn(*args, **kwargs))
        return future


class Yard:
    settings = EAGER

    def __init__(self, database: Database, nodes: Sequence[Node], groups: Sequence[str] = ("vision", "speech")) -> None:
        self.time = 1_000_000.0
        self.database = database
        self.engine = SimulatedEngine(nodes, lambda: self.time)
        with database.write() as conn:
            for number, name in enumerate(groups):
                people_rows.create_group(conn, Group(name, gid=400_000 + number), self.time)
            memberships = tuple(Membership(name, Role.MEMBER) for name in groups)
            for number, name in enumerate(["ann", "bob"]):
                user = User(name, memberships=memberships, uid=400_000 + number)
                people_rows.create_user(conn, user, None, self.time)
        self.lock = ControlLock.acquire(database, "test")
        self.control = self._new_control()

    def _new_control(self) -> Control:
        return Control(
            self.database,
            self.lock,
            self.engine,
            AtOnce(),
            lambda: self.time,
            self.settings,
            lambda owner, digest: Path(digest),
            JobKeys(b"test"),
            self._notes(),
        )

    def _notes(self) -> Notes | None:
        """Where control writes down what it decides; here nowhere."""
        return None

    def close(self) -> None:
        self.lock.release()

    def crash(self) -> None:
        """The server dies and a new one takes its place. The engine's replicas go on."""
        self.lock.release()
        self.lock = ControlLock.acquire(self.database, "test")
        self.control = self._new_control()

    def submit(self, job: Workload) -> str:
        job = replace(job, submitted_at=self.time)
        line = StoryEvent(self.time, because(Code.SUBMITTED, by=job.owner), State.QUEUED, by=job.owner)
        with self.database.write() as conn:
            workload_rows.insert(conn, job, [line], idempotency_key=None, request_digest=None)
        return job.id

    def want(self, id: str, wanted: Wanted) -> None:
        with self.database.write() as conn:
            workload_rows.want(conn, id, wanted, "ann", self.time)

    def set_quota(self, quota: Quota) -> None:
        with self.database.write() as conn:
            people_rows.set_quota(conn, quota)

    def pass_time(self, seconds: float = 0.0, steps: int = 4) -> None:
        """Let time pass and control look a few times: a start takes several passes."""
        self.time += seconds
        for _ in range(steps):
            self.time += 0.001
            self.control.step()

    def get(self, id: str) -> Workload:
        with self.database.read() as conn:
            workload = workload_rows.get(conn, id)
        assert workload is not None, f"{id} was lost"
        return workload

    def state(self, id: str) -> State:
        return self.get(id).state

    def story(self, id: str) -> list[StoryEvent]:
        with self.database.read() as conn:
            return workload_rows.story(conn, id)

    def told(self, id: str) -> list[Code]:
        return [line.reason.code for line in self.story(id)]
