"""The platform as a whole: it starts, takes work, lists it, shows what it says; and from a clone to the first job."""

from __future__ import annotations

import json
import os
import statistics
import subprocess
import tempfile
import threading
import time
import urllib.request
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor
from datetime import datetime
from pathlib import Path

from lab.lines import Line, percentile
from lab.needs import ROOT, LeftOut, program
from lab.platform import YARD, Connection, Platform, a_platform

MB = 1e6


def start_and_idle() -> list[Line]:
    ready = []
    for _ in range(5):
        with a_platform("--simulate-cards", "8") as platform:
            ready.append(platform.ready_seconds)
            if len(ready) == 5:
                platform.connect().call("GET", "/workloads")
                time.sleep(5)
                idle = platform.pss_bytes()
    return [
        Line("server ready after `yard up` (median of 5)", statistics.median(ready), 2.0, "s"),
        Line("idle platform with its gateway, PSS of all processes", idle / MB, 220, "MB"),
    ]


def help_time() -> list[Line]:
    times = []
    for _ in range(20):
        begun = time.perf_counter()
        subprocess.run([*YARD, "--help"], stdout=subprocess.DEVNULL, check=True)
        times.append(time.perf_counter() - begun)
    return [Line("`yard --help` (median of 20)", statistics.median(times), 0.25, "s")]


def submit_to_running() -> list[Line]:
    """From the moment the client sends the job until the process itself has begun to run, by its own clock."""
    seconds = []
    with a_platform("--simulate-cards", "8") as platform:
        connection = platform.connect()
        for _ in range(110):
            sent = time.time()
            id = connection.submit(command=["date", "+%s.%N"], cards=1)
            connection.wait(id, "succeeded", "failed")
            seconds.append(float(_log(platform, id)) - sent)
    seconds = seconds[10:]
    return [
        Line("submit to running, process engine, idle node, p50 of 100", percentile(seconds, 0.5), 0.3, "s"),
        Line("submit to running, process engine, idle node, p99 of 100", percentile(seconds, 0.99), 1.0, "s"),
    ]


def _log(platform: Platform, id: str) -> str:
    request = urllib.request.Request(
        f"http://127.0.0.1:{platform.port}/api/v1/workloads/{id}/logs",
        headers={"Authorization": f"Bearer {platform.token}"},
    )
    with urllib.request.urlopen(request) as answer:
        return str(answer.read().decode())


def eight_clients() -> list[Line]:
    """Two processes with four connections each, so that the clients' own work is not all on one core."""
    each = 250
    with a_platform("--engine", "simulated", "--nodes", "200x8") as platform:
        begun = time.perf_counter()
        with ProcessPoolExecutor(2) as pool:
            halves = [pool.submit(_four_clients, platform.port, platform.token, each) for _ in range(2)]
            accepted = [id for half in halves for id in half.result()]
        seconds = time.perf_counter() - begun
        lost = len(accepted) - len(set(accepted)) + _missing(platform.connect(), accepted)
        ended = time.perf_counter()
        _wait_for_all_ended(platform.connect())
        drained = time.perf_counter() - ended
    return [
        Line("8 clients submitting, jobs accepted per second", len(accepted) / seconds, 200, "jobs/s", at_most=False),
        Line("  of these lost", lost, 0, "jobs"),
        Line("  seconds until all 2000 had run (for information)", drained, 600, "s"),
    ]


