"""Microsoft's ITP clusters: 69,351 jobs of ten clusters in two months, under several rules side by side.

The trace does not say how large the clusters were. Each is given the fewest machines of eight cards on which its
largest job fits and its work fills at most 85 % of the card-time between the first and the last arrival. So there is a
queue, and it can be worked off: with fewer machines waits would only measure how long a trace is.
"""

from __future__ import annotations

import csv
import math
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from gpuyard.domain.people import Group
from gpuyard.domain.resources import WHOLE_CARD, Cards, Resources
from gpuyard.domain.workload import RoleSpec, Spec, Workload
from gpuyard.engines.simulated import virtual_nodes
from gpuyard.rehearsal import Arrival
from lab.compare import DEFAULT, Case, Measured, Rule, all_measured, measure, plots, rules_of, table, unit_for
from lab.lines import Line
from lab.report import Report, Table, Unfit, chosen, counted

if TYPE_CHECKING:
    from lab.replay import Options

FOLDER = "itp"
CARDS_A_NODE = 8
MOST_LOAD = 0.85
PROMISED_SECONDS = 60.0


class Job(NamedTuple):
    submitted: float
    seconds: float
    cards: int


def read(path: Path) -> list[Job]:
    try:
        with path.open(encoding="utf-8") as file:
            rows = [
                Job(float(row["submission_time"]), float(row["duration"]), int(row["num_gpu"]))
                for row in csv.DictReader(file)
            ]
    except (KeyError, TypeError, ValueError) as problem:
        raise Unfit(f"{path} is not as published: it needs submission_time, duration and num_gpu, numbers") from problem
    if not rows:
        raise Unfit(f"{path} holds no jobs; fetch it anew")
    return sorted(rows)


def nodes_for(jobs: list[Job]) -> int:
    work = sum(job.seconds * job.cards for job in jobs)
    span = max(1.0, jobs[-1].submitted - jobs[0].submitted)
    largest = max(job.cards for job in jobs)
    return max(math.ceil(work / span / MOST_LOAD / CARDS_A_NODE), math.ceil(largest / CARDS_A_NODE))


def arrivals(jobs: list[Job], group: str) -> Iterator[Arrival]:
    """Work of more than one machine comes as a gang of whole machines. One description for all that are alike."""
    specs: dict[int, Spec] = {}
    for number, job in enumerate(jobs):
        spec = specs.get(job.cards)
        if spec is None:
            each, replicas = min(job.cards, CARDS_A_NODE), math.ceil(job.cards / CARDS_A_NODE)
            role = RoleSpec("worker", ("train",), replicas, Resources(cards=Cards("nvidia", each * WHOLE_CARD)))
            spec = specs[job.cards] = Spec(f"{job.cards}-cards", (role,))
        yield Arrival(Workload(f"j{number:09d}", "itp", group, spec, job.submitted), job.seconds)


def case_of(path: Path, most: int | None = None) -> Case:
    jobs, group = read(path)[:most], "itp"
    return Case(
        path.stem, virtual_nodes(nodes_for(jobs), CARDS_A_NODE), {group: Group(group)}, list(arrivals(jobs, group))
    )


def _measured(path: Path, most: int | None, rule: Rule) -> Measured:
    return measure(case_of(path, most), rule)


def replay(folder: Path, options: Options) -> Report:
    paths = _paths(folder / FOLDER, options.only)
    tasks = [(path, options.most, rule) for path in paths for rule in rules_of(options.policies, slow=options.slow)]
    measured = all_measured(_measured, tasks, options.processes)
    return Report(
        "itp", [table("Microsoft ITP", measured, _note()), _totals(measured)], _lines(measured), plots("itp", measured)
    )


def _paths(folder: Path, only: tuple[str, ...]) -> list[Path]:
    there = {path.stem: path for path in sorted(folder.glob("cluster*.csv"))}
    if not there:
        raise Unfit(f"no cluster*.csv in {folder}; give the folder that holds `{FOLDER}/`")
    return [there[name] for name in chosen(there, only)]


def _note() -> str:
    return (
        f"Sizes are not in the trace: machines of {CARDS_A_NODE} cards, as few as hold the largest job at a load of at "
        f"most {MOST_LOAD:.0%}. `used` until the last arrival. Times told: from a list of usual limits."
    )


def _totals(measured: list[Measured]) -> Table:
    rows, unit = [], unit_for(measured)
    for rule in dict.fromkeys(one.rule for one in measured):
        mine = [one for one in measured if one.rule == rule]
        jobs, seconds = sum(one.summary.jobs for one in mine), sum(one.seconds for one in mine)
        wait = sum(one.summary.wait.mean * one.summary.started for one in mine) / max(1, jobs) / unit.seconds
        done = sum(one.summary.completion.mean * one.summary.over for one in mine) / max(1, jobs) / unit.seconds
        cycles, processor = sum(one.cycles for one in mine), sum(one.processor for one in mine)
        rows.append((rule, jobs, wait, done, cycles, seconds, processor, jobs / seconds))
    times = (f"wait mean {unit.short}", f"completion mean {unit.short}")
    columns = ("rule", "jobs", *times, "cycles", "seconds", "of processor", "jobs/s")
    return Table("All clusters together", columns, list(rows))


def _lines(measured: list[Measured]) -> list[Line]:
    mine = [one for one in measured if one.rule == DEFAULT.name]
    jobs = sum(one.summary.jobs for one in mine)
    over = sum(one.summary.over for one in mine)
    return [
        Line(
            f"{counted(jobs, 'job')} replayed under the default policy, all clusters",
            sum(m.seconds for m in mine),
            PROMISED_SECONDS,
            "s",
        ),
        Line("  jobs that came to their end", over, jobs, "jobs", at_most=False),
    ]
