"""A podman service of our own: started when nobody else offers an engine, kept alive, left running with the work.

It has a store, networks and locks of its own in the data folder and shares nothing with the machine's own podman.
"""

from __future__ import annotations

import contextlib
import fcntl
import json
import logging
import os
import shutil
import signal
import subprocess
import threading
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

from gpuyard.engines.container import names, seccomp
from gpuyard.engines.process.supervision import processes

log = logging.getLogger(__name__)

RUN = Path("/run")
HOME = "containers"  # in the data folder
_START_SECONDS, _END_SECONDS = 20.0, 2.0
_HANGS_SECONDS = 20.0  # so long it may be silent before it is replaced; its containers do not notice
PROFILES = (Path("/etc/containers/seccomp.json"), Path("/usr/share/containers/seccomp.json"))
_RUNTIMES = ("crun", "runc")


class OwnService:
    """Everything about it is in files, so that the next server finds the one that is running."""

    def __init__(self, data: Path, *, run: Path = RUN, insecure_registries: Sequence[str] = ()) -> None:
        self._home = data / HOME
        self._run = run / f"gpuyard-{names.mark_of(str(data.resolve()))}"
        self._insecure = tuple(insecure_registries)
        self._lock = threading.Lock()
        self._not_before = 0.0
        self.socket = str(self._run / "podman.sock")  # short: a socket's address has room for 107 letters

    @staticmethod
    def program() -> str | None:
        return shutil.which("podman")

    def environment(self) -> dict[str, str]:
        """What makes podman use this store; also for a person who wants to look into it."""
        return {
            "CONTAINERS_CONF": str(self._home / "containers.conf"),
            "CONTAINERS_STORAGE_CONF": str(self._home / "storage.conf"),
            "CONTAINERS_REGISTRIES_CONF": str(self._home / "registries.conf"),
        }

    def ensure(self) -> None:
        """It runs, or is being started. Whoever asks while it starts is not held up."""
        with self._lock, self._only_one():
            if time.monotonic() < self._not_before or self._pid() is not None:
                return
            self._not_before = time.monotonic() + 2.0
            self._write_settings()
            self._start()

    def wait(self) -> bool:
        """Until its socket is there."""
        until = time.monotonic() + _START_SECONDS
        while not os.path.exists(self.socket):
            if time.monotonic() > until:
                return False
            time.sleep(0.02)
        return True

    def heed(self, away_seconds: float) -> None:
        """It has not answered for so long: start it when it is gone, replace it when it hangs."""
        if away_seconds > _HANGS_SECONDS:
            log.warning("the container engine has not answered for %d seconds and is started anew", away_seconds)
            self.end(signal.SIGKILL)
        self.ensure()

    def end(self, number: int = signal.SIGTERM) -> None:
        """The service alone, and until it is gone: the next one must not be taken for it. Containers run on, each with
        a guard of its own."""
        until = time.monotonic() + _END_SECONDS
        while (pid := self._pid()) is not None:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, number if time.monotonic() < until else signal.SIGKILL)
            time.sleep(0.05)

    def _pid(self) -> int | None:
        """The running service's number, if it is the one we started: a number alone may be a stranger's by now."""
        try:
            pid, start = (int(word) for word in (self._run / "podman.pid").read_text(encoding="ascii").split())
        except (OSError, ValueError):
            return None
        return pid if processes.is_alive(pid, start) else None

    @contextlib.contextmanager
    def _only_one(self) -> Iterator[None]:
        self._run.mkdir(mode=0o700, parents=True, exist_ok=True)
        with open(self._run / "podman.lock", "a", encoding="ascii") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            yield

    def _start(self) -> None:
        program = self.program()
        if program is None:
            log.error("podman is not installed any more")
            return
        with contextlib.suppress(FileNotFoundError):
            os.unlink(self.socket)
        base = {"PATH": f"{os.environ.get('PATH', '')}:/usr/sbin:/sbin", "HOME": str(self._home), "LANG": "C.UTF-8"}
        with open(self._home / "podman.log", "ab") as output:
            process = subprocess.Popen(
                [program, "--log-level=warn", "system", "service", "--time=0", f"unix://{self.socket}"],
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=output,
                cwd="/",
                env=base | _proxies() | self.environment(),
                start_new_session=True,
            )
        start = processes.start_time(process.pid)
        (self._run / "podman.pid").write_text(f"{process.pid} {start}", encoding="ascii")
        threading.Thread(target=process.wait, name="podman-service", daemon=True).start()

    def _write_settings(self) -> None:
        self._home.mkdir(mode=0o711, parents=True, exist_ok=True)
        runtime = next((name for name in _RUNTIMES if shutil.which(name)), "")
        profile = keep_seccomp(self._home)
        own_conf = _containers_conf(self._home, self._run, runtime, has_profile=profile is not None)
        _write(self._home / "containers.conf", own_conf)
        _write(self._home / "storage.conf", _storage_conf(self._home, self._run))
        _write(self._home / "registries.conf", _registries_conf(self._insecure))
        _bound(self._home / "podman.log", 1 << 20)


