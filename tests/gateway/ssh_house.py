"""The SSH door on loopback: a real store, a real broker, real porters inside, OpenSSH's own programs outside."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import secrets
import shutil
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path

import uvloop
from argon2 import PasswordHasher
from tests.clocks import Clock
from tests.draw import a_job
from tests.draw import running as as_running
from tests.gateway.loops import end_loop

from gpuyard.access.passwords import Passwords
from gpuyard.access.public_keys import parse_public_key
from gpuyard.access.service import Access, AccessRules
from gpuyard.domain.people import Group, Membership, Role, User
from gpuyard.domain.workload import WORKPLACE_ROLE, Kind, Replica, State, Workload
from gpuyard.gateway.broker_client import Broker
from gpuyard.gateway.ssh.door import SshContext, SshDoor, start_ssh
from gpuyard.store import audit, people, ssh_keys, workloads
from gpuyard.store.audit import AuditEntry
from gpuyard.store.database import Database
from gpuyard.store.ssh_keys import KeyRow

PASSWORD = "a long enough secret"
QUICK_HASH = PasswordHasher(time_cost=1, memory_cost=64, parallelism=1)
PORTER = Path(__file__).parents[2] / "src" / "gpuyard" / "engines" / "inside" / "porter.py"
SOURCE = str(Path(__file__).parents[2] / "src")


@dataclass(frozen=True)
class Ran:
    code: int
    out: bytes
    err: str

    @property
    def text(self) -> str:
        return self.out.decode()


@dataclass
class SshHouse:
    folder: Path
    database: Database
    access: Access
    clock: Clock
    door: SshDoor
    loop: asyncio.AbstractEventLoop
    used: set[str]
    porters: list[subprocess.Popen[bytes]] = field(default_factory=list)
    shell: str = "/bin/bash"  # of the environments that are started from now on

    @property
    def port(self) -> int:
        return self.door.port

    # --- people and their work --------------------------------------------------------------------------------------

    def person(self, name: str, *, admin: bool = False, must_change: bool = False) -> None:
        user = User(
            name,
            admin=admin,
            memberships=(Membership("vision", Role.MEMBER),),
            must_change_password=must_change,
        )
        with self.database.write() as conn:
            if people.get_group(conn, "vision") is None:
                people.create_group(conn, Group("vision"), time.time())
            people.create_user(conn, user, QUICK_HASH.hash(PASSWORD), time.time())

    def key(self, user: str, kind: str = "ed25519", *, known: bool = True) -> Path:
        """A private key; its other half is kept for this person, unless it is not `known`."""
        file = self.folder / f"key-{secrets.token_hex(4)}"
        subprocess.run(["ssh-keygen", "-q", "-t", kind, "-N", "", "-f", str(file)], check=True)
        if known:
            key = parse_public_key(file.with_suffix(".pub").read_text())
            row = KeyRow("k" + secrets.token_hex(6), user, file.name, key.text, key.fingerprint, time.time())
            with self.database.write() as conn:
                ssh_keys.add(conn, row)
        return file

    def environment(self, owner: str, name: str, *, runs: bool = True) -> Workload:
        drawn = a_job(_new_id(), owner=owner, at=time.time(), name=name, command=())
        role = replace(drawn.spec.roles[0], name=WORKPLACE_ROLE)
        return self._add(replace(drawn, spec=replace(drawn.spec, kind=Kind.ENV, roles=(role,))), runs)

    def job(self, owner: str, replicas: int = 1) -> Workload:
        return self._add(a_job(_new_id(), owner=owner, at=time.time(), replicas=replicas), True)

    def _add(self, drawn: Workload, runs: bool) -> Workload:
        started = as_running(drawn, *[("node-1", ())] * drawn.spec.roles[0].replicas) if runs else drawn
        for replica in replicas_of(started):
            self._start_porter(started, replica)
        with self.database.write() as conn:
            workloads.insert(conn, drawn, [], idempotency_key=None, request_digest=None)
            assert not runs or workloads.save(conn, drawn, started, [])
        if not runs:
            self.set_state(drawn, State.PAUSED)
        return started

    def set_state(self, workload: Workload, state: State) -> None:
        with self.database.write() as conn:
            before = workloads.get(conn, workload.id)
            assert before is not None
            assert workloads.save(conn, before, replace(before, state=state, version=before.version + 1), [])

    def _start_porter(self, workload: Workload, replica: Replica) -> None:
        assert workload.attempt is not None
        place = self.folder / "replicas" / workload.id / str(workload.attempt.number) / replica.id.short
        (place / "door").mkdir(parents=True, mode=0o700)
        home = self.home(workload, replica)
        home.mkdir(parents=True)
        kind = workload.spec.kind.value
        note = {"uid": os.geteuid(), "uids": 1, "owner": workload.owner, "group": workload.group, "kind": kind}
        (place / "door.json").write_text(json.dumps(note))
        env = {"HOME": str(home), "PATH": os.environ["PATH"], "USER": workload.owner, "SHELL": self.shell}
        request = place / "porter.json"
        request.write_text(json.dumps({"door": str(place / "door"), "cwd": str(home), "env": env}))
        porter = subprocess.Popen([sys.executable, "-I", "-S", "-E", str(PORTER), str(request)], start_new_session=True)
        self.porters.append(porter)
        wait_until((place / "door" / "porter.sock").exists)

    def home(self, workload: Workload, replica: Replica | None = None) -> Path:
        return self.folder / "homes" / workload.id / (replica or replicas_of(workload)[0]).id.short

    def trail(self, action: str) -> list[AuditEntry]:
        with self.database.read() as conn:
            return [entry for entry in audit.page(conn, None, 500) if entry.action == action]

    # --- coming by SSH ----------------------------------------------------------------------------------------------

    def options(self, key: Path | None) -> list[str]:
        known = self.folder / "known_hosts"
        if not known.exists():
            public = (self.folder / "ssh_host_ed25519_key.pub").read_text().split()
            known.write_text(f"[127.0.0.1]:{self.port} {public[0]} {public[1]}\n")
        chosen = {
            "UserKnownHostsFile": str(known),
            "GlobalKnownHostsFile": "/dev/null",
            "StrictHostKeyChecking": "yes",
            "LogLevel": "ERROR",
            "IdentitiesOnly": "yes",
            "IdentityAgent": "none",
            "IdentityFile": str(key) if key is not None else "none",
            "NumberOfPasswordPrompts": "1",
            "PreferredAuthentications": "publickey" if key is not None else "keyboard-interactive,password",
        }
        return ["-F", "/dev/null", *(part for name, value in chosen.items() for part in ("-o", f"{name}={value}"))]

    def environ(self, password: str | None = None) -> dict[str, str]:
        """OpenSSH asks a program for the password, which finds it in its environment."""
        ask = self.folder / "ask"
        if not ask.exists():
            ask.write_text('#!/bin/sh\nprintf "%s\\n" "$YARD_TEST_PASSWORD"\n')
            ask.chmod(0o755)
        kept = {name: value for name, value in os.environ.items() if name != "LANG" and not name.startswith("LC_")}
        return {
            **kept,
            "SSH_ASKPASS": str(ask),
            "SSH_ASKPASS_REQUIRE": "force",
            "DISPLAY": "none:0",
            "YARD_TEST_PASSWORD": PASSWORD if password is None else password,
        }

    def command(self, who: str, *arguments: str, key: Path | None = None, options: Sequence[str] = ()) -> list[str]:
        """Of an option given twice ssh takes the first."""
        return ["ssh", *options, *self.options(key), "-p", str(self.port), f"{who}@127.0.0.1", *arguments]

    def ssh(
        self,
        who: str,
        *arguments: str,
        key: Path | None = None,
        password: str | None = None,
        stdin: bytes = b"",
        options: Sequence[str] = (),
        seconds: float = 60,
        env: Mapping[str, str] | None = None,
    ) -> Ran:
        command = self.command(who, *arguments, key=key, options=options)
        return self.run(command, stdin, seconds, password, env)

    def ssh_as(self, name: str, *arguments: str, key: Path) -> Ran:
        """With a name that cannot stand before an @."""
        command = ["ssh", *self.options(key), "-p", str(self.port), "-l", name, "127.0.0.1", *arguments]
        return self.run(command)

    def run(
        self,
        command: Sequence[str],
        stdin: bytes = b"",
        seconds: float = 60,
        password: str | None = None,
        env: Mapping[str, str] | None = None,
    ) -> Ran:
        environ = {**self.environ(password), **(env or {})}
        done = subprocess.run(command, input=stdin, capture_output=True, timeout=seconds, env=environ, check=False)
        return Ran(done.returncode, done.stdout, done.stderr.decode(errors="replace"))

    def start(self, command: Sequence[str], **more: int) -> subprocess.Popen[bytes]:
        """Left running; the caller ends it."""
        streams = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE, **more}
        return subprocess.Popen(command, env=self.environ(), **streams)  # type: ignore[call-overload, no-any-return]

    def close(self) -> None:
        for porter in self.porters:
            porter.send_signal(signal.SIGTERM)
        for porter in self.porters:
            porter.wait(20)
        for pid in _at_home_in(self.folder):  # what was left in the background, which an engine would end
            os.kill(pid, signal.SIGKILL)


def replicas_of(workload: Workload) -> Sequence[Replica]:
    return workload.attempt.replicas if workload.attempt is not None else ()


def _at_home_in(folder: Path) -> Iterator[int]:
    for process in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):
            if Path(os.readlink(process / "cwd")).is_relative_to(folder / "homes"):
                yield int(process.name)


def _new_id() -> str:
    return "w" + secrets.token_hex(5)[:9]


@contextmanager
def a_house(folder: Path, database_url: str = "") -> Iterator[SshHouse]:
    (folder / "run").mkdir(mode=0o700)
    database = Database.open(database_url or f"sqlite:///{folder / 'gpuyard.db'}")
    clock = Clock()
    access = Access(database, clock, None, AccessRules(), Passwords(QUICK_HASH))
    broker = subprocess.Popen(
        [sys.executable, "-m", "gpuyard.gateway.broker", "--data", str(folder)],
        env={**os.environ, "PYTHONPATH": SOURCE},
    )
    loop, used = uvloop.new_event_loop(), set[str]()
    context = SshContext(
        database, access, clock, Broker(folder), "127.0.0.1", 0, folder / "ssh_host_ed25519_key", used=used.add
    )
    door = loop.run_until_complete(start_ssh(context))
    thread = threading.Thread(target=loop.run_forever, name="ssh door")
    thread.start()
    house = SshHouse(folder, database, access, clock, door, loop, used)
    try:
        wait_until((folder / "run" / "broker.sock").exists)
        yield house
    finally:
        asyncio.run_coroutine_threadsafe(door.close(), loop).result(20)
        end_loop(loop, thread)
        house.close()
        broker.terminate()
        broker.wait(20)
        database.close()
        shutil.rmtree(folder / "replicas", ignore_errors=True)


def wait_until(true: Callable[[], bool], seconds: float = 20.0) -> None:
    deadline = time.monotonic() + seconds
    while not true():
        assert time.monotonic() < deadline, "it did not come about in time"
        time.sleep(0.02)
