"""A real platform under attack: clients submit and stop, a killer ends servers, supervisors and jobs with SIGKILL."""

from __future__ import annotations

import contextlib
import json
import os
import random
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path

from tests.faults.checker import History, Kept
from tests.ports import same_ports

from gpuyard import Client
from gpuyard.domain.workload import ENDED, ReplicaId
from gpuyard.sdk.errors import YardApiError
from gpuyard.store import workloads as workload_rows
from gpuyard.store.database import Database
from gpuyard.store.workload_pages import EVERYTHING, WorkloadFilter

LINES = 8
CARDS = 4
VICTIM_SECONDS = 30.0

# Holds a lock for its workload and one for its card as long as it lives: whoever runs twice, or on a card that is
# already given, finds the lock taken and says so in a file the checker reads.
JOB = f"""
exec 9>>"$HOME/run-$YARD_WORKLOAD"; flock -n 9 || echo "TWICE $YARD_REPLICA" >> "$HOME/journal"
exec 8>>"$HOME/card-$CUDA_VISIBLE_DEVICES"
flock -n 8 || echo "CARD $CUDA_VISIBLE_DEVICES $YARD_REPLICA" >> "$HOME/journal"
i=0; while [ $i -lt {LINES} ]; do echo "line $i"; i=$((i+1)); sleep 0.05; done
if [ "$FAILS" = "$YARD_ATTEMPT" ]; then exit 3; fi
echo done
"""


class Battered:
    """A server that is killed and started again on the same folder, port and database."""

    def __init__(self, data: Path, database_url: str) -> None:
        self.data = data
        self.database_url = database_url
        self._ports = same_ports()
        self.log = (data.parent / "server.log").open("ab")
        self.process = self._start()

    def _start(self) -> subprocess.Popen[bytes]:
        command = [sys.executable, "-m", "gpuyard.cli.main", "up", "--data", str(self.data), *self._ports]
        command += ["--simulate-cards", str(CARDS)]
        if not self.database_url.startswith("sqlite"):
            command += ["--database", self.database_url]
        return subprocess.Popen(command, stdout=self.log, stderr=self.log, start_new_session=True)

    def wait_until_ready(self) -> None:
        deadline = time.monotonic() + 60
        while time.monotonic() < deadline:
            with contextlib.suppress(OSError, YardApiError):
                if (self.data / "owner.token").exists():
                    with self.client() as client:
                        client.health()
                    return
            assert self.process.poll() is None, (self.data.parent / "server.log").read_text()[-3000:]
            time.sleep(0.05)
        raise TimeoutError("the server did not come up")

    def client(self) -> Client:
        token = (self.data / "owner.token").read_text().strip()
        return Client(f"http://127.0.0.1:{self._ports[1]}", token, submit_patience_seconds=60)

    def kill(self) -> None:
        self.process.send_signal(signal.SIGKILL)
        self.process.wait()
        self.process = self._start()

    def end(self) -> None:
        self.process.terminate()
        self.process.wait(20)
        self.log.close()


class Clients:
    """Three people submit jobs, and now and then stop or pause one of theirs."""

    def __init__(self, server: Battered, seed: int) -> None:
        self.acknowledged: dict[str, str] = {}
        self.errors: list[str] = []
        self._server = server
        self._over = threading.Event()
        self._threads = [threading.Thread(target=self._run, args=(random.Random(seed + n), n)) for n in range(3)]

    def start(self) -> None:
        for thread in self._threads:
            thread.start()

    def end(self) -> None:
        self._over.set()
        for thread in self._threads:
            thread.join()

    def _run(self, chance: random.Random, number: int) -> None:
        with self._server.client() as client:
            self._submit_and_meddle(client, chance, number)

    def _submit_and_meddle(self, client: Client, chance: random.Random, number: int) -> None:
        mine: list[str] = []
        while not self._over.is_set():
            key = f"storm-{number}-{len(mine)}"
            env = {"FAILS": str(chance.choice([0, 0, 1]))}
            try:
                job = client.submit(command=JOB, cards=1, name=key, env=env, retries=3, idempotency_key=key)
                self.acknowledged[key] = job.id
                mine.append(job.id)
                self._meddle(client, chance, mine)
            except YardApiError as error:
                self.errors.append(f"{key}: {error}")
            self._over.wait(chance.random() * 0.6)

    def _meddle(self, client: Client, chance: random.Random, mine: list[str]) -> None:
        """A wish may be lost with the server: clients are not promised more than for a submit."""
        with contextlib.suppress(YardApiError):
            job = client.job(chance.choice(mine))
            what = chance.choice(["stop", "pause", "nothing", "nothing", "nothing"])
            if what == "stop":
                job.stop()
            elif what == "pause":
                job.pause()
                job.resume()


