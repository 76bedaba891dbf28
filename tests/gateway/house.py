"""The web part of a gateway on loopback, with a real store, real people, and real programs to visit."""

from __future__ import annotations

import asyncio
import http.client
import secrets
import socket
import ssl
import subprocess
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import uvloop
from argon2 import PasswordHasher
from tests.clocks import Clock
from tests.draw import a_job
from tests.draw import running as as_running
from tests.gateway.loops import end_loop

from gpuyard.access import gates
from gpuyard.access.actors import Actor
from gpuyard.access.owner import OwnerSecret
from gpuyard.access.passwords import Passwords
from gpuyard.access.service import Access, AccessRules, Credentials
from gpuyard.access.sessions import Secrets
from gpuyard.domain.doorways import Visit
from gpuyard.domain.errors import NotFound, Unavailable
from gpuyard.domain.people import Group, Membership, Role, User
from gpuyard.domain.reasons import Code, because
from gpuyard.domain.workload import Kind, Port, State, Workload
from gpuyard.gateway.activity import Activity
from gpuyard.gateway.certificates import Certificate
from gpuyard.gateway.config import GatewayConfig
from gpuyard.gateway.context import Context, Inside, Service
from gpuyard.gateway.web.crowd import Crowd
from gpuyard.gateway.web.server import Web
from gpuyard.store import people, workloads
from gpuyard.store.database import Database

PASSWORD = "a long enough secret"
OWNER_SECRET = "yard_owner-of-the-data-folder-0123456789-abcdef"
QUICK_HASH = PasswordHasher(time_cost=1, memory_cost=64, parallelism=1)


