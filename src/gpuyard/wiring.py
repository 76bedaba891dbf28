"""Builds the whole from its parts and runs it. Nobody imports this but the command that starts the server."""

from __future__ import annotations

import contextlib
import fcntl
import gc
import ipaddress
import json
import logging
import os
import secrets
import shutil
import signal
import socket
import sys
import threading
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

import uvicorn

from gpuyard import __version__
from gpuyard.access.owner import keep_owner_secret
from gpuyard.access.service import Access, AccessRules, FirstAdmin
from gpuyard.api.parts import LOOPBACK_NAMES, ImagePolicy, Lookback, Parts
from gpuyard.api.wire import CarefulProtocol, raise_file_limit
from gpuyard.control.folders import FolderKeeper
from gpuyard.control.guessing import Guesser
from gpuyard.control.housekeeping import Housekeeper
from gpuyard.control.job_keys import JobKeys
from gpuyard.control.loop import Control
from gpuyard.control.numbers import give_blocks
from gpuyard.control.sampling import Sampler
from gpuyard.devices import find_probes
from gpuyard.devices.probe import DeviceProbe
from gpuyard.domain.cluster import Node
from gpuyard.domain.errors import YardError
from gpuyard.domain.places import SHARE
from gpuyard.engines import listening
from gpuyard.engines.listening import Listeners
from gpuyard.engines.process.engine import ProcessEngine
from gpuyard.engines.seam import Engine, KeepsImages, KeepsLogs, MakesRooms, ReadsUsage
from gpuyard.engines.simulated import SimulatedEngine
from gpuyard.engines.virtual import draw_nodes
from gpuyard.files.shares import Shares
from gpuyard.files.workdirs import Workdirs
from gpuyard.gateway.config import GatewayConfig
from gpuyard.gateway.keeping import GatewayKeeper
from gpuyard.images import mirrors
from gpuyard.images.toolbox import build as toolbox
from gpuyard.images.toolbox.base import AT, ensure_base, python_command
from gpuyard.images.toolbox.recipes import shell_environment
from gpuyard.journal.folder import Bounds
from gpuyard.journal.recorder import Recorder
from gpuyard.metrics.series import Series
from gpuyard.settings import BadSettings, ControlSettings, Settings, with_file
from gpuyard.store.control_lock import ControlLock
from gpuyard.store.database import Database
from gpuyard.words import say
from gpuyard.world.outlook import Outlook
from gpuyard.world.view import View

if TYPE_CHECKING:
    from gpuyard.engines.container.engine import ContainerEngine

log = logging.getLogger("gpuyard")

GRACEFUL_SHUTDOWN_SECONDS = 3
ID_LETTERS, ID_REST = "abcdefghijkmnpqrstuvwxyz", "abcdefghijkmnpqrstuvwxyz23456789"


class Loop(Protocol):
    """Something that runs in a thread of its own until it is told to end."""

    def run(self) -> None: ...
    def end(self) -> None: ...


class RunsAll(Engine, KeepsLogs, ReadsUsage, MakesRooms, Protocol):
    """What every engine of a platform can do."""


class CannotStart(Exception):
    """Why the server does not start, and what to do about it."""


@dataclass(frozen=True, slots=True)
class SteadyClock:
    """Wall time that never jumps: read once at start, then carried on by the monotonic clock."""

    wall: float
    monotonic: float

    def __call__(self) -> float:
        return self.wall + (time.monotonic() - self.monotonic)


def serve(settings: Settings) -> int:
    """Run the platform until it is told to end. Returns the exit code."""
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(levelname)s %(name)s: %(message)s", stream=sys.stderr)
    try:
        check_address(settings)
        prepare_data_folder(settings.data)
        settings = with_settings_file(settings)
        raise_file_limit()
        with only_server(settings.data), listening_sockets(settings) as listeners:
            _run(settings, listeners)
    except CannotStart as refusal:
        print(f"yard up: {refusal}", file=sys.stderr)
        return 1
    except YardError as refusal:
        print(f"yard up: {say(refusal.reason, 'en')}\n  {say(refusal.reason, 'zh')}", file=sys.stderr)
        return 1
    return 0


