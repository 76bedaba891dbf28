"""How long jobs take from their submission to their end, on the traces of Muri (SIGCOMM'22), through the real core.

    python -m lab.muri TRACES        the same as: python -m lab.replay muri TRACES

Eight nodes of eight cards. A gang of up to eight cards is on one node, a larger one takes whole nodes. All jobs are
preemptible; an interruption keeps their work and costs nothing, as in the published simulators. In a second round every
start takes a minute, and nobody is interrupted before it has run five. The rules of each experiment are in
`lab/policies`. They have no ageing: one trace asks for twice what the cluster has, for months, and with ageing every
order becomes first come, first served within days.

The published simulators put everything back and place it anew at every event, as if moving cost nothing. `placed anew`
does that with the real order and the real placing, and so tells whether the trace is read as they read it; in all other
rows what runs stays where it is until somebody has a right to its place.
"""

from __future__ import annotations

import csv
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, replace
from math import inf
from pathlib import Path
from statistics import median
from time import process_time
from typing import TYPE_CHECKING

from gpuyard.dialects.native.yaml_text import parse_yaml
from gpuyard.dialects.policy import read_policy
from gpuyard.domain.cluster import Card, Node
from gpuyard.domain.people import Group
from gpuyard.domain.policy import DAY, Policy
from gpuyard.domain.resources import GIB, WHOLE_CARD, Cards, Resources
from gpuyard.domain.workload import Attempt, RoleSpec, Spec, State, Together, Workload
from gpuyard.rehearsal import Arrival, Habits, Result, rehearse
from gpuyard.scheduling.books import Books
from gpuyard.scheduling.plan import plan
from gpuyard.scheduling.snapshot import Plan, Snapshot
from lab.lines import Line
from lab.plots import Axis, cdf, rows
from lab.report import Cell, Report, Table, chosen, counted

if TYPE_CHECKING:
    from lab.replay import Options

POLICIES = Path(__file__).parent / "policies"
FOLDER, GROUP = "muri", "philly"
NODES, CARDS_EACH = 8, 8
OWNERS = 16  # the traces name none; of one person only 300 different requests are looked at in a pass
MIN_RUN, START_SECONDS = 300.0, 60.0  # where interruptions are not for nothing
# Average seconds from submission to end, as published or reproduced by others.
PUBLISHED: Mapping[str, Mapping[str, float]] = {
    "SRTF": {"trace1": 1_370_603, "trace3": 193_082},
    "SRSF": {"trace1": 980_141, "trace3": 185_022},
    "Tiresias": {"trace1": 3_330_371, "trace3": 347_213},
    "Themis": {"trace1": 1_823_179, "trace3": 397_059},
    "strict FIFO": {"trace1": 11_001_201, "trace3": 991_215},
    "FIFO + EASY": {"trace1": 6_022_918, "trace3": 421_204},
}


@dataclass(frozen=True)
class Experiment:
    name: str
    policy: str
    beside: str  # the published row it is compared with
    declares: bool = False  # every job declares its true run time as its maximum
    costs: bool = False  # interruptions are not for nothing
    strict: bool = False  # the group is strictly first in, first out


EXPERIMENTS = (
    Experiment("shortest first", "muri_srtf", "SRTF", declares=True),
    Experiment("least served first", "muri_least_served", "Tiresias"),
    Experiment("shortest first, interruptions cost", "muri_srtf", "SRTF", declares=True, costs=True),
    Experiment("least served first, interruptions cost", "muri_least_served", "Tiresias", costs=True),
    Experiment("strict FIFO", "muri_fifo", "strict FIFO", strict=True),
    Experiment("FIFO + backfill, in turn", "muri_easy", "FIFO + EASY", declares=True),
    Experiment("FIFO + backfill, shortest first", "muri_backfill", "FIFO + EASY", declares=True),
)
ANEW = "shortest first, placed anew"


# --- what is given ------------------------------------------------------------------------------------------------


