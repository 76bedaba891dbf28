"""When those who wait will start, and when those who run will be over: for one question, or for the whole queue."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from itertools import accumulate
from math import inf
from typing import NamedTuple

from gpuyard.domain.reasons import NEVER_STARTS, Code, Reason, because
from gpuyard.domain.workload import State, Workload
from gpuyard.forecast.calibration import Calibration
from gpuyard.forecast.look import FEWEST_WORLDS, Draw, Runtime, Spread, end_of, look, spread_of
from gpuyard.forecast.runtimes import LEAST_RUNS, Length, RunTimes
from gpuyard.forecast.scene import Painter, Scene
from gpuyard.scheduling.books import Books
from gpuyard.scheduling.inquiry import Inquiry

PLAYED_AT_MOST = 1200  # waiters that are played through; for those behind them the work before them is summed up
ROUGH = 1.5  # the late moment of such a sum is this much later


class Estimate(NamedTuple):
    """Seconds since the epoch: as likely before as after the middle, seldom after the late one. Or why nobody knows."""

    middle: float | None = None
    late: float | None = None
    unknown: Reason | None = None
    rough: bool = False  # too much is before it to be played through


class Seen(NamedTuple):
    """What a look saw of one that waits, uncorrected, in seconds from then."""

    spread: Spread | None
    unknown: Reason | None = None
    rough: bool = False


class Stage(NamedTuple):
    """All a look ahead needs, taken from the books at one moment; the books may go on."""

    now: float
    scene: Scene
    running: list[Runtime]
    waiting: list[Runtime]
    never: Mapping[str, Reason]  # those that cannot start, and why nobody knows when


def staged(books: Books, order: Sequence[str], times: RunTimes, now: float) -> Stage:
    """`order`: those who wait, as they are asked. No pass may be open on the books."""
    painter = Painter(books)
    running = []
    for id, held in books.held.items():
        workload = books.holding[id]
        painter.add_runner(workload, held.allotments)
        running.append(Runtime(Length(workload, times), ran(workload, now)))
    waiting: list[Runtime] = []
    never: dict[str, Reason] = {}
    for id in order:
        workload, batch = books.line.workloads[id], books.line.batch_of(id)
        ask = batch.ask if batch is not None else books.ask_of(workload)
        painter.add_waiter(workload, ask, batch.amounts if batch is not None else {})
        waiting.append(Runtime(Length(workload, times)))
    for batch in books.line.parked.values():
        never.update((id, _hopeless(batch.never)) for _, id in batch.jobs)
    return Stage(now, painter.scene, running, waiting, never)


def _hopeless(reason: Reason | None) -> Reason:
    code = Code.GUESS_NEVER if reason is not None and reason.code in NEVER_STARTS else Code.GUESS_TROUBLE
    return because(code)


def ran(workload: Workload, now: float) -> float | None:
    """How long it has been running; None: it has a place, and is about to start."""
    begun = workload.attempt.started_at if workload.attempt is not None else None
    return None if begun is None else max(0.0, now - begun)


def starts(stage: Stage, wanted: Iterable[str], history: int) -> dict[str, Seen]:
    """What is to be seen of the starts of these, by id; those that do not wait are left out."""
    place = {waiter.id: number for number, waiter in enumerate(stage.scene.waiters)}
    found: dict[str, Seen] = {id: Seen(None, stage.never[id]) for id in wanted if id in stage.never}
    asked = {id: place[id] for id in wanted if id in place}
    near = {id: number for id, number in asked.items() if number < PLAYED_AT_MOST}
    spreads = look(stage.scene, stage.running, stage.waiting, near.values())
    for id, number in near.items():
        if number in spreads:
            found[id] = _seen(stage, number, spreads[number], history, rough=False)
    if far := {id: number for id, number in asked.items() if number not in spreads}:
        summed = summed_up(stage)
        for id, number in far.items():
            found[id] = _seen(stage, number, summed[number], history, rough=True)
    return found


def _seen(stage: Stage, number: int, spread: Spread, history: int, *, rough: bool) -> Seen:
    if spread.middle == 0.0 == spread.late:
        return Seen(spread)
    if not _all_known(stage, number):
        return Seen(None, because(Code.GUESS_HISTORY, runs=history, least=LEAST_RUNS))
    if spread.late == inf:
        return Seen(None, because(Code.GUESS_ENDLESS))
    return Seen(spread, None, rough)


def _all_known(stage: Stage, number: int) -> bool:
    """Is anything known of how long those run that it waits for?"""
    before = (runtime.length.is_known for runtime in stage.waiting[:number])
    return all(runtime.length.is_known for runtime in stage.running) and all(before)


def summed_up(stage: Stage) -> list[Spread]:
    """For a queue too long to be played through: all work before each, spread over all cards."""
    cards = max(1, sum(stage.scene.total))
    weights = [sum(part.replicas * part.cards for part in want.parts) for want in stage.scene.wants]
    first = [sum(taken.cards for taken in runner.taken) for runner in stage.scene.runners]
    draw = Draw(FEWEST_WORLDS)
    runners = [draw.drawn(r.id, stage.running[i]) for i, r in enumerate(stage.scene.runners)]
    waiters = [draw.drawn(w.id, stage.waiting[i]) for i, w in enumerate(stage.scene.waiters)]
    worlds = []
    for world in range(FEWEST_WORLDS):
        begin = sum(last[world] * weight for last, weight in zip(runners, first, strict=True))
        work = (run[world] * weights[w.want] for run, w in zip(waiters, stage.scene.waiters, strict=True))
        worlds.append([done / cards for done in accumulate(work, initial=begin)])
    found = [spread_of([one[number] for one in worlds]) for number in range(len(stage.scene.waiters))]
    return [Spread(spread.middle, spread.late * ROUGH) for spread in found]


def told(seen: Seen, at: float, calibration: Calibration, now: float) -> Estimate:
    """As moments, corrected by what was learned; never in the past."""
    if seen.spread is None:
        return Estimate(unknown=seen.unknown)
    if seen.spread.late == 0.0:
        return Estimate(at, at)
    middle, late = calibration.corrected(seen.spread)
    return Estimate(max(now, at + middle), max(now, at + late), None, seen.rough)


def end(workload: Workload, times: RunTimes, now: float) -> Estimate | None:
    """Of what holds cards or cores; None of everything else."""
    if not workload.holds_resources:
        return None
    if workload.state is State.STOPPING:
        return Estimate(now, now + workload.spec.grace_seconds)
    length = Length(workload, times)
    if not length.is_known:
        return Estimate(unknown=because(Code.GUESS_HISTORY, runs=len(times), least=LEAST_RUNS))
    spread = end_of(Runtime(length, ran(workload, now)))
    return Estimate(now + spread.middle, now + spread.late)


def in_turn(books: Books, now: float) -> list[str]:
    """Who starts at once, who waits in the order in which they are asked, and last those that pause after a failure."""
    inquiry = Inquiry(books, now)
    placed = [placement.workload for placement in inquiry.one.placements]
    line = inquiry.queue.in_order()
    inquiry.close()
    return [*placed, *(id for id in line if id not in books.line.resting), *books.line.resting]
