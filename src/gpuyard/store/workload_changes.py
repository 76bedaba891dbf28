"""What a set of transitions means in rows, gathered first and written with one statement per kind of row."""

from __future__ import annotations

from collections.abc import Sequence

import sqlalchemy as sa

from gpuyard.domain.workload import Attempt, StoryEvent, Workload
from gpuyard.store import codec
from gpuyard.store.bulk import execute_many
from gpuyard.store.schema import attempts, replicas, story, workloads
from gpuyard.store.workload_rows import Row, attempt_row, changing_row, replica_row, story_row

# Keys that also name columns to be set need names of their own in an UPDATE; hence `its_`.
_update_workload = (
    sa.update(workloads)
    .where(workloads.c.id == sa.bindparam("its_id"), workloads.c.version == sa.bindparam("its_version"))
    .values(
        {
            name: sa.bindparam(name)
            for name in [
                "state",
                "wanted",
                "wanted_by",
                "reason",
                "version",
                "not_before",
                "retries_used",
                "attempt",
                "started_at",
                "ended_at",
                "exit_code",
            ]
        }
    )
)
_update_attempt = (
    sa.update(attempts)
    .where(attempts.c.workload_id == sa.bindparam("its_id"), attempts.c.number == sa.bindparam("its_number"))
    .values({name: sa.bindparam(name) for name in ("started_at", "ended_at", "ending", "saved_at", "saved_step")})
)
_update_replica = (
    sa.update(replicas)
    .where(
        replicas.c.workload_id == sa.bindparam("its_id"),
        replicas.c.attempt == sa.bindparam("its_attempt"),
        replicas.c.place == sa.bindparam("its_place"),
    )
    .values({name: sa.bindparam(name) for name in ("handle", "seen")})  # what it was given never changes
)
_insert_attempt = sa.insert(attempts)
_insert_replica = sa.insert(replicas)
_insert_story = sa.insert(story)


class Changes:
    """Rows to write, in the order in which they can be written."""

    def __init__(self) -> None:
        self.ids: list[str] = []
        self._workloads: list[Row] = []
        self._new_attempts: list[Row] = []
        self._attempts: list[Row] = []
        self._new_replicas: list[Row] = []
        self._replicas: list[Row] = []
        self._story: list[Row] = []

    def add(self, before: Workload, after: Workload, story: Sequence[StoryEvent]) -> None:
        """One transition. A change must show in the version, or the next writer could not notice it."""
        if after is not before:
            if after.version <= before.version:
                raise ValueError(f"{after.id} changed but its version did not grow")
            self._workloads.append({"its_id": before.id, "its_version": before.version, **changing_row(after)})
            self._add_attempt(before.attempt, after)
        self._story.extend(story_row(after.id, event) for event in story)
        self.ids.append(after.id)

    def write(self, conn: sa.Connection) -> None:
        for statement, rows in (
            (_update_workload, self._workloads),
            (_insert_attempt, self._new_attempts),
            (_update_attempt, self._attempts),
            (_insert_replica, self._new_replicas),
            (_update_replica, self._replicas),
            (_insert_story, self._story),
        ):
            execute_many(conn, statement, rows)

    def _add_attempt(self, old: Attempt | None, after: Workload) -> None:
        new = after.attempt
        if new is None or new is old:
            return
        if old is None or old.number != new.number:
            self._new_attempts.append(attempt_row(after.id, new))
            self._new_replicas.extend(replica_row(place, replica) for place, replica in enumerate(new.replicas))
            return
        if _of_its_own(old) != _of_its_own(new):
            self._attempts.append(_keyed(attempt_row(after.id, new), workload_id="its_id", number="its_number"))
        self._add_replicas(old, new)

    def _add_replicas(self, old: Attempt, new: Attempt) -> None:
        for place, (was, is_now) in enumerate(zip(old.replicas, new.replicas, strict=True)):
            if is_now is was or (is_now.handle == was.handle and is_now.seen == was.seen):
                continue
            row = {
                "its_id": is_now.id.workload,
                "its_attempt": is_now.id.attempt,
                "its_place": place,
                "handle": is_now.handle,
                "seen": codec.seen_to_text(is_now.seen),
            }
            self._replicas.append(row)


def _of_its_own(attempt: Attempt) -> tuple[object, ...]:
    """What of an attempt changes in its own row."""
    return (attempt.started_at, attempt.ended_at, attempt.ending, attempt.saved_at, attempt.saved_step)


def _keyed(row: Row, **names: str) -> Row:
    return {names.get(name, name): value for name, value in row.items() if name not in _NEVER_UPDATED}


_NEVER_UPDATED = frozenset({"created_at"})
