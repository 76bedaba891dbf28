"""What the tests of the container engine share: a real podman and a real docker with stores of their own, one small
image, yards on them."""

from __future__ import annotations

import io
import os
import shutil
import subprocess
import tarfile
import tempfile
import threading
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import ClassVar

from tests.engines.places import Place, wait_for
from tests.ports import a_port

from gpuyard.devices.probe import DeviceProbe
from gpuyard.domain.people import BLOCK, FIRST_BLOCK
from gpuyard.engines.container.client import EngineClient, about
from gpuyard.engines.container.creating import EngineFacts
from gpuyard.engines.container.engine import ContainerEngine, Options
from gpuyard.engines.container.finding import facts_of
from gpuyard.engines.container.service import OwnService
from gpuyard.images.toolbox.base import AT, ensure_base, python_command

IMAGE = "localhost/yard-test:1"
POOL = "10.213.0.0/16"
REGISTRY_PORT = a_port()
REGISTRY, NOBODYS_REGISTRY = f"localhost:{REGISTRY_PORT}", f"localhost:{a_port()}"
REGISTRIES = ("docker.io", REGISTRY, NOBODYS_REGISTRY)
UID = FIRST_BLOCK + 4000 * BLOCK  # far from what a yard on this machine gives out
GROUP_ID = FIRST_BLOCK + 4050 * BLOCK
PATH = f"{os.environ.get('PATH', '')}:/usr/sbin:/sbin"
_PROGRAMS = (
    *("cat", "chmod", "chown", "dd", "df", "echo", "env", "false", "grep", "head", "hostname", "httpd", "id", "ip"),
    *("kill", "ln", "ls", "mkdir", "mknod", "mount", "nc", "nslookup", "ping", "ps", "rm", "sed", "setsid", "sh"),
    *("sleep", "stat", "sync", "tail", "touch", "true", "unshare", "wc", "wget", "yes"),
)


def missing() -> str:
    """Why no container can be run here; empty when they can."""
    return _missing("podman", "busybox", "iptables")


def missing_docker() -> str:
    """The same for docker. A second one would take the first one's rules from the machine's tables."""
    is_running = any(os.path.exists(path) for path in ("/var/run/docker.pid", "/var/run/docker.sock"))
    absent = _missing("containerd", "dockerd", "docker", "busybox", "iptables")
    return absent or ("a docker runs here already" if is_running else "")


def _missing(*programs: str) -> str:
    if os.geteuid() != 0:
        return "containers are tested as root"
    absent = [name for name in programs if shutil.which(name, path=PATH) is None]
    return f"not installed: {', '.join(absent)}" if absent else ""


class ContainerHost(ABC):
    """A container engine of the tests' own, with a store of its own and one image: nothing but busybox."""

    program: ClassVar[str]
    removing: ClassVar[tuple[str, ...]] = ("rm", "--force")  # at once
    socket: str
    facts: EngineFacts
    toolbox: Path

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def start(self) -> None:
        self.serve()
        self.load(IMAGE)
        self.toolbox = ensure_base(self.folder)
        said = about(self.socket)
        assert said is not None
        self.facts = facts_of(said, self.socket)

    def command(self, *words: str, input: bytes | None = None) -> str:
        done = self._try(*words, input=input)
        assert done.returncode == 0, done.stderr.decode()
        return done.stdout.decode()

    def _try(self, *words: str, input: bytes | None = None) -> subprocess.CompletedProcess[bytes]:
        environment = os.environ | self.environment()
        return subprocess.run([self.program, *words], input=input, capture_output=True, env=environment, timeout=120)

    def names(self, *filters: str) -> list[str]:
        """Of all containers, running or not. podman stumbles over one that goes while it is looked at: then again."""
        words = ("ps", "--all", *(word for one in filters for word in ("--filter", one)), "--format", "{{.Names}}")
        for _ in range(5):
            if (done := self._try(*words)).returncode == 0:
                return done.stdout.decode().split()
        raise AssertionError(done.stderr.decode())

    def remove(self, name: str) -> None:
        """As somebody at the keyboard would: once more when others were just taking it apart."""

        def is_gone() -> bool:
            self._try(*self.removing, name)
            return name not in self.names()

        wait_for(is_gone, f"the removal of {name}")

    def load(self, name: str, *changes: str, files: dict[str, str] | None = None) -> None:
        options = [word for change in changes for word in ("--change", change)]
        self.command("import", *options, "-", name, input=image_of_busybox(files or {}))

    @abstractmethod
    def serve(self) -> None:
        """Until it answers."""

    @abstractmethod
    def heed(self, away_seconds: float) -> None:
        """It has not answered for so long: as on a machine that keeps its services alive."""

    @abstractmethod
    def pid(self) -> int: ...

    @abstractmethod
    def environment(self) -> dict[str, str]: ...

    @abstractmethod
    def close(self) -> None:
        """Leave nothing behind."""


class Podman(ContainerHost):
    program = "podman"
    removing = ("rm", "--force", "--time", "0")

    def __init__(self, folder: Path) -> None:
        super().__init__(folder)
        self._service = OwnService(folder, insecure_registries=[REGISTRY])
        self.socket = self._service.socket

    def serve(self) -> None:
        self._service.ensure()
        assert self._service.wait()

    def heed(self, away_seconds: float) -> None:
        self._service.heed(away_seconds)

    def pid(self) -> int:
        pid = self._service._pid()
        assert pid is not None
        return pid

    def environment(self) -> dict[str, str]:
        return self._service.environment()

    def close(self) -> None:
        self.command(*self.removing, "--all")
        self.command("network", "prune", "--force")
        self._service.end()
        shutil.rmtree(Path(self.socket).parent, ignore_errors=True)


