"""How often the start that was told was kept: traces are replayed by the default rules, and everyone who has to wait
asks when it will start. Later it is known when it did.

    python -m lab.replay estimates TRACES --processes 2

The guesses know only what the platform knew at that moment: run times of what was over by then, the queue, and what
had become of earlier guesses. As in the platform, one look serves everybody: those that came since the last one get
their guess from it, to learn from, and it says anew when those start that still wait. What is counted is what those
were told who asked at the moment they came. The numbers of the method were chosen on the traces named in TUNED and on
made-up clusters; the others are the test.

ITP says nothing of its machines: a cluster gets as many nodes of eight cards as make its mean load LOAD. Of
each trace the first JOBS_AT_MOST jobs are replayed (`--most N`: more); with `--slow` also the
next as many of the large clusters, as traces of their own (`cluster04/2`).
"""

from __future__ import annotations

import csv
import sys
import time
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, field
from math import exp, log
from pathlib import Path
from typing import TYPE_CHECKING

from gpuyard.domain.cluster import Card, Node
from gpuyard.domain.policy import Policy
from gpuyard.domain.resources import GIB, WHOLE_CARD, Cards, Resources
from gpuyard.domain.workload import RoleSpec, Spec, Together, Workload
from gpuyard.forecast.calibration import FLOOR, OPEN_AT_MOST, Calibration, Guess
from gpuyard.forecast.estimate import in_turn, staged, starts
from gpuyard.forecast.runtimes import RunTimes, run_of
from gpuyard.rehearsal import Arrival, rehearse
from gpuyard.scheduling.books import Books
from gpuyard.store.guesses import KEPT
from lab.lines import Line
from lab.report import Cell, Report, Table, chosen

if TYPE_CHECKING:
    from lab.replay import Options

TUNED = ("cluster01", "cluster03", "cluster06")  # the method's numbers were chosen on these
TRACES = (*(f"cluster{number:02d}" for number in range(1, 11)), "trace1", "trace3")
LATER = tuple(f"cluster{number}/2" for number in ("02", "04", "07", "08", "09"))  # their next JOBS_AT_MOST jobs
LOAD = 0.75
CARDS_EACH = 8
ASKED_AT_MOST = 300  # of those that wait, evenly over the trace
JOBS_AT_MOST = 3000  # of each trace, the first ones
FEWEST = 30  # with fewer that wait a trace shows nothing
FROM, TO = 0.85, 0.95  # the part of starts that shall come before the late moment


@dataclass
class Asked:
    """One that waits, what it was told, and how long it then waited."""

    id: str
    at: float
    middle: float | None
    late: float | None
    waited: float | None = None


@dataclass
class Listener:
    """Sits beside a rehearsal: learns what is over, and asks for some of those that come and have to wait."""

    seconds: dict[str, float]
    every: int
    times: RunTimes = field(default_factory=RunTimes)
    guesses: dict[str, Guess] = field(default_factory=dict)
    asked: dict[str, Asked] = field(default_factory=dict)
    waiting: set[str] = field(default_factory=set)
    came: int = 0
    looks: int = 0
    spent: float = 0.0
    _ran: dict[str, Workload] = field(default_factory=dict)

    def after(self, books: Books, now: float) -> None:
        for id in self._ran.keys() - books.held.keys():
            over = self._ran.pop(id)
            self.times.add(run_of(over.owner, over.spec, self.seconds[id]))
        for id in books.held.keys() - self._ran.keys():
            self._ran[id] = books.holding[id]
        line = books.line.workloads
        for id in self.waiting - line.keys():
            self._started(id, now)
        new = sorted(line.keys() - self.waiting)
        self.waiting = set(line)
        wanted = []
        for id in new:
            self.came += 1
            if self.every and self.came % self.every == 0 and id not in self.asked:
                wanted.append(id)
        if wanted:
            begun = time.perf_counter()
            self._ask(books, wanted, now)
            self.spent += time.perf_counter() - begun
            self.looks += 1

    def _ask(self, books: Books, wanted: list[str], now: float) -> None:
        """As the platform does: one look at all that wait, and guesses for those that have none yet, to learn from."""
        order = in_turn(books, now)
        seen = starts(staged(books, order, self.times, now), order, len(self.times))
        expected = {id: now + one.spread.middle for id, one in seen.items() if one.spread is not None}
        calibration = Calibration(list(self.guesses.values()), now, expected)
        still_open = sum(1 for guess in self.guesses.values() if guess.waited is None)
        new = [id for id in order if id not in self.guesses and id not in wanted]
        for id in wanted:
            spread = seen[id].spread
            told = None if spread is None else calibration.corrected(spread)
            self.asked[id] = Asked(id, now, told and told.middle, told and told.late)
        for id in [*wanted, *new][: max(0, OPEN_AT_MOST - still_open)]:
            spread = seen[id].spread
            if spread is not None and spread.late > 0 and id not in self.guesses:
                told = calibration.corrected(spread)
                self.guesses[id] = Guess(id, now, spread.middle, spread.late, told.late)
        for id in sorted(self.guesses, key=lambda id: self.guesses[id].at)[:-KEPT]:
            del self.guesses[id]

    def _started(self, id: str, now: float) -> None:
        if id in self.asked and self.asked[id].waited is None:
            self.asked[id].waited = now - self.asked[id].at
        if id in self.guesses and self.guesses[id].waited is None:
            self.guesses[id] = self.guesses[id]._replace(waited=now - self.guesses[id].at)


