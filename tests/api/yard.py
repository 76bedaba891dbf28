"""A real server on loopback with a real store, and people to ask it: what the tests of the api stand on."""

from __future__ import annotations

import secrets
import shutil
import socket
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import httpx2
import uvicorn
from argon2 import PasswordHasher
from tests.clocks import Clock

from gpuyard.access.owner import OwnerSecret
from gpuyard.access.passwords import Passwords
from gpuyard.access.service import Access, AccessRules
from gpuyard.api.app import create_app
from gpuyard.api.parts import ApiLimits, ImagePolicy, Parts
from gpuyard.domain.cluster import Allotment, Card, Node
from gpuyard.domain.lifecycle import Event, Launched, Observed, Placed, advance
from gpuyard.domain.resources import GIB
from gpuyard.domain.workload import Life, ReplicaId, RoleSpec, Seen, Workload
from gpuyard.files.shares import Shares
from gpuyard.files.workdirs import Workdirs
from gpuyard.metrics.series import Series
from gpuyard.store import nodes, workloads
from gpuyard.store.database import Database
from gpuyard.world.outlook import Outlook
from gpuyard.world.view import View

OWNER_SECRET = "yard_owner-of-the-data-folder-0123456789-abcdef"
QUICK_HASH = PasswordHasher(time_cost=1, memory_cost=64, parallelism=1)
PASSWORD = "a long enough secret"
LETTERS = "abcdefghijklmnopqrstuvwxyz"


class LogFolder:
    """Where replicas' output lies."""

    def __init__(self, root: Path) -> None:
        self._root = root

    def log_path(self, id: ReplicaId) -> Path:
        return self._root / str(id) / "log"

    def forget(self, workload: str) -> None:
        for folder in self._root.glob(f"{workload}-*"):
            shutil.rmtree(folder)


@dataclass
class Yard:
    """One running server."""

    url: str
    parts: Parts
    clock: Clock
    stopping: list[bool] = field(default_factory=lambda: [False])
    clients: list[httpx2.Client] = field(default_factory=list)

    @property
    def database(self) -> Database:
        return self.parts.database

    def client(self, token: str | None = None, **options: Any) -> httpx2.Client:
        headers = {"Authorization": f"Bearer {token}"} if token else {}
        client = httpx2.Client(base_url=self.url, headers=headers, trust_env=False, timeout=30, **options)
        self.clients.append(client)
        return client

    @property
    def owner(self) -> httpx2.Client:
        return self.client(OWNER_SECRET)

    def person(
        self, name: str, *, role: str = "member", group: str | None = None, scope: str = "admin"
    ) -> httpx2.Client:
        """Someone new, with a token of their own."""
        with self.owner as owner:
            made = owner.post("/api/v1/users", json={"name": name, "password": PASSWORD, "role": role, "group": group})
            assert made.status_code == 201, made.text
            return self.client(self.token_of(name, scope))

    def token_of(self, name: str, scope: str = "admin") -> str:
        with self.owner as owner:
            made = owner.post("/api/v1/tokens", json={"name": "for tests", "user": name, "scope": scope})
            assert made.status_code == 201, made.text
            return str(made.json()["token"])

    def group(self, name: str, quota: dict[str, Any] | None = None) -> None:
        with self.owner as owner:
            made = owner.post("/api/v1/groups", json={"name": name, "quota": quota or {}})
            assert made.status_code == 201, made.text

    # --- what control would do ------------------------------------------------------------------------------------

    def workload(self, id: str) -> Workload:
        with self.database.read() as conn:
            found = workloads.get(conn, id)
        assert found is not None
        return found

    def step(self, id: str, event: Event) -> Workload:
        before = self.workload(id)
        after = advance(before, event, self.clock())
        with self.database.write() as conn:
            assert workloads.save(conn, before, after.workload, after.story)
        return after.workload

    def start(self, id: str) -> Workload:
        """Place and launch every replica on the first machine."""
        spec = self.workload(id).spec
        self.step(id, Placed({(r.name, i): place(r) for r in spec.roles for i in range(r.replicas)}))
        workload = self.step(id, Launched({}))
        seen = Seen(Life.RUNNING, started_at=self.clock())
        return self.step(id, Observed({r.id: seen for r in self.replicas(workload)}))

    def end(self, id: str, seen: Seen | None = None) -> Workload:
        """Every replica ends well, unless told otherwise."""
        now = self.clock()
        seen = seen or Seen(Life.ENDED, exit_code=0, started_at=now, ended_at=now)
        return self.step(id, Observed({r.id: seen for r in self.replicas(self.workload(id))}))

    def replicas(self, workload: Workload) -> Sequence[Any]:
        assert workload.attempt is not None
        return workload.attempt.replicas

    def log_path(self, id: str, attempt: int = 1, role: str = "worker", index: int = 0) -> Path:
        path = self.parts.logs.log_path(ReplicaId(id, attempt, role, index))
        path.parent.mkdir(parents=True, exist_ok=True)
        return path


