"""How much of Alibaba's cluster can be given out before nothing fits any more: `python -m lab.openb TRACES`.

The experiment of FGD (USENIX ATC'23): the pods of a workload, sorted by name and shuffled by a seed, then pods drawn
from them until they ask for 130 % of all cards. Pods never leave, and one that does not fit is dropped. The places are
those of the real core: `Books` and `place_gang`, under policies that differ in nothing but `placing`.
"""

from __future__ import annotations

import csv
import gc
import math
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, replace
from pathlib import Path
from random import Random
from time import thread_time
from typing import TYPE_CHECKING, NamedTuple

from gpuyard.domain.cluster import Allotment, Card, Node
from gpuyard.domain.policy import Placing, Policy
from gpuyard.domain.resources import MIB, WHOLE_CARD, Cards, Resources
from gpuyard.domain.workload import RoleSpec, Spec, Workload
from gpuyard.scheduling.books import Books
from gpuyard.scheduling.fit import Ask, ask_of, place_gang
from gpuyard.scheduling.fragments import Typical, typical_from
from gpuyard.scheduling.plan import decide
from gpuyard.scheduling.room import Stack
from lab import plots
from lab.lines import Line, percentile
from lab.plots import Axis, Points
from lab.report import Cell, Report, Table, chosen

if TYPE_CHECKING:
    from lab.replay import Options

WORKLOADS = ("default", "cpu250", "gpushare100", "gpuspec33", "multigpu50")
# Per cent of the cards that FGD gives out, at 100 and at 130 % demand.
PUBLISHED = {
    100: {"default": 95.23, "gpuspec33": 87.84},
    130: {"default": 95.39, "cpu250": 93.41, "gpushare100": 86.90, "gpuspec33": 94.55, "multigpu50": 97.18},
}
SEEDS = (42, 43, 44, 45, 46)
DEMAND = 130  # per cent of all cards
LEARNED_EVERY = 500  # arrivals: what is typical is learned anew
POLICIES = ("random", "best fit", "given", "learned")
COLUMNS = ("random", "best fit", "fragments, given", "fragments, learned")
FGD = "FGD, published"
DRAWN_FROM = 70.0  # per cent of demand: below, nearly everything finds a place
DEVICE = "nvidia"


class Outcome(NamedTuple):
    """Of one workload under one policy with one seed: per cent of the cards given out, and seconds of decisions."""

    at_100: float
    at_130: float
    placed: int
    seconds: list[float]
    curve: list[float]  # given out when 0, 1, 2 ... per cent of the cards were asked for

    def at(self, demand: int) -> float:
        return self.at_100 if demand == 100 else self.at_130


@dataclass(frozen=True)
class Pod:
    resources: Resources

    @property
    def milli(self) -> int:
        return self.resources.cards.milli if self.resources.cards else 0


def read_nodes(folder: Path) -> list[Node]:
    rows = _rows(folder / "openb" / "openb_node_list_gpu_node.csv")
    return [
        Node(
            row["sn"],
            int(row["cpu_milli"]),
            int(row["memory_mib"]) * MIB,
            tuple(Card(index, DEVICE, row["model"]) for index in range(int(row["gpu"]))),
        )
        for row in rows
    ]


def read_pods(folder: Path, workload: str) -> list[Pod]:
    """Sorted by name."""
    rows = sorted(_rows(folder / "openb" / f"openb_pod_list_{workload}.csv"), key=lambda row: row["name"])
    return [Pod(_resources(row)) for row in rows]


def _rows(path: Path) -> list[dict[str, str]]:
    with path.open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def _resources(row: dict[str, str]) -> Resources:
    number, milli = int(row["num_gpu"]), int(row["gpu_milli"] or 0)
    models = tuple(sorted({model for model in (row.get("gpu_spec") or "").split("|") if model}))
    cards = Cards(DEVICE, milli if number == 1 else number * WHOLE_CARD, models) if number else None
    return Resources(int(row["cpu_milli"]), int(row["memory_mib"]) * MIB, 0, cards)


