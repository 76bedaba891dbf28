"""Compare what is wanted with what is there, and act. Woken by the change feed and by the engine.

A full pass now and then looks at everything again, so that a missed wake-up costs seconds, not for ever.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable
from concurrent.futures import Executor
from dataclasses import replace
from pathlib import Path

from gpuyard.control.changes import Changes, Outdated, changed_reasons
from gpuyard.control.launching import Launcher, LaunchResult, render
from gpuyard.domain.cluster import Node
from gpuyard.domain.errors import Unavailable
from gpuyard.domain.lifecycle import (
    Launched,
    LaunchFailed,
    Observed,
    PauseAsked,
    Placed,
    ResumeAsked,
    StopAsked,
    TimeUp,
)
from gpuyard.domain.reasons import Code, because
from gpuyard.domain.workload import Cause, Life, ReplicaId, Seen, State, StoryEvent, Wanted, Workload
from gpuyard.engines.seam import Engine
from gpuyard.scheduling.plan import plan
from gpuyard.settings import ControlSettings
from gpuyard.store import nodes as node_rows
from gpuyard.store import workloads as workload_rows
from gpuyard.store.control_lock import ControlLock, LostControl
from gpuyard.store.database import Database
from gpuyard.world.picture import Picture

log = logging.getLogger(__name__)

WATCHED = frozenset({State.STARTING, State.RUNNING, State.STOPPING})
# After a pass the loop rests about as long as the pass took, so that a burst is taken in few large passes and the api
# keeps its share of the processor; never so long that a person would notice.
LEAST_REST_SECONDS, MOST_REST_SECONDS = 0.002, 0.05


class Control:
    """One control serves the platform; the lock in the database says which."""

    def __init__(
        self,
        database: Database,
        lock: ControlLock,
        engine: Engine,
        executor: Executor,
        clock: Callable[[], float],
        settings: ControlSettings,
        workdir_path: Callable[[str, str], Path],
    ) -> None:
        self._database = database
        self._lock = lock
        self._engine = engine
        self._clock = clock
        self._settings = settings
        self._workdir_path = workdir_path
        self._woken = threading.Event()
        self._over = threading.Event()
        self._launcher = Launcher(engine, executor, self._woken.set)
        self._stop_asked: dict[ReplicaId, float] = {}
        self._engine_nodes: tuple[Node, ...] = ()
        self._next_full_pass = self._next_sweep = self._next_audit = 0.0
        self._adopting = True
        self.picture = Picture(database)
        self.watched: tuple[ReplicaId, ...] = ()  # replicas that live, for the sampler; replaced whole

    # --- the thread ------------------------------------------------------------------------------------------------

    def run(self) -> None:
        """Until `end` is called or another control has taken over."""
        unsubscribe = self._database.feed.subscribe(self._woken.set)
        self._engine.on_change(self._woken.set)
        try:
            while not self._over.is_set():
                self._one_round()
        except LostControl:
            log.error("another control has taken over; this one ends")
        finally:
            unsubscribe()

    def end(self) -> None:
        self._over.set()
        self._woken.set()

    def _one_round(self) -> None:
        self._woken.clear()
        begun = self._clock()
        try:
            self.step()
        except Unavailable as busy:
            log.warning("the store is not available: %s; trying again", busy)
            self._over.wait(0.5)
            return
        except LostControl:
            raise
        except Exception:
            # One broken workload must not stop the platform: the pass is repeated, the fault stays in the log.
            log.exception("a pass of the control loop failed")
            self._over.wait(1.0)
            return
        self._over.wait(min(MOST_REST_SECONDS, max(LEAST_REST_SECONDS, self._clock() - begun)))
        self._woken.wait(self._seconds_to_next_moment())

    def _seconds_to_next_moment(self) -> float:
        """How long nothing is due: until a back-off or a maximum duration is over, or the next full pass."""
        now = self._clock()
        moments = [self._next_full_pass]
        for workload in self.picture.live.values():
            if workload.state is State.QUEUED and workload.not_before > now:
                moments.append(workload.not_before)
            elif workload.state is State.RUNNING and workload.spec.max_seconds and workload.attempt:
                moments.append((workload.attempt.started_at or now) + workload.spec.max_seconds)
        return max(0.0, min(moments) - now)

    # --- one pass --------------------------------------------------------------------------------------------------

    def step(self) -> None:
        """One pass. Safe to repeat, safe to lose."""
        now = self._clock()
        full = now >= self._next_full_pass
        self.picture.follow()
        if full:
            self._next_full_pass = now + self._settings.full_pass_seconds
            self._lock.renew(self._database)
            self._look_at_nodes(now)
        changes = Changes(self.picture)
        self._adopt(changes, now)
        self._take_launch_results(changes, now)
        self._heed_wishes(changes, now)
        self._look_at_replicas(changes, now)
        self._watch_durations(changes, now)
        if changes:
            self._write(changes)
            self._look_at_nodes(now)
        self._place(now)
        self._carry_out(now)
        if full:
            self._sweep_and_audit(now)
        self.watched = tuple(
            r.id for w in self.picture.live.values() if w.state in WATCHED and w.attempt for r in w.attempt.replicas
        )

    def _write(self, changes: Changes) -> bool:
        try:
            changes.write(self._database, self._lock)
        except Outdated:
            self._woken.set()
            return False
        return True

    def _look_at_nodes(self, now: float) -> None:
        """Ask the engine which machines and cards there are. Only news is written."""
        nodes = tuple(self._engine.nodes())
        if nodes == self._engine_nodes:
            return
        with self._database.write() as conn:
            self._lock.check(conn)
            node_rows.save(conn, nodes, now)
        self._engine_nodes = nodes
        self.picture.follow()

    def _adopt(self, changes: Changes, now: float) -> None:
        """The first pass of a new control says in each story that the work went on without it."""
        if not self._adopting:
            return
        self._adopting = False
        for workload in self.picture.live.values():
            if workload.state in (State.STARTING, State.RUNNING):
                reason = because(Code.ADOPTED, attempt=workload.attempts_made)
                changes.tell(workload.id, [StoryEvent(now, reason, workload.state, workload.attempts_made)])

    def _take_launch_results(self, changes: Changes, now: float) -> None:
        for result in self._launcher.results():
            workload = changes.now(result.workload)
            if workload is None or workload.attempts_made != result.attempt or result.unsure:
                continue
            self._take_launch_result(changes, result, now)

    def _take_launch_result(self, changes: Changes, result: LaunchResult, now: float) -> None:
        if result.failed is not None:
            log.warning("launching %s failed: %s", result.failed, result.detail)
            changes.apply(result.workload, LaunchFailed(result.failed, result.detail), now)
        else:
            changes.apply(result.workload, Launched(result.handles), now)

    def _heed_wishes(self, changes: Changes, now: float) -> None:
        for workload in list(self.picture.live.values()):
            if workload.wanted is Wanted.STOP:
                changes.apply(workload.id, StopAsked(workload.wanted_by), now)
            elif workload.wanted is Wanted.PAUSE and workload.state is not State.STOPPING:
                changes.apply(workload.id, PauseAsked(workload.wanted_by), now)
            elif workload.wanted is Wanted.RUN and workload.state is State.PAUSED:
                changes.apply(workload.id, ResumeAsked(workload.wanted_by), now)

    def _look_at_replicas(self, changes: Changes, now: float) -> None:
        watched = [w for id in self.picture.live if (w := changes.now(id)) is not None and w.state in WATCHED]
        asked = {
            r.id: r.handle for w in watched if w.attempt for r in w.attempt.replicas if self._is_news(w, r.id, r.seen)
        }
        if not asked:
            return
        seen = self._engine.observe(asked)
        for workload in watched:
            assert workload.attempt is not None
            mine = {r.id: seen[r.id] for r in workload.attempt.replicas if r.id in seen}
            if mine:
                changes.apply(workload.id, Observed(self._believed(workload, mine, now)), now)

    def _is_news(self, workload: Workload, id: ReplicaId, seen: Seen) -> bool:
        """An end is final. While stopping, absence counts only after this control has itself asked for the stop."""
        if workload.state is State.STOPPING and (id not in self._stop_asked or self._launcher.is_launching(workload)):
            return False
        return seen.life is not Life.ENDED

    def _believed(self, workload: Workload, seen: dict[ReplicaId, Seen], now: float) -> dict[ReplicaId, Seen]:
        """A replica that was launched and has left no trace is lost, unless we are stopping it anyway."""
        if workload.state is State.STOPPING:
            return seen
        return {id: _lost(id, now) if look.life is Life.ABSENT else look for id, look in seen.items()}

    def _watch_durations(self, changes: Changes, now: float) -> None:
        for id in list(self.picture.live):
            workload = changes.now(id)
            if workload is None or workload.state is not State.RUNNING or workload.spec.max_seconds is None:
                continue
            attempt = workload.attempt
            if attempt is not None and attempt.started_at and now - attempt.started_at >= workload.spec.max_seconds:
                changes.apply(id, TimeUp(), now)

    # --- placing ---------------------------------------------------------------------------------------------------

    def _place(self, now: float) -> None:
        """Plan on the picture, write what the plan gives, and tell the others why they wait."""
        snapshot = self.picture.snapshot(now)
        if not snapshot.queue:
            return
        outcome = plan(snapshot)
        if outcome.placements:
            changes = Changes(self.picture)
            for placement in outcome.placements:
                changes.apply(placement.workload, Placed(placement.allotments), now)
                changes.tell(placement.workload, self._labels(changes, placement.workload, now))
            if not self._write(changes):
                return
        news = changed_reasons(self.picture, outcome.waiting.items())
        if news:
            with self._database.write() as conn:
                self._lock.check(conn)
                workload_rows.set_reasons(conn, news, now)
            for id, reason in news.items():
                self.picture.live[id] = replace(self.picture.live[id], reason=reason)

    def _labels(self, changes: Changes, id: str, now: float) -> list[StoryEvent]:
        """Simulated cards are said to be simulated in every story that gets them."""
        workload = changes.now(id)
        if workload is None or workload.attempt is None:
            return []
        count = sum(len(r.allotment.cards) for r in workload.attempt.replicas if r.allotment.simulated)
        if not count:
            return []
        reason = because(Code.CARDS_SIMULATED, cards=count)
        return [StoryEvent(now, reason, workload.state, workload.attempts_made)]

    # --- carrying out ----------------------------------------------------------------------------------------------

    def _carry_out(self, now: float) -> None:
        """Launch what is placed, stop what is stopping. Both may be asked for again and again."""
        for workload in list(self.picture.live.values()):
            if workload.state is State.PLACED:
                self._launch(workload)
            elif workload.state is State.STOPPING and not self._launcher.is_launching(workload):
                self._stop(workload, now)

    def _launch(self, workload: Workload) -> None:
        assert workload.attempt is not None
        if self._launcher.is_launching(workload):
            return
        digest = workload.spec.workdir
        workdir = self._workdir_path(workload.owner, digest) if digest else None
        users, groups = self.picture.users, self.picture.groups
        requests = [render(workload, r, users, groups, workdir) for r in workload.attempt.replicas]
        self._launcher.begin(workload, requests)

    def _stop(self, workload: Workload, now: float) -> None:
        assert workload.attempt is not None
        for replica in workload.attempt.replicas:
            asked_at = self._stop_asked.get(replica.id)
            if replica.seen.life is Life.ENDED:
                self._stop_asked.pop(replica.id, None)
            elif asked_at is None or now - asked_at >= self._settings.stop_again_seconds:
                self._engine.stop(replica.id, replica.handle, workload.spec.grace_seconds)
                self._stop_asked[replica.id] = now
                self._woken.set()

    def _sweep_and_audit(self, now: float) -> None:
        if now >= self._next_sweep:
            self._next_sweep = now + self._settings.sweep_seconds
            known = [r.id for w in self.picture.live.values() if w.attempt for r in w.attempt.replicas]
            for id in self._engine.sweep(known):
                log.warning("ended %s: it ran, but nobody wanted it", id)
            self._stop_asked = {id: at for id, at in self._stop_asked.items() if id.workload in self.picture.live}
        if now >= self._next_audit:
            self._next_audit = now + self._settings.audit_seconds
            for difference in self.picture.audit():
                log.error("the picture disagreed with the store and was repaired: %s", difference)


def _lost(id: ReplicaId, now: float) -> Seen:
    return Seen(Life.ENDED, None, Cause.LOST, because(Code.SUPERVISOR_LOST, replica=id.short), None, now)
