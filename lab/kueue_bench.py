"""Kueue's own two workloads: many small, some medium and few large jobs of many groups that lend each other quota.

A cohort is a node in a pool of its own; its groups are guaranteed 20 cores each and may borrow 100 more. A unit is a
core. Every job waits as long as it must and then runs as long as it says.
"""

from __future__ import annotations

import heapq
import time
from collections.abc import Iterator
from dataclasses import dataclass

from gpuyard.domain.cluster import Node
from gpuyard.domain.people import Group, Quota
from gpuyard.domain.policy import Policy, Pool
from gpuyard.domain.resources import GIB
from gpuyard.domain.workload import Workload
from lab.lines import Line
from lab.stage import ENDED, Stage, a_job, a_stage

GUARANTEED, BORROWED = 20, 100  # cores
BATCH = 500  # jobs entered in one transaction at most
TICK_SECONDS = 0.05


@dataclass(frozen=True)
class Class:
    """Jobs that are alike; count and interval are per group."""

    name: str
    count: int
    every: float
    runs: float
    cores: int
    priority: int


@dataclass(frozen=True)
class Load:
    cohorts: int
    groups: int  # per cohort
    classes: tuple[Class, ...]

    @property
    def jobs(self) -> int:
        return self.cohorts * self.groups * sum(one.count for one in self.classes)

    @property
    def unit_seconds(self) -> float:
        return self.cohorts * self.groups * sum(one.count * one.runs * one.cores for one in self.classes)

    @property
    def quota(self) -> int:
        return self.cohorts * self.groups * GUARANTEED


BASELINE = Load(
    5,
    6,
    (
        Class("small", 350, 0.1, 0.2, 1, 50),
        Class("medium", 100, 0.5, 0.5, 5, 100),
        Class("large", 50, 1.2, 1.0, 20, 200),
    ),
)
LARGE_SCALE = Load(
    10,
    100,
    (
        Class("small", 35, 0.06, 0.15, 1, 50),
        Class("medium", 11, 0.3, 0.35, 5, 100),
        Class("large", 4, 0.7, 0.7, 20, 200),
    ),
)


def kueue_baseline() -> list[Line]:
    return _lines("Kueue's baseline, 15,000 jobs of 30 groups", BASELINE, 82.0)


def kueue_large_scale() -> list[Line]:
    return _lines("Kueue's large scale, 50,000 jobs of 1,000 groups", LARGE_SCALE, 120.0)


def _lines(what: str, load: Load, promised: float) -> list[Line]:
    nodes, groups, policy = _cluster(load)
    with a_stage(nodes, groups, policy) as stage:
        time.sleep(1)
        begun = time.perf_counter()
        _enter(stage, load)
        stage.wait(what, ENDED, load.jobs, every=0.1)
        seconds = time.perf_counter() - begun
        waits = {one.name: _average_wait(stage, one) for one in load.classes}
        failed = stage.count("failed", "stopped")
    return [
        Line(f"{what}: all ran", seconds, promised, "s"),
        Line(
            "  use: unit-seconds run / (quota x time) (for information)",
            load.unit_seconds / (load.quota * seconds),
            0,
            "",
            at_most=False,
        ),
        Line("  jobs that did not end well", failed, 0, "jobs"),
        *(Line(f"  average wait of {name} (for information)", wait, 600, "s") for name, wait in waits.items()),
    ]


def _cluster(load: Load) -> tuple[list[Node], list[Group], Policy]:
    cores = load.groups * GUARANTEED
    nodes = [Node(f"cohort-{c}", cores * 1000, cores * GIB) for c in range(load.cohorts)]
    names = {_group(c, g): f"cohort-{c}" for c in range(load.cohorts) for g in range(load.groups)}
    limit = (GUARANTEED + BORROWED) * 1000
    groups = [Group(name, (Quota(name, "cpu", limit, guaranteed=GUARANTEED * 1000),)) for name in names]
    pools = {node.name: Pool(nodes=(node.name,)) for node in nodes}
    return nodes, groups, Policy(pools=pools, group_pools={name: (pool,) for name, pool in names.items()})


def _group(cohort: int, number: int) -> str:
    return f"c{cohort}-g{number}"


def _arrivals(load: Load) -> Iterator[tuple[float, Class, str, str]]:
    """When, what, for which group, under which id; the first arrives at once."""
    streams = [
        [(n * one.every, one, _group(c, g), f"{one.name[0]}{c:02d}{g:03d}{n:04d}") for n in range(one.count)]
        for c in range(load.cohorts)
        for g in range(load.groups)
        for one in load.classes
    ]
    return heapq.merge(*streams, key=lambda arrival: arrival[0])


def _enter(stage: Stage, load: Load) -> None:
    begun = time.monotonic()
    batch: list[Workload] = []
    for at, one, group, id in _arrivals(load):
        ahead = at - (time.monotonic() - begun)
        if batch and (ahead > 0 or len(batch) >= BATCH):
            stage.submit(batch)
            batch = []
        if ahead > 0:
            time.sleep(max(ahead, TICK_SECONDS))
        asked = {"cores": one.cores, "priority": one.priority}
        batch.append(a_job(id, seconds=one.runs, group=group, preemptible=True, name=one.name, **asked))
    stage.submit(batch)


def _average_wait(stage: Stage, one: Class) -> float:
    (row,) = stage.ask(f"SELECT avg(started_at - submitted_at) FROM workloads WHERE id LIKE '{one.name[0]}%'")
    return float(str(row[0]))


MEASURES = (kueue_baseline, kueue_large_scale)