def check_address(settings: Settings) -> None:
    hosts = {settings.host, settings.gateway_host or settings.host}
    if all(map(is_loopback, hosts)) or settings.is_tls or settings.insecure_http:
        return
    raise CannotStart(
        f"refusing to listen on {settings.host} without TLS: passwords and tokens would travel readable.\n"
        "  Give --tls-cert and --tls-key, or keep --host 127.0.0.1, or say --insecure-http if you know why.\n"
        f"  拒绝在没有 TLS 的情况下监听 {settings.host}：请提供 --tls-cert 和 --tls-key，或明确使用 --insecure-http。"
    )


def is_loopback(host: str) -> bool:
    if host == "localhost":
        return True
    with contextlib.suppress(ValueError):
        return ipaddress.ip_address(host.strip("[]")).is_loopback
    return False


def prepare_data_folder(data: Path) -> None:
    try:
        data.mkdir(mode=0o700, parents=True, exist_ok=True)
        data.chmod(0o700)
        (data / "backups").mkdir(mode=0o700, exist_ok=True)
    except OSError as error:
        raise CannotStart(
            f"the data folder {data} cannot be used: {error.strerror}. Choose another with --data."
        ) from error


def with_settings_file(settings: Settings) -> Settings:
    path = settings.data / "settings.toml"
    if not path.exists():
        return settings
    try:
        settings = with_file(settings, path.read_text(encoding="utf-8"))
    except (BadSettings, OSError, UnicodeDecodeError) as problem:
        raise CannotStart(f"{path}: {problem}") from problem
    for root in settings.further_roots:
        if not os.path.isdir(root.outside):
            raise CannotStart(f"{path}: roots: there is no folder {root.outside}. Make it or mount it.")
    return settings


@contextlib.contextmanager
def only_server(data: Path) -> Iterator[None]:
    """One server per data folder. The kernel drops the lock when the process dies, however it dies."""
    with (data / "server.lock").open("a+") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            lock.seek(0)
            raise CannotStart(
                f"a gpuyard server (pid {lock.read().strip() or '?'}) already runs on {data}.\n"
                "  Use it, stop it with `yard down`, or choose another folder with --data.\n"
                f"  已有 gpuyard 服务正在使用 {data}：请直接使用它，或用 `yard down` 停止它。"
            ) from None
        lock.truncate(0)
        lock.write(str(os.getpid()))
        lock.flush()
        yield


@contextlib.contextmanager
def listening_sockets(settings: Settings) -> Iterator[Listeners]:
    try:
        (listeners,) = listening.listen(settings.host, settings.port, settings.data)
    except OSError as error:
        raise CannotStart(
            f"cannot listen on {settings.host}:{settings.port}: {error.strerror}. Choose another with --port.\n"
            f"  无法监听 {settings.host}:{settings.port}：{error.strerror}。请用 --port 选择其他端口。"
        ) from error
    try:
        yield listeners
    finally:
        listening.close(listeners)


@dataclass(frozen=True, slots=True)
class Platform:
    """Everything that lives as long as the server."""

    database: Database
    lock: ControlLock
    engine: RunsAll
    executor: ThreadPoolExecutor
    loops: tuple[Loop, ...]
    first_admin: Future[FirstAdmin | None]
    server: uvicorn.Server
    journal: Recorder | None
    lookback: Lookback

    def close(self) -> None:
        self.lookback.runs.close()
        if self.journal is not None:
            self.journal.close()
        self.executor.shutdown(wait=False, cancel_futures=True)
        self.engine.close()
        self.lock.release()
        self.database.close()


