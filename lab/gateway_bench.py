"""The gateway beside nginx: the same page and file, through both, in the same run; and what many WebSockets cost."""

from __future__ import annotations

import base64
import contextlib
import json
import os
import selectors
import socket
import socketserver
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, replace
from pathlib import Path

from gpuyard.access import gates
from gpuyard.access.owner import keep_owner_secret
from gpuyard.access.service import Access, Credentials
from gpuyard.domain.cluster import Allotment
from gpuyard.domain.doorways import Visit
from gpuyard.domain.lifecycle import Launched, Observed, Placed, advance
from gpuyard.domain.resources import GIB
from gpuyard.domain.workload import Life, Port, RoleSpec, Seen, Spec, Workload
from gpuyard.engines.inside import porter
from gpuyard.gateway.config import GatewayConfig, read_note, write_config
from gpuyard.store import workloads
from gpuyard.store.database import Database
from lab.lines import Line, percentile
from lab.needs import program
from lab.platform import end

MB = 1e6
PAGE = b"<!doctype html><title>page</title>" + b"<p>All work and no play.</p>\n" * 40
FILE_BYTES = 200_000_000
SECONDS, ROUNDS = 2.0, 5
CONNECTIONS, PROCESSES = 16, 2
SOCKETS = 200
ID = "wbench0001"
LOCAL = ("127.0.0.1", 0)  # any port that is free


# --- the two roads ------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Road:
    """A way to the same files: address, and the head of a request that may use it."""

    port: int
    host: str
    cookie: str = ""

    def request(self, path: str, *more: str) -> bytes:
        cookie = [f"Cookie: {self.cookie}"] if self.cookie else []
        return "\r\n".join([f"GET {path} HTTP/1.1", f"Host: {self.host}", *cookie, *more, "", ""]).encode()


@dataclass(frozen=True)
class Stage:
    direct: Road
    nginx: Road
    gateway: Road
    sockets: Road
    gateway_pid: int


NGINX = """
worker_processes auto; daemon off; pid {folder}/nginx.pid; error_log {folder}/error.log; {user}
events {{ worker_connections 1024; }}
http {{
  access_log off; sendfile on; keepalive_requests 1000000; keepalive_timeout 60s;
  client_body_temp_path {folder}/a; proxy_temp_path {folder}/b; fastcgi_temp_path {folder}/c;
  uwsgi_temp_path {folder}/d; scgi_temp_path {folder}/e;
  upstream inside {{ server 127.0.0.1:{files}; keepalive 32; }}
  server {{ listen 127.0.0.1:{files}; root {folder}/files; }}
  server {{ listen 127.0.0.1:{proxy};
    location / {{ proxy_pass http://inside; proxy_http_version 1.1; proxy_set_header Connection "";
      proxy_set_header Host $host; }} }}
}}
"""


@contextlib.contextmanager
def a_stage(nginx: str) -> Iterator[Stage]:
    with (
        tempfile.TemporaryDirectory(prefix="yard-bench-", ignore_cleanup_errors=True) as name,
        contextlib.ExitStack() as ends,
    ):
        folder = Path(name)
        files, proxy = _start_nginx(nginx, folder, ends)
        echo = ends.enter_context(_echo_server())
        data = folder / "data"
        cookies = _prepare(data, (files, echo))
        for module in ("broker", "main"):
            command = [sys.executable, "-m", f"gpuyard.gateway.{module}", "--data", str(data)]
            ends.callback(end, subprocess.Popen(command, stderr=subprocess.DEVNULL))
        ends.callback(end, _start_porter(data))
        port, pid = _wait_for_gateway(data)
        hosts = [f"p{inside}-{ID}.localhost:{port}" for inside in (files, echo)]
        roads = [Road(port, host, _enter(port, host, code)) for host, code in zip(hosts, cookies, strict=True)]
        yield Stage(Road(files, "localhost"), Road(proxy, "localhost"), roads[0], roads[1], pid)


