"""Two hostile tenants on a whole platform with real containers: against each other, against what serves both, and with
everything that serves them killed under their hands."""

from __future__ import annotations

import asyncio
import http.client
import json
import os
import signal
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest
from tests.cli.yard import Yard, wait_until
from tests.engines.containers import image_of_busybox, missing
from tests.engines.porters import read_all
from tests.ports import same_ports

from gpuyard import Client
from gpuyard.domain.errors import YardError
from gpuyard.engines.container.service import OwnService
from gpuyard.gateway.broker_client import Broker
from gpuyard.images.toolbox.base import AT, python_command
from gpuyard.sdk.errors import YardApiError

pytestmark = [pytest.mark.timeout(300), pytest.mark.skipif(bool(missing()), reason=missing())]
IMAGE = "localhost/yard-attacks:1"
PYTHON = f"{' '.join(python_command(AT))} -I -S -c"


class Tenant:
    """Someone with a token and an environment."""

    def __init__(self, town: Town, name: str) -> None:
        self.town, self.name = town, name
        town.owner.create_user(name, password=f"a long secret of {name}", group="default")
        token = town.owner.create_token("attack", user=name)
        self.token_id = token.id
        assert token.token is not None
        self.secret = token.token
        self.client = Client(url=town.owner.door.url, token=token.token, language="en")

    def ask(self, method: str, path: str, body: Any = None) -> Any:
        return self.client.wire.ask(method, f"/api/v1/{path}", body=body).json()

    def create(self, name: str, cards: int = 0) -> None:
        wanted = {"name": name, "image": IMAGE, "cpu": 0.2, "memory": "128M"} | ({"cards": cards} if cards else {})
        self.ask("POST", "envs", wanted)
        self.env = name
        self.wait_for("running")

    def wait_for(self, state: str) -> None:
        def found() -> str:
            return str(self.ask("GET", f"envs/{self.env}")["state"])

        wait_until(lambda: found() == state, 60, lambda: f"{self.env} is {self.ask('GET', f'envs/{self.env}')}")

    @property
    def id(self) -> str:
        return str(self.ask("GET", f"envs/{self.env}")["id"])

    @property
    def replica(self) -> str:
        attempts = self.town.data / "replicas" / self.id
        return f"{self.id}-{max(int(path.name) for path in attempts.iterdir())}-main-0"

    @property
    def first_process(self) -> int:
        workload, attempt, role, index = self.replica.split("-")
        status = self.town.data / "replicas" / workload / attempt / f"{role}-{index}" / "status.json"
        return int(json.loads(status.read_text())["job"]["pid"])

    def inside(self, line: str) -> str:
        """What it prints, run by a shell in the environment."""
        return asyncio.run(self._inside(line))

    async def _inside(self, line: str) -> str:
        ears, mouth = os.pipe()
        nothing = os.open(os.devnull, os.O_RDWR)
        try:
            running = await self.town.broker.run(self.replica, self.name, line=line, fds=(nothing, mouth, mouth))
        finally:
            os.close(nothing)
            os.close(mouth)
        said = await asyncio.to_thread(read_all, ears)
        await running.wait()
        running.close()
        return said.decode(errors="replace")

    def enter(self, what: str = "terminal") -> tuple[str, str, str]:
        """The host, the path with the code, and the cookie it is exchanged for."""
        url = urlsplit(str(self.ask("POST", f"workloads/{self.id}/open", {"what": what})["url"]))
        path = f"{url.path}?{url.query}"
        status, headers = self.town.web("GET", url.netloc, path)
        assert status == 303, headers
        return url.netloc, path, headers["Set-Cookie"].partition(";")[0]


class Town:
    def __init__(self, folder: Path) -> None:
        (folder / "home").mkdir()
        self.yard = Yard(folder / "home", folder / "data")
        self.data = self.yard.data
        self.options = ("--engine", "container", "--simulate-cards", "1", *same_ports())
        self.yard.up(*self.options)
        self.service = OwnService(self.data)
        self.podman("import", "-", IMAGE, input=image_of_busybox({}))
        self.owner = Client(data=self.data, language="en")
        self.broker = Broker(self.data)
        wait_until(lambda: (self.data / "gateway.json").exists())
        self.ann, self.bob = Tenant(self, "ann"), Tenant(self, "bob")

    def podman(self, *words: str, input: bytes | None = None) -> str:
        env = os.environ | self.service.environment()
        done = subprocess.run(["podman", *words], input=input, capture_output=True, env=env, timeout=120, check=True)
        return done.stdout.decode()

    @property
    def gateway(self) -> dict[str, Any]:
        return dict(json.loads((self.data / "gateway.json").read_text()))

    def web(self, method: str, host: str, path: str, **headers: str) -> tuple[int, Any]:
        connection = http.client.HTTPConnection("127.0.0.1", self.gateway["port"], timeout=20)
        try:
            named = {key.replace("_", "-"): value for key, value in headers.items()}
            connection.request(method, path, headers={"Host": host, **named})
            answer = connection.getresponse()
            answer.read()
            return answer.status, answer.headers
        finally:
            connection.close()

    def _cleared(self) -> bool:
        """Containers that are just going are in each other's way for a moment."""
        try:
            self.podman("rm", "--all", "--force", "--time", "0")
        except subprocess.CalledProcessError:
            return False
        return True

    def close(self) -> None:
        for client in (self.owner, self.ann.client, self.bob.client):
            client.close()
        self.yard.run("down", "--all")
        wait_until(self._cleared, 60, lambda: "a container cannot be removed")
        self.podman("network", "prune", "--force")
        self.service.end()


