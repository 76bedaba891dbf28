"""What one pass changes: every workload's first version, its newest one, and the story in between."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace

from gpuyard.domain.lifecycle import Event, advance, can
from gpuyard.domain.reasons import Reason
from gpuyard.domain.workload import StoryEvent, Workload
from gpuyard.scheduling.accounting import bill
from gpuyard.store import audit as audit_rows
from gpuyard.store import sharing as sharing_rows
from gpuyard.store import workloads as workload_rows
from gpuyard.store.audit import AuditEntry
from gpuyard.store.control_lock import ControlLock
from gpuyard.store.database import Database
from gpuyard.store.feed import has_other_changes, newest_change
from gpuyard.world.picture import Picture


class Outdated(Exception):
    """The cluster or the quotas changed while the pass was thinking: think again."""


class Changes:
    """Collects the transitions of one pass on top of the picture, then writes them all or none."""

    def __init__(self, picture: Picture) -> None:
        self._picture = picture
        self._before: dict[str, Workload] = {}
        self._after: dict[str, Workload] = {}
        self._story: dict[str, list[StoryEvent]] = {}
        self._trail: list[AuditEntry] = []

    def __bool__(self) -> bool:
        return bool(self._after)

    @property
    def ids(self) -> set[str]:
        return set(self._after)

    def now(self, id: str) -> Workload | None:
        return self._after.get(id) or self._picture.live.get(id)

    def apply(self, id: str, event: Event, at: float) -> Workload | None:
        """Advance a workload if its present state knows the event; an event that came too late is dropped."""
        workload = self.now(id)
        if workload is None or not can(workload, type(event)):
            return None
        step = advance(workload, event, at)
        if step.workload is not workload:
            self._before.setdefault(id, workload)
            self._after[id] = step.workload
        self.tell(id, step.story)
        return step.workload

    def tell(self, id: str, story: Iterable[StoryEvent]) -> None:
        """Add lines to a workload's story; one that is otherwise unchanged gets a new version for it."""
        lines = list(story)
        if not lines:
            return
        if id not in self._after:
            workload = self._picture.live[id]
            self._before[id], self._after[id] = workload, replace(workload, version=workload.version + 1)
        self._story.setdefault(id, []).extend(lines)

    def record(self, entry: AuditEntry) -> None:
        """What admins are told of a workload that changes; written if the change is."""
        self._trail.append(entry)

    def write(
        self, database: Database, lock: ControlLock, at: float, reasons: Mapping[str, Reason] | None = None
    ) -> list[str]:
        """One transaction; returns the ids of those that were left out because their owner changed them meanwhile.

        With reasons for those who wait it is the outcome of a plan, and raises Outdated when nodes, groups, users or
        policy changed since the picture was taken: a plan must hold against now. What an ended attempt has used is
        charged in the same breath.
        """
        picture, ids = self._picture, list(self._after)
        with database.write() as conn:
            lock.check(conn)
            before = newest_change(conn)
            moved = before != picture.position and has_other_changes(conn, picture.position, workload_rows.KIND)
            if moved and reasons is not None:
                raise Outdated
            past = sharing_rows.past_use(conn) if moved else picture.past  # groups may have been merged
            steps = [(self._before[id], self._after[id], self._story.get(id, ())) for id in ids]
            done = workload_rows.save_many(conn, steps)
            written = [(old, new) for (old, new, _), ok in zip(steps, done, strict=True) if ok]
            kept = {new.id for _, new in written}
            for entry in self._trail:
                if entry.object in kept:
                    audit_rows.append(conn, entry)
            charges = bill(written, past, picture.run_times, picture.policy.order)
            sharing_rows.charge(conn, charges.past)
            sharing_rows.add_run_times(conn, charges.run_times)
            if reasons:
                workload_rows.set_reasons(conn, reasons, at)
            upto = newest_change(conn)
        picture.charge(charges.past, charges.run_times)
        picture.wrote(before, upto, [new for _, new in written])
        return [id for id, ok in zip(ids, done, strict=True) if not ok]
