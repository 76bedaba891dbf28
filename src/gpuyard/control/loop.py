"""Compare what is wanted with what is there, and act. Woken by the change feed and by the engine.

A pass costs what changed, not what lives. A full pass now and then looks at everything again, so that a missed wake-up
costs seconds, not for ever; one follows at once when a pass failed, because what it knew of changes is lost with it.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable
from concurrent.futures import Executor
from pathlib import Path

from gpuyard.control.changes import Changes, Outdated
from gpuyard.control.filling import FillingWatch
from gpuyard.control.holding import HoldingWatch, audited
from gpuyard.control.job_keys import JobKeys
from gpuyard.control.launching import Launcher, LaunchResult, render
from gpuyard.control.ledgering import CardLedger
from gpuyard.control.metering import CardMeter
from gpuyard.control.observing import WATCHED, Observer
from gpuyard.control.placing import decided
from gpuyard.control.progress import ProgressWatch
from gpuyard.control.resting import BusyWatch, due, environments
from gpuyard.control.telling import Teller
from gpuyard.domain.cluster import Node
from gpuyard.domain.errors import Unavailable
from gpuyard.domain.lifecycle import (
    Launched,
    LaunchFailed,
    Overflowed,
    PauseAsked,
    Rested,
    ResumeAsked,
    Saved,
    StopAsked,
    TimeUp,
    can,
)
from gpuyard.domain.reasons import Code, because
from gpuyard.domain.workload import Kind, ReplicaId, State, StoryEvent, Wanted, Workload
from gpuyard.engines.seam import Engine, LaunchRequest, MakesRooms, MeasuresDisk, NamesHolders
from gpuyard.journal.events import Decided, NoNotes, Notes
from gpuyard.scheduling.plan import decide
from gpuyard.settings import ControlSettings
from gpuyard.store import nodes as node_rows
from gpuyard.store import workplaces
from gpuyard.store.control_lock import ControlLock, LostControl
from gpuyard.store.database import Database
from gpuyard.store.workplaces import Workplace
from gpuyard.world.picture import Picture

log = logging.getLogger(__name__)

# After a pass the loop rests for part of the time the pass took, so that a burst is taken in few large passes and the
# api keeps its share of the processor; never so long that a person would notice.
LEAST_REST_SECONDS, MOST_REST_SECONDS, REST = 0.002, 0.02, 0.25
# A pass takes in, observes and places so much at most: a flood must not keep a wish or a small job waiting for long.
FOLLOWED_AT_ONCE, OBSERVED_AT_ONCE, PLACED_AT_ONCE = 2000, 1000, 1000


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
        keys: JobKeys,
        notes: Notes | None = None,
    ) -> None:
        self._database = database
        self._notes: Notes = notes or NoNotes()  # the journal: it is told all that decisions are made from
        self._lock = lock
        self._engine = engine
        self._clock = clock
        self._settings = settings
        self._workdir_path = workdir_path
        self._woken = threading.Event()
        self._over = threading.Event()
        self._launcher = Launcher(engine, executor, self._woken.set, keys)
        self._observer = Observer(engine, self._launcher)
        self._teller = Teller()
        self._engine_nodes: tuple[Node, ...] = ()
        self._next_full_pass = self._next_sweep = self._next_audit = 0.0
        self._adopting = True
        self._filling = FillingWatch()
        self._holding = HoldingWatch(settings.held_card_seconds)
        self.picture = Picture(database, self._notes, decides=True)
        self.busy = BusyWatch(clock())  # the sampler tells it what replicas use
        self.cards = CardMeter()  # and which of their cards are busy
        self.ledger = CardLedger(database, lock, self.cards, settings.ledger_seconds)
        self.progress = ProgressWatch(engine, settings.progress_seconds)  # a thread of its own runs it
        self.watched: tuple[ReplicaId, ...] = ()  # replicas that live, for the sampler; replaced whole now and then

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
            self._begin_again()
            self._over.wait(0.5)
            return
        except LostControl:
            raise
        except Exception:
            # One broken workload must not stop the platform: the pass is repeated, the fault stays in the log.
            log.exception("a pass of the control loop failed")
            self._begin_again()
            self._over.wait(1.0)
            return
        self._over.wait(min(MOST_REST_SECONDS, max(LEAST_REST_SECONDS, REST * (self._clock() - begun))))
        self._woken.wait(self._seconds_to_next_moment())

    def _begin_again(self) -> None:
        """What a pass that failed had taken in must not be lost: the next one looks at everything."""
        self._next_full_pass = 0.0
        self.picture.close_books()

    def _seconds_to_next_moment(self) -> float:
        """How long nothing is due: until a back-off or a maximum duration is over, or the next full pass."""
        moment = self.picture.next_moment()
        next_moment = self._next_full_pass if moment is None else min(moment, self._next_full_pass)
        return max(0.0, next_moment - self._clock())

    # --- one pass --------------------------------------------------------------------------------------------------

    def step(self) -> None:
        """One pass. Safe to repeat, safe to lose."""
        now = self._clock()
        full = now >= self._next_full_pass
        if self.picture.follow(FOLLOWED_AT_ONCE):
            self._woken.set()
        if full:
            self._next_full_pass = now + self._settings.full_pass_seconds
            self._lock.renew(self._database)
            self._look_at_nodes(now)
        changes = Changes(self.picture)
        self._adopt(changes, now)
        self._take_launch_results(changes, now)
        if self._observer.look(changes, self.picture, now, OBSERVED_AT_ONCE, full=full):
            self._woken.set()
        for id, progress in self.progress.take().items():
            changes.apply(id, Saved(progress.saved_at, progress.step), now)
        self._heed_wishes(changes, now, full=full)
        self._watch_durations(changes, now, full=full)
        if full:
            self._rest_environments(changes, now)
            self._bound_disks(changes, now)
            self._free_held_cards(changes, now)
        resting = self._resting(changes, full=full)
        if changes:
            self._observer.look_at(changes.write(self._database, self._lock, now))
            self._look_at_nodes(now)
        self._start_again(resting, now)
        self._place(now)
        self._notes.hand_over(now)
        self._carry_out(now)
        if full:
            self._sweep_and_audit(now)
            self.progress.watch(self.picture.in_state(State.RUNNING, State.QUEUED), now)
            self.watched = tuple(
                r.id for w in self.picture.in_state(*WATCHED) if w.attempt is not None for r in w.attempt.replicas
            )
        self.ledger.look(self.picture, now)

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
        for workload in self.picture.in_state(State.STARTING, State.RUNNING):
            reason = because(Code.ADOPTED, attempt=workload.attempts_made)
            changes.tell(workload.id, [StoryEvent(now, reason, workload.state, workload.attempts_made)])

    def _take_launch_results(self, changes: Changes, now: float) -> None:
        for (id, attempt), reason in self._launcher.waits():
            workload = changes.now(id)
            if workload is not None and workload.attempts_made == attempt and workload.state is State.PLACED:
                changes.tell(id, [StoryEvent(now, reason, workload.state, attempt)])
        for result in self._launcher.results():
            workload = changes.now(result.workload)
            if workload is None or workload.attempts_made != result.attempt or result.unsure:
                continue
            self._take_launch_result(changes, result, now)

    def _take_launch_result(self, changes: Changes, result: LaunchResult, now: float) -> None:
        if result.failed is not None:
            log.warning("launching %s failed: %s", result.failed, result.detail)
            changes.apply(result.workload, LaunchFailed(result.failed, result.detail, result.reason), now)
        else:
            changes.apply(result.workload, Launched(result.handles), now)
        self._observer.look_at([result.workload])

    def _heed_wishes(self, changes: Changes, now: float, *, full: bool) -> None:
        """After the look, so that what has just come back into the queue is not placed against its owner's wish."""
        news = self.picture.take_news()
        for id in list(self.picture.live) if full else news | changes.ids:
            workload = changes.now(id)
            if workload is None:
                continue
            if workload.wanted is Wanted.STOP:
                changes.apply(id, StopAsked(workload.wanted_by), now)
            elif workload.wanted is Wanted.PAUSE and workload.state is not State.STOPPING:
                changes.apply(id, PauseAsked(workload.wanted_by), now)
            elif workload.wanted is Wanted.RUN and workload.state is State.PAUSED:
                changes.apply(id, ResumeAsked(workload.wanted_by), now)

    def _resting(self, changes: Changes, *, full: bool) -> list[str]:
        """Environments that have just come to rest; in a full pass all that rest."""
        found = (changes.now(id) for id in (list(self.picture.live) if full else changes.ids))
        return [w.id for w in found if w and w.spec.kind is Kind.ENV and w.state is State.PAUSED]

    def _start_again(self, resting: list[str], now: float) -> None:
        """Some were stopped only to be started again: that is written as their owners' wish, and the feed tells."""
        if not resting:
            return
        with self._database.read() as conn:
            again = [id for id, place in workplaces.get_many(conn, resting).items() if place.restarting]
        if again:
            with self._database.write() as conn:
                self._lock.check(conn)
                workplaces.start_those_that_stopped(conn, again, now)

    def _watch_durations(self, changes: Changes, now: float, *, full: bool) -> None:
        due = self.picture.due(now)
        for id in [workload.id for workload in self.picture.in_state(State.RUNNING)] if full else due:
            workload = changes.now(id)
            if workload is None or workload.state is not State.RUNNING or workload.spec.max_seconds is None:
                continue
            attempt = workload.attempt
            if attempt is not None and attempt.started_at and now - attempt.started_at >= workload.spec.max_seconds:
                changes.apply(id, TimeUp(), now)

    def _rest_environments(self, changes: Changes, now: float) -> None:
        """Stop those that nobody uses or whose timer has run out; tell the owners of those that will be."""
        running = environments(self.picture.in_state(State.RUNNING))
        if not running:
            return
        with self._database.read() as conn:
            places = workplaces.get_many(conn, [env.id for env in running])
        for env in running:
            replicas = [replica.id for replica in env.attempt.replicas] if env.attempt else []
            found = due(env, places.get(env.id, Workplace()), self.busy.busy_at(replicas), now)
            if found is not None and found.stops:
                changes.apply(env.id, Rested(found.reason), now)
            elif found is not None:
                with self._database.write() as conn:
                    workplaces.warned(conn, env.id, now)
                changes.tell(env.id, [StoryEvent(now, found.reason, env.state, env.attempts_made)])

    def _bound_disks(self, changes: Changes, now: float) -> None:
        if not isinstance(self._engine, MeasuresDisk):
            return
        for filling in self._filling.due(self._engine.disk_use()):
            workload = changes.now(filling.replica.workload)
            is_it = workload is not None and workload.attempts_made == filling.replica.attempt
            if workload is None or not is_it or not can(workload, Overflowed):
                continue
            if filling.ends:
                changes.apply(workload.id, Overflowed(filling.reason), now)
            else:
                changes.tell(workload.id, [StoryEvent(now, filling.reason, workload.state, workload.attempts_made)])

    def _free_held_cards(self, changes: Changes, now: float) -> None:
        """Who holds what it was not given is told, then ended; one that stops already is not waited for any longer."""
        if not isinstance(self._engine, NamesHolders):
            return
        has_rooms = isinstance(self._engine, MakesRooms) and self._engine.makes_rooms
        for holding in self._holding.due(self._engine.holders(), changes.now, has_rooms=has_rooms):
            workload = changes.now(holding.workload)
            if workload is None or workload.state not in WATCHED:
                continue
            if holding.ends and workload.state is State.STOPPING:
                self._observer.hurry(workload)
                continue
            if holding.ends:
                changes.apply(workload.id, Overflowed(holding.reason), now)
            else:
                changes.tell(workload.id, [StoryEvent(now, holding.reason, workload.state, workload.attempts_made)])
            changes.record(audited(holding, now))
            log.warning("%s holds cards that it was not given: %s", workload.id, dict(holding.reason.facts))

    # --- placing ---------------------------------------------------------------------------------------------------

    def _place(self, now: float) -> None:
        """Decide on the picture, write who starts and who makes room, and tell the others why they wait."""
        if not self.picture.has_queue:
            return
        if self._notes.wants_all:
            self.picture.tell_all()
        look = self.ledger.see if self.ledger.wants_to_see(now) else None
        plan = decide(self.picture.books, now, news_only=True, most=PLACED_AT_ONCE, look=look)
        self._notes.add(Decided(now, plan, PLACED_AT_ONCE))
        self._teller.add(plan.waiting, self.picture.live)
        self.picture.told(plan.waiting)
        changes = decided(self.picture, plan, now)
        reasons = self._teller.choose(self.picture.live, now)
        if changes or reasons:
            try:
                changes.write(self._database, self._lock, now, reasons)
            except Outdated:
                self._begin_again()
                self._woken.set()
                return
            self._teller.told(reasons)
        if self._teller.has_news or sum(len(p.allotments) for p in plan.placements) >= PLACED_AT_ONCE:
            self._woken.set()  # there is more than one pass takes

    # --- carrying out ----------------------------------------------------------------------------------------------

    def _carry_out(self, now: float) -> None:
        """Launch what is placed, stop what is stopping. Both may be asked for again and again."""
        placed = [w for w in self.picture.in_state(State.PLACED) if not self._launcher.is_launching(w)]
        self._launcher.begin([(workload, self._requests(workload)) for workload in placed])
        for workload in self.picture.in_state(State.STOPPING):
            if self._launcher.is_launching(workload) and not self._launcher.withdraw(workload):
                continue
            if self._observer.stop(workload, now, self._settings.stop_again_seconds):
                self._woken.set()

    def _requests(self, workload: Workload) -> list[LaunchRequest]:
        assert workload.attempt is not None
        digest = workload.spec.workdir
        workdir = self._workdir_path(workload.owner, digest) if digest else None
        users, groups, common = self.picture.users, self.picture.groups, self._settings.workload_env
        return [render(workload, replica, users, groups, workdir, common) for replica in workload.attempt.replicas]

    def _sweep_and_audit(self, now: float) -> None:
        if now >= self._next_sweep:
            self._next_sweep = now + self._settings.sweep_seconds
            known = [r.id for w in self.picture.live.values() if w.attempt for r in w.attempt.replicas]
            for id in self._engine.sweep(known):
                log.warning("ended %s: it ran, but nobody wanted it", id)
            self._observer.forget(self.picture.live)
        if now >= self._next_audit:
            self._next_audit = now + self._settings.audit_seconds
            for difference in self.picture.audit():
                log.error("the picture disagreed with the store and was repaired: %s", difference)