def arrivals(pods: list[Pod], seed: int, capacity: int) -> list[Pod]:
    chance = Random(seed)
    coming = list(pods)
    chance.shuffle(coming)
    asked = sum(pod.milli for pod in coming)
    while asked * 100 < DEMAND * capacity:
        coming.append(chance.choice(pods))
        asked += coming[-1].milli
    return coming


def typical_of(pods: Iterable[Pod]) -> tuple[Typical, ...]:
    counts: dict[Resources, int] = {}
    for pod in pods:
        counts[pod.resources] = counts.get(pod.resources, 0) + 1
    return typical_from(counts)


# --- one run ------------------------------------------------------------------------------------------------------


def run(nodes: list[Node], pods: list[Pod], how: str, seed: int) -> Outcome:
    """Place what comes, until it has asked for 130 % of the cards."""
    capacity = sum(len(node.cards) for node in nodes) * WHOLE_CARD
    coming = arrivals(pods, seed, capacity)
    place = _placer(nodes, pods, how, seed)
    asked = given = placed = 0
    at_100: float | None = None
    seconds: list[float] = []
    curve: list[float] = []
    for pod in coming:
        began = thread_time()
        fits = place(pod)
        seconds.append(thread_time() - began)
        placed += fits
        asked, given = asked + pod.milli, given + fits * pod.milli
        if at_100 is None and asked >= capacity:
            at_100 = 100 * given / capacity
        while len(curve) * capacity <= asked * 100 and len(curve) <= DEMAND:
            curve.append(100 * given / capacity)
        if asked * 100 >= DEMAND * capacity:
            break
    return Outcome(at_100 or 0.0, 100 * given / capacity, placed, seconds, curve)


def _placer(nodes: list[Node], pods: list[Pod], how: str, seed: int) -> Callable[[Pod], bool]:
    if how == "random":
        return _Anywhere(nodes, seed).place
    policy = Policy(placing=Placing.BEST_FIT if how == "best fit" else Placing.FRAGMENTS)
    books = Books(nodes, {}, policy, typical=typical_of(pods) if how == "given" else ())
    return _Learning(books).place if how == "learned" else _Asking(books).place


class _Asking:
    """The real core."""

    def __init__(self, books: Books) -> None:
        self.books = books
        self._asks: dict[Resources, Ask] = {}

    def ask(self, pod: Pod) -> Ask:
        found = self._asks.get(pod.resources)
        if found is None:
            spec = Spec("pod", (RoleSpec("worker", ("true",), 1, pod.resources),))
            found = self._asks[pod.resources] = ask_of(spec, "team", self.books.policy)
        return found

    def place(self, pod: Pod) -> bool:
        return place_gang(self.ask(pod), self.books.rooms) is not None


class _Learning(_Asking):
    """What is typical is learned from what has come so far, and from nothing else."""

    def __init__(self, books: Books) -> None:
        super().__init__(books)
        self._come: list[Pod] = []

    def place(self, pod: Pod) -> bool:
        self._come.append(pod)
        if len(self._come) % LEARNED_EVERY == 0 or len(self._come) in (20, 100, 200):
            self.books.renew_typical(typical_of(self._come))
        return super().place(pod)


class _Anywhere(_Asking):
    """Any node that has room, and on it any card: what chance achieves."""

    def __init__(self, nodes: list[Node], seed: int) -> None:
        super().__init__(Books(nodes, {}, Policy()))
        self._chance = Random(seed)

    def place(self, pod: Pod) -> bool:
        rooms, role = self.books.rooms, self.ask(pod).roles[0]
        stacks = list(rooms.shelf(role.sieve).stacks())
        while stacks:
            at = self._chance.randrange(len(stacks))
            stacks[at], stacks[-1] = stacks[-1], stacks[at]
            offer = self._offer(stacks.pop(), role.resources)
            if offer is not None:
                rooms.take(offer)
                return True
        return False

    def _offer(self, stack: Stack, asked: Resources) -> Allotment | None:
        if asked.cards is None or not asked.cards.is_share:
            return stack.offer(asked)
        return stack.offer(asked, liked=self._chance.sample(stack.indices, len(stack.indices)))


