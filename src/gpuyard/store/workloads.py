"""Workloads: what was asked, what is wanted, what is seen, every attempt, and the story of it all.

Every change is guarded by the version the writer has seen, carries its story in the same transaction, and is told to
the feed.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import sqlalchemy as sa
from sqlalchemy.exc import IntegrityError

from gpuyard.domain.errors import Conflict
from gpuyard.domain.reasons import Code, Reason, because
from gpuyard.domain.workload import ENDED, Attempt, Kind, Spec, State, StoryEvent, Wanted, Workload
from gpuyard.store import codec
from gpuyard.store.bulk import execute_many
from gpuyard.store.feed import note_change, note_changes
from gpuyard.store.schema import LIVE, replicas, workloads, workplaces
from gpuyard.store.schema import attempts as attempt_rows
from gpuyard.store.schema import story as story_lines
from gpuyard.store.workload_changes import Changes
from gpuyard.store.workload_pages import EVERYTHING, Visibility, WorkloadFilter, page, resolve
from gpuyard.store.workload_rows import (
    WORKLOAD_COLUMNS,
    new_row,
    newest_attempts,
    read_attempts,
    read_story,
    read_workloads,
    story_row,
)

__all__ = [
    "EVERYTHING",
    "Visibility",
    "WorkloadFilter",
    "amend",
    "attempts",
    "count_live",
    "delete_ended_before",
    "find_by_key",
    "get",
    "get_many",
    "insert",
    "insert_many",
    "live",
    "live_query",
    "live_versions",
    "newest_specs",
    "page",
    "resolve",
    "save",
    "save_many",
    "set_reasons",
    "story",
    "want",
    "workdirs_named",
    "workplace_named",
]

KIND = "workload"  # as the change feed names them
_AT_ONCE = 400  # ids in one query: well below what either database takes

_insert_workload = sa.insert(workloads)
_insert_story = sa.insert(story_lines)
_wanted_of = sa.select(workloads.c.state, workloads.c.wanted, workloads.c.kind).where(
    workloads.c.id == sa.bindparam("its_id")
)
_live_query = sa.select(*WORKLOAD_COLUMNS).where(sa.text(LIVE)).order_by(workloads.c.submitted_at, workloads.c.id)
_newest_specs = sa.select(workloads.c.id, workloads.c.spec, workloads.c.submitted_at).order_by(
    workloads.c.submitted_at.desc(), workloads.c.id.desc()
)
_live_versions = sa.select(workloads.c.id, workloads.c.version).where(sa.text(LIVE))
_count_live = (
    sa.select(sa.func.count())
    .select_from(workloads)
    .where(sa.text(LIVE), workloads.c.owner == sa.bindparam("its_owner"))
)
_live_attempts = newest_attempts(sa.text(f"workloads.{LIVE}"))  # type: ignore[arg-type]
_by_ids = workloads.c.id.in_(sa.bindparam("ids", expanding=True))
_ids_query = sa.select(*WORKLOAD_COLUMNS).where(_by_ids)
_ids_attempts = newest_attempts(_by_ids)
_versions = sa.select(workloads.c.id, workloads.c.version).where(_by_ids)
_queued = (
    sa.select(workloads.c.id, workloads.c.reason, workloads.c.attempt)
    .where(_by_ids)
    .where(workloads.c.state == State.QUEUED.value)
)
_set_reason = (
    sa.update(workloads).where(workloads.c.id == sa.bindparam("its_id")).values(reason=sa.bindparam("new_reason"))
)


def insert(
    conn: sa.Connection,
    workload: Workload,
    story: Sequence[StoryEvent],
    *,
    idempotency_key: str | None = None,
    request_digest: str | None = None,
) -> None:
    """Remember a new workload. The database itself refuses a second one with the same key of the same owner."""
    try:
        conn.execute(_insert_workload, new_row(workload, idempotency_key, request_digest))
    except IntegrityError as error:
        raise Conflict(because(Code.ALREADY_THERE, what="workload", name=idempotency_key or workload.id)) from error
    if story:
        conn.execute(_insert_story, [story_row(workload.id, event) for event in story])
    note_change(conn, KIND, workload.id)


def insert_many(conn: sa.Connection, entries: Sequence[tuple[Workload, Sequence[StoryEvent]]]) -> None:
    """`insert` for many at once, without keys: three statements whatever the number."""
    try:
        execute_many(conn, _insert_workload, [new_row(workload, None, None) for workload, _ in entries])
    except IntegrityError as error:
        raise Conflict(because(Code.ALREADY_THERE, what="workload", name=entries[0][0].id)) from error
    execute_many(conn, _insert_story, [story_row(workload.id, event) for workload, story in entries for event in story])
    note_changes(conn, KIND, [workload.id for workload, _ in entries])


def find_by_key(conn: sa.Connection, owner: str, key: str) -> tuple[str, str] | None:
    """The workload submitted with this key, and the digest of what was sent then."""
    query = sa.select(workloads.c.id, workloads.c.request_digest).where(
        workloads.c.owner == owner, workloads.c.idempotency_key == key
    )
    row = conn.execute(query).first()
    return (row.id, row.request_digest or "") if row else None


def get(conn: sa.Connection, id: str) -> Workload | None:
    found = get_many(conn, [id])
    return found[0] if found else None


def get_many(conn: sa.Connection, ids: Sequence[str]) -> list[Workload]:
    """Those that exist, in the order asked for."""
    found: dict[str, Workload] = {}
    for some in _in_batches(ids):
        rows = conn.execute(_ids_query, {"ids": some}).all()
        started = [row.id for row in rows if row.attempt]  # new work has no attempt to look for
        newest = read_attempts(conn, *_ids_attempts, {"ids": started}) if started else []
        found.update((workload.id, workload) for workload in read_workloads(rows, newest))
    return [found[id] for id in dict.fromkeys(ids) if id in found]


def whose(conn: sa.Connection, ids: Sequence[str]) -> list[tuple[str, str, str]]:
    """(id, owner, group) of those that exist: enough to know who may hear of them."""
    query = sa.select(workloads.c.id, workloads.c.owner, workloads.c.group_name).where(_by_ids)
    found = [conn.execute(query, {"ids": some}) for some in _in_batches(ids)]
    return [(row.id, row.owner, row.group_name) for rows in found for row in rows]


def live_query() -> sa.Select[Any]:
    """The query behind `live`, for whoever wants to see how a database answers it."""
    return _live_query


def live(conn: sa.Connection) -> list[Workload]:
    """Everything that has not ended, oldest first, with its newest attempt. Costs nothing for what has ended."""
    rows = conn.execute(_live_query).all()
    return read_workloads(rows, read_attempts(conn, *_live_attempts, {}))


def newest_specs(conn: sa.Connection, most: int) -> list[tuple[str, Spec, float]]:
    """What was submitted last and when, ended or not, oldest first."""
    rows = conn.execute(_newest_specs.limit(most)).all()
    return [(row.id, codec.spec_from_text(row.spec), row.submitted_at) for row in reversed(rows)]


def live_versions(conn: sa.Connection) -> dict[str, int]:
    """The version of everything that has not ended: enough to see whether one knows it all."""
    return {row.id: row.version for row in conn.execute(_live_versions)}


def count_live(conn: sa.Connection, owner: str) -> int:
    """How many of this owner have not ended. Costs nothing for what has ended, nor for what others have."""
    return int(conn.execute(_count_live, {"its_owner": owner}).scalar_one())


def save(conn: sa.Connection, before: Workload, after: Workload, story: Sequence[StoryEvent]) -> bool:
    """Write what became of a workload, unless somebody else changed it since `before` was read: then False."""
    return save_many(conn, [(before, after, story)])[0]


def save_many(conn: sa.Connection, steps: Sequence[tuple[Workload, Workload, Sequence[StoryEvent]]]) -> list[bool]:
    """`save` for many at once: a handful of statements whatever the number.

    Versions are read first and compared here. Nobody can change them in between: this transaction is the only writer.
    """
    stored: dict[str, int] = {}
    for some in _in_batches([before.id for before, _, _ in steps]):
        stored.update((row.id, row.version) for row in conn.execute(_versions, {"ids": some}))
    collected = Changes()
    results = []
    for before, after, story in steps:
        fresh = stored.get(before.id) == before.version
        results.append(fresh)
        if fresh:
            collected.add(before, after, story)
            stored[before.id] = after.version
    collected.write(conn)
    note_changes(conn, KIND, collected.ids)
    return results


def set_reasons(conn: sa.Connection, reasons: Mapping[str, Reason], story_at: float) -> None:
    """Write why queued workloads wait. No new version and no news: nothing else about them changed.

    The story gets a line only when the kind of reason changed; a queue position that moves is not history.
    """
    updates, lines = [], []
    for some in _in_batches(list(reasons)):
        for row in conn.execute(_queued, {"ids": some}):
            reason = reasons[row.id]
            text = codec.reason_to_text(reason)
            if text == row.reason:
                continue
            updates.append({"its_id": row.id, "new_reason": text})
            if _is_news(codec.reason_from_text(row.reason).code, reason.code):
                lines.append(story_row(row.id, StoryEvent(story_at, reason, State.QUEUED, row.attempt)))
    execute_many(conn, _set_reason, updates)
    execute_many(conn, _insert_story, lines)


def _is_news(before: Code, now: Code) -> bool:
    """A retry has told of its pause already, so that the pause begins is no news."""
    return now is not before and (before, now) != (Code.RETRY, Code.BACK_OFF)


def want(conn: sa.Connection, id: str, wanted: Wanted, by: str, now: float) -> bool:
    """Write what the owner wants. False when there is no such workload or it has ended; control does the rest.
    The newest wish counts: of an environment that was to be started again once it has stopped, that is forgotten."""
    row = conn.execute(_wanted_of, {"its_id": id}).first()
    if row is None or State(row.state) in ENDED:
        return False
    if row.kind == Kind.ENV.value:
        conn.execute(sa.update(workplaces).where(workplaces.c.workload_id == id).values(again=None))
    if row.wanted == wanted.value:
        return True
    values = {"wanted": wanted.value, "wanted_by": by, "wanted_at": now, "version": workloads.c.version + 1}
    conn.execute(sa.update(workloads).where(workloads.c.id == id).values(values))
    note_change(conn, KIND, id)
    return True


def amend(
    conn: sa.Connection,
    before: Workload,
    spec: Spec,
    story: Sequence[StoryEvent],
    *,
    asked_at: float | None = None,
) -> bool:
    """It asks for something else; with `asked_at` also from then on, as if it were new. False when
    somebody changed it since `before` was read."""
    values: dict[str, Any] = {"spec": codec.spec_to_text(spec), "version": before.version + 1}
    if asked_at is not None:
        values |= {"submitted_at": asked_at, "retries_used": codec.retries_to_text({})}
    is_it = (workloads.c.id == before.id, workloads.c.version == before.version)
    if not conn.execute(sa.update(workloads).where(*is_it).values(values)).rowcount:
        return False
    if story:
        conn.execute(_insert_story, [story_row(before.id, event) for event in story])
    note_change(conn, KIND, before.id)
    return True


def workplace_named(conn: sa.Connection, owner: str, name: str) -> str | None:
    """The id of this owner's dev environment of that name, among those that were not removed."""
    query = sa.select(workloads.c.id).where(
        sa.text(LIVE), workloads.c.owner == owner, workloads.c.kind == Kind.ENV.value, workloads.c.name == name
    )
    return conn.execute(query.order_by(workloads.c.submitted_at.desc())).scalars().first()