@pytest.fixture(scope="module")
def town(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Town]:
    town = Town(tmp_path_factory.mktemp("town"))
    try:
        town.ann.create("anns", cards=1)
        town.bob.create("bobs")
        yield town
    finally:
        town.close()


# --- inside -------------------------------------------------------------------------------------------------------


def test_each_finds_only_their_own_files_processes_and_words(town: Town) -> None:
    town.ann.inside("echo anns-own > $HOME/secret; chmod 777 $HOME/secret $HOME; setsid sleep 300 >/dev/null 2>&1 &")
    look = (
        "ls -d /mnt/user/* /mnt/*/*; cat /mnt/user/ann/secret /mnt/user/bob/../ann/secret; ps; env; cat /proc/*/environ"
    )
    seen = town.bob.inside(f"{look} 2>&1")
    assert "anns-own" not in seen
    assert "/mnt/user/ann\n" not in seen
    assert "sleep 300" not in seen
    assert "yard_" not in seen.replace("yard_inside", "")  # what every secret of the platform begins with
    assert town.ann.id not in seen
    kept = town.podman("inspect", *town.podman("ps", "--all", "--quiet").split())
    assert "yard_" not in kept


@pytest.mark.parametrize(
    "line",
    [
        "mknod /tmp/disk b 8 0",
        "mount -t tmpfs none /mnt",
        "unshare -m true",
        "unshare -U true",
        "echo x > /proc/sys/kernel/core_pattern",
        "echo x > /proc/sysrq-trigger",
        "echo 1 > /sys/fs/cgroup/memory/memory.limit_in_bytes",
        "echo x > /opt/yard/x",
        "chmod 777 /run/yard/inside",
        "head -c 1 /proc/kcore | grep -q .",
        "ping -c 1 -W 1 127.0.0.1",
        "kill -9 1 && sleep 1 && ! kill -0 1",
        "rm -f /run/yard/log",
        "ln -sf /etc/shadow /run/yard/log",
    ],
)
def test_what_only_the_machine_may_do_is_refused(town: Town, line: str) -> None:
    assert town.bob.inside(f"({line}) >/dev/null 2>&1 && echo done || echo refused") == "refused\n"


def test_neither_reaches_the_other_nor_what_serves_both(town: Town) -> None:
    address = town.ann.inside("ip -4 -o addr show eth0 | sed 's/.*inet //; s/[/].*//'").strip()
    town.ann.inside("httpd -p 8080 -h /tmp >/dev/null 2>&1")
    api = urlsplit(town.owner.door.url).port
    ports = [town.gateway["port"], town.gateway["ssh_port"], api, 22, 5432]
    program = (
        "import socket, sys, threading\n"
        "def ask(host, port):\n"
        "    try:\n"
        "        socket.create_connection((host, int(port)), 3).close()\n"
        "        print('reached', host, port)\n"
        "    except OSError: pass\n"
        "all = [threading.Thread(target=ask, args=one.rsplit(':', 1)) for one in sys.argv[1:]]\n"
        "[one.start() for one in all]; [one.join() for one in all]; print('tried')\n"
    )
    out = subprocess.run(["ip", "-4", "-o", "addr"], capture_output=True, text=True, check=True).stdout
    own = [line.split()[3].split("/")[0] for line in out.splitlines() if line.split()[1].startswith(("eth", "en"))]
    gateway = "$(ip route | grep default | sed 's/.*via //; s/ .*//')"
    targets = [f"{host}:{port}" for host in (*own, gateway) for port in ports]
    targets += [f"{address}:8080", "169.254.169.254:80", "100.100.100.200:80"]

    assert town.bob.inside(f'{PYTHON} "{program}" {" ".join(targets)}') == "tried\n"