def _four_clients(port: int, token: str, each: int) -> list[str]:
    ids: list[str] = []

    def client() -> None:
        connection = Connection(port, token)
        for _ in range(each):
            ids.append(connection.submit(command="sleep 0.5", cards=1))

    threads = [threading.Thread(target=client) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return ids


def _missing(connection: Connection, accepted: list[str]) -> int:
    found: set[str] = set()
    cursor = ""
    while True:
        page = connection.call("GET", f"/workloads?limit=500{cursor}")
        found |= {job["id"] for job in page["items"]}
        if not page["next"]:
            return len(set(accepted) - found)
        cursor = f"&cursor={page['next']}"


def _wait_for_all_ended(connection: Connection) -> None:
    deadline = time.monotonic() + 600
    while time.monotonic() < deadline:
        live = [
            connection.call("GET", f"/workloads?state={s}&limit=1")["items"] for s in ("queued", "placed", "running")
        ]
        if not any(live):
            return
        time.sleep(0.2)


def with_history() -> list[Line]:
    """The same questions with nothing stored and with 10,000 finished jobs stored."""
    with a_platform("--engine", "simulated", "--nodes", "20x8") as platform:
        connection = platform.connect()
        empty = _schedule_seconds(connection)
        with ProcessPoolExecutor(2) as pool:
            for half in [pool.submit(_finished_jobs, platform.port, platform.token, 1250) for _ in range(2)]:
                half.result()
        connection = platform.connect()  # the idle one was closed meanwhile
        _wait_for_all_ended(connection)
        id = connection.submit(command="sleep 0.01")
        lists = [_timed(lambda: connection.call("GET", "/workloads?limit=50")) for _ in range(200)]
        shows = [_timed(lambda: connection.call("GET", f"/workloads/{id}")) for _ in range(200)]
        full = _schedule_seconds(connection)
    return [
        Line("10,000 finished jobs: list of 50, p99", percentile(lists, 0.99) * 1000, 100, "ms"),
        Line("10,000 finished jobs: show, p99", percentile(shows, 0.99) * 1000, 100, "ms"),
        Line("scheduling time with 10,000 finished / with none (median)", full / empty, 1.5, "ratio"),
    ]


def _finished_jobs(port: int, token: str, each: int) -> None:
    def client() -> None:
        connection = Connection(port, token)
        for _ in range(each):
            connection.submit(command="sleep 0.01")

    threads = [threading.Thread(target=client) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


def _schedule_seconds(connection: Connection) -> float:
    """From submitted to running as the server saw it, median of 40."""
    waits = []
    for _ in range(40):
        id = connection.submit(command="sleep 0.05", cards=1)
        job = connection.wait(id, "running", "succeeded")
        waits.append(_moment(job["started_at"]) - _moment(job["submitted_at"]))
    return statistics.median(waits)


def _moment(text: str) -> float:
    return datetime.fromisoformat(text.replace("Z", "+00:00")).timestamp()


def _timed(call: Callable[[], object]) -> float:
    begun = time.perf_counter()
    call()
    return time.perf_counter() - begun


def live_logs() -> list[Line]:
    """A job prints the time; the follower looks at its own clock when the line arrives."""
    script = "import time\nfor i in range(200):\n    print(time.time(), flush=True)\n    time.sleep(0.05)"
    delays: list[float] = []
    with a_platform() as platform:
        connection = platform.connect()
        id = connection.submit(command=["python3", "-c", script])
        connection.wait(id, "running")
        for text in _followed(platform, id):
            arrived = time.time()
            delays += [arrived - float(line) for line in text.split()]
    return [Line(f"log line visible, p99 of {len(delays)}", percentile(delays, 0.99), 0.3, "s")]


def _followed(platform: Platform, id: str) -> Iterator[str]:
    request = urllib.request.Request(
        f"http://127.0.0.1:{platform.port}/api/v1/workloads/{id}/logs/follow?offset=0",
        headers={"Authorization": f"Bearer {platform.token}"},
    )
    with urllib.request.urlopen(request) as stream:
        event = ""
        for raw in stream:
            line = raw.decode().rstrip("\n")
            if line.startswith("event: "):
                event = line[7:]
            elif line.startswith("data: ") and event == "log":
                yield json.loads(line[6:])["text"]
            elif line.startswith("data:") and event == "end":
                return


def large_log() -> list[Line]:
    with a_platform() as platform:
        connection = platform.connect()
        warm = connection.submit(command=["echo", "warm"])
        connection.wait(warm, "succeeded")
        list(_followed(platform, warm))
        before = platform.pss_bytes()
        id = connection.submit(command=["sh", "-c", "yes 0123456789012345678901234567890123456789 | head -c 200000000"])
        most, size, begun = 0, 0, time.perf_counter()
        for count, text in enumerate(_followed(platform, id)):
            size += len(text)
            if count % 200 == 0:
                most = max(most, platform.pss_bytes())
        seconds = time.perf_counter() - begun
    assert size == 200_000_000, f"{size} bytes arrived"
    return [
        Line("following a 200 MB log costs the server", (max(most, before) - before) / MB, 20, "MB"),
        Line("  at (for information)", size / MB / seconds, 1, "MB/s", at_most=False),
    ]


def clean_clone() -> list[Line]:
    if not (ROOT / ".git").exists():
        raise LeftOut("this is no clone of the repository")
    with tempfile.TemporaryDirectory(prefix="yard-clone-", ignore_cleanup_errors=True) as folder:
        clone = Path(folder) / "gpuyard"
        yard = clone / ".venv/bin/yard"
        env = {**os.environ, "YARD_DATA": f"{folder}/data", "YARD_PORT": "0", "PATH": _path_without_yard()}
        begun = time.perf_counter()
        subprocess.run([program("git", "git"), "clone", "-q", str(ROOT), str(clone)], check=True)
        try:
            subprocess.run(["make", "-C", str(clone), "run"], check=True, env=env, stdout=subprocess.DEVNULL)
            job = [str(yard), "run", "--cards", "2", "--", "python3", "-c", "print('hello')"]
            output = subprocess.run(job, check=True, env=env, capture_output=True, text=True).stdout
            seconds = time.perf_counter() - begun
        finally:
            if yard.exists():
                subprocess.run([str(yard), "down", "--all"], env=env, stdout=subprocess.DEVNULL, check=False)
    assert "hello" in output
    return [Line("clean clone to the first job's output", seconds, 120, "s")]


def _path_without_yard() -> str:
    """`make run` puts a link to its own `yard` where programs are looked for; the machine's one is to stay."""
    taken = ("/usr/local/bin", str(Path.home() / ".local/bin"))
    return os.pathsep.join(part for part in os.environ["PATH"].split(os.pathsep) if part not in taken)


MEASURES = (
    start_and_idle,
    help_time,
    submit_to_running,
    eight_clients,
    with_history,
    live_logs,
    large_log,
    clean_clone,
)