def _run(settings: Settings, listeners: Listeners) -> None:
    clock = SteadyClock(time.time(), time.monotonic())
    platform = build_platform(settings, clock)
    gc.freeze()  # what is loaded stays: it need not be looked through again and again
    gc.enable()
    announce_first_start(settings.data, platform.first_admin.result())
    threads = [threading.Thread(target=loop.run, name=type(loop).__name__, daemon=True) for loop in platform.loops]
    for thread in threads:
        thread.start()
    if platform.journal is not None:
        platform.journal.start()
    signal.signal(signal.SIGTERM, _told_to_end)
    try:
        with said_where(settings, listeners, clock()), contextlib.suppress(ToldToEnd):
            platform.server.run(sockets=list(listeners))
    finally:
        for loop in platform.loops:
            loop.end()
        threads[0].join(timeout=5)
        platform.close()


class ToldToEnd(Exception):
    """SIGTERM came. The HTTP server ends on it in good order, then raises it again; this makes that an ordinary end."""


def _told_to_end(number: int, frame: object) -> None:
    raise ToldToEnd


def build_platform(settings: Settings, clock: SteadyClock) -> Platform:
    database = Database.open(settings.database_url)
    lock = ControlLock.acquire(database, f"{socket.gethostname()}:{os.getpid()}")
    if os.geteuid() == 0:
        give_blocks(database, settings.roots, settings.first_uid)
    engine = build_engine(settings, clock)
    shares = Shares(*(Path(root.outside) / SHARE for root in settings.roots))
    folders = [FolderKeeper(database, shares)] if os.geteuid() == 0 and engine.name != SimulatedEngine.name else []
    access = build_access(settings, database, clock)
    workdirs = Workdirs(settings.data / "workdirs", settings.workdir_limit_bytes)
    series = Series(settings.data / "metrics.db")
    executor = ThreadPoolExecutor(settings.control.launch_threads, "launch")
    first_admin = executor.submit(access.first_start)
    keys = JobKeys.kept_at(settings.data / "job_keys.secret")
    journal = build_journal(settings)
    common = with_common_variables(settings)
    control = Control(database, lock, engine, executor, clock, common, workdirs.path, keys, journal)
    every = settings.control.sample_seconds
    sampler = Sampler(engine, series, lambda: control.watched, clock, every, control.busy, control.cards)
    keeper = Housekeeper(database, engine, workdirs, settings.data / "backups", clock, settings.control)
    view = View(database, clock)
    outlook = Outlook(database, view, clock)
    guesser = Guesser(database, outlook, view.waiting)
    lookback = Lookback(settings.data / "journal", lambda: journal.problem) if journal is not None else Lookback()
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
        outlook=outlook,
        shares=shares,
        logs=engine,
        series=series,
        workdirs=workdirs,
        images=image_policy(settings, engine),
        makes_rooms=engine.makes_rooms,
        file_refusal=engine.file_refusal,
        door_mounts=settings.door_mounts,
        version=__version__,
        default_device=default_device(engine.nodes()),
        hosts=allowed_hosts(settings),
        tls=settings.is_tls,
        stopping=lambda: server.should_exit,
        lookback=lookback,
        data=settings.data if has_gateway(settings, engine) else None,
    )
    server = build_server(settings, parts)
    gateway = [GatewayKeeper(gateway_config(settings, engine))] if has_gateway(settings, engine) else []
    loops: tuple[Loop, ...] = (control, sampler, keeper, control.progress, guesser, *folders, *gateway)
    return Platform(database, lock, engine, executor, loops, first_admin, server, journal, lookback)