def place(role: RoleSpec) -> Allotment:
    return Allotment("node-1", 1000, GIB, 0, simulated=role.resources.cards is not None)


def make_id() -> str:
    return secrets.choice(LETTERS) + secrets.token_hex(5)[:9]


def make_parts(folder: Path, clock: Clock, stopping: list[bool], **changes: Any) -> Parts:
    lock_seconds = changes.pop("lock_seconds", 15.0)
    url = changes.pop("database_url", f"sqlite:///{folder / 'gpuyard.db'}")
    database = Database.open(url, lock_seconds=lock_seconds)
    rules = changes.pop("rules", AccessRules(first_uid=310_000))
    access = Access(database, clock, OwnerSecret(OWNER_SECRET), rules, Passwords(QUICK_HASH))
    access.first_start()
    cards = tuple(Card(index, "nvidia", "stand-in", simulated=True) for index in range(8))
    with database.write() as conn:
        nodes.save(conn, [Node("node-1", 8000, 64 * GIB, cards)], clock())
    view = View(database, clock)
    parts = Parts(
        database=database,
        access=access,
        clock=clock,
        make_id=make_id,
        preview=view.preview,
        why=view.why,
        before=view.before,
        holding=view.holding,
        held=view.held,
        nodes=view.nodes,
        line=view.line,
        fragments=view.fragments,
        compare=view.compare,
        outlook=Outlook(database, view, clock),
        shares=Shares(folder / "files" / "share"),
        logs=LogFolder(folder / "logs"),
        series=Series(folder / "metrics.db"),
        workdirs=Workdirs(folder / "workdirs", 4 << 20),
        images=ImagePolicy("process"),
        version="0.0.test",
        stopping=lambda: stopping[0],
        limits=ApiLimits(followers_per_user=4, heartbeat_seconds=0.2, body_seconds=2.0),
    )
    return replace(parts, **changes)


@contextmanager
def running(folder: Path, **changes: Any) -> Iterator[Yard]:
    """A server of its own for one test, or for many."""
    clock, stopping = Clock(), [False]
    parts = make_parts(folder, clock, stopping, **changes)
    listener = socket.create_server(("127.0.0.1", 0))
    config = uvicorn.Config(
        create_app(parts), log_level="warning", server_header=False, timeout_graceful_shutdown=3, access_log=False
    )
    server = uvicorn.Server(config)
    thread = threading.Thread(target=server.run, kwargs={"sockets": [listener]}, name="server")
    thread.start()
    yard = Yard(f"http://127.0.0.1:{listener.getsockname()[1]}", parts, clock, stopping)
    try:
        wait_until(lambda: server.started)
        yield yard
    finally:
        for client in yard.clients:
            client.close()
        stopping[0] = True
        server.should_exit = True
        thread.join()
        listener.close()
        parts.database.close()


def wait_until(true: Callable[[], bool], seconds: float = 20.0) -> None:
    deadline = time.monotonic() + seconds
    while not true():
        assert time.monotonic() < deadline, "it did not come about in time"
        time.sleep(0.01)
