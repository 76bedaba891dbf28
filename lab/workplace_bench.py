"""How long people wait for a place to work in: a terminal, JupyterLab, VS Code, each beside the same without us.

Without us means: `podman run` of the same image in the same store with the same limits, and the same programs started
in a container of it. The two take turns, and take turns in being first, so that a busy machine and a cold cache are as
hard on the one as on the other; and nothing is measured while what was measured before is still being cleared away.
"""

from __future__ import annotations

import asyncio
import contextlib
import http.client
import os
import shutil
import socket
import statistics
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from urllib.parse import urlsplit

from tests.images import stage
from tests.provisions import TOOLBOX, Unavailable, ready

from gpuyard.engines.container.service import OwnService
from gpuyard.gateway.broker_client import DATA, Broker, Frames, frame
from gpuyard.images.toolbox import recipes
from gpuyard.images.toolbox.base import AT
from lab.lines import Line
from lab.needs import LeftOut
from lab.platform import YARD, Platform, a_platform

Times = dict[str, list[float]]
ROUNDS = 6  # each is first in half of them
CORES, MEMORY = 1, "2G"
PATIENCE_SECONDS = 60.0
OWNER = "admin"


@dataclass(frozen=True)
class Place:
    """A running environment."""

    id: str
    replica: str


def workplace() -> list[Line]:
    if problem := stage.missing("iptables"):
        raise LeftOut(f"{problem} (Debian: apt-get install podman runc netavark aardvark-dns iptables busybox-static)")
    try:
        toolboxes = ready(TOOLBOX) / "toolbox"
    except Unavailable as why:
        raise LeftOut(f"no toolbox: {why} (Debian: apt-get install g++ make libkrb5-dev)") from why
    with tempfile.TemporaryDirectory(prefix="yard-place-", ignore_cleanup_errors=True) as folder:
        data = Path(folder) / "data"
        data.mkdir(mode=0o700)
        (data / "toolbox").symlink_to(toolboxes)
        with a_container_platform(data) as platform:
            image = load_image(platform)
            return compare(platform, image, Path(folder))


@contextlib.contextmanager
def a_container_platform(data: Path) -> Iterator[Platform]:
    try:
        with a_platform("--engine", "container", data=data) as platform:
            yield platform
    finally:
        subprocess.run([*YARD, "down", "--all"], env={**os.environ, "YARD_DATA": str(data)}, capture_output=True)
        service = OwnService(data)
        try:
            remove(data, "--all")
        finally:
            service.end()
            shutil.rmtree(Path(service.socket).parent, ignore_errors=True)


def remove(data: Path, *which: str) -> None:
    """Containers that are just going are in their own and each other's way for a moment ("device or resource busy")."""
    for tries_left in reversed(range(20)):
        try:
            podman(data, "rm", "--force", "--ignore", "--time", "0", *which)
            return
        except RuntimeError:
            if not tries_left:
                raise
            time.sleep(0.5)


def podman(data: Path, *words: str) -> str:
    done = subprocess.run(["podman", *words], env=os.environ | OwnService(data).environment(), capture_output=True)
    if done.returncode != 0:
        raise RuntimeError(f"podman {' '.join(words)[:200]}: {done.stderr.decode(errors='replace')[-500:]}")
    return done.stdout.decode().strip()


def load_image(platform: Platform) -> str:
    image = stage.busybox_image()
    env = {**os.environ, "YARD_DATA": str(platform.data)}
    subprocess.run([*YARD, "image", "load", str(stage.archive(image))], env=env, check=True, capture_output=True)
    return image


def compare(platform: Platform, image: str, folder: Path) -> list[Line]:
    ours: Times = {"terminal": [], "lab": [], "ide": []}
    raw: Times = {"terminal": [], "lab": [], "ide": []}
    for number in range(ROUNDS):
        a_round(platform, image, folder / str(number), ours, raw, ours_first=number % 2 == 0)
    promised = {"terminal": 0.7, "lab": 1.0, "ide": 1.0}
    return [
        Line(f"{NAMES[what]}, above {medians(raw[what])} s without us (median of {ROUNDS})", above, promised[what], "s")
        for what in ours
        for above in [statistics.median(ours[what]) - statistics.median(raw[what])]
    ]


def a_round(platform: Platform, image: str, folder: Path, ours: Times, raw: Times, *, ours_first: bool) -> None:
    """Everything once by us and once without us, one after the other."""
    data, places = platform.data, list[Place]()

    def terminal() -> float:
        seconds, place = terminal_by_us(platform, image, f"bench{folder.name}")
        places.append(place)
        return seconds

    take_turns(ours["terminal"], terminal, raw["terminal"], lambda: terminal_by_podman(data, image), ours_first)
    for what in ("lab", "ide"):
        by_us = partial(service_by_us, platform, places[0], what)
        by_podman = partial(service_by_podman, data, image, folder / what, what)
        take_turns(ours[what], by_us, raw[what], by_podman, ours_first)
    connection = platform.connect()
    connection.call("POST", f"/workloads/{places[0].id}/stop")
    connection.wait(places[0].id, "paused", seconds=PATIENCE_SECONDS)  # it could be started again


def take_turns(
    ours: list[float], by_us: Callable[[], float], raw: list[float], by_podman: Callable[[], float], ours_first: bool
) -> None:
    turns = [(ours, by_us), (raw, by_podman)]
    for times, measure in turns if ours_first else reversed(turns):
        times.append(measure())