def _start_nginx(nginx: str, folder: Path, ends: contextlib.ExitStack) -> tuple[int, int]:
    """Its two ports: of the files, and of the way through it."""
    (folder / "files").mkdir()
    folder.chmod(0o755)
    (folder / "files" / "page.html").write_bytes(PAGE)
    with (folder / "files" / "file.bin").open("wb") as file:
        for _ in range(FILE_BYTES // 1_000_000):
            file.write(os.urandom(1_000_000))
    config, log = folder / "nginx.conf", folder / "error.log"
    command = [nginx, "-p", str(folder), "-e", str(log), "-c", str(config)]
    # nginx takes no port 0, but sockets that listen already, as from an older nginx whose place it takes.
    with socket.create_server(LOCAL, backlog=511) as first, socket.create_server(LOCAL, backlog=511) as second:
        files, proxy = (int(one.getsockname()[1]) for one in (first, second))
        user = "user root;" if os.geteuid() == 0 else ""
        config.write_text(NGINX.format(folder=folder, files=files, proxy=proxy, user=user))
        for one in (first, second):
            one.setblocking(False)  # nginx expects it of what it is handed
        numbers = (first.fileno(), second.fileno())
        env = os.environ | {"NGINX": "".join(f"{number};" for number in numbers)}
        ends.callback(end, subprocess.Popen(command, pass_fds=numbers, env=env, stderr=subprocess.DEVNULL))
    _wait_for_page(Road(proxy, "localhost"), log)
    return files, proxy


def _wait_for_page(road: Road, log: Path) -> None:
    """The port listens from the beginning: who comes too early waits, or is cut off when nginx gives up."""
    try:
        with socket.create_connection(("127.0.0.1", road.port), timeout=20) as sock:
            sock.sendall(road.request("/page.html", "Connection: close"))
            answered = sock.recv(65536).startswith(b"HTTP/1.1 200")
    except OSError:
        answered = False
    if not answered:
        raise RuntimeError(f"nginx did not start: {log.read_text() if log.exists() else ''}")


def _prepare(data: Path, ports: tuple[int, ...]) -> list[str]:
    """A store with one running job that declares these ports, and a code for each."""
    data.mkdir()
    url = f"sqlite:///{data / 'gpuyard.db'}"
    database = Database.open(url)
    access = Access(database, time.time, keep_owner_secret(data / "owner.token"))
    access.first_start()
    role = RoleSpec("worker", ("sleep", "inf"), ports=tuple(map(Port, ports)))
    queued = Workload(ID, "admin", "default", Spec("bench", (role,)), time.time())
    with database.write() as conn:
        workloads.insert(conn, queued, [], idempotency_key=None, request_digest=None)
        assert workloads.save(conn, queued, _running(queued), [])
    secret = (data / "owner.token").read_text().strip()
    actor = access.authenticate(Credentials(secret, None, ""))
    with database.write() as conn:
        codes = [gates.make_code(conn, actor, Visit(ID, f"p{port}"), time.time()) for port in ports]
    database.close()
    write_config(GatewayConfig(str(data), url, port=0, ssh_port=0))
    return codes


def _running(workload: Workload) -> Workload:
    now = time.time()
    placed = advance(workload, Placed({("worker", 0): Allotment("node", 1000, GIB, 0)}), now).workload
    started = advance(placed, Launched({}), now).workload
    assert started.attempt is not None
    seen = {replica.id: Seen(Life.RUNNING, started_at=now) for replica in started.attempt.replicas}
    return replace(advance(started, Observed(seen), now).workload)


def _start_porter(data: Path) -> subprocess.Popen[bytes]:
    """The door of the one replica, on this very machine."""
    folder = data / "replicas" / ID / "1" / "worker-0"
    (folder / "door").mkdir(parents=True)
    about = {"uid": os.getuid(), "uids": 1, "owner": "admin", "group": "default", "kind": "job"}
    (folder / "door.json").write_text(json.dumps(about))
    told = {"argv": [], "env": {"PATH": os.environ["PATH"]}, "cwd": "/", "log": str(folder / "log"), "grace": 5.0}
    told |= {"door": str(folder / "door"), "workdir": None, "shell_env": {}}
    (folder / "request.json").write_text(json.dumps(told))
    return subprocess.Popen([sys.executable, "-I", str(porter.__file__), str(folder / "request.json")])


def _wait_for_gateway(data: Path) -> tuple[int, int]:
    deadline = time.monotonic() + 20
    while time.monotonic() < deadline:
        note = read_note(data)
        if note is not None:
            return note.port, note.pid
        time.sleep(0.05)
    raise RuntimeError("the gateway did not start")


def _enter(port: int, host: str, code: str) -> str:
    with socket.create_connection(("127.0.0.1", port)) as sock:
        sock.sendall(Road(port, host).request(f"/.yard/enter?code={code}", "Connection: close"))
        answer = b"".join(iter(lambda: sock.recv(65536), b"")).decode()
    return next(line for line in answer.split("\r\n") if line.startswith("Set-Cookie: "))[12:].partition(";")[0]


# --- measuring ----------------------------------------------------------------------------------------------------


def requests_per_second(road: Road) -> float:
    """So many connections, each asking again as soon as it is answered; from two processes, lest they be the limit."""
    with ProcessPoolExecutor(PROCESSES) as pool:
        halves = [pool.submit(_ask_on, road, CONNECTIONS // PROCESSES, SECONDS) for _ in range(PROCESSES)]
        return sum(half.result() for half in halves) / SECONDS


def _ask_on(road: Road, connections: int, seconds: float) -> int:
    request, done = road.request("/page.html"), 0
    chooser, left = selectors.DefaultSelector(), dict[socket.socket, bytes]()
    for _ in range(connections):
        sock = socket.create_connection(("127.0.0.1", road.port))
        sock.sendall(request)
        chooser.register(sock, selectors.EVENT_READ, sock)
        left[sock] = b""
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        for key, _ in chooser.select(0.1):
            sock = key.data
            left[sock] += sock.recv(65536)
            if left[sock].endswith(PAGE[-20:]) and len(left[sock]) > len(PAGE):
                assert left[sock].startswith(b"HTTP/1.1 200"), left[sock][:200]
                left[sock] = b""
                done += 1
                sock.sendall(request)
    for sock in left:
        sock.close()
    return done


def megabytes_per_second(road: Road) -> float:
    begun, seen = time.perf_counter(), 0
    with socket.create_connection(("127.0.0.1", road.port)) as sock:
        sock.sendall(road.request("/file.bin", "Connection: close"))
        buffer = bytearray(1 << 20)
        while count := sock.recv_into(buffer):
            seen += count
    assert seen >= FILE_BYTES, seen
    return seen / MB / (time.perf_counter() - begun)


def round_trip_ms(road: Road) -> float:
    request, times = road.request("/page.html"), []
    with socket.create_connection(("127.0.0.1", road.port)) as sock:
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        for _ in range(1000):
            begun = time.perf_counter()
            sock.sendall(request)
            seen = b""
            while not (seen.endswith(PAGE[-20:]) and len(seen) > len(PAGE)):
                seen += sock.recv(65536)
            times.append(time.perf_counter() - begun)
    return percentile(times, 0.5) * 1000


def memory_of_websockets(stage: Stage) -> float:
    before = _pss(stage.gateway_pid)
    key = base64.b64encode(os.urandom(16)).decode()
    more = ("Connection: Upgrade", "Upgrade: websocket", f"Origin: http://{stage.sockets.host}")
    opened = []
    for _ in range(SOCKETS):
        sock = socket.create_connection(("127.0.0.1", stage.sockets.port))
        sock.sendall(stage.sockets.request("/ws", *more, f"Sec-WebSocket-Key: {key}", "Sec-WebSocket-Version: 13"))
        opened.append(sock)
    for sock in opened:
        assert sock.recv(65536).startswith(b"HTTP/1.1 101")
        sock.sendall(b"x" * 4096)
        assert sock.recv(65536)
    cost = _pss(stage.gateway_pid) - before
    for sock in opened:
        sock.close()
    return cost / MB


def _pss(pid: int) -> int:
    """Of the gateway and its workers."""
    workers = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
    rolls = [Path(f"/proc/{one}/smaps_rollup").read_text() for one in (pid, *workers)]
    lines = [line for roll in rolls for line in roll.splitlines() if line.startswith("Pss:")]
    return sum(int(line.split()[1]) for line in lines) * 1024


class _Echo(socketserver.BaseRequestHandler):
    def handle(self) -> None:
        self.request.recv(65536)
        self.request.sendall(b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n\r\n")
        with contextlib.suppress(OSError):
            while piece := self.request.recv(65536):
                self.request.sendall(piece)


@contextlib.contextmanager
def _echo_server() -> Iterator[int]:
    class Server(socketserver.ThreadingTCPServer):
        daemon_threads, request_queue_size = True, 256

    with Server(("127.0.0.1", 0), _Echo) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        try:
            yield server.server_address[1]
        finally:
            server.shutdown()


def gateway() -> list[Line]:
    """Turn by turn, so that what else the machine does falls on both alike; of each the best round counts."""
    with a_stage(program("nginx", "nginx")) as stage:
        speeds: dict[str, list[float]] = {"nginx": [], "gateway": []}
        rates: dict[str, list[float]] = {"nginx": [], "gateway": []}
        for _ in range(ROUNDS):
            for name, road in (("nginx", stage.nginx), ("gateway", stage.gateway)):
                speeds[name].append(requests_per_second(road))
                rates[name].append(megabytes_per_second(road))
        added = round_trip_ms(stage.gateway) - round_trip_ms(stage.direct)
        memory = memory_of_websockets(stage)
        idle = _pss(stage.gateway_pid) / MB
    speed = {name: max(values) for name, values in speeds.items()}
    rate = {name: max(values) for name, values in rates.items()}
    ask, load = f"{speed['gateway']:.0f} / {speed['nginx']:.0f}", f"{rate['gateway']:.0f} / {rate['nginx']:.0f}"
    return [
        Line(f"gateway / nginx, requests per second ({ask})", speed["gateway"] / speed["nginx"], 0.5, "ratio", False),
        Line(f"gateway / nginx, file of 200 MB ({load} MB/s)", rate["gateway"] / rate["nginx"], 0.5, "ratio", False),
        Line("gateway, added round trip, p50 of 1000", added, 3.0, "ms"),
        Line(f"gateway, {SOCKETS} open WebSockets cost", memory, 60, "MB"),
        Line("gateway process, PSS after all this (for information)", idle, 200, "MB"),
    ]


MEASURES = (gateway,)