class NearBroker:
    """Stands where the broker stands, for programs that run right here. Ports are looked up, never taken as told."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.ports: dict[tuple[str, int], int] = {}
        self.asked: list[tuple[Any, ...]] = []
        self.running: dict[str, subprocess.Popen[bytes]] = {}
        self.gone: set[str] = set()

    async def connect(
        self, replica: str, user: str, *, port: int | None = None, path: str | None = None
    ) -> socket.socket:
        self.asked.append(("connect", replica, user, port or path))
        if replica in self.gone:
            raise Unavailable(because(Code.DOOR_CLOSED, detail="Connection refused"))
        loop = asyncio.get_running_loop()
        if port is not None:
            sock, address = socket.socket(), ("127.0.0.1", self.ports.get((replica.split("-")[0], port), 1))
        else:
            sock, address = socket.socket(socket.AF_UNIX), str(self.folder / f"{replica}-{path}")  # type: ignore[assignment]
        sock.setblocking(False)
        try:
            await loop.sock_connect(sock, address)
        except OSError as error:
            sock.close()
            raise Unavailable(because(Code.NOBODY_LISTENS, what="port", name=str(port))) from error
        return sock

    async def serve(
        self, replica: str, user: str, name: str, argv: Sequence[str], env: Mapping[str, str], cwd: str | None = None
    ) -> bool:
        self.asked.append(("serve", replica, user, name))
        before = self.running.get(name)
        if before is None or before.poll() is not None:
            self.running[name] = subprocess.Popen([*argv, str(self.folder / f"{replica}-{name}.sock")])
        return before is None

    async def services(self, replica: str, user: str) -> Mapping[str, Mapping[str, Any]]:
        return {
            name: {"pid": there.pid, "running": there.poll() is None, "exit_code": there.poll()}
            for name, there in self.running.items()
        }

    async def terminal(self, replica: str, user: str, **asked: Any) -> tuple[str, bool, socket.socket]:
        raise NotFound(because(Code.NOT_FOUND, what="session", name=""))

    def close(self) -> None:
        for there in self.running.values():
            there.kill()
            there.wait()


@dataclass
class House:
    """One gateway."""

    web: Web
    context: Context
    broker: Any
    port: int
    clock: Clock
    loop: asyncio.AbstractEventLoop
    recipes: dict[str, Service] = field(default_factory=dict)
    tls: ssl.SSLContext | None = None
    """With which visitors come."""

    @property
    def database(self) -> Database:
        return self.context.database

    # --- people and their work --------------------------------------------------------------------------------------

    def person(self, name: str, *, admin: bool = False, lead: bool = False, must_change: bool = False) -> User:
        seat = Membership("vision", Role.LEAD if lead else Role.MEMBER)
        user = User(name, admin=admin, memberships=(seat,), must_change_password=must_change)
        with self.database.write() as conn:
            if people.get_group(conn, "vision") is None:
                people.create_group(conn, Group("vision"), self.clock())
            people.create_user(conn, user, QUICK_HASH.hash(PASSWORD), self.clock())
        return user

    def workload(self, owner: str, *, kind: Kind = Kind.ENV, ports: Mapping[int, int] | None = None) -> Workload:
        """Something of theirs that runs; `ports` are declared, each with the real one behind it."""
        id = "w" + secrets.token_hex(5)[:9]
        drawn = a_job(id, owner=owner, at=self.clock())
        declared = tuple(Port(number) for number in ports or {})
        spec = replace(drawn.spec, kind=kind, roles=(replace(drawn.spec.roles[0], ports=declared),))
        queued = replace(drawn, spec=spec)
        workload = as_running(queued, ("node-1", ()))
        with self.database.write() as conn:
            workloads.insert(conn, queued, [], idempotency_key=None, request_digest=None)
            assert workloads.save(conn, queued, workload, [])
        if isinstance(self.broker, NearBroker):
            self.broker.ports.update({(id, number): real for number, real in (ports or {}).items()})
        return workload

    def stop(self, workload: Workload) -> None:
        with self.database.write() as conn:
            before = workloads.get(conn, workload.id)
            assert before is not None
            after = replace(before, state=State.PAUSED, version=before.version + 1)
            assert workloads.save(conn, before, after, [])

    def restart(self, workload: Workload) -> Workload:
        """It runs once more, as another attempt; of the first nothing is left."""
        attempt = workload.attempt
        assert attempt is not None
        number = attempt.number + 1
        replicas = tuple(replace(one, id=replace(one.id, attempt=number)) for one in attempt.replicas)
        after = replace(
            workload, attempt=replace(attempt, number=number, replicas=replicas), version=workload.version + 1
        )
        with self.database.write() as conn:
            assert workloads.save(conn, workload, after, [])
        if isinstance(self.broker, NearBroker):
            self.broker.gone |= {str(one.id) for one in attempt.replicas}
            for there in self.broker.running.values():
                there.kill()
                there.wait()
        return after

    # --- ways in ----------------------------------------------------------------------------------------------------

    def log_in(self, name: str) -> tuple[Actor, Secrets]:
        return self.context.access.log_in(name, PASSWORD, "127.0.0.1")

    def owner_of_everything(self) -> Actor:
        return self.context.access.authenticate(Credentials(OWNER_SECRET, None, "127.0.0.1"))

    def code(self, actor: Actor, workload: str, what: str) -> str:
        with self.database.write() as conn:
            return gates.make_code(conn, actor, Visit(workload, what), self.clock())

    def cookie(self, name_or_actor: str | Actor, workload: Workload, what: str) -> str:
        """Someone who has come in."""
        actor = name_or_actor if isinstance(name_or_actor, Actor) else self.log_in(name_or_actor)[0]
        code = self.code(actor, workload.id, what)
        told = self.get(host(workload, what), f"/.yard/enter?code={code}")
        assert told.status == 303, told.body
        return str(told.headers["Set-Cookie"]).partition(";")[0]

    # --- asking -----------------------------------------------------------------------------------------------------

    def ask(self, method: str, name: str, path: str, body: Any = None, **headers: str) -> Told:
        """`name` is the host without port; header names are written with _ for -."""
        connection = self._speak()
        try:
            all_headers = {key.replace("_", "-"): value for key, value in headers.items()}
            connection.request(method, path, body, {"Host": f"{name}:{self.port}", **all_headers})
            answer = connection.getresponse()
            return Told(answer.status, answer.headers, answer.read())
        finally:
            connection.close()

    def _speak(self) -> http.client.HTTPConnection:
        if self.tls is None:
            return http.client.HTTPConnection("127.0.0.1", self.port, timeout=20)
        return http.client.HTTPSConnection("127.0.0.1", self.port, timeout=20, context=self.tls)

    def get(self, name: str, path: str, **headers: str) -> Told:
        return self.ask("GET", name, path, **headers)

    def raw(self, data: bytes, *, seconds: float = 10) -> bytes:
        """Say exactly this and read until the other side closes, or for a moment."""
        with socket.create_connection(("127.0.0.1", self.port), timeout=seconds) as sock:
            sock.sendall(data)
            return read_all(sock)

    def connect(self) -> socket.socket:
        return socket.create_connection(("127.0.0.1", self.port), timeout=20)


@dataclass(frozen=True)
class Told:
    status: int
    headers: Any
    body: bytes

    @property
    def text(self) -> str:
        return self.body.decode()


def host(workload: Workload, what: str) -> str:
    return f"{what}-{workload.id}.localhost"


def read_all(sock: socket.socket) -> bytes:
    pieces = []
    try:
        while piece := sock.recv(65536):
            pieces.append(piece)
    except (TimeoutError, ConnectionResetError):
        pass
    return b"".join(pieces)


@contextmanager
def running(
    folder: Path,
    broker: Inside | None = None,
    *,
    paths: bool = False,
    most_per_user: int = 512,
    database_url: str = "",
    certificate: tuple[Path, Path] | None = None,
    **settings: Any,
) -> Iterator[House]:
    """`settings` are those of GatewayConfig."""
    url = database_url or f"sqlite:///{folder / 'gpuyard.db'}"
    database, clock = Database.open(url), Clock()
    access = Access(database, clock, OwnerSecret(OWNER_SECRET), AccessRules(), Passwords(QUICK_HASH))
    access.first_start()
    near = broker or NearBroker(folder)
    cert, key = map(str, certificate) if certificate else (None, None)
    told = {"paths": paths, "hosts": ("localhost", "127.0.0.1"), "tls_cert": cert, "tls_key": key}
    config = GatewayConfig(str(folder), url, **{**told, **settings})
    kept = Certificate(cert, key) if cert else None
    listener = socket.create_server(("127.0.0.1", 0))
    port = listener.getsockname()[1]
    recipes: dict[str, Service] = {}
    context = Context(
        config,
        config.doorway(port),
        database,
        access,
        clock,
        near,
        Activity(database, clock),
        lambda what, base, owner, replica: recipes.get(what),
    )
    started: list[Web] = []
    loop = uvloop.new_event_loop()

    async def start() -> None:
        web = Web(context, crowd=Crowd(most_per_user))
        await web.start((listener,), kept.context if kept else None)
        started.append(web)

    thread = threading.Thread(target=loop.run_forever, name="gateway")
    thread.start()
    asyncio.run_coroutine_threadsafe(start(), loop).result(20)
    try:
        trusting = ssl.create_default_context(cafile=cert) if cert else None
        yield House(started[0], context, near, port, clock, loop, recipes, trusting)
    finally:
        asyncio.run_coroutine_threadsafe(started[0].end(), loop).result(20)
        end_loop(loop, thread)
        if isinstance(near, NearBroker):
            near.close()
        database.close()


def a_service(*argv: str) -> Service:
    service: Any = SimpleNamespace(name="lab", argv=argv, env={}, cwd=None)
    return service  # type: ignore[no-any-return]


def wait_until(true: Callable[[], bool], seconds: float = 20.0) -> None:
    deadline = time.monotonic() + seconds
    while not true():
        assert time.monotonic() < deadline, "it did not come about in time"
        time.sleep(0.01)