class Docker(ContainerHost):
    """As an admin would set it up for us: what watches over its containers runs by itself, and they outlive docker."""

    program = "docker"

    def __init__(self, folder: Path) -> None:
        super().__init__(folder)
        self._run = Path(tempfile.mkdtemp(prefix="yard-docker-", dir="/run"))  # short: for its sockets' addresses
        self.socket = str(self._run / "docker.sock")
        self._lock = threading.Lock()

    def serve(self) -> None:
        forwarding = Path("/proc/sys/net/ipv4/ip_forward")
        if forwarding.read_text().strip() == "0":  # or docker would, and close all ways: ours must hold by themselves
            forwarding.write_text("1")
        for name in ("containerd.toml", "daemon.json"):
            (self.folder / name).write_text("{}" if name.endswith("json") else "version = 2\n")
        self._containerd = self._start(
            "containerd",
            config=self.folder / "containerd.toml",
            root=self.folder / "containerd",
            state=self._run / "containerd",
            address=self._run / "containerd.sock",
        )
        self._dockerd = self._start_dockerd()
        wait_for(lambda: about(self.socket) is not None, "docker's first word")

    def _start_dockerd(self) -> subprocess.Popen[bytes]:
        return self._start(
            *("dockerd", "--live-restore", "--bridge=none", f"--insecure-registry={REGISTRY}"),
            config_file=self.folder / "daemon.json",
            data_root=self.folder / "docker",
            exec_root=self._run / "exec",
            pidfile=self._run / "docker.pid",
            containerd=self._run / "containerd.sock",
            host=f"unix://{self.socket}",
        )

    def _start(self, *words: str, **options: object) -> subprocess.Popen[bytes]:
        command = [*words, *(f"--{name.replace('_', '-')}={value}" for name, value in options.items())]
        with open(self.folder / "docker.log", "ab") as output:
            return subprocess.Popen(
                command,
                env=os.environ | {"PATH": PATH},
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=output,
                start_new_session=True,
            )

    def heed(self, away_seconds: float) -> None:
        with self._lock:
            if self._dockerd.poll() is not None:
                self._dockerd = self._start_dockerd()

    def pid(self) -> int:
        return self._dockerd.pid

    def environment(self) -> dict[str, str]:
        return {"DOCKER_HOST": f"unix://{self.socket}"}

    def close(self) -> None:
        for id in self.command("ps", "--all", "--quiet").split():
            self.command(*self.removing, id)
        self.command("network", "prune", "--force")
        for process in (self._dockerd, self._containerd):
            process.terminate()
            process.wait(30)
        # The machine's own network, for whoever was given it, and the folder that docker mounts on itself.
        for held in (*(self._run / "exec" / "netns").glob("*"), self.folder / "docker"):
            subprocess.run(["umount", str(held)], capture_output=True, check=False)
        shutil.rmtree(self._run)


def image_of_busybox(files: dict[str, str]) -> bytes:
    """An image's files, as a tar archive."""
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w") as archive:
        for folder in ("bin", "etc", "tmp", "root", "var"):
            entry = tarfile.TarInfo(folder)
            entry.type, entry.mode = tarfile.DIRTYPE, 0o1777 if folder == "tmp" else 0o755
            archive.addfile(entry)
        archive.add(shutil.which("busybox") or "", "bin/busybox")
        for program in _PROGRAMS:
            entry = tarfile.TarInfo(f"bin/{program}")
            entry.type, entry.linkname = tarfile.SYMTYPE, "busybox"
            archive.addfile(entry)
        for name, text in {"etc/passwd": "root:x:0:0::/root:/bin/sh\n", "etc/group": "root:x:0:\n", **files}.items():
            entry = tarfile.TarInfo(name)
            entry.size, entry.mode = len(text.encode()), 0o755
            archive.addfile(entry, io.BytesIO(text.encode()))
    return packed.getvalue()


@dataclass
class ContainerYard(Place):
    """With a container engine."""

    host: ContainerHost
    data: Path
    devices: Sequence[DeviceProbe] = ()
    options: Options = Options()
    owner: str = "ann"
    engines: list[ContainerEngine] = field(default_factory=list)
    uid, gid, image = UID, GROUP_ID, IMAGE

    def __post_init__(self) -> None:
        self.options = replace(self.options, network_pool=POOL, registries=REGISTRIES)
        self.engine: ContainerEngine = self.new_engine()
        self.node = self.engine.nodes()[0].name

    def new_engine(self, socket: str = "") -> ContainerEngine:
        client = EngineClient(socket or self.host.socket)
        client.on_news(lambda is_away: self.host.heed(client.away_seconds) if is_away else None)
        made = ContainerEngine(
            self.data,
            client,
            self.host.facts,
            toolbox=lambda: self.host.toolbox,
            python=python_command(AT),
            devices=self.devices,
            options=self.options,
        )
        self.engines.append(made)
        return made

    def wait_for(self, condition: Callable[[], object], what: str = "it") -> None:
        wait_for(condition, what)

    def containers(self) -> list[str]:
        """The names of all containers of this yard, running or not."""
        return self.host.names(f"label=yard.data={self.engine._mark}")

    def close(self) -> None:
        """Leave nothing behind."""
        last = self.new_engine()
        last.sweep(())
        self.wait_for(lambda: not list((self.data / "run" / "live").iterdir()), "the end of all that was started")
        for workload in [path.name for path in (self.data / "replicas").iterdir()]:
            last.forget(workload)
        for engine in self.engines:
            engine.close()
