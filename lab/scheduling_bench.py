"""How fast work is ordered, placed and started: through real control and a real store on disk, on virtual machines."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable

from gpuyard.engines.simulated import virtual_nodes
from lab.lines import Line, percentile
from lab.stage import ENDED, Stage, a_job, a_stage

BATCH = 500  # jobs entered in one transaction

# A quarter of the best peer's time for 10,000 pods on 1,000 nodes.
GANGS = ((10_000, 1, 29.5), (500, 20, 11.0), (20, 500, 12.5), (1, 10_000, 17.5))


def gangs() -> list[Line]:
    """From the first insert until every replica runs, and never a gang of which only a part has its places."""
    lines = []
    for count, replicas, promised in GANGS:
        seconds, broken = _start_gangs(count, replicas)
        lines.append(Line(f"10,000 replicas on 1,000 nodes as {count}x{replicas}: all running", seconds, promised, "s"))
        lines.append(Line("  gangs seen partly placed", broken, 0, "gangs"))
    return lines


def _start_gangs(count: int, replicas: int) -> tuple[float, int]:
    with a_stage(virtual_nodes(1000, 16)) as stage, _watching(stage.broken_gangs, 0.5) as seen:
        time.sleep(1)
        begun = time.perf_counter()
        for start in range(0, count, BATCH):
            numbers = range(start, min(count, start + BATCH))
            stage.submit([a_job(f"g{n:09d}", seconds=3600, cards=1, replicas=replicas) for n in numbers])
        stage.wait("gangs", ["running"], count)
        return time.perf_counter() - begun, max(seen)


class _watching:
    """Looks again and again while something goes on, and once more at its end."""

    def __init__(self, look: Callable[[], int], every: float) -> None:
        self._look, self._every = look, every
        self._over = threading.Event()
        self._seen = [0]
        self._thread = threading.Thread(target=self._run)

    def __enter__(self) -> list[int]:
        self._thread.start()
        return self._seen

    def __exit__(self, *_: object) -> None:
        self._over.set()
        self._thread.join()

    def _run(self) -> None:
        while not self._over.wait(self._every):
            self._seen.append(self._look())


def stuck_queue() -> list[Line]:
    """8,000 replicas run. What do 10,000 jobs that can never fit cost those that can?"""
    with a_stage(virtual_nodes(1100, 8)) as stage:
        stage.submit([a_job(f"r{n:09d}", seconds=36000, cards=1, replicas=20) for n in range(400)])
        stage.wait("8,000 replicas", ["running"], 400)
        _throughput(stage, "w", 500)
        empty = max(_throughput(stage, f"e{n}") for n in range(3))
        for start in range(0, 10_000, BATCH):
            stage.submit([a_job(f"n{n:09d}", seconds=1, cards=9) for n in range(start, start + BATCH)])
        _wait_until_told(stage, 10_000)
        stuck = max(_throughput(stage, f"f{n}") for n in range(3))
        waits = _waits(stage, 200)
    return [
        Line("10,000 that never fit wait, 8,000 run: small job started, p99", percentile(waits, 0.99), 1.0, "s"),
        Line("  the same, p50 (for information)", percentile(waits, 0.5), 1.0, "s"),
        Line("  jobs run per second, with them / without them", stuck / empty, 0.9, "ratio", at_most=False),
        Line("  without them (for information)", empty, 1, "jobs/s", at_most=False),
    ]


def stuck_heads() -> list[Line]:
    """One job without a known end runs on the only machine, and 10,000 that ask for all of its cores wait for that.
    What do they cost small jobs?"""
    (node,) = virtual_nodes(1, 0)
    cores = node.cpu_milli // 1000
    with a_stage([node]) as stage:
        stage.submit([a_job("endless000", seconds=36000)])
        stage.wait("the one without a known end", ["running"], 1)
        for start in range(0, 10_000, BATCH):
            stage.submit([a_job(f"h{n:09d}", seconds=1, cores=cores) for n in range(start, start + BATCH)])
        _wait_until_told(stage, 10_000)
        waits = _waits(stage, 200, cards=0)
    return [
        Line("10,000 wait for one without a known end: small job started, p99", percentile(waits, 0.99), 1.0, "s"),
        Line("  the same, p50 (for information)", percentile(waits, 0.5), 1.0, "s"),
    ]


def _wait_until_told(stage: Stage, number: int) -> None:
    """Every one of them has been given its reason."""
    deadline = time.monotonic() + 600
    while time.monotonic() < deadline:
        (row,) = stage.ask("SELECT count(*) FROM workloads WHERE state = 'queued' AND reason NOT LIKE '%waiting.new%'")
        if int(str(row[0])) >= number:
            return
        time.sleep(0.1)
    raise TimeoutError("not all waiting jobs were told why")


def _throughput(stage: Stage, prefix: str, count: int = 1500) -> float:
    ended = stage.count(*ENDED)
    begun = time.perf_counter()
    for start in range(0, count, BATCH):
        stage.submit(
            [a_job(f"{prefix:<3}{n:07d}".replace(" ", "0"), seconds=0.05, cards=1) for n in range(start, start + BATCH)]
        )
    stage.wait("a burst", ENDED, ended + count)
    return count / (time.perf_counter() - begun)


def _waits(stage: Stage, count: int, cards: int = 1) -> list[float]:
    """One after the other, from its insert until it was seen to run."""
    before = stage.count(*ENDED)
    for number in range(count):
        stage.submit([a_job(f"l{number:09d}", seconds=0.2, cards=cards)])
        time.sleep(0.05)
    stage.wait("single jobs", ENDED, before + count)
    rows = stage.ask("SELECT started_at - submitted_at FROM workloads WHERE id LIKE 'l0%'")
    return [float(str(row[0])) for row in rows]


MEASURES = (gangs, stuck_queue, stuck_heads)
