"""A workload as rows and back: one row for itself, one per attempt, one per replica, one per line of its story."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import sqlalchemy as sa

from gpuyard.domain.workload import (
    Attempt,
    Replica,
    ReplicaId,
    State,
    StoryEvent,
    Wanted,
    Workload,
)
from gpuyard.store import codec
from gpuyard.store.schema import attempts, replicas, workloads

Row = dict[str, Any]

WORKLOAD_COLUMNS = [
    workloads.c[name]
    for name in [
        "id",
        "owner",
        "group_name",
        "spec",
        "submitted_at",
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
        "removed_at",
    ]
]


def new_row(workload: Workload, key: str | None, digest: str | None) -> Row:
    """What is written once, together with what changes."""
    return {
        "id": workload.id,
        "owner": workload.owner,
        "group_name": workload.group,
        "name": workload.spec.name,
        "kind": workload.spec.kind.value,
        "spec": codec.spec_to_text(workload.spec),
        "submitted_at": workload.submitted_at,
        "idempotency_key": key,
        "request_digest": digest,
        **changing_row(workload),
    }


def changing_row(workload: Workload) -> Row:
    return {
        "state": workload.state.value,
        "wanted": workload.wanted.value,
        "wanted_by": workload.wanted_by,
        "reason": codec.reason_to_text(workload.reason),
        "version": workload.version,
        "not_before": workload.not_before,
        "retries_used": codec.retries_to_text(workload.retries_used),
        "attempt": workload.attempts_made,
        "started_at": workload.started_at,
        "ended_at": workload.ended_at,
        "exit_code": workload.exit_code,
    }


def attempt_row(workload_id: str, attempt: Attempt) -> Row:
    return {
        "workload_id": workload_id,
        "number": attempt.number,
        "created_at": attempt.created_at,
        "started_at": attempt.started_at,
        "ended_at": attempt.ended_at,
        "ending": codec.ending_to_text(attempt.ending) if attempt.ending else None,
        "saved_at": attempt.saved_at,
        "saved_step": attempt.saved_step,
        "served_before": attempt.served_before,
        "kept_before": attempt.kept_before,
    }


def replica_row(place: int, replica: Replica) -> Row:
    return {
        "workload_id": replica.id.workload,
        "attempt": replica.id.attempt,
        "place": place,
        "role": replica.id.role,
        "role_index": replica.id.index,
        "allotment": codec.allotment_to_text(replica.allotment),
        "handle": replica.handle,
        "seen": codec.seen_to_text(replica.seen),
    }


def story_row(workload_id: str, event: StoryEvent) -> Row:
    return {
        "workload_id": workload_id,
        "at": event.at,
        "state": event.state.value,
        "attempt": event.attempt,
        "by_whom": event.by,
        "reason": codec.reason_to_text(event.reason),
    }


def read_story(row: Any) -> StoryEvent:
    return StoryEvent(row.at, codec.reason_from_text(row.reason), State(row.state), row.attempt, row.by_whom)


def read_workload(row: Any, newest: Mapping[str, Attempt]) -> Workload:
    return Workload(
        id=row.id,
        owner=row.owner,
        group=row.group_name,
        spec=codec.spec_from_text(row.spec),
        submitted_at=row.submitted_at,
        state=State(row.state),
        wanted=Wanted(row.wanted),
        wanted_by=row.wanted_by,
        reason=codec.reason_from_text(row.reason),
        version=row.version,
        not_before=row.not_before,
        retries_used=codec.retries_from_json(json.loads(row.retries_used)),
        attempt=newest.get(row.id),
        started_at=row.started_at,
        ended_at=row.ended_at,
        exit_code=row.exit_code,
        removed_at=row.removed_at,
    )


def read_attempts(
    conn: sa.Connection, attempt_query: sa.Select[Any], replica_query: sa.Select[Any], values: Mapping[str, Any]
) -> list[tuple[str, Attempt]]:
    """Attempts with their replicas, in the order of the first query. The second is ordered by place."""
    rows = conn.execute(attempt_query, values).all()
    if not rows:
        return []
    crew: dict[tuple[str, int], list[Replica]] = {}
    for row in conn.execute(replica_query, values):
        crew.setdefault((row.workload_id, row.attempt), []).append(_read_replica(row))
    return [(row.workload_id, _read_attempt(row, crew.get((row.workload_id, row.number), ()))) for row in rows]


def read_workloads(rows: Iterable[Any], newest: Sequence[tuple[str, Attempt]]) -> list[Workload]:
    by_workload = dict(newest)
    return [read_workload(row, by_workload) for row in rows]


def newest_attempts(condition: sa.ColumnElement[bool]) -> tuple[sa.Select[Any], sa.Select[Any]]:
    """Queries for the newest attempt, and its replicas, of the workloads that meet a condition."""
    its_attempt = sa.and_(attempts.c.workload_id == workloads.c.id, attempts.c.number == workloads.c.attempt)
    its_replicas = sa.and_(replicas.c.workload_id == workloads.c.id, replicas.c.attempt == workloads.c.attempt)
    return (
        sa.select(attempts).select_from(workloads.join(attempts, its_attempt)).where(condition),
        sa.select(replicas)
        .select_from(workloads.join(replicas, its_replicas))
        .where(condition)
        .order_by(replicas.c.workload_id, replicas.c.attempt, replicas.c.place),
    )


def _read_attempt(row: Any, crew: Sequence[Replica]) -> Attempt:
    ending = codec.ending_from_text(row.ending) if row.ending else None
    times = (row.started_at, row.ended_at, row.saved_at, row.saved_step, row.served_before, row.kept_before)
    return Attempt(row.number, row.created_at, tuple(crew), ending, *times)


def _read_replica(row: Any) -> Replica:
    id = ReplicaId(row.workload_id, row.attempt, row.role, row.role_index)
    return Replica(id, codec.allotment_from_text(row.allotment), row.handle, codec.seen_from_text(row.seen))
