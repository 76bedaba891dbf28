"""Real control and a real store in this process, with virtual machines in real time: where scheduling is measured.

Jobs are entered through the store in batches. What became of them is read from the database file itself, so nothing
that control merely believes is counted.
"""

from __future__ import annotations

import contextlib
import sqlite3
import tempfile
import threading
import time
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

from gpuyard.control.job_keys import JobKeys
from gpuyard.control.loop import Control
from gpuyard.dialects.policy import to_text
from gpuyard.domain.cluster import Node
from gpuyard.domain.people import Group, Membership, Role, User
from gpuyard.domain.policy import Policy
from gpuyard.domain.reasons import Code, because
from gpuyard.domain.resources import MIB, WHOLE_CARD, Cards, Resources
from gpuyard.domain.workload import RoleSpec, Spec, State, StoryEvent, Workload
from gpuyard.engines.simulated import SimulatedEngine
from gpuyard.settings import ControlSettings
from gpuyard.store import people as people_rows
from gpuyard.store import sharing as sharing_rows
from gpuyard.store import workloads as workload_rows
from gpuyard.store.control_lock import ControlLock
from gpuyard.store.database import Database

ENDED = ("succeeded", "failed", "stopped")


@dataclass(frozen=True)
class Stage:
    database: Database
    engine: SimulatedEngine
    control: Control
    looker: sqlite3.Connection
    looking: threading.Lock

    def submit(self, jobs: Sequence[Workload]) -> None:
        """Enter jobs in one transaction."""
        entries = [
            (job, [StoryEvent(job.submitted_at, because(Code.SUBMITTED, by=job.owner), State.QUEUED)]) for job in jobs
        ]
        with self.database.write() as conn:
            workload_rows.insert_many(conn, entries)

    def ask(self, query: str) -> list[tuple[object, ...]]:
        with self.looking:
            return self.looker.execute(query).fetchall()

    def count(self, *states: str) -> int:
        names = ",".join(f"'{state}'" for state in states)
        (row,) = self.ask(f"SELECT count(*) FROM workloads WHERE state IN ({names})")
        return int(str(row[0]))

    def broken_gangs(self) -> int:
        """Attempts that have some of their replicas in the store, but not all that their job asks for."""
        (row,) = self.ask(
            "SELECT count(*) FROM (SELECT a.workload_id AS id, a.number, count(r.place) AS got"
            " FROM attempts a LEFT JOIN replicas r ON r.workload_id = a.workload_id AND r.attempt = a.number"
            " GROUP BY 1, 2) g JOIN workloads w ON w.id = g.id"
            " WHERE g.got <> json_extract(w.spec, '$.roles[0].replicas')"
        )
        return int(str(row[0]))

    def wait(self, what: str, states: Sequence[str], number: int, seconds: float = 600, every: float = 0.02) -> None:
        deadline = time.monotonic() + seconds
        while self.count(*states) < number:
            if time.monotonic() > deadline:
                raise TimeoutError(f"{what}: {self.ask('SELECT state, count(*) FROM workloads GROUP BY state')}")
            time.sleep(every)


@contextlib.contextmanager
def a_stage(
    nodes: Sequence[Node], groups: Iterable[Group] = (Group("lab"),), policy: Policy | None = None
) -> Iterator[Stage]:
    """Default settings, default durability, a database file on disk."""
    settings = ControlSettings()
    with tempfile.TemporaryDirectory(prefix="yard-stage-", ignore_cleanup_errors=True) as folder:
        path = Path(folder) / "gpuyard.db"
        database = Database.open(f"sqlite:///{path}")
        _people(database, groups)
        if policy is not None:
            with database.write() as conn:
                sharing_rows.set_policy_text(conn, to_text(policy))
        lock = ControlLock.acquire(database, "lab")
        engine = SimulatedEngine(nodes, time.time, real_time=True)
        executor = ThreadPoolExecutor(settings.launch_threads, "launch")
        control = Control(
            database, lock, engine, executor, time.time, settings, lambda owner, digest: Path(digest), JobKeys(b"lab")
        )
        thread = threading.Thread(target=control.run, name="control")
        thread.start()
        looker = sqlite3.connect(f"file:{path}?mode=ro", uri=True, check_same_thread=False)
        try:
            yield Stage(database, engine, control, looker, threading.Lock())
        finally:
            control.end()
            thread.join(60)
            executor.shutdown()
            engine.close()
            looker.close()
            lock.release()
            database.close()


def _people(database: Database, groups: Iterable[Group]) -> None:
    with database.write() as conn:
        for group in groups:
            people_rows.create_group(conn, group, 0.0)
            user = User(f"u-{group.name}", memberships=(Membership(group.name, Role.MEMBER),))
            people_rows.create_user(conn, user, None, 0.0)


def a_job(
    id: str,
    *,
    seconds: float,
    cards: int = 0,
    cores: int = 1,
    replicas: int = 1,
    group: str = "lab",
    priority: int = 500,
    preemptible: bool = False,
    name: str = "",
) -> Workload:
    asked = Resources(cores * 1000, 64 * MIB, 0, Cards("nvidia", cards * WHOLE_CARD) if cards else None)
    role = RoleSpec("worker", ("sleep", f"{seconds:g}"), replicas, asked)
    spec = Spec(name or id, (role,), priority=priority, preemptible=preemptible)
    return Workload(id, f"u-{group}", group, spec, submitted_at=time.time())
