"""One worker of the gateway: the web part, and in the first one SSH too, from start to end.

It reads the store and asks the access room itself, so that it goes on while the server is away or being replaced.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import mmap
import os
import select
import signal
import struct
import time
from collections.abc import AsyncIterator, Iterator
from dataclasses import dataclass, replace
from pathlib import Path

from gpuyard.access.owner import keep_owner_secret
from gpuyard.access.service import Access, AccessRules
from gpuyard.domain import places
from gpuyard.domain.errors import YardError
from gpuyard.engines.listening import Listeners
from gpuyard.gateway.activity import Activity
from gpuyard.gateway.broker_client import Broker
from gpuyard.gateway.certificates import Certificate
from gpuyard.gateway.config import GATEWAY_LOCK, NOTE_FILE, GatewayConfig, GatewayNote, read_note
from gpuyard.gateway.context import Context, Service
from gpuyard.gateway.ssh.door import HOST_KEY, SshContext, SshDoor, start_ssh
from gpuyard.gateway.web.server import Web
from gpuyard.images.toolbox import recipes
from gpuyard.images.toolbox.base import AT
from gpuyard.store import gates
from gpuyard.store.database import Database

TIDY_SECONDS = 300.0
LOOK_SECONDS = 2.0
BEAT_SECONDS = 1.0
LEAVING_SECONDS, AGAIN_SECONDS = 8.0, 0.05
DOOR_IN_A_CONTAINER = "/run/yard/door"
_log = logging.getLogger(__name__)


class Pulse:
    """When a worker last said that it is alive, in memory that it shares with the one who started it."""

    def __init__(self) -> None:
        self._at = mmap.mmap(-1, 8)

    def beat(self) -> None:
        self._at[:] = struct.pack("d", time.monotonic())

    @property
    def silent_seconds(self) -> float:
        (at,) = struct.unpack("d", self._at)
        return float(time.monotonic() - at)


@dataclass(frozen=True, slots=True)
class Place:
    """What a worker is given by the one who started it."""

    listeners: Listeners
    alive: int  # a descriptor that can be read once the one who started us is gone
    master: int
    pulse: Pulse
    is_first: bool  # has SSH, and tells where the gateway is
    workers: int = 1  # how many there are of its kind

    @property
    def is_orphaned(self) -> bool:
        return bool(select.select([self.alive], [], [], 0)[0])


async def serve(config: GatewayConfig, place: Place) -> None:
    loop, told_to_end = asyncio.get_running_loop(), asyncio.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, told_to_end.set)
    loop.add_reader(place.alive, told_to_end.set)
    tasks = [asyncio.create_task(_beat(place.pulse))]  # before all that may take long
    port = place.listeners[0].getsockname()[1]
    database = await asyncio.to_thread(Database.open, config.database_url)
    clock = _SteadyClock()
    access = Access(database, clock, keep_owner_secret(config.folder / "owner.token"), _rules(config))
    activity = Activity(database, clock)
    broker = Broker(config.folder)
    context = Context(config, config.doorway(port), database, access, clock, broker, activity, _Recipes(config))
    web = Web(context, workers=place.workers)
    certificate = Certificate(config.tls_cert, config.tls_key) if config.tls_cert else None
    try:
        async with _ssh(config, context, broker) if place.is_first else _nothing() as ssh_port:
            await web.start(place.listeners, certificate.context if certificate else None)
            chores = [_tidy_now_and_then(context), _end_with_folder(config.run_folder, told_to_end)]
            chores += [certificate.keep_current()] if certificate else []
            tasks += [asyncio.create_task(chore) for chore in chores]
            with _said_where(config, place, ssh_port, clock()) if place.is_first else contextlib.nullcontext():
                await told_to_end.wait()
            for task in tasks:
                task.cancel()
            await web.end()
    finally:
        database.close()


async def _beat(pulse: Pulse) -> None:
    while True:
        pulse.beat()
        await asyncio.sleep(BEAT_SECONDS)


async def _end_with_folder(run: Path, told_to_end: asyncio.Event) -> None:
    """With the data folder gone, or replaced by another, there is nobody left to serve."""
    ours = (run / GATEWAY_LOCK).stat()
    while not told_to_end.is_set():
        await asyncio.sleep(LOOK_SECONDS)
        try:
            there = (run / GATEWAY_LOCK).stat()
        except OSError:
            there = None
        if there is None or (there.st_dev, there.st_ino) != (ours.st_dev, ours.st_ino):
            told_to_end.set()


def _rules(config: GatewayConfig) -> AccessRules:
    return AccessRules(first_uid=config.first_uid, single_user=not config.first_uid)


@contextlib.asynccontextmanager
async def _nothing() -> AsyncIterator[None]:
    yield None


@contextlib.asynccontextmanager
async def _ssh(config: GatewayConfig, context: Context, broker: Broker) -> AsyncIterator[int | None]:
    """SSH beside the web. Without it the web goes on: a port that somebody else has locks nobody out of the other."""
    known = SshContext(
        context.database,
        context.access,
        context.clock,
        broker,
        config.host.strip("[]"),
        config.ssh_port,
        config.folder / HOST_KEY,
        used=context.activity.used,
        per_address=config.per_address,
        proxies=config.proxies,
    )
    try:
        door = await _start_where_it_was(known)
    except OSError as error:
        _log.error("there is no SSH: port %s cannot be used: %s", config.ssh_port, error)
        yield None
        return
    try:
        yield door.port
    finally:
        await door.close()


async def _start_where_it_was(known: SshContext) -> SshDoor:
    """Editors look for a gateway that was killed where it was. The worker that had the port may still be leaving."""
    before = read_note(known.host_key.parent)
    if before is not None and before.ssh_port and known.port in (0, before.ssh_port):
        deadline = time.monotonic() + LEAVING_SECONDS
        while time.monotonic() < deadline:
            with contextlib.suppress(OSError):
                return await start_ssh(replace(known, port=before.ssh_port))
            await asyncio.sleep(AGAIN_SECONDS)
    return await start_ssh(known)


@contextlib.contextmanager
def _said_where(config: GatewayConfig, place: Place, ssh_port: int | None, now: float) -> Iterator[None]:
    port = place.listeners[0].getsockname()[1]
    doorway = config.doorway(port)
    url = f"{doorway.scheme}://{doorway.base_for(_name_of(config.host))}"
    scheme, domain, paths = doorway.scheme, doorway.domain, doorway.paths
    note = GatewayNote(url, port, ssh_port, place.master, now, config.digest, scheme, domain, paths)
    if place.is_orphaned:  # another one may be here already, and have said where
        yield
        return
    note.write(config.folder)
    _log.info("the gateway is ready: %s, ssh port %s", url, ssh_port)
    try:
        yield
    finally:
        if not place.is_orphaned and read_note(config.folder) == note:  # else the next one begins where this one was
            (config.folder / NOTE_FILE).unlink(missing_ok=True)


def _name_of(host: str) -> str:
    if host in ("0.0.0.0", "::"):  # noqa: S104
        return "127.0.0.1"
    return f"[{host}]" if ":" in host and not host.startswith("[") else host


class _Recipes:
    """How JupyterLab and VS Code are started, as it looks from inside."""

    def __init__(self, config: GatewayConfig) -> None:
        self._config = config

    def __call__(self, what: str, base_url: str, owner: str, replica: str) -> Service | None:
        here = self._config.folder / "toolbox" / "current"
        if not here.exists():
            return None
        toolbox = AT if self._shows_places else str(here)
        return recipes.RECIPES[what](base_url, toolbox, self._home(owner), self._door(replica))

    @property
    def _shows_places(self) -> bool:
        """Without root nothing can be shown at another place than it lies."""
        return self._config.engine == "container" or os.geteuid() == 0

    def _door(self, replica: str) -> str:
        if self._config.engine == "container":
            return DOOR_IN_A_CONTAINER
        workload, attempt, role, index = replica.split("-")
        return str(self._config.folder / "replicas" / workload / attempt / f"{role}-{index}" / "door")

    def _home(self, owner: str) -> str:
        if self._shows_places:
            return f"{places.FIRST_ROOT}/{places.USER}/{owner}"
        return str(self._config.folder / "files" / places.USER / owner)


async def _tidy_now_and_then(context: Context) -> None:
    while True:
        await asyncio.sleep(TIDY_SECONDS)
        try:
            await asyncio.to_thread(_tidy, context)
        except YardError as error:  # a busy store: the next round will do
            _log.warning("ways in were not tidied: %s", error)


def _tidy(context: Context) -> None:
    context.access.tidy()
    with context.database.write() as conn:
        gates.remove_expired(conn, context.clock())


class _SteadyClock:
    """Wall time that never jumps: read once at start, then carried on by the monotonic clock."""

    def __init__(self) -> None:
        self._ahead = time.time() - time.monotonic()

    def __call__(self) -> float:
        return self._ahead + time.monotonic()
