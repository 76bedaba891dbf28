"""`python -m gpuyard.gateway.main --data DATA`: the gateway of one data folder, until it is told to end.

It reads the store and asks the access room itself, so that it goes on while the server is away or being replaced.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import fcntl
import gc
import logging
import os
import resource
import signal
import socket
import ssl
import sys
import time
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import uvloop

from gpuyard.access.owner import keep_owner_secret
from gpuyard.access.service import Access, AccessRules
from gpuyard.domain import places
from gpuyard.domain.errors import YardError
from gpuyard.gateway.activity import Activity
from gpuyard.gateway.broker_client import Broker
from gpuyard.gateway.config import GATEWAY_LOCK, NOTE_FILE, GatewayConfig, GatewayNote, read_config, read_note
from gpuyard.gateway.context import Context, Service
from gpuyard.gateway.ssh.door import HOST_KEY, SshContext, start_ssh
from gpuyard.gateway.web.server import Web
from gpuyard.images.toolbox import recipes
from gpuyard.images.toolbox.base import AT
from gpuyard.store import gates
from gpuyard.store.database import Database

ALREADY = 3  # exit code: another one serves this folder
CANNOT_LISTEN = 4
TIDY_SECONDS = 300.0
LOOK_SECONDS = 2.0
DOOR_IN_A_CONTAINER = "/run/yard/door"
_log = logging.getLogger(__name__)


def main(arguments: list[str]) -> int:
    parser = argparse.ArgumentParser(prog="gateway")
    parser.add_argument("--data", type=Path, required=True)
    data: Path = parser.parse_args(arguments).data.resolve()
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(levelname)s %(name)s: %(message)s", stream=sys.stderr)
    config = read_config(data)
    with only_gateway(config.run_folder) as is_ours:
        if not is_ours:
            return ALREADY
        _raise_file_limit()
        try:
            with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
                runner.run(serve(config))
        except OSError as error:
            _log.error("the gateway cannot listen on %s:%s: %s", config.host, config.port, error)
            return CANNOT_LISTEN
    return 0


@contextlib.contextmanager
def only_gateway(run: Path) -> Iterator[bool]:
    """One for each data folder. The kernel drops the lock when the process dies, however it dies."""
    run.mkdir(mode=0o700, parents=True, exist_ok=True)
    with (run / GATEWAY_LOCK).open("a+") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            yield False
            return
        lock.truncate(0)
        lock.write(str(os.getpid()))
        lock.flush()
        yield True


def _raise_file_limit() -> None:
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))


async def serve(config: GatewayConfig) -> None:
    loop, told_to_end = asyncio.get_running_loop(), asyncio.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, told_to_end.set)
    listener = _listen(config.host, config.port)
    port = listener.getsockname()[1]
    database = await asyncio.to_thread(Database.open, config.database_url)
    clock = _SteadyClock()
    access = Access(database, clock, keep_owner_secret(config.folder / "owner.token"), _rules(config))
    activity = Activity(database, clock)
    broker = Broker(config.folder)
    context = Context(config, config.doorway(port), database, access, clock, broker, activity, _Recipes(config))
    web = Web(context)
    try:
        async with _ssh(config, context, broker) as ssh_port:
            await web.start(listener, _tls(config))
            gc.freeze()  # what is loaded stays: it need not be looked through again and again
            gc.set_threshold(20_000, 20, 50)  # a request leaves no garbage behind that only this would find
            tidying = asyncio.create_task(_tidy_now_and_then(context))
            watching = asyncio.create_task(_end_with_folder(config.run_folder, told_to_end))
            with _said_where(config, port, ssh_port, clock()):
                await told_to_end.wait()
            tidying.cancel()
            watching.cancel()
            await web.end()
    finally:
        database.close()


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


def _listen(host: str, port: int) -> socket.socket:
    """The port of the one before us may still be in use for a moment: it ends as we begin."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    listener = socket.socket(family, socket.SOCK_STREAM)
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listener.bind((host.strip("[]"), port))
        listener.listen(1024)
    except OSError:
        listener.close()
        raise
    return listener


def _tls(config: GatewayConfig) -> ssl.SSLContext | None:
    if config.tls_cert is None:
        return None
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    context.load_cert_chain(config.tls_cert, config.tls_key)
    context.set_alpn_protocols(["http/1.1"])
    return context


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
    )
    try:
        door = await start_ssh(known)
    except OSError as error:
        _log.error("there is no SSH: port %s cannot be used: %s", config.ssh_port, error)
        yield None
        return
    try:
        yield door.port
    finally:
        await door.close()


@contextlib.contextmanager
def _said_where(config: GatewayConfig, port: int, ssh_port: int | None, now: float) -> Iterator[None]:
    doorway = config.doorway(port)
    url = f"{doorway.scheme}://{doorway.base_for(_name_of(config.host))}"
    scheme, domain, paths = doorway.scheme, doorway.domain, doorway.paths
    note = GatewayNote(url, port, ssh_port, os.getpid(), now, config.digest, scheme, domain, paths)
    note.write(config.folder)
    _log.info("the gateway is ready: %s, ssh port %s", url, ssh_port)
    try:
        yield
    finally:
        if read_note(config.folder) == note:
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


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