# --- the traces ---------------------------------------------------------------------------------------------------


def arrivals(folder: Path, trace: str, most: int) -> list[Arrival]:
    itp, (name, _, part) = trace.startswith("cluster"), trace.partition("/")
    with (folder / ("itp" if itp else "muri") / f"{name}.csv").open(newline="") as file:
        rows = list(csv.DictReader(file))
    read = _itp(rows) if itp else _muri(rows)
    ordered = sorted(read, key=lambda arrival: (arrival.workload.submitted_at, arrival.workload.id))
    first = most * (int(part or 1) - 1)
    return ordered[first : first + most]


def _itp(rows: list[dict[str, str]]) -> Iterator[Arrival]:
    """Nothing is told of names: every job has its own."""
    for number, row in enumerate(rows):
        yield _arrival(number, f"job{number}", row["num_gpu"], float(row["submission_time"]), float(row["duration"]))


def _muri(rows: list[dict[str, str]]) -> Iterator[Arrival]:
    for number, row in enumerate(rows):
        submitted, seconds = float(row["submit_time"]) / 1000, float(row["duration"]) / 1000
        yield _arrival(number, row["model_name"], row["num_gpu"], submitted, seconds)


def _arrival(number: int, name: str, asked: str, submitted: float, seconds: float) -> Arrival:
    cards = int(float(asked))
    replicas = -(-cards // CARDS_EACH)
    resources = Resources(cards=Cards("nvidia", cards // replicas * WHOLE_CARD))
    role = RoleSpec("worker", ("true",), replicas, resources)
    spec = Spec(name, (role,), together=Together.SPREAD if replicas > 1 else Together.ANY)
    return Arrival(Workload(f"j{number:09d}", "ann", "lab", spec, submitted), seconds)


def nodes(trace: str, coming: list[Arrival]) -> list[Node]:
    number = 8
    if trace.startswith("cluster"):
        sizes = [_cards(arrival) for arrival in coming]
        span = coming[-1].workload.submitted_at - coming[0].workload.submitted_at
        load = sum(size * arrival.seconds for size, arrival in zip(sizes, coming, strict=True)) / span
        number = max(1, -(-int(load / LOAD) // CARDS_EACH), -(-max(sizes) // CARDS_EACH))
    cards = tuple(Card(index, "nvidia", "V100") for index in range(CARDS_EACH))
    return [Node(f"n{place:04d}", 96_000, 768 * GIB, cards) for place in range(number)]


def _cards(arrival: Arrival) -> int:
    role = arrival.workload.spec.roles[0]
    return role.replicas * (role.resources.cards.whole if role.resources.cards else 0)


# --- one trace ----------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Kept:
    """How well the starts of one trace were told."""

    trace: str
    cards: int
    waits: int  # how many had to wait
    asked: int
    unknown: int
    median_wait: float
    late_kept: float  # part of starts before the late moment
    middle_kept: float
    error: float  # median of |start - middle|, seconds
    ratio: float  # median factor between wait and guess, either way
    width: float  # median factor between late and middle
    each: float  # seconds a look took


def listen(trace: str, folder: Path, most: int) -> Kept:
    coming = arrivals(folder, trace, most)
    machines = nodes(trace, coming)
    first = Listener({}, 0)
    seconds = {arrival.workload.id: arrival.seconds for arrival in coming}
    first.seconds = seconds
    rehearse(machines, {}, Policy(), coming, after=first.after)
    second = Listener(seconds, max(1, -(-first.came // ASKED_AT_MOST)))
    rehearse(machines, {}, Policy(), coming, after=second.after)
    return _kept(trace, CARDS_EACH * len(machines), first.came, second)


def _kept(trace: str, cards: int, waits: int, heard: Listener) -> Kept:
    all_asked = [one for one in heard.asked.values() if one.waited is not None]
    told = [one for one in all_asked if one.late is not None]
    answers = [(one.waited or 0.0, one.middle or 0.0, one.late or 0.0) for one in told]
    if not answers:
        return Kept(trace, cards, waits, len(all_asked), len(all_asked), 0, 0, 0, 0, 0, 0, 0)
    return Kept(
        trace,
        cards,
        waits,
        len(all_asked),
        len(all_asked) - len(told),
        _median([waited for waited, _, _ in answers]),
        sum(waited <= late for waited, _, late in answers) / len(answers),
        sum(waited <= middle for waited, middle, _ in answers) / len(answers),
        _median([abs(waited - middle) for waited, middle, _ in answers]),
        exp(_median([abs(log((waited + FLOOR) / (middle + FLOOR))) for waited, middle, _ in answers])),
        _median([(late + FLOOR) / (middle + FLOOR) for _, middle, late in answers]),
        heard.spent / max(1, heard.looks),
    )


def _median(values: list[float]) -> float:
    ordered = sorted(values)
    return ordered[len(ordered) // 2]


# --- the report ---------------------------------------------------------------------------------------------------

COLUMNS = (
    *("trace", "used for", "cards", "had to wait", "asked", "unknown", "median wait h"),
    *("before p90 %", "before p50 %", "median error h", "median factor", "p90/p50", "ms a look"),
)


def replay(folder: Path, options: Options) -> Report:
    wanted = chosen((*TRACES, *LATER) if options.slow or options.only else TRACES, options.only)
    found = _listen_to_all(wanted, folder, options)
    shown = [one for one in found if one.asked - one.unknown >= FEWEST]
    rows: list[tuple[Cell, ...]] = [
        (
            *(one.trace, "tuning" if one.trace in TUNED else "test", one.cards, one.waits, one.asked, one.unknown),
            *(one.median_wait / 3600, 100 * one.late_kept, 100 * one.middle_kept),
            *(one.error / 3600, one.ratio, one.width, 1000 * one.each),
        )
        for one in shown
    ]
    note = f"Traces where fewer than {FEWEST} had to wait are left out: "
    note += ", ".join(one.trace for one in found if one not in shown) or "none"
    lines = _lines([one for one in shown if one.trace not in TUNED])
    return Report("estimates", [Table("When it will start: told, and kept", COLUMNS, rows, note)], lines)


def _lines(tests: list[Kept]) -> list[Line]:
    """All that were told a moment, and then trace by trace."""
    told = {one.trace: one.asked - one.unknown for one in tests}
    parts = {one.trace: one.late_kept for one in tests}
    if tests:
        all_kept = sum(parts[trace] * told[trace] for trace in told) / sum(told.values())
        parts = {f"all {sum(told.values()):,} of {len(tests)} traces": all_kept} | parts
    return [
        line
        for name, kept in parts.items()
        for line in (
            Line(f"{name}: starts before p90", kept, FROM, "", at_most=False),
            Line(f"{name}: starts before p90", kept, TO, ""),
        )
    ]


def _listen_to_all(traces: list[str], folder: Path, options: Options) -> list[Kept]:
    most = options.most or JOBS_AT_MOST
    if options.processes <= 1:
        return [listen(trace, folder, most) for trace in traces]
    with ProcessPoolExecutor(options.processes) as pool:
        return [heard.result() for heard in [pool.submit(listen, trace, folder, most) for trace in traces]]


def main(arguments: list[str]) -> int:
    from lab.replay import Options

    report = replay(Path(arguments[0]), Options(only=tuple(arguments[1:])))
    print(report)
    return 0 if all(line.kept for line in report.lines) else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