def _proxies() -> dict[str, str]:
    """The way to registries, where there is only one through a proxy."""
    known = ("HTTP_PROXY", "HTTPS_PROXY", "NO_PROXY", "http_proxy", "https_proxy", "no_proxy")
    return {name: os.environ[name] for name in known if name in os.environ}


def keep_seccomp(home: Path) -> Path | None:
    """The list of kernel calls that podman brings with it, tightened. None where it brings none."""
    for path in PROFILES:
        if path.exists():
            kept = home / "seccomp.json"
            home.mkdir(mode=0o711, parents=True, exist_ok=True)
            _write(kept, json.dumps(seccomp.tightened(json.loads(path.read_text(encoding="utf-8")))))
            return kept
    return None


def _containers_conf(home: Path, run: Path, runtime: str, *, has_profile: bool) -> str:
    """Locks in files: those in shared memory are one set for all stores of a machine, and a new store's first start
    would free everybody's. What lies in `run` must be gone after a reboot. The static folder is where it would be by
    itself below the store: whoever cleans up behind a container is told of the store only."""
    chosen = f'runtime = "{runtime}"\n' if runtime else ""
    profile = f'seccomp_profile = "{home}/seccomp.json"\n' if has_profile else ""
    return f"""[containers]
base_hosts_file = "none"
http_proxy = false
{profile}[network]
network_backend = "netavark"
network_config_dir = "{home}/networks"
[engine]
{chosen}cgroup_manager = "cgroupfs"
events_logger = "file"
lock_type = "file"
static_dir = "{home}/store/libpod"
tmp_dir = "{run}/libpod"
volume_path = "{home}/volumes"
"""


def _storage_conf(home: Path, run: Path) -> str:
    """Without a mount of the store onto itself: whoever cleans up behind the last container would take it away from
    under one that is just being started."""
    return f"""[storage]
driver = "overlay"
graphroot = "{home}/store"
runroot = "{run}/store"
[storage.options.overlay]
skip_mount_home = "true"
"""


def _registries_conf(insecure: Sequence[str]) -> str:
    tables = [f'[[registry]]\nlocation = "{place}"\ninsecure = true\n' for place in insecure]
    return "\n".join(['unqualified-search-registries = ["docker.io"]\nshort-name-mode = "disabled"\n', *tables])


def _write(path: Path, text: str) -> None:
    if path.exists() and path.read_text(encoding="utf-8") == text:
        return
    part = path.with_name(f".{path.name}.{os.urandom(4).hex()}")
    part.write_text(text, encoding="utf-8")
    part.rename(path)


def _bound(path: Path, most: int) -> None:
    if path.exists() and path.stat().st_size > most:
        path.rename(path.with_suffix(".log.old"))