def nodes() -> list[Node]:
    cards = tuple(Card(index, "nvidia", "V100") for index in range(CARDS_EACH))
    return [Node(f"n{number}", 96_000, 768 * GIB, cards) for number in range(1, NODES + 1)]


def arrivals(path: Path, *, declares: bool, most: int | None = None) -> list[Arrival]:
    """The jobs of a trace by the time of their submission; times there are in milliseconds."""
    with path.open(newline="", encoding="utf-8") as file:
        rows = sorted(csv.DictReader(file), key=lambda row: (float(row["submit_time"]), int(row["job_id"])))
    return [_arrival(row, declares=declares) for row in rows[:most]]


def _arrival(row: Mapping[str, str], *, declares: bool) -> Arrival:
    seconds = float(row["duration"]) / 1000
    spec = _spec(row["job_id"], int(row["num_gpu"]), seconds if declares else None)
    owner = f"user{int(row['job_id']) % OWNERS}"
    workload = Workload(f"j{int(row['job_id']):09d}", owner, GROUP, spec, float(row["submit_time"]) / 1000)
    return Arrival(workload, seconds)


def _spec(name: str, cards: int, max_seconds: float | None) -> Spec:
    replicas = -(-cards // CARDS_EACH)
    resources = Resources(cards=Cards("nvidia", cards // replicas * WHOLE_CARD))
    together = Together.SPREAD if replicas > 1 else Together.ANY
    role = RoleSpec("worker", ("true",), replicas, resources)
    return Spec(name, (role,), preemptible=True, max_seconds=max_seconds, grace_seconds=0.0, together=together)


def policy(name: str) -> Policy:
    data, marks = parse_yaml((POLICIES / f"{name}.yaml").read_text(encoding="utf-8"))
    return read_policy(data, marks=marks)


# --- running ------------------------------------------------------------------------------------------------------


@dataclass
class Heads:
    """Checks that backfill never delays the first in line: it starts no later than what ran would have let it, each
    time one looked. Worked out from the ends that were declared, without the scheduler."""

    promised: dict[str, float]
    delayed: int = 0
    promises: int = 0

    def watch(self, books: Books, now: float, decided: Plan) -> None:
        for placement in decided.placements:
            promise = self.promised.pop(placement.workload, None)
            if promise is not None:
                self.promises += 1
                self.delayed += now > promise + 1e-6
        starting = {placement.workload for placement in decided.placements}
        waiting = (w for w in books.line.workloads.values() if w.id not in starting)
        first = min(waiting, key=lambda w: (w.submitted_at, w.id), default=None)
        if first is not None and not starting:
            mine = free_by(first, books.holding.values(), now)
            self.promised[first.id] = min(mine, self.promised.get(first.id, inf))


def free_by(workload: Workload, running: Iterable[Workload], now: float) -> float:
    """When there is room for it at the latest, if nothing else starts."""
    role = workload.spec.roles[0]
    each = role.resources.cards.whole if role.resources.cards is not None else 0
    ends: dict[str, list[float]] = {f"n{number}": [] for number in range(1, NODES + 1)}
    for one in running:
        assert one.attempt is not None
        for replica in one.attempt.replicas:
            begun = one.attempt.started_at if one.attempt.started_at is not None else now
            over = begun + (one.spec.max_seconds if one.spec.max_seconds is not None else inf)
            ends[replica.allotment.node] += [over] * len(replica.allotment.cards)
    free = [sorted([now] * (CARDS_EACH - len(held)) + held)[each - 1] for held in ends.values()]
    return sorted(free)[role.replicas - 1]


@dataclass(frozen=True)
class Measured:
    completions: tuple[float, ...]  # seconds of each job
    preemptions: int = 0
    cycles: int = 0
    heads: Heads | None = None
    seconds: float = 0.0  # of processor, that the replay took

    @property
    def completion(self) -> float:
        """Of all jobs in the mean."""
        return sum(self.completions) / len(self.completions)


def measure(experiment: Experiment, path: Path, most: int | None = None) -> Measured:
    rules, habits, heads = policy(experiment.policy), Habits(), Heads({})
    if experiment.costs:
        rules = replace(rules, preempt=replace(rules.preempt, min_run=MIN_RUN))
        habits = Habits(start_seconds=START_SECONDS)
    jobs = arrivals(path, declares=experiment.declares, most=most)
    if experiment.costs and experiment.declares:  # a declared maximum leaves room for what is done twice
        jobs = [replace(job, workload=_with_room(job.workload)) for job in jobs]
    groups = {GROUP: Group(GROUP, fifo=experiment.strict)}
    checked = experiment.beside == "FIFO + EASY"
    result = rehearse(nodes(), groups, rules, jobs, habits=habits, tick=inf, watch=heads.watch if checked else None)
    return Measured(_completions(result), _preemptions(result), result.cycles, heads if checked else None)


def _with_room(workload: Workload) -> Workload:
    longest = (workload.spec.max_seconds or 0.0) + START_SECONDS
    return replace(workload, spec=replace(workload.spec, max_seconds=longest))


def _completions(result: Result) -> tuple[float, ...]:
    over = [outcome.completion for outcome in result.outcomes if outcome.state is State.SUCCEEDED]
    done = tuple(seconds for seconds in over if seconds is not None)
    assert len(done) == len(result.outcomes), "not every job came to a good end"
    return done


def _preemptions(result: Result) -> int:
    return sum(outcome.preemptions for outcome in result.outcomes)


def placed_anew(rules: Policy, jobs: Iterable[Arrival]) -> Measured:
    """At every event all work is put back and placed anew, where the real order and placing would put it."""
    coming = [(job.workload.submitted_at, job) for job in jobs][::-1]
    left: dict[str, float] = {}
    live: dict[str, Workload] = {}
    running: set[str] = set()
    done: list[float] = []
    now, cycles = 0.0, 0
    while coming or live:
        ends = [(now + left[id], id) for id in running]
        moment = min(coming[-1][0] if coming else inf, min(ends)[0] if ends else inf)
        for id in running:
            left[id] -= moment - now
        now = moment
        for id in [id for id in running if left[id] <= 1e-6]:
            done.append(now - live.pop(id).submitted_at)
        while coming and coming[-1][0] <= now:
            job = coming.pop()[1]
            live[job.workload.id], left[job.workload.id] = job.workload, job.seconds
        queue = tuple(_with_left(workload, left[id]) for id, workload in live.items())
        running = {one.workload for one in plan(Snapshot(now, tuple(nodes()), queue, (), {}, rules)).placements}
        cycles += 1
    return Measured(tuple(done), 0, cycles)


def _with_left(workload: Workload, left: float) -> Workload:
    """In the queue with so much of its declared maximum left."""
    done = (workload.spec.max_seconds or 0.0) - left
    attempt = Attempt(1, workload.submitted_at, (), ended_at=workload.submitted_at, kept_before=done)
    return replace(workload, attempt=attempt) if done > 0 else workload


# --- telling ------------------------------------------------------------------------------------------------------


Found = Mapping[tuple[str, str], Measured]  # by experiment and trace
BESIDE = {ANEW: "SRTF", **{experiment.name: experiment.beside for experiment in EXPERIMENTS}}
# Of those that differ little one is drawn.
DISTRIBUTIONS = [one.name for one in EXPERIMENTS if not one.costs]


def replay(folder: Path, options: Options) -> Report:
    traces = chosen(PUBLISHED["SRTF"], options.only)
    tasks = [(name, trace) for trace in traces for name in BESIDE]
    paths = [folder / FOLDER / f"{trace}.csv" for _, trace in tasks]
    found: dict[tuple[str, str], Measured] = {}
    for task, one in zip(tasks, _all(tasks, paths, options), strict=True):
        found[task] = one
        print(f"  {task[1]}: {task[0]}: {one.completion:,.0f} s", file=sys.stderr, flush=True)
    whole = options.most is None  # of parts nothing was published
    plots = {name: plot for trace in traces for name, plot in _plots(found, trace, whole=whole).items()}
    return Report("muri", [_table(found, whole=whole)], list(_lines(found, traces)) if whole else [], plots)


def _all(tasks: Sequence[tuple[str, str]], paths: Sequence[Path], options: Options) -> Iterator[Measured]:
    names, most = [name for name, _ in tasks], [options.most] * len(tasks)
    if options.processes <= 1:
        yield from map(_one, names, paths, most)
        return
    with ProcessPoolExecutor(options.processes) as pool:
        yield from pool.map(_one, names, paths, most)


def _one(name: str, path: Path, most: int | None) -> Measured:
    begun = process_time()
    experiment = next((one for one in EXPERIMENTS if one.name == name), None)
    if experiment is not None:
        measured = measure(experiment, path, most)
    else:
        measured = placed_anew(policy("muri_srtf"), arrivals(path, declares=True, most=most))
    return replace(measured, seconds=process_time() - begun)


def _table(found: Found, *, whole: bool) -> Table:
    columns = (
        "trace", "order", "mean seconds", "beside", "published", "ratio", "median", "interruptions", "cycles", "took s"
    )  # fmt: skip
    told: list[tuple[Cell, ...]] = []
    for (name, trace), one in found.items():
        published = PUBLISHED[BESIDE[name]][trace] if whole else None
        ratio = one.completion / published if published else None
        mine, middle = round(one.completion), round(median(one.completions))
        told.append(
            (trace, name, mine, BESIDE[name], published, ratio, middle, one.preemptions, one.cycles, one.seconds)
        )
    note = "Mean seconds from submission to end; 8 nodes of 8 cards; see lab/policies for the rules."
    return Table("Muri's traces", columns, told, note)


def _plots(found: Found, trace: str, *, whole: bool) -> dict[str, str]:
    names = list(BESIDE)
    means: dict[str, list[float | None]] = {"gpuyard": [found[name, trace].completion / DAY for name in names]}
    if whole:
        means["published, or reproduced by others"] = [PUBLISHED[BESIDE[name]][trace] / DAY for name in names]
    told = [f"{name} ({BESIDE[name]})" if BESIDE[name] != name else name for name in names]
    spread = {name: found[name, trace].completions for name in DISTRIBUTIONS}
    taken = Axis("from submission to end", "seconds", log=True, least=60.0)
    return {
        f"muri-{trace}-means.svg": rows(
            f"{trace}: mean time from submission to end", told, means, Axis("days: less is better", least=0.0)
        ),
        f"muri-{trace}-completions.svg": cdf(f"{trace}: how long jobs take from submission to end", spread, taken),
    }


def _lines(found: Found, traces: Sequence[str]) -> Iterator[Line]:
    product = 1.0
    for trace in traces:
        published = {name: row[trace] for name, row in PUBLISHED.items()}
        off = abs(found[ANEW, trace].completion / published["SRTF"] - 1) * 100
        yield Line(f"{trace}: shortest first, placed anew, off the published", off, 5 if trace == "trace1" else 10, "%")
        ratio = found["least served first", trace].completion / published["Tiresias"]
        product *= ratio
        yield Line(f"{trace}: least served first beside Tiresias", ratio, 1.0, "x")
        strict, filled = found["strict FIFO", trace], found["FIFO + backfill, shortest first", trace]
        gain = strict.completion / filled.completion
        yield Line(f"{trace}: backfill shortens strict FIFO", gain, 1.7, "x", at_most=False)
        for heads in [one.heads for (_, of), one in found.items() if of == trace and one.heads is not None]:
            yield Line(f"{trace}: of {counted(heads.promises, 'head')}, delayed by backfill", heads.delayed, 0, "heads")
    if set(traces) == set(PUBLISHED["Tiresias"]):
        yield Line("least served first beside Tiresias, geometric mean", product ** (1 / len(traces)), 0.8, "x")


def main() -> int:
    from lab.replay import main as replay_main

    return replay_main(["muri", *sys.argv[1:]])


if __name__ == "__main__":
    sys.exit(main())
