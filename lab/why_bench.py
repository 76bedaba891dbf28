"""How fast `why` answers for any of many who wait: asked of the view, on a store written by real control."""

from __future__ import annotations

import random
import time
from dataclasses import replace

from gpuyard.domain.people import Group
from gpuyard.domain.resources import GIB
from gpuyard.domain.workload import Workload
from gpuyard.engines.simulated import virtual_nodes
from gpuyard.world.view import View
from lab.lines import Line, percentile
from lab.stage import Stage, a_job, a_stage

NODES, WAITING, ASKED = 1000, 10_000, 300
GROUPS = tuple(f"group{number:02d}" for number in range(20))
BATCH = 500


def why() -> list[Line]:
    """Most machines are full, some have a few cards left; two hundred people wait for all sorts of things."""
    rng = random.Random(3)
    with a_stage(virtual_nodes(NODES, 8), [Group(name) for name in GROUPS]) as stage:
        running = [_runs(number, rng) for number in range(NODES)]
        _enter(stage, running)
        stage.wait("running work", ["running"], NODES)
        waiting = [_waits(number, rng) for number in range(WAITING)]
        _enter(stage, waiting)
        _settle(stage)
        view = View(stage.database, time.time)
        view.holding()
        ids = [str(id) for (id,) in stage.ask("SELECT id FROM workloads WHERE state = 'queued'")]
        chosen = rng.sample(ids, min(ASKED, len(ids)))
        facts = [_seconds(view, id, remedies=False) for id in chosen]
        remedies = [_seconds(view, id, remedies=True) for id in chosen]
    return [
        Line(f"why: facts for any of {WAITING:,} waiting, p99 of {ASKED}", percentile(facts, 0.99) * 1000, 50, "ms"),
        Line("why: what would start it now, p99", percentile(remedies, 0.99) * 1000, 500, "ms"),
        Line("  facts, p50 (for information)", percentile(facts, 0.5) * 1000, 50, "ms"),
        Line("  the very first question (for information)", max(facts) * 1000, 5000, "ms"),
    ]


def _runs(number: int, rng: random.Random) -> Workload:
    job = a_job(f"r{number:09d}", seconds=36_000, cards=8 if rng.random() < 0.9 else rng.choice([5, 6, 7]))
    return replace(job, group=rng.choice(GROUPS))


def _waits(number: int, rng: random.Random) -> Workload:
    """Someone's sweep: the same again and again, with now and then something of its own."""
    group = rng.choice(GROUPS)
    person = f"{group}-{rng.randrange(10)}"
    cards, replicas = rng.choice([(8, 1), (8, 2), (4, 1), (8, 16)])
    job = a_job(f"w{number:09d}", seconds=60, cards=cards, replicas=replicas)
    job = replace(job, owner=person, group=group)
    if rng.random() < 0.3:
        role = job.spec.roles[0]
        asked = replace(role.resources, memory=rng.randrange(2, 40) * GIB)
        job = replace(job, spec=replace(job.spec, roles=(replace(role, resources=asked),)))
    return job


def _enter(stage: Stage, jobs: list[Workload]) -> None:
    for start in range(0, len(jobs), BATCH):
        stage.submit(jobs[start : start + BATCH])


def _settle(stage: Stage) -> None:
    """Until everyone who waits has been told so, and nothing moves any more."""
    deadline, last = time.monotonic() + 600, -1
    while time.monotonic() < deadline:
        (row,) = stage.ask("SELECT count(*) FROM workloads WHERE state = 'queued' AND reason LIKE '%waiting.new%'")
        (moves,) = stage.ask("SELECT max(seq) FROM changes")
        if row[0] == 0 and moves[0] == last:
            return
        last = int(str(moves[0]))
        time.sleep(1.0)
    raise TimeoutError("the queue does not come to rest")


def _seconds(view: View, id: str, *, remedies: bool) -> float:
    begun = time.perf_counter()
    view.why(id, remedies, GROUPS[:3])
    return time.perf_counter() - begun


MEASURES = (why,)
