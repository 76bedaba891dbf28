"""For those who look after the platform: health, the audit trail, a backup; and the published descriptions."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from typing import IO, Annotated, Any

from fastapi import Query, Request
from fastapi.responses import JSONResponse, Response, StreamingResponse

from gpuyard.access import audit
from gpuyard.access.rights import Action
from gpuyard.api import audit_models, models
from gpuyard.api.guard import Caller, Doors, needs
from gpuyard.api.parts import Parts
from gpuyard.api.views import instant
from gpuyard.dialects import native
from gpuyard.store import audit as trail
from gpuyard.store.backup import write_backup

doors = Doors(tags=["platform"])
COPY_BYTES = 1 << 18
AuditWord = Annotated[str | None, Query(max_length=200, pattern=models.PLAIN_PATTERN)]


@doors.get("/healthz", response_model=models.Health)
async def health(request: Request) -> Any:
    parts: Parts = request.app.state.parts
    return models.Health(status="ok", version=parts.version)


@doors.get("/api/v1/openapi.json", response_model=dict[str, Any])
async def describe(request: Request) -> Response:
    """This very description."""
    return JSONResponse(request.app.openapi())


@doors.get("/api/v1/schema/job.json", response_model=dict[str, Any])
async def job_schema() -> Response:
    """The JSON schema of job files, for editors."""
    return JSONResponse(native.job_schema())


@doors.get("/api/v1/audit", response_model=audit_models.AuditPage)
def audit_trail(
    caller: Annotated[Caller, needs(Action.SEE_AUDIT)],
    limit: Annotated[int, Query(ge=1, le=500)] = 100,
    cursor: Annotated[str | None, Query(pattern=models.COUNT_PATTERN)] = None,
    who: AuditWord = None,
    action: AuditWord = None,
    object: AuditWord = None,
    outcome: AuditWord = None,
) -> Any:
    """Who did what, newest first; only what has exactly these values, where some are named."""
    asked = {"who": who, "action": action, "object": object, "outcome": outcome}
    only = {name: value for name, value in asked.items() if value}
    with caller.parts.database.read() as conn:
        entries = trail.page(conn, int(cursor) if cursor else None, limit + 1, only=only)
    shown = entries[:limit]
    return audit_models.AuditPage(
        items=[
            audit_models.AuditOut(
                id=entry.id,
                at=instant(entry.at),
                who=entry.who,
                action=entry.action,
                object=entry.object,
                address=entry.address,
                outcome=entry.outcome,
                facts=dict(entry.facts),
            )
            for entry in shown
        ],
        next=str(shown[-1].id) if len(entries) > limit else None,
    )


@doors.get("/api/v1/audit/check", response_model=audit_models.AuditCheck)
def check_audit_trail(caller: Annotated[Caller, needs(Action.SEE_AUDIT)]) -> Any:
    """Is every line as it was written, and none missing? Reads the whole trail."""
    with caller.parts.database.read() as conn:
        broken_at = trail.verify(conn)
        newest = trail.page(conn, limit=1)
    return audit_models.AuditCheck(intact=broken_at is None, broken_at=broken_at, lines=newest[0].id if newest else 0)


@doors.post(
    "/api/v1/backup",
    response_class=StreamingResponse,
    responses={200: {"content": {"application/gzip": {"schema": {"type": "string", "format": "binary"}}}}},
)
def backup(caller: Annotated[Caller, needs(Action.BACK_UP)]) -> Response:
    """A whole copy of the database, as `yard restore` takes it. Made first and sent then: never half a file."""
    with caller.parts.database.write() as conn:
        audit.record(conn, caller.actor, Action.BACK_UP, "database", caller.now)
    file = tempfile.TemporaryFile(prefix="gpuyard-backup-")  # noqa: SIM115 - closed when it has been sent
    try:
        write_backup(caller.parts.database, file)
        size = file.tell()
        file.seek(0)
    except BaseException:
        file.close()
        raise
    headers = {"Content-Length": str(size), "Content-Disposition": 'attachment; filename="gpuyard-backup.gz"'}
    return StreamingResponse(_pieces(file), media_type="application/gzip", headers=headers)


def _pieces(file: IO[bytes]) -> Iterator[bytes]:
    with file:
        while piece := file.read(COPY_BYTES):
            yield piece
