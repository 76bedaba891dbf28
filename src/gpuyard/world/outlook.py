"""When work starts and ends, as the api tells it: one look ahead serves all who ask within some seconds."""

from __future__ import annotations

import threading
from collections.abc import Callable, Collection, Iterable, Sequence
from math import inf
from time import perf_counter
from typing import NamedTuple

from gpuyard.domain.reasons import Code, because
from gpuyard.domain.workload import Kind, State, Workload
from gpuyard.forecast.calibration import Calibration, Guess
from gpuyard.forecast.estimate import Estimate, Seen, Stage, end, starts, told
from gpuyard.forecast.runtimes import MOST_RUNS, RunTimes, run_of
from gpuyard.store import guesses as rows
from gpuyard.store.database import Connection, Database
from gpuyard.world.view import View

FRESH_SECONDS = 5.0  # so long one look serves everybody ...
DEAR = 30.0  # ... or so many times as long as it took
SPARING = 10.0  # and one that came after it has to wait this many times as long as it took for its own
OLDEST_SECONDS = 120.0  # a list of a long queue takes what there is, if it is not older; somebody looks anew meanwhile
KEPT_SECONDS = 1.0  # so long what was learned from earlier guesses is taken as it is
FIRST_READ = 4 * MOST_RUNS  # runs at the beginning: the newest may all be one person's
WAIT_SECONDS = 2.0  # so long one waits for another one's look; then for none
PREVIEWS = 4  # so many at a time wait for a look of their own; the others are told so
REST = 1.0  # and after one that took long nobody has one for so many times as long: others need the processor as well
LONG_SECONDS = 0.25
FEW_WAIT = 300  # with no more than these, whoever asks for a list waits for a new look


class Look(NamedTuple):
    at: float
    seen: dict[str, Seen]
    took: float  # seconds


class Moments(NamedTuple):
    """What is told of one workload: when it starts, if it waits; when it ends, if it holds cards or cores."""

    start: Estimate | None = None
    end: Estimate | None = None


NOTHING = Moments()
BUSY = Estimate(unknown=because(Code.GUESS_BUSY))