def build_journal(settings: Settings) -> Recorder | None:
    """Beside the data, whatever the database is: who has control writes it."""
    most = settings.journal_megabytes * 1_000_000
    if not most:
        return None
    bounds = Bounds(most, settings.journal_days, segment_bytes=min(16_000_000, most // 8))
    return Recorder(settings.data / "journal", __version__, bounds)


def with_common_variables(settings: Settings) -> ControlSettings:
    """What every workload is told: where packages come from, and how its shells become ready."""
    at = AT if os.geteuid() == 0 else str(settings.data / "toolbox" / "current")
    told = {**shell_environment(at), **mirrors.environment(settings)}
    return replace(settings.control, workload_env=tuple(told.items()))


def image_policy(settings: Settings, engine: Engine) -> ImagePolicy:
    held = engine if isinstance(engine, KeepsImages) else None
    return ImagePolicy(engine.name, held is not None, settings.refuse_images, settings.default_image, held)


def build_access(settings: Settings, database: Database, clock: SteadyClock) -> Access:
    """As root every user has a system number of their own; otherwise all work is the server's own user's."""
    is_root = os.geteuid() == 0
    rules = AccessRules(first_uid=settings.first_uid if is_root else 0, single_user=not is_root)
    return Access(database, clock, keep_owner_secret(settings.data / "owner.token"), rules)


def build_engine(settings: Settings, clock: SteadyClock) -> RunsAll:
    if settings.engine == "simulated":
        logs = settings.data / "simulated-logs"
        return SimulatedEngine(draw_nodes(settings.nodes or "1x8"), clock, logs=logs, real_time=True)
    if settings.engine not in ("auto", "process", "container"):
        raise CannotStart(f"there is no engine {settings.engine!r}; choose auto, process, container or simulated")
    if settings.nodes:
        raise CannotStart("--nodes draws virtual nodes and goes with --engine simulated")
    try:
        probes = find_probes(settings.data, settings.simulate_cards)
    except ValueError as problem:
        raise CannotStart(f"--simulate-cards {settings.simulate_cards!r}: {problem}") from problem
    if settings.engine == "container" or (settings.engine == "auto" and has_containers(settings)):
        try:
            return build_container_engine(settings, probes)
        except CannotStart as problem:
            if settings.engine == "container":
                raise
            print(f"No containers: {problem}. Work runs as processes of this machine.", flush=True)
    return ProcessEngine(
        settings.data,
        devices=probes,
        log_limit_bytes=settings.log_limit_bytes,
        pids_limit=settings.pids_limit,
        disk_reserve_bytes=settings.disk_reserve_bytes,
        further_roots=settings.further_roots,
    )


def has_containers(settings: Settings) -> bool:
    """Whether `auto` takes containers: as root, with an engine in sight and with tools to show inside them."""
    in_sight = shutil.which("podman") or settings.engine_socket or os.path.exists("/var/run/docker.sock")
    if os.geteuid() != 0 or not in_sight:
        return False
    if toolbox.current(settings.data) is not None:
        return True
    print("Work runs as processes of this machine. `yard toolbox build` lets it run in containers, in any image.")
    print("任务将作为本机进程运行。执行 `yard toolbox build` 后即可在容器中使用任意镜像。", flush=True)
    return False


def build_container_engine(settings: Settings, probes: Sequence[DeviceProbe]) -> ContainerEngine:
    """Loaded only where it is used: most of what speaks to container engines is large."""
    from gpuyard.engines.container.engine import ContainerEngine, Options
    from gpuyard.engines.container.finding import NoEngine, find_engine

    if os.geteuid() != 0:
        raise CannotStart("--engine container needs root: each person's work runs under numbers of their own")
    try:
        found = find_engine(settings.data, settings.engine_socket, settings.insecure_registries)
    except NoEngine as problem:
        raise CannotStart(f"{problem}; `apt install podman` gives one") from problem
    return ContainerEngine(
        settings.data,
        found.client,
        found.facts,
        toolbox=lambda: toolbox.current(settings.data) or ensure_base(settings.data),
        python=python_command(AT),
        devices=probes,
        further_roots=settings.further_roots,
        options=Options(
            log_limit_bytes=settings.log_limit_bytes,
            network_pool=settings.network_pool,
            host_network_groups=frozenset(settings.host_network_groups),
            denied_networks=settings.denied_networks,
            default_image=settings.default_image,
            registries=settings.known_registries,
            pids_limit=settings.pids_limit,
            disk_reserve_bytes=settings.disk_reserve_bytes,
            layer_limit_bytes=settings.layer_limit_bytes,
        ),
        on_close=found.let_go,
    )


def build_server(settings: Settings, parts: Parts) -> uvicorn.Server:
    from gpuyard.api.app import create_app  # half of all there is to load; the first password is hashed meanwhile

    config = uvicorn.Config(
        create_app(parts),
        log_level="warning",
        access_log=False,
        server_header=False,
        timeout_graceful_shutdown=GRACEFUL_SHUTDOWN_SECONDS,
        ssl_certfile=settings.tls_cert,
        ssl_keyfile=settings.tls_key,
        proxy_headers=False,
        http=CarefulProtocol,
        ws="none",
    )
    return uvicorn.Server(config)


def has_gateway(settings: Settings, engine: Engine) -> bool:
    """Where nothing really runs there is nothing to enter."""
    return settings.gateway and engine.name != SimulatedEngine.name


def gateway_config(settings: Settings, engine: Engine) -> GatewayConfig:
    host = settings.gateway_host or settings.host
    return GatewayConfig(
        data=str(settings.data.resolve()),
        database_url=settings.database_url,
        host=host,
        port=settings.web_port,
        ssh_port=settings.shell_port,
        apps_domain=settings.apps_domain.lower(),
        paths=settings.gateway_paths,
        hosts=tuple(sorted(allowed_hosts(replace(settings, host=host)))),
        tls_cert=str(settings.tls_cert) if settings.tls_cert else None,
        tls_key=str(settings.tls_key) if settings.tls_key else None,
        per_address=settings.visitors_per_address,
        proxies=settings.trusted_proxies,
        engine=engine.name,
        first_uid=settings.first_uid if os.geteuid() == 0 else 0,
        version=__version__,
    )


def default_device(nodes: Sequence[Node]) -> str:
    """The device type of a job that names none: the only one there is, otherwise nvidia."""
    types = sorted({card.device for node in nodes for card in node.cards})
    return types[0] if len(types) == 1 else "nvidia"


def allowed_hosts(settings: Settings) -> frozenset[str]:
    if settings.host in ("0.0.0.0", "::"):  # noqa: S104  asked for by the admin: any name of this machine
        return frozenset({"*"})
    bare = settings.host.strip("[]")
    return LOOPBACK_NAMES | {f"[{bare}]" if ":" in bare else bare}


def make_id() -> str:
    return secrets.choice(ID_LETTERS) + "".join(secrets.choice(ID_REST) for _ in range(9))


def announce_first_start(data: Path, admin: FirstAdmin | None) -> None:
    """The admin's one-time password, shown once: here or, when the server starts in the background, in a 0600 file."""
    if admin is None:
        return
    if sys.stdout.isatty():
        print(f"First start: user {admin.name}, one-time password {admin.password}")
        print(f"首次启动：用户 {admin.name}，一次性密码 {admin.password}", flush=True)
        return
    path = data / "first-password"
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    with os.fdopen(descriptor, "w") as file:
        file.write(admin.password + "\n")
    print(f"First start: the one-time password of user {admin.name} is in {path}", flush=True)


@contextlib.contextmanager
def said_where(settings: Settings, listeners: Listeners, now: float) -> Iterator[None]:
    """DATA/server.json tells the command line where this server is."""
    scheme = "https" if settings.is_tls else "http"
    host = "127.0.0.1" if settings.host in ("0.0.0.0", "::") else settings.host  # noqa: S104
    port = listeners[0].getsockname()[1]
    url = f"{scheme}://{f'[{host}]' if ':' in host else host}:{port}"
    path = settings.data / "server.json"
    fresh = path.with_suffix(".new")
    fresh.write_text(json.dumps({"url": url, "pid": os.getpid(), "started_at": now}))
    fresh.replace(path)
    print(f"gpuyard is ready: {url}   data: {settings.data}", flush=True)
    try:
        yield
    finally:
        path.unlink(missing_ok=True)
