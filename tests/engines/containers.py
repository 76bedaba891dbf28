"""What the tests of the container engine share: a real podman with a store of its own, one small image, yards on it."""

from __future__ import annotations

import io
import os
import shutil
import subprocess
import tarfile
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from tests.engines.places import PATIENCE_SECONDS

from gpuyard.devices.probe import DeviceProbe
from gpuyard.domain.cluster import Allotment, CardShare
from gpuyard.domain.errors import EngineUnsure
from gpuyard.domain.people import BLOCK, FIRST_BLOCK
from gpuyard.domain.resources import MIB
from gpuyard.domain.workload import Life, ReplicaId, Seen
from gpuyard.engines.container.client import EngineClient, about
from gpuyard.engines.container.engine import ContainerEngine, Options
from gpuyard.engines.container.finding import facts_of
from gpuyard.engines.container.service import OwnService
from gpuyard.engines.process.supervision import record
from gpuyard.engines.seam import LaunchRequest
from gpuyard.images.toolbox.base import AT, ensure_base, python_command

IMAGE = "localhost/yard-test:1"
POOL = "10.213.0.0/16"
UID = FIRST_BLOCK + 4000 * BLOCK  # far from what a yard on this machine gives out
GROUP_ID = FIRST_BLOCK + 4050 * BLOCK
_PROGRAMS = (
    *("cat", "chmod", "chown", "dd", "df", "echo", "env", "false", "grep", "head", "hostname", "httpd", "id", "ip"),
    *("kill", "ln", "ls", "mkdir", "mknod", "mount", "nc", "nslookup", "ping", "ps", "rm", "sed", "setsid", "sh"),
    *("sleep", "stat", "sync", "tail", "touch", "true", "unshare", "wc", "wget", "yes"),
)


def missing() -> str:
    """Why no container can be run here; empty when they can."""
    if os.geteuid() != 0:
        return "containers are tested as root"
    absent = [name for name in ("podman", "busybox", "iptables") if shutil.which(name) is None]
    return f"not installed: {', '.join(absent)}" if absent else ""


class Podman:
    """A service with a store of its own, and one image: nothing but busybox."""

    def __init__(self, folder: Path) -> None:
        self.service = OwnService(folder, insecure_registries=["localhost:5999"])
        self.folder = folder

    def start(self) -> None:
        self.service.ensure()
        assert self.service.wait()
        self.load(IMAGE)
        self.toolbox = ensure_base(self.folder)
        said = about(self.service.socket)
        assert said is not None
        self.facts = facts_of(said, self.service.socket)

    def command(self, *words: str, input: bytes | None = None) -> str:
        environment = os.environ | self.service.environment()
        done = subprocess.run(["podman", *words], input=input, capture_output=True, env=environment, timeout=120)
        assert done.returncode == 0, done.stderr.decode()
        return done.stdout.decode()

    def load(self, name: str, *changes: str, files: dict[str, str] | None = None) -> None:
        options = [word for change in changes for word in ("--change", change)]
        self.command("import", *options, "-", name, input=image_of_busybox(files or {}))

    def close(self) -> None:
        self.command("rm", "--all", "--force", "--time", "0")
        self.command("network", "prune", "--force")
        self.service.end()
        shutil.rmtree(Path(self.service.socket).parent, ignore_errors=True)


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
class ContainerYard:
    """A container engine on a data folder of its own. `engine` may be replaced, as a restarted server does."""

    podman: Podman
    data: Path
    devices: Sequence[DeviceProbe] = ()
    options: Options = Options()
    owner: str = "ann"
    engines: list[ContainerEngine] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.options = replace(self.options, network_pool=POOL)
        self.engine = self.new_engine()
        self.node = self.engine.nodes()[0].name

    def new_engine(self, socket: str = "") -> ContainerEngine:
        client = EngineClient(socket or self.podman.service.socket)
        client.on_news(lambda is_away: self.podman.service.heed(client.away_seconds) if is_away else None)
        made = ContainerEngine(
            self.data,
            client,
            self.podman.facts,
            toolbox=lambda: self.podman.toolbox,
            python=python_command(AT),
            devices=self.devices,
            options=self.options,
        )
        self.engines.append(made)
        return made

    def request(
        self,
        id: ReplicaId,
        *command: str,
        memory: int = 256 * MIB,
        shm: int = 32 * MIB,
        cards: Sequence[int] = (),
        env: Sequence[tuple[str, str]] = (),
        owner: str = "",
        uid: int = UID,
        **more: Any,
    ) -> LaunchRequest:
        shares = tuple(CardShare(index, 1000) for index in cards)
        return LaunchRequest(
            id=id,
            owner=owner or self.owner,
            uid=uid,
            gid=GROUP_ID if uid else 0,
            group="vision",
            command=command,
            env=tuple(env),
            allotment=Allotment(self.node, 1000, memory, shm, "nvidia" if cards else "", shares),
            grace_seconds=5.0,
            **({"image": IMAGE} | more),
        )

    def launch(self, script: str, id: ReplicaId, **more: Any) -> ReplicaId:
        """As control does it: when nobody knows what came of it, it is asked for again."""
        request, until = self.request(id, "sh", "-c", script, **more), time.monotonic() + PATIENCE_SECONDS
        while True:
            try:
                self.engine.launch(request)
                return id
            except EngineUnsure:
                assert time.monotonic() < until
                time.sleep(0.2)

    def look(self, id: ReplicaId) -> Seen:
        return self.engine.observe({id: None})[id]

    def run(self, script: str, id: ReplicaId, **more: Any) -> tuple[Seen, str]:
        """From the start to the end: how it ended, and its whole log."""
        return self.ended(self.launch(script, id, **more))

    def ended(self, id: ReplicaId) -> tuple[Seen, str]:
        self.wait_for(lambda: self.look(id).life is Life.ENDED, f"the end of {id}")
        return self.look(id), self.log(id)

    def log(self, id: ReplicaId) -> str:
        path = self.engine.log_path(id)
        return path.read_text(encoding="utf-8", errors="replace") if path.exists() else ""

    def says(self, id: ReplicaId, text: str) -> None:
        self.wait_for(lambda: text in self.log(id), f"{text!r} in the log of {id}")

    def status(self, id: ReplicaId) -> dict[str, Any]:
        return record.read(str(self.engine.log_path(id).parent), record.STATUS) or {}

    def wait_for(self, condition: Callable[[], object], what: str = "it") -> None:
        until = time.monotonic() + PATIENCE_SECONDS
        while not condition():
            assert time.monotonic() < until, f"{what} did not happen"
            time.sleep(0.01)

    def containers(self) -> list[str]:
        """The names of all containers of this yard, running or not."""
        filters = f"label=yard.data={self.engine._mark}"
        return self.podman.command("ps", "--all", "--filter", filters, "--format", "{{.Names}}").split()

    def close(self) -> None:
        """Leave nothing behind."""
        last = self.new_engine()
        last.sweep(())
        self.wait_for(lambda: not list((self.data / "run" / "live").iterdir()), "the end of all that was started")
        for workload in [path.name for path in (self.data / "replicas").iterdir()]:
            last.forget(workload)
        for engine in self.engines:
            engine.close()