NAMES = {"terminal": "environment to usable terminal", "lab": "JupyterLab answers", "ide": "VS Code answers"}


def medians(values: list[float]) -> str:
    return f"{statistics.median(values):.2f}"


# --- a terminal ---------------------------------------------------------------------------------------------------


def terminal_by_us(platform: Platform, image: str, name: str) -> tuple[float, Place]:
    begun, connection = time.perf_counter(), platform.connect()
    asked = {"name": name, "image": image, "cpu": CORES, "memory": MEMORY}
    id = str(connection.call("POST", "/envs", asked)["id"])
    job = connection.wait(id, "running", seconds=PATIENCE_SECONDS)
    attempt = job["attempts"][-1]
    replica = f"{id}-{attempt['number']}-{attempt['replicas'][0]['replica']}"
    asyncio.run(use_terminal(Broker(platform.data), replica))
    return time.perf_counter() - begun, Place(id, replica)


async def use_terminal(broker: Broker, replica: str) -> None:
    _, _, stream = await broker.terminal(replica, OWNER)
    loop, frames, said = asyncio.get_running_loop(), Frames(), b""
    stream.setblocking(False)
    await loop.sock_sendall(stream, frame(DATA, b"echo ready-$((40+2))\n"))
    async with asyncio.timeout(PATIENCE_SECONDS):
        while b"ready-42" not in said:
            said += b"".join(text for kind, text in frames.feed(await loop.sock_recv(stream, 65536)) if kind == DATA)
    stream.close()


def terminal_by_podman(data: Path, image: str) -> float:
    """Until the shell has answered. That it has ended podman may notice much later."""
    name = f"raw-{time.monotonic_ns()}"
    command = ["podman", "run", "--name", name, *limits(), image, "sh", "-c", "echo ready-$((40+2))"]
    begun = time.perf_counter()
    with subprocess.Popen(command, env=os.environ | OwnService(data).environment(), stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        assert b"ready-42" in process.stdout.readline()
        seconds = time.perf_counter() - begun
        process.kill()
    remove(data, name)
    return seconds


def limits() -> list[str]:
    """People of its own, cores and memory as ours have. Ours have a network, too; without one it is faster, and the
    promise harder."""
    own = f"0:{stage.FIRST_NUMBER}:65536"
    limited = ["--ulimit", "nofile=8192:8192", "--ulimit", "nproc=4096:4096", "--cpus", str(CORES), "--memory", MEMORY]
    return ["--uidmap", own, "--gidmap", own, "--network", "none", *limited]


# --- services -----------------------------------------------------------------------------------------------------


def service_by_us(platform: Platform, place: Place, what: str) -> float:
    """From the wish to open it until its page comes."""
    begun = time.perf_counter()
    address = urlsplit(platform.connect().call("POST", f"/workloads/{place.id}/open", {"what": what})["url"])
    answer = visit(address.port or 80, address.netloc, f"{address.path}?{address.query}", "")
    cookie = (answer.getheader("Set-Cookie") or "").split(";")[0]
    until(lambda: visit(address.port or 80, address.netloc, PAGES[what], cookie).status == 200)
    return time.perf_counter() - begun


PAGES = {"lab": "/lab", "ide": "/?folder=/tmp"}


def visit(port: int, host: str, path: str, cookie: str) -> http.client.HTTPResponse:
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=PATIENCE_SECONDS)
    connection.request("GET", path, headers={"Host": host, "Cookie": cookie, "Accept": "text/html"})
    answer = connection.getresponse()
    answer.read()
    connection.close()
    return answer


def service_by_podman(data: Path, image: str, folder: Path, what: str) -> float:
    """Started in a container that runs already, until its page comes."""
    home, door = folder / "home", folder / "door"
    for path in (folder, home, door):
        path.mkdir(mode=0o755, parents=True)
        os.chown(path, stage.FIRST_NUMBER, stage.FIRST_NUMBER)
    service = recipes.RECIPES[what]("/", AT, stage.HOME, stage.DOOR)
    shown = [f"{(data / 'toolbox' / 'current').resolve()}:{AT}:ro", f"{home}:{stage.HOME}", f"{door}:{stage.DOOR}"]
    volumes = [word for mount in shown for word in ("--volume", mount)]
    env = [word for name, value in {"HOME": stage.HOME, **service.env}.items() for word in ("--env", f"{name}={value}")]
    container = podman(data, "run", "-d", *limits(), *volumes, *env, image, "sleep", "1000")
    begun = time.perf_counter()
    podman(data, "exec", "-d", container, *service.argv)
    until(lambda: page_of(door / f"{what}.sock", PAGES[what]) == 200)
    seconds = time.perf_counter() - begun
    remove(data, container)
    return seconds


class SocketConnection(http.client.HTTPConnection):
    def __init__(self, path: Path) -> None:
        super().__init__("localhost", timeout=PATIENCE_SECONDS)
        self._path = path

    def connect(self) -> None:
        self.sock = socket.socket(socket.AF_UNIX)
        self.sock.connect(str(self._path))


def page_of(path: Path, page: str) -> int:
    try:
        connection = SocketConnection(path)
        connection.request("GET", page)
        return connection.getresponse().status
    except OSError:  # it does not listen yet
        return 0


def until(condition: Callable[[], bool]) -> None:
    deadline = time.monotonic() + PATIENCE_SECONDS
    while not condition():
        if time.monotonic() > deadline:
            raise TimeoutError("it did not answer")
        time.sleep(0.02)


MEASURES = (workplace,)