def story(conn: sa.Connection, id: str) -> list[StoryEvent]:
    """Everything that happened to it, oldest first."""
    query = sa.select(story_lines).where(story_lines.c.workload_id == id).order_by(story_lines.c.id)
    return [read_story(row) for row in conn.execute(query)]


def attempts(conn: sa.Connection, id: str) -> list[Attempt]:
    """Every start of it, first to newest, with the replicas."""
    attempt_query = sa.select(attempt_rows).where(attempt_rows.c.workload_id == id).order_by(attempt_rows.c.number)
    replica_query = (
        sa.select(replicas).where(replicas.c.workload_id == id).order_by(replicas.c.attempt, replicas.c.place)
    )
    return [attempt for _, attempt in read_attempts(conn, attempt_query, replica_query, {})]


def delete_ended_before(conn: sa.Connection, moment: float, limit: int) -> list[str]:
    """Forget workloads that ended before a moment, the longest ended first. Returns their ids."""
    query = (
        sa.select(workloads.c.id)
        .where(workloads.c.ended_at < moment, workloads.c.state.in_([state.value for state in ENDED]))
        .order_by(workloads.c.ended_at)
        .limit(limit)
    )
    ids = list(conn.execute(query).scalars())
    for some in _in_batches(ids):
        conn.execute(sa.delete(workloads).where(_by_ids), {"ids": some})
    note_changes(conn, KIND, ids)
    return ids


def workdirs_named(conn: sa.Connection) -> set[tuple[str, str]]:
    """(owner, digest) of every shipped folder that a stored workload names: those must stay for a retry or a rerun."""
    query = sa.select(workloads.c.owner, workloads.c.spec).where(workloads.c.spec.contains('"workdir":"'))
    return {(row.owner, str(codec.from_text(row.spec)["workdir"])) for row in conn.execute(query)}


def _in_batches(ids: Sequence[str]) -> Iterator[Sequence[str]]:
    for start in range(0, len(ids), _AT_ONCE):
        yield ids[start : start + _AT_ONCE]