# --- the way in ---------------------------------------------------------------------------------------------------


def test_codes_and_cookies_open_one_place_once_and_for_one_person(town: Town) -> None:
    host, path, cookie = town.ann.enter()
    assert town.web("GET", host, path)[0] == 403  # used
    other = host.replace("terminal-", "p8080-")
    theirs = host.replace(town.ann.id, town.bob.id)
    for place in (other, theirs):
        assert town.web("GET", place, "/", Cookie=cookie)[0] in (401, 403, 404)
    _, _, bobs = town.bob.enter()
    assert town.web("GET", host, "/", Cookie=bobs)[0] in (401, 403, 404)
    with pytest.raises(YardApiError):
        town.bob.ask("POST", f"workloads/{town.ann.id}/open", {"what": "terminal"})
    for headers in ({"Authorization": f"Bearer {town.bob.secret}"}, {"Cookie": bobs}, {}):
        status, _ = town.web(
            "GET", f"localhost:{town.gateway['port']}", f"/.yard/api/terminal/{town.ann.id}", **headers
        )
        assert status in (401, 403, 404)


@pytest.mark.parametrize(
    "further", ["//evil.example", "/\\evil.example", "https://evil.example", "/%0d%0aX:1", "\t//e"]
)
def test_no_login_leads_elsewhere(town: Town, further: str) -> None:
    host, _, cookie = town.ann.enter()
    base = f"localhost:{town.gateway['port']}"
    for where, path in (
        (base, f"/.yard/login?to=terminal-{town.ann.id}&next={further}"),
        (base, f"/.yard/login?to={further}"),
        (host, f"/.yard/enter?code=x&next={further}"),
    ):
        _, headers = town.web("GET", where, path.replace("\t", "%09").replace("\\", "%5C"), Cookie=cookie)
        assert "evil" not in (headers["Location"] or "")
        assert headers["X"] is None


def test_with_the_token_goes_what_was_opened_by_it(town: Town) -> None:
    mallory = Tenant(town, "mallory")
    mallory.create("mals")
    host, _, cookie = mallory.enter("p8080")
    mallory.inside("httpd -p 8080 -h /tmp >/dev/null 2>&1")
    wait_until(lambda: town.web("GET", host, "/", Cookie=cookie)[0] == 404)  # httpd's own: there is no page
    mallory.client.close()
    town.owner.remove_token(mallory.token_id)
    wait_until(lambda: town.web("GET", host, "/", Cookie=cookie)[0] == 401, 10)


# --- taking everything --------------------------------------------------------------------------------------------


def test_bombs_in_one_environment_leave_the_other_alone(town: Town) -> None:
    bombs = "yes > /dev/shm/x & tail /dev/zero & yes > /run/yard/log & sleep 600"
    town.ann.inside(f"(sleep 0.3; {bombs}) </dev/null >/dev/null 2>&1 &")
    for _ in range(5):
        assert town.bob.inside("echo fine") == "fine\n"
        assert town.bob.ask("GET", "envs/bobs")["state"] == "running"
    town.ann.ask("POST", "envs/anns/stop")
    town.ann.wait_for("paused")
    town.ann.ask("POST", "envs/anns/start")
    town.ann.wait_for("running")


# --- and everything killed ----------------------------------------------------------------------------------------


def guard_of(pid: int) -> int:
    return int(Path(f"/proc/{pid}/stat").read_text().rpartition(") ")[2].split()[1])


def works(tenant: Tenant) -> bool:
    try:
        return tenant.inside("echo fine") == "fine\n"
    except (YardError, OSError):
        return False


def test_whatever_is_killed_no_environment_is_lost_and_no_card_stays_held(town: Town) -> None:
    ann = town.ann
    first, guard = ann.first_process, guard_of(ann.first_process)
    engine, before = town.service._pid(), town.gateway["pid"]
    assert engine is not None
    broker = int((town.data / "run" / "broker.lock").read_text())
    for pid in (before, broker, engine, guard, town.yard.pid):
        os.kill(pid, signal.SIGKILL)
    town.yard.up(*town.options)
    wait_until(lambda: (town.data / "gateway.json").exists() and town.gateway["pid"] != before, 60)
    wait_until(lambda: works(ann) and works(town.bob), 60)
    assert ann.first_process == first
    ann.wait_for("running")
    ann.ask("POST", "envs/anns/stop")
    ann.wait_for("paused")
    wait_until(lambda: not Path(f"/proc/{first}").exists())
    town.bob.create("bobs2", cards=1)  # the only card is free again
    assert town.bob.inside("echo $CUDA_VISIBLE_DEVICES") == "0\n"