def decide_all(nodes: list[Node], pods: list[Pod], seed: int) -> tuple[int, float]:
    """The whole workload waits, and one pass of the real scheduler decides: how many start, and in how many seconds."""
    coming = list(pods)
    Random(seed).shuffle(coming)
    books = Books(nodes, {}, Policy(), typical=typical_of(pods))
    for number, pod in enumerate(coming):
        spec = Spec("pod", (RoleSpec("worker", ("true",), 1, pod.resources),))
        books.put(Workload(f"pod{number:07d}", "ann", "team", spec, float(number)))
    began = thread_time()
    outcome = decide(books, float(len(coming)))
    return len(outcome.placements), thread_time() - began


# --- all runs -----------------------------------------------------------------------------------------------------

Job = tuple[Path, str, str, int]  # folder, workload, policy, seed


def _one(job: Job) -> Outcome:
    folder, workload, how, seed = job
    gc.freeze()
    return run(read_nodes(folder), read_pods(folder, workload), how, seed)


def _all(jobs: list[Job], processes: int) -> Iterator[Outcome]:
    if processes <= 1:
        yield from map(_one, jobs)
        return
    with ProcessPoolExecutor(processes) as pool:
        yield from pool.map(_one, jobs)


def replay(folder: Path, options: Options) -> Report:
    names = chosen(_there(folder), options.only)
    seeds = options.seeds or SEEDS
    jobs = [(folder, name, how, seed) for name in names for how in POLICIES for seed in seeds]
    made: dict[Job, Outcome] = {}
    for job, outcome in zip(jobs, _all(jobs, options.processes), strict=True):
        made[job] = outcome
        print(f"  {job[1]}: {job[2]}, seed {job[3]}: {outcome.at_130:.2f} %", file=sys.stderr, flush=True)
    outcomes = {(name, how): [made[folder, name, how, seed] for seed in seeds] for name in names for how in POLICIES}
    tables = [_given_out(outcomes, names, demand) for demand in (130, 100)]
    tables += [_by_seed(outcomes, names, seeds, demand) for demand in (130, 100)]
    lines = list(_promises(outcomes, names))
    if "default" in names:
        placed, taken = decide_all(read_nodes(folder), read_pods(folder, "default"), seeds[0])
        what = f"openb default: {placed:,} placed in one pass (decide)"
        lines.append(Line(what, placed / taken, 2000, "/s", at_most=False))
    return Report("openb", [*tables, _speeds(outcomes, names)], lines, _plots(outcomes, names, len(seeds)))


def _there(folder: Path) -> tuple[str, ...]:
    """Those with a published number first, then whatever else lies there."""
    start, end = "openb_pod_list_", ".csv"
    found = {path.name[len(start) : -len(end)] for path in (folder / "openb").glob(f"{start}*{end}")}
    return (*(name for name in WORKLOADS if name in found), *sorted(found - set(WORKLOADS)))


Outcomes = dict[tuple[str, str], list[Outcome]]


def _mean(outcomes: list[Outcome], demand: int) -> float:
    return sum(one.at(demand) for one in outcomes) / len(outcomes)


def _given_out(outcomes: Outcomes, names: Sequence[str], demand: int) -> Table:
    published = PUBLISHED[demand]
    rows: list[tuple[Cell, ...]] = []
    for name in names:
        rows.append((name, *(_mean(outcomes[name, how], demand) for how in POLICIES), published.get(name)))
    if len(names) > 1:
        means = [sum(_mean(outcomes[name, how], demand) for name in names) / len(names) for how in POLICIES]
        whole = all(name in published for name in names)
        rows.append(("mean", *means, sum(published[name] for name in names) / len(names) if whole else None))
    return Table(f"cards given out at {demand} % demand, %", ("workload", *COLUMNS, FGD), rows)


def _by_seed(outcomes: Outcomes, names: Iterable[str], seeds: Iterable[int], demand: int) -> Table:
    """How much of it is chance."""
    rows: list[tuple[Cell, ...]] = []
    for name in names:
        for how in POLICIES:
            found = [one.at(demand) for one in outcomes[name, how]]
            rows.append((name, how, *found, max(found) - min(found)))
    columns = ("workload", "policy", *(f"seed {seed}" for seed in seeds), "spread")
    return Table(f"seed by seed at {demand} % demand, %", columns, rows, "spread: the highest less the lowest")


