"""A real PostgreSQL server for tests: started in a folder of its own, thrown away afterwards.

It runs as an unprivileged user (PostgreSQL refuses root) and listens on a socket in that folder, so that two runs never
want the same port. Nothing waits for the disk (`fsync=off`), yet commits survive `kill()`: the kernel has them. The
folder is in memory where there is such a place: a database is copied for nearly every test.
"""

from __future__ import annotations

import itertools
import os
import pwd
import shutil
import signal
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import psycopg
from tests.runner.runs import VARIABLE

from gpuyard.store.database import Database

_READY_WITHIN_SECONDS = 60.0
_SETTINGS = (
    "fsync=off",
    "full_page_writes=off",
    "autovacuum=off",
    "shared_buffers=32MB",
    "max_connections=200",
    "listen_addresses=",
    "log_min_messages=fatal",
)


class PostgresMissing(Exception):
    """There is no PostgreSQL on this machine."""


def find_programs() -> Path:
    """The folder of `initdb` and `postgres`; the newest version if there are several."""
    folders = sorted(Path("/usr/lib/postgresql").glob("*/bin"), key=lambda path: float(path.parent.name), reverse=True)
    on_path = shutil.which("postgres")
    for folder in [*folders, *([Path(on_path).resolve().parent] if on_path else [])]:
        if (folder / "initdb").exists() and (folder / "postgres").exists():
            return folder
    raise PostgresMissing(
        "no PostgreSQL server here: install it (Debian: apt-get install postgresql) to run these tests"
    )


class PostgresServer:
    """One server. `url` leads to its first database, `new_database()` makes another."""

    def __init__(self, folder: Path) -> None:
        self._programs = find_programs()
        self._folder = folder
        self._data = folder / "data"
        self._process: subprocess.Popen[bytes] | None = None
        self._numbers = itertools.count(1)
        self._with_tables: str | None = None
        self._uid, self._gid = _unprivileged()
        self._initialise()
        self.start()

    @property
    def url(self) -> str:
        return self.url_of("postgres")

    def url_of(self, database: str) -> str:
        return f"postgresql://yard@/{database}?host={self._folder}"

    def new_database(self, template: str = "template0") -> str:
        """Make an empty database, or a copy of one that nobody is in, and return its address."""
        name = f"yard_{os.getpid()}_{next(self._numbers)}"
        with psycopg.connect(self.url, autocommit=True) as connection:
            connection.execute(f"CREATE DATABASE {name} TEMPLATE {template} STRATEGY FILE_COPY")
        return self.url_of(name)

    def database_with_tables(self) -> str:
        """As gpuyard leaves a new one. Made step by step only once: that takes ten times as long as a copy."""
        if self._with_tables is None:
            self._with_tables = self.new_database()
            Database.open(self._with_tables).close()
        return self.new_database(_name_in(self._with_tables))

    def drop_database(self, url: str) -> None:
        with psycopg.connect(self.url, autocommit=True) as connection:
            connection.execute(f"DROP DATABASE IF EXISTS {_name_in(url)} WITH (FORCE)")

    def start(self) -> None:
        command = [str(self._programs / "postgres"), "-D", str(self._data)]
        command += ["-c", f"unix_socket_directories={self._folder}"]
        for setting in _SETTINGS:
            command += ["-c", setting]
        with (self._folder / "server.log").open("ab") as log:
            self._process = subprocess.Popen(
                command,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                cwd=self._folder,
                user=self._uid,
                group=self._gid,
                extra_groups=None if self._uid is None else [],
            )
        self._wait_until_ready()

    def kill(self) -> None:
        """As if the machine had lost it: the postmaster is killed, and its children end as soon as they notice."""
        self._end(signal.SIGKILL)
        children_gone = time.monotonic() + _READY_WITHIN_SECONDS
        while _shared_memory_in_use(self._data) and time.monotonic() < children_gone:
            time.sleep(0.02)
        (self._data / "postmaster.pid").unlink(missing_ok=True)

    def stop(self) -> None:
        self._end(signal.SIGQUIT)

    def restart(self) -> None:
        self._end(signal.SIGINT)  # "fast": open connections are cut
        self.start()

    def _end(self, how: signal.Signals) -> None:
        if self._process is not None:
            self._process.send_signal(how)
            self._process.wait()
            self._process = None

    def _initialise(self) -> None:
        self._data.mkdir(mode=0o700)
        if self._uid is not None and self._gid is not None:
            os.chown(self._folder, self._uid, self._gid)
            os.chown(self._data, self._uid, self._gid)
        command = [str(self._programs / "initdb"), "-D", str(self._data), "-U", "yard", "-A", "trust"]
        command += ["-E", "UTF8", "--locale=C", "--no-sync", "--no-instructions"]
        subprocess.run(
            command,
            check=True,
            capture_output=True,
            cwd=self._folder,
            user=self._uid,
            group=self._gid,
            extra_groups=None if self._uid is None else [],
        )

    def _wait_until_ready(self) -> None:
        deadline = time.monotonic() + _READY_WITHIN_SECONDS
        while True:
            try:
                psycopg.connect(self.url, connect_timeout=2).close()
            except psycopg.OperationalError as error:
                assert self._process is not None
                ended = self._process.poll()
                if ended is not None or time.monotonic() > deadline:
                    log = (self._folder / "server.log").read_text(errors="replace")[-2000:]
                    raise AssertionError(f"PostgreSQL did not start: {log}") from error
                time.sleep(0.02)
            else:
                return


@contextmanager
def postgres_server() -> Iterator[PostgresServer]:
    """A running server, gone at the end with all it held. Raises PostgresMissing when there is none to start."""
    find_programs()
    folder = Path(tempfile.mkdtemp(prefix=f"{os.environ.get(VARIABLE, 'gpuyard')}-pg-", dir=in_memory()))
    try:
        server = PostgresServer(folder)
        try:
            yield server
        finally:
            server.stop()
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def in_memory() -> str | None:
    return "/dev/shm" if os.access("/dev/shm", os.W_OK | os.X_OK) else None


def _unprivileged() -> tuple[int | None, int | None]:
    """Whom to run as, user and group: oneself (None), unless that is root."""
    if os.geteuid() != 0:
        return None, None
    for name in ("postgres", "nobody"):
        try:
            user = pwd.getpwnam(name)
        except KeyError:
            continue
        return user.pw_uid, user.pw_gid
    raise PostgresMissing("there is no unprivileged user to run PostgreSQL as")


def _name_in(url: str) -> str:
    return url.partition("@/")[2].partition("?")[0]


def _shared_memory_in_use(data: Path) -> bool:
    """A new postmaster refuses to start while a child of the old one lives; its pid file names the segment."""
    lines = (data / "postmaster.pid").read_text().splitlines() if (data / "postmaster.pid").exists() else []
    if len(lines) < 7 or not lines[6].split():
        return False
    segment = lines[6].split()[-1]
    for line in Path("/proc/sysvipc/shm").read_text().splitlines()[1:]:
        fields = line.split()
        if fields[1] == segment:
            return int(fields[6]) > 0
    return False
