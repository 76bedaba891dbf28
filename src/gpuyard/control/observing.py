"""Looks at replicas: at those that may have changed, and at everything now and then."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from gpuyard.control.changes import Changes
from gpuyard.control.filling import GRACE_SECONDS
from gpuyard.control.launching import Launcher
from gpuyard.domain.lifecycle import Observed
from gpuyard.domain.reasons import Code, because
from gpuyard.domain.workload import Cause, Life, Replica, ReplicaId, Seen, State, Workload
from gpuyard.engines.seam import Engine
from gpuyard.world.picture import Picture

DOES_HARM = frozenset({Code.DISK_OVER, Code.KEPT_CARD})  # ended for it, and does it until it has ended
WATCHED = (State.STARTING, State.RUNNING, State.STOPPING)


class Observer:
    """Remembers at whom to look next, and whom it has asked to stop."""

    def __init__(self, engine: Engine, launcher: Launcher) -> None:
        self._engine = engine
        self._launcher = launcher
        self._look_at: dict[str, None] = {}  # workloads, in the order in which they came up
        self._stop_asked: dict[ReplicaId, float] = {}
        self._hurried: set[ReplicaId] = set()

    def look_at(self, ids: Iterable[str]) -> None:
        """These workloads are looked at in the next pass."""
        self._look_at.update(dict.fromkeys(ids))

    def look(self, changes: Changes, picture: Picture, now: float, most: int, *, full: bool) -> bool:
        """Tell the changes what the engine sees of the replicas that may have changed; of all in a full pass.

        True when so many have changed that some are left for the next pass.
        """
        changed = self._engine.changed()
        whole, self._look_at = self._look_at, {}
        if full or changed is None:
            whole, changed = {workload.id: None for workload in picture.in_state(*WATCHED)} | whole, frozenset()
        ids = whole | dict.fromkeys(sorted({id.workload for id in changed}))
        watched = [w for id in ids if (w := changes.now(id)) is not None and w.state in WATCHED]
        crews = [(w, self._crew(w, None if w.id in whole else changed)) for w in watched]
        asked = {replica.id: replica.handle for _, crew in crews for replica in crew}
        seen = self._engine.observe(asked) if asked else {}
        told = 0
        for number, (workload, crew) in enumerate(crews):
            news = _news(workload, crew, seen, now)
            if news:
                changes.apply(workload.id, Observed(news), now)
                told += len(news)
            if told >= most:
                self.look_at(left.id for left, _ in crews[number + 1 :])
                break
        return bool(self._look_at)

    def _crew(self, workload: Workload, changed: frozenset[ReplicaId] | None) -> list[Replica]:
        """Whose look would be news. An end is final. While stopping, absence counts only after this control has itself
        asked for the stop, and only that of all who are missing."""
        assert workload.attempt is not None
        crew = [replica for replica in workload.attempt.replicas if replica.seen.life is not Life.ENDED]
        if workload.state is State.STOPPING:
            if self._launcher.is_launching(workload):
                return []
            return [replica for replica in crew if replica.id in self._stop_asked]
        return crew if changed is None else [replica for replica in crew if replica.id in changed]

    def stop(self, workload: Workload, now: float, again_seconds: float) -> bool:
        """Ask its replicas to end, and again when that has led to nothing. True when somebody was asked."""
        assert workload.attempt is not None
        asked = False
        for replica in workload.attempt.replicas:
            asked_at = self._stop_asked.get(replica.id)
            if replica.seen.life is Life.ENDED:
                self._stop_asked.pop(replica.id, None)
            elif asked_at is None or now - asked_at >= again_seconds:
                self._engine.stop(replica.id, replica.handle, _grace(workload, is_hurried=replica.id in self._hurried))
                self._stop_asked[replica.id] = now
                asked = True
        if asked:
            self.look_at([workload.id])
        return asked

    def hurry(self, workload: Workload) -> None:
        """It stops and does harm meanwhile: ask again, at once, and wait no longer than for those that must end."""
        for replica in workload.attempt.replicas if workload.attempt else ():
            if replica.id not in self._hurried:
                self._hurried.add(replica.id)
                self._stop_asked.pop(replica.id, None)

    def forget(self, live: Mapping[str, Workload]) -> None:
        """Drop what was remembered of work that has gone."""
        self._stop_asked = {id: at for id, at in self._stop_asked.items() if id.workload in live}
        self._hurried = {id for id in self._hurried if id.workload in live}


def _grace(workload: Workload, *, is_hurried: bool = False) -> float:
    ending = workload.attempt.ending if workload.attempt else None
    does_harm = is_hurried or (ending is not None and ending.reason.code in DOES_HARM)
    return min(workload.spec.grace_seconds, GRACE_SECONDS) if does_harm else workload.spec.grace_seconds


def _news(workload: Workload, crew: list[Replica], seen: Mapping[ReplicaId, Seen], now: float) -> dict[ReplicaId, Seen]:
    """What differs from what is known. A replica that was launched and has left no trace is lost, unless we are
    stopping it anyway: then its absence is what we wait for."""
    if workload.state is State.STOPPING:
        return {replica.id: seen[replica.id] for replica in crew if replica.id in seen}
    found: dict[ReplicaId, Seen] = {}
    for replica in crew:
        look = seen.get(replica.id)
        if look is None:
            continue
        if look.life is Life.ABSENT:
            found[replica.id] = _lost(replica.id, now)
        elif look != replica.seen:
            found[replica.id] = look
    return found


def _lost(id: ReplicaId, now: float) -> Seen:
    return Seen(Life.ENDED, None, Cause.LOST, because(Code.SUPERVISOR_LOST, replica=id.short), None, now)