class Killer:
    """Ends one thing at a time, at a moment nobody chose."""

    def __init__(self, server: Battered, seed: int) -> None:
        self._server = server
        self._chance = random.Random(seed)
        self.killed = {"server": 0, "supervisor": 0, "job": 0}

    def strike(self, times: int) -> None:
        for number in range(times):
            time.sleep(self._chance.random() * 0.7)
            victim = self._chance.choice(["server", "supervisor", "job"])
            if victim == "server":
                self._server.kill()
                # Sometimes the next blow falls before it is up again.
                if number % 4:
                    self._server.wait_until_ready()
                self.killed["server"] += 1
            elif self._kill_a_process(victim):
                self.killed[victim] += 1
        self._server.wait_until_ready()

    def _kill_a_process(self, which: str) -> bool:
        """On a busy machine the next one may take a while to begin."""
        deadline = time.monotonic() + VICTIM_SECONDS
        while not (living := self._living(which)):
            if time.monotonic() > deadline:
                return False
            time.sleep(0.02)
        with contextlib.suppress(ProcessLookupError):
            os.kill(self._chance.choice(living), signal.SIGKILL)
        return True

    def _living(self, which: str) -> list[int]:
        return [status[which]["pid"] for _, status in statuses(self._server.data) if is_alive(status.get(which))]


def statuses(data: Path) -> Iterator[tuple[Path, dict[str, dict[str, int]]]]:
    for path in data.glob("replicas/*/*/*/status.json"):
        with contextlib.suppress(OSError, ValueError):
            yield path.parent, json.loads(path.read_text())


def is_alive(process: dict[str, int] | None) -> bool:
    """The same process, not another one that got its number."""
    if not process:
        return False
    with contextlib.suppress(OSError, IndexError):
        fields = Path(f"/proc/{process['pid']}/stat").read_text().rsplit(")", 1)[1].split()
        return fields[0] != "Z" and int(fields[19]) == process["start"]
    return False


def wait_for_rest(server: Battered, seconds: float = 240) -> None:
    """Until everything has ended; what was left paused by a lost answer is resumed."""
    deadline = time.monotonic() + seconds
    with server.client() as client:
        while time.monotonic() < deadline:
            live = [job for job in client.jobs() if not job.ended]
            if not live:
                return
            for job in live:
                if job.state == "paused":
                    job.resume()
            time.sleep(0.5)


def take_stock(server: Battered, acknowledged: dict[str, str]) -> History:
    """Read everything back: the database, the logs, the jobs' own complaints, and what still runs."""
    database = Database.open(server.database_url)
    kept: dict[str, Kept] = {}
    with database.read() as conn:
        cursor: str | None = None
        while True:
            found, cursor = workload_rows.page(
                conn, filters=WorkloadFilter(), visible_to=EVERYTHING, before=cursor, limit=500
            )
            for workload in found:
                attempts = workload_rows.attempts(conn, workload.id)
                logs = {a.number: _read_log(server.data, a.replicas[0].id) for a in attempts}
                kept[workload.id] = Kept(workload, workload_rows.story(conn, workload.id), attempts, logs)
            if cursor is None:
                break
    database.close()
    ended = {id for id, one in kept.items() if one.workload.state in ENDED}
    running = [str(folder) for folder, status in statuses(server.data) if is_alive(status.get("job"))]
    journals = [path.read_text().splitlines() for path in server.data.glob("files/user/*/journal")]
    return History(
        acknowledged=acknowledged,
        kept=kept,
        lines=LINES,
        journal=[line for lines in journals for line in lines],
        left_running=[folder for folder in running if Path(folder).parent.parent.name in ended],
    )


def _read_log(data: Path, id: ReplicaId) -> str:
    path = data / "replicas" / id.workload / str(id.attempt) / id.short / "log"
    return path.read_text() if path.exists() else ""
