"""The same work under several rules, side by side: what became of it, and how long the replay took."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from gpuyard.dialects.native.yaml_text import parse_yaml
from gpuyard.dialects.policy import read_policy
from gpuyard.domain.cluster import Node
from gpuyard.domain.errors import BadInput
from gpuyard.domain.people import Group
from gpuyard.domain.policy import DAY, HOUR, Ordering, Policy
from gpuyard.domain.problems import Problem
from gpuyard.rehearsal import Arrival, Habits, Result, rehearse
from gpuyard.rehearsal.summary import Summary, summary
from gpuyard.words import say
from lab.plots import Axis, Points, bars, cdf, lines
from lab.report import Cell, Table, Unfit, Unit, counted, unit_of_axis, unit_of_table

# What people choose as the longest time their work may run, where they have to say one.
LIMITS = (600.0, 1800.0, HOUR, 2 * HOUR, 4 * HOUR, 8 * HOUR, 12 * HOUR, *(n * DAY for n in (1, 2, 3, 5, 7, 14, 30, 60)))
CURVE_POINTS = 300
WRITES_ONE = "`yard policy show -o yaml > FILE`"


@dataclass(frozen=True)
class Rule:
    """One way to decide. `strict`: every group is first in, first out. `limited`: everyone says how long at most."""

    name: str
    policy: Policy = Policy()
    strict: bool = False
    limited: bool = False
    habits: Habits = Habits()


BY_AGE = Policy(order=Ordering(fair_share=False, age_points=0))
STRICT = Rule("strict order", BY_AGE, strict=True)
DEFAULT = Rule("default")
BACKFILL = Rule("default, times told", limited=True)
RULES = (STRICT, DEFAULT, BACKFILL)
QUICK = (STRICT, DEFAULT)


def rules_of(files: Iterable[str], *, slow: bool = True) -> list[Rule]:
    """Ours, and a rule for each file with a policy, by the name of the file."""
    return [*(RULES if slow else QUICK), *(Rule(Path(file).stem, policy_of(Path(file))) for file in files)]


def policy_of(path: Path) -> Policy:
    """As `yard policy` writes it."""
    try:
        data, marks = parse_yaml(path.read_bytes())
        return read_policy(data, marks=marks)
    except OSError as problem:
        raise Unfit(f"the policy {path} cannot be read: {problem.strerror}; write one with {WRITES_ONE}") from problem
    except BadInput as problem:
        raise Unfit(f"the policy {path} will not do: {_said(problem)}") from problem


def _said(problem: BadInput) -> str:
    """The first of its problems. What is empty is told in words of our own: theirs are about job files."""
    first, *others = problem.problems
    if first.facts.get("problem") in (Problem.EMPTY.value, Problem.TOP_NOT_MAPPING.value):
        return f"it holds no rules; write one with {WRITES_ONE}"
    return say(first, "en") + (f" (and {counted(len(others), 'other problem')})" if others else "")


@dataclass(frozen=True)
class Case:
    """A cluster and the work that comes to it."""

    name: str
    nodes: Sequence[Node]
    groups: Mapping[str, Group]
    arrivals: Sequence[Arrival]
    more: Mapping[str, Any] = field(default_factory=dict)  # what else a rehearsal may be given


@dataclass(frozen=True)
class Measured:
    """What is left of a replay: numbers and curves, small enough to be handed from one process to another."""

    case: str
    rule: str
    cards: int
    summary: Summary
    cycles: int
    seconds: float  # that the replay took
    processor: float  # of which on the processor
    waits: tuple[float, ...]  # quantiles
    used: tuple[tuple[float, float], ...]  # (seconds, part of the cards)
    queue: tuple[tuple[float, float], ...]  # (seconds, workloads)


def measure(case: Case, rule: Rule) -> Measured:
    groups = {name: replace(group, fifo=True) for name, group in case.groups.items()} if rule.strict else case.groups
    arrivals = (limited(arrival) for arrival in case.arrivals) if rule.limited else case.arrivals
    begun, worked = time.perf_counter(), time.process_time()
    result = rehearse(case.nodes, groups, rule.policy, arrivals, **{"habits": rule.habits, **case.more})
    seconds, processor = time.perf_counter() - begun, time.process_time() - worked
    waits = sorted(outcome.wait for outcome in result.outcomes if outcome.wait is not None)
    some = tuple(waits[place] for place in sorted({n * (len(waits) - 1) // 399 for n in range(400)})) if waits else ()
    used, queue = curves(result)
    cards = sum(len(node.cards) for node in case.nodes)
    return Measured(case.name, rule.name, cards, summary(result), result.cycles, seconds, processor, some, used, queue)


def all_measured(one: Callable[..., Measured], tasks: Sequence[tuple[Any, ...]], processes: int = 1) -> list[Measured]:
    """One after the other, or by so many processes at once. Each is told when it is done: it may take minutes."""
    if processes <= 1:
        return [_told(one(*task)) for task in tasks]
    with ProcessPoolExecutor(processes) as pool:
        return [_told(measured) for measured in pool.map(one, *zip(*tasks, strict=True))]


def _told(measured: Measured) -> Measured:
    jobs, took = counted(measured.summary.jobs, "job"), measured.seconds
    print(f"  {measured.case}: {measured.rule}: {jobs} in {took:.1f} s", file=sys.stderr, flush=True)
    return measured


def limited(arrival: Arrival) -> Arrival:
    """It says how long it runs at most: the next time on the list that is enough."""
    workload = arrival.workload
    longest = next((limit for limit in LIMITS if limit >= arrival.seconds), None)
    spec = replace(workload.spec, max_seconds=longest)
    return replace(arrival, workload=replace(workload, spec=spec))


def curves(result: Result) -> tuple[tuple[tuple[float, float], ...], tuple[tuple[float, float], ...]]:
    """Use and queue over time, each point the mean of its stretch."""
    span = (result.ended - result.began) / CURVE_POINTS
    if span <= 0:
        return (), ()
    used, there, waited = ([0.0] * CURVE_POINTS for _ in range(3))
    for begun, over, busy, capacity, waiting in result.timeline.spans():
        for place, seconds in _stretches(begun - result.began, over - result.began, span):
            used[place] += busy * seconds
            there[place] += capacity * seconds
            waited[place] += waiting * seconds
    at = [n * span for n in range(CURVE_POINTS)]
    parts = tuple((moment, round(u / t, 4) if t else 0.0) for moment, u, t in zip(at, used, there, strict=True))
    return parts, tuple((moment, round(w / span, 2)) for moment, w in zip(at, waited, strict=True))


def _stretches(begun: float, over: float, span: float) -> Iterator[tuple[int, float]]:
    """How much of a time falls into which of the stretches of equal length."""
    first, last = (min(CURVE_POINTS - 1, int(moment / span)) for moment in (begun, over))
    for place in range(first, last + 1):
        yield place, max(0.0, min(over, (place + 1) * span) - max(begun, place * span))


# --- told -----------------------------------------------------------------------------------------------------------


def columns(unit: Unit) -> tuple[str, ...]:
    return (
        "trace", "rule", "cards", "jobs", "over", f"wait mean {unit.short}", "median", "p90", "p99",
        f"completion mean {unit.short}", f"median {unit.short}", f"p90 {unit.short}", "used %", "interrupted",
        f"lost card-{unit.short}", "seconds", "jobs/s",
    )  # fmt: skip


def unit_for(measured: Iterable[Measured]) -> Unit:
    """One for all that stand side by side: by the longest of them."""
    return unit_of_table(max((one.summary.seconds for one in measured), default=0.0))


def row(one: Measured, unit: Unit) -> tuple[Cell, ...]:
    told, wait, done = one.summary, one.summary.wait, one.summary.completion
    return (
        one.case,
        one.rule,
        one.cards,
        told.jobs,
        told.over,
        *(seconds / unit.seconds for seconds in (wait.mean, wait.median, wait.p90, wait.p99)),
        *(seconds / unit.seconds for seconds in (done.mean, done.median, done.p90)),
        told.busiest * 100,
        told.preemptions,
        told.lost_card_hours * (HOUR / unit.seconds),
        one.seconds,
        told.jobs / one.seconds if one.seconds else None,
    )


def table(title: str, measured: Sequence[Measured], note: str = "") -> Table:
    unit = unit_for(measured)
    return Table(title, columns(unit), [row(one, unit) for one in measured], note)


def plots(prefix: str, measured: Sequence[Measured]) -> dict[str, str]:
    """Of each trace: waits as a distribution, use and queue over time; of all: mean waits side by side."""
    found: dict[str, str] = {}
    for case in dict.fromkeys(one.case for one in measured):
        mine = [one for one in measured if one.case == case]
        found[f"{prefix}-{case}-waits.svg"] = cdf(
            f"{case}: how long work waits", {one.rule: one.waits for one in mine}, Axis("wait", "seconds", True, 1.0)
        )
        unit = unit_of_axis(max(one.summary.seconds for one in mine))
        over_time = Axis(unit.long)
        used = {one.rule: _over(one.used, unit) for one in mine}
        part = Axis("cards in use", "percent", least=0.0, most=1.0)
        found[f"{prefix}-{case}-use.svg"] = lines(f"{case}: cards in use", used, over_time, part)
        queue = {one.rule: _over(one.queue, unit) for one in mine}
        found[f"{prefix}-{case}-queue.svg"] = lines(f"{case}: how many wait", queue, over_time, Axis("workloads"))
    found[f"{prefix}-waits.svg"] = _mean_waits(measured)
    return found


def _over(points: Points, unit: Unit) -> Points:
    return [(round(at / unit.seconds, 3), value) for at, value in points]


def _mean_waits(measured: Sequence[Measured]) -> str:
    unit = unit_for(measured)
    cases = list(dict.fromkeys(one.case for one in measured))
    series: dict[str, list[float]] = {}
    for one in measured:
        series.setdefault(one.rule, []).append(one.summary.wait.mean / unit.seconds)
    whole = {rule: values for rule, values in series.items() if len(values) == len(cases)}
    return bars("Mean wait", [case.removeprefix("cluster") for case in cases], whole, Axis(unit.long), "trace")