def _speeds(outcomes: Outcomes, names: Iterable[str]) -> Table:
    rows: list[tuple[Cell, ...]] = []
    for name in names:
        for how in POLICIES[1:]:
            each, p50, p99 = _speed(outcomes[name, how])
            rows.append((name, how, each, p50, p99))
    columns = ("workload", "policy", "placements/s", "p50 ms", "p99 ms")
    note = "Processor time of the thread that decides; decisions that find no place count as time."
    return Table("speed of decisions, one core", columns, rows, note)


def _speed(outcomes: list[Outcome]) -> tuple[float, float, float]:
    seconds = [one for outcome in outcomes for one in outcome.seconds]
    placed = sum(outcome.placed for outcome in outcomes)
    return placed / sum(seconds), 1000 * percentile(seconds, 0.5), 1000 * percentile(seconds, 0.99)


def _promises(outcomes: Outcomes, names: Iterable[str]) -> Iterator[Line]:
    given = {name: _mean(outcomes[name, "given"], 130) for name in names}
    for name, value in given.items():
        if name in PUBLISHED[130]:
            least = 95.4 if name == "default" else round(PUBLISHED[130][name] - 0.4, 2)
            yield Line(f"openb {name}: cards given out at 130 %", value, least, "%", at_most=False)
    if set(WORKLOADS) <= set(given):
        mean = sum(given[name] for name in WORKLOADS) / len(WORKLOADS)
        yield Line("openb: mean of the five workloads at 130 %", mean, 93.5, "%", at_most=False)
    if "gpuspec33" in given:
        at_100 = _mean(outcomes["gpuspec33", "given"], 100)
        yield Line("openb gpuspec33: cards given out at 100 %", at_100, 86.8, "%", at_most=False)
    if "default" in given:
        each, _, p99 = _speed(outcomes["default", "given"])
        yield Line("openb default: placements by typical requests", each, 2000, "/s", at_most=False)
        yield Line("openb default: one decision, p99", p99, 15, "ms")


# --- drawn --------------------------------------------------------------------------------------------------------


def _plots(outcomes: Outcomes, names: Sequence[str], seeds: int) -> dict[str, str]:
    """Of each workload how much is given out while more and more is asked for; of all what stays empty in the end."""
    found = {f"openb-{name}.svg": _drawn(outcomes, name, seeds) for name in names}
    empty: dict[str, list[float | None]] = {
        column: [100 - _mean(outcomes[name, how], 130) for name in names]
        for column, how in zip(COLUMNS, POLICIES, strict=True)
    }
    empty[FGD] = [100 - PUBLISHED[130][name] if name in PUBLISHED[130] else None for name in names]
    title = f"Cards that stay empty though 130 % are asked for ({_seeds(seeds)})"
    found["openb-empty.svg"] = plots.rows(title, names, empty, Axis("per cent of all cards: less is better", least=0.0))
    return found


def _drawn(outcomes: Outcomes, name: str, seeds: int) -> str:
    series: dict[str, Points] = {}
    for column, how in zip(COLUMNS, POLICIES, strict=True):
        means = [sum(each) / len(each) for each in zip(*(one.curve for one in outcomes[name, how]), strict=True)]
        series[column] = [(float(asked), given) for asked, given in enumerate(means) if asked >= DRAWN_FROM]
    published = [(float(demand), of[name]) for demand, of in PUBLISHED.items() if name in of]
    x, y = Axis("cards asked for, per cent of all", least=DRAWN_FROM), Axis("cards given out, per cent of all")
    low = min(value for points in series.values() for _, value in points)
    y = replace(y, least=math.floor(low / 5) * 5.0, most=100.0)
    title = f"{name}: cards given out ({_seeds(seeds)})"
    marks = {FGD: published} if published else None
    return plots.lines(title, series, x, y, marks=marks, dashed=COLUMNS[-1:])


def _seeds(count: int) -> str:
    return "one seed" if count == 1 else f"mean of {count} seeds"


if __name__ == "__main__":
    from lab.replay import main

    sys.exit(main(["openb", *sys.argv[1:]]))