class Outlook:
    def __init__(self, database: Database, view: View, clock: Callable[[], float]) -> None:
        self._database = database
        self._view = view
        self._clock = clock
        self._looking = threading.Lock()  # it takes the processor for a while: one after the other
        self._previewing = threading.BoundedSemaphore(PREVIEWS)
        self._rest_until = 0.0  # by the counter of the processor's clock
        self._learning = threading.Lock()
        self._times = RunTimes()
        self._known: dict[str, None] = {}  # those whose run is counted already; the newest
        self._since = 0.0
        self._guesses: dict[str, Guess] = {}
        self._guesses_read = False
        self._learned_at = 0.0
        self._look: Look | None = None
        self._calibration = (-inf, Calibration())
        self.wanted = threading.Event()  # somebody took an old look: a new one would be good

    # --- what is told ---------------------------------------------------------------------------------------------

    def one(self, workload: Workload) -> Moments:
        """Of one workload, as fresh as can be. One that came after the look has a new one made, now and then."""
        look = self._fresh() if workload.state is State.QUEUED else None
        if look is not None and workload.id not in look.seen and self._clock() - look.at >= SPARING * look.took:
            self._look_unless_somebody_does()
        return self.of([workload]).get(workload.id, NOTHING)

    def of(self, workloads: Collection[Workload]) -> dict[str, Moments]:
        """Of many. Those of which nothing is to be told are left out."""
        found: dict[str, Moments] = {}
        waiting = [workload for workload in workloads if workload.state is State.QUEUED]
        now, look = self._clock(), self._for_a_list() if waiting else None
        calibration = self.calibration(now) if look is not None else None
        for workload in workloads:
            if workload.state is State.PAUSED and workload.spec.kind is Kind.JOB:
                found[workload.id] = Moments(Estimate(unknown=because(Code.GUESS_PAUSED)))
            elif workload.holds_resources and workload.spec.kind is Kind.JOB:  # an environment stays until it is left
                self._learn()
                found[workload.id] = Moments(end=end(workload, self._times, now))
        if look is not None and calibration is not None:
            for workload in waiting:
                if workload.id in look.seen:
                    found[workload.id] = Moments(told(look.seen[workload.id], look.at, calibration, now))
        return found

    def preview(self, workload: Workload) -> Estimate | None:
        """When it would start, were it submitted now."""
        self._learn()
        if perf_counter() < self._rest_until or not self._previewing.acquire(blocking=False):
            return BUSY
        try:
            return self._previewed(workload)
        finally:
            self._previewing.release()

    def _previewed(self, workload: Workload) -> Estimate | None:
        if not self._looking.acquire(timeout=WAIT_SECONDS):
            return BUSY
        try:
            begun = perf_counter()
            stage = self._view.stage(self._times, workload)
            seen = starts(stage, [workload.id], len(self._times)).get(workload.id)
            took = perf_counter() - begun
            self._rest_until = begun + took * (1.0 + REST) if took >= LONG_SECONDS else 0.0
        finally:
            self._looking.release()
        now = self._clock()
        return None if seen is None else told(seen, stage.now, self.calibration(now), now)

    def calibration(self, now: float) -> Calibration:
        """As of the newest look; kept for a second, for it goes through all guesses."""
        self._learn()
        made_at, kept = self._calibration
        if not 0 <= now - made_at < KEPT_SECONDS:
            look = self._look
            seen = {} if look is None else look.seen
            at = 0.0 if look is None else look.at
            expected = {id: at + one.spread.middle for id, one in seen.items() if one.spread is not None}
            kept = Calibration(list(self._guesses.values()), now, expected)
            self._calibration = now, kept
        return kept

    # --- looking --------------------------------------------------------------------------------------------------

    def _for_a_list(self) -> Look | None:
        look, now = self._look, self._clock()
        if look is not None and len(look.seen) > FEW_WAIT and 0 <= now - look.at < OLDEST_SECONDS:
            if not self._is_fresh(look, now):
                self.wanted.set()
            return look
        return self._fresh()

    def _is_fresh(self, look: Look, now: float) -> bool:
        return 0 <= now - look.at < max(FRESH_SECONDS, DEAR * look.took)

    def _fresh(self) -> Look | None:
        """A new one if need be; while somebody else is looking the old one, or for lack of that none."""
        look = self._look
        if look is not None and self._is_fresh(look, self._clock()):
            return look
        old_enough = look is None or not 0 <= self._clock() - look.at < OLDEST_SECONDS
        if not self._looking.acquire(timeout=WAIT_SECONDS if old_enough else 0):
            return self._look
        try:
            look = self._look
            return look if look is not None and self._is_fresh(look, self._clock()) else self._look_now()
        finally:
            self._looking.release()

    def _look_unless_somebody_does(self) -> None:
        if self._looking.acquire(blocking=False):
            try:
                self._look_now()
            finally:
                self._looking.release()

    def look_anew(self) -> None:
        with self._looking:
            self._look_now()

    def _look_now(self) -> Look:
        self._learn()
        begun = perf_counter()
        stage: Stage = self._view.stage(self._times)
        ids = [*(waiter.id for waiter in stage.scene.waiters), *stage.never]
        seen = starts(stage, ids, len(self._times))
        self._look = Look(stage.now, seen, perf_counter() - begun)
        return self._look

    # --- learning -------------------------------------------------------------------------------------------------

    def _learn(self) -> None:
        """Take in what has ended since; once in a second at most."""
        with self._learning:
            now = self._clock()
            if self._guesses_read and 0 <= now - self._learned_at < 1.0:
                return
            with self._database.read() as conn:
                self._take_in(conn, now)
            self._learned_at = now

    def _take_in(self, conn: Connection, now: float) -> None:
        if not self._guesses_read:
            self._guesses = {row.workload: Guess(*row) for row in rows.all(conn)}
            self._guesses_read = True
        if now < self._learned_at:  # the clock was set back: what ended since may seem to have ended long ago
            self._since = 0.0
        ended = rows.ended_runs(conn, self._since, MOST_RUNS if self._since else FIRST_READ)
        new = [ran for ran in ended if ran.workload not in self._known]
        if new:
            self._times = self._times.with_more(run_of(ran.owner, ran.spec, ran.seconds) for ran in new)
            self._known.update((ran.workload, None) for ran in new)
            self._known = dict.fromkeys(list(self._known)[-2 * FIRST_READ :])
        # Never later than now: a clock that was ahead for a while must not keep us from learning ever after.
        self._since = min(now, ended[-1].ended_at if ended else self._since)

    def open_guesses(self) -> Sequence[Guess]:
        """Those of which it is not known yet how long they waited."""
        self._learn()
        return [guess for guess in list(self._guesses.values()) if guess.waited is None]

    def guess(self, ids: Collection[str]) -> list[Guess]:
        """What is to be remembered of these, as they are seen now."""
        look = self._fresh()
        if look is None:
            return []
        calibration = self.calibration(look.at)
        made = []
        for id in ids:
            seen = look.seen.get(id)
            if seen is not None and seen.spread is not None and seen.spread.late > 0 and id not in self._guesses:
                late = calibration.corrected(seen.spread).late
                made.append(Guess(id, look.at, seen.spread.middle, seen.spread.late, late))
        return made

    def remember(self, made: Iterable[Guess], waited: dict[str, float | None]) -> None:
        """They are written down; count with them from now on."""
        self._calibration = (-inf, Calibration())
        for guess in made:
            self._guesses[guess.workload] = guess
        for id, seconds in waited.items():
            if seconds is None:
                self._guesses.pop(id, None)
            elif id in self._guesses:
                self._guesses[id] = self._guesses[id]._replace(waited=seconds)
        for id in sorted(self._guesses, key=lambda id: self._guesses[id].at)[: -rows.KEPT]:
            del self._guesses[id]
