"""The output of every attempt and replica: read by byte offset, or followed live."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Annotated, Any

from fastapi import Header, Query, Request
from fastapi.responses import Response, StreamingResponse
from starlette.concurrency import run_in_threadpool

from gpuyard.access import rights
from gpuyard.access.rights import Action, Work
from gpuyard.api import models
from gpuyard.api.finding import find_workload, require_attempt
from gpuyard.api.following import Follow, Followers, FollowResponse, Sight, whole_characters
from gpuyard.api.guard import Caller, Doors, credentials_of, needs
from gpuyard.api.workloads import AttemptNumber, Ref
from gpuyard.domain.errors import NotFound, Unavailable, YardError
from gpuyard.domain.reasons import Code, because
from gpuyard.domain.workload import ENDED, Life, ReplicaId, Spec, Workload
from gpuyard.engines.logs import Chunk, Gap, LogFile
from gpuyard.store import workloads as rows

doors = Doors(prefix="/api/v1", tags=["logs"])
Seeing = Annotated[Caller, needs(Action.SEE_WORKLOAD)]
REPLICA_RULE = re.compile(r"([a-z][a-z0-9]{0,15})-([0-9]{1,6})")
NAMED_SINGLY = 4
MOST_BYTES = 4 << 20
MOST_OFFSET = 1 << 53
DOWNLOAD_BYTES = 1 << 20

# Checked by hand, so that the answer to a wrong one can say which there are.
REPLICA_PATTERN = r"^[a-z][a-z0-9]{0,15}-[0-9]{1,6}$"
ReplicaName = Annotated[
    str | None,
    Query(description="like worker-0; left out: the first", json_schema_extra={"pattern": REPLICA_PATTERN}),
]
Offset = Annotated[int | None, Query(ge=0, le=MOST_OFFSET, description="byte to begin with")]
Tail = Annotated[int | None, Query(ge=0, le=100_000, description="begin this many lines before the end")]


@dataclass(frozen=True, slots=True)
class Wanted:
    """Which log is asked for. attempt is None as long as there is none."""

    workload: str
    attempt: int | None
    role: str
    index: int

    @property
    def replica(self) -> ReplicaId | None:
        return None if self.attempt is None else ReplicaId(self.workload, self.attempt, self.role, self.index)


LOG_HEADERS = {
    "X-Log-Start": "first byte of this answer",
    "X-Log-End": "byte after the last one of this answer: the offset to go on with",
    "X-Log-Size": "size of the log now",
    "X-Log-Ended": "true once nothing more will come",
    "X-Log-Gap": "first byte of the dropped middle and the byte after it, like 400-900; left out: there is none",
}
LOG_ANSWER: dict[int | str, dict[str, Any]] = {
    200: {
        "description": "The bytes as UTF-8 text; what is not UTF-8 is replaced.",
        "content": {
            "text/plain": {"schema": {"type": "string"}},
            "application/octet-stream": {"schema": {"type": "string", "format": "binary"}},
        },
        "headers": {name: {"description": about, "schema": {"type": "string"}} for name, about in LOG_HEADERS.items()},
    }
}

WHOLE_LOG: dict[int | str, dict[str, Any]] = {200: {"content": {"text/plain": {"schema": {"type": "string"}}}}}


@doors.get("/workloads/{ref}/logs", response_class=Response, responses=LOG_ANSWER)
def read_log(
    caller: Seeing,
    ref: Ref,
    replica: ReplicaName = None,
    attempt: AttemptNumber = None,
    offset: Offset = None,
    tail: Tail = None,
    limit: Annotated[int, Query(ge=1, le=MOST_BYTES, description="most bytes of output in this answer")] = 1 << 20,
    raw: Annotated[bool, Query(description="the bytes as they are, even within a character")] = False,
) -> Response:
    """Some of the log from a byte on. A dropped middle is skipped: then the answer starts later than asked."""
    with caller.parts.database.read() as conn:
        workload = find_workload(caller, conn, ref)
    wanted = choose(workload, replica, attempt)
    ended = is_over(workload, wanted)
    log = _log_of(caller, wanted)
    if log is None:
        return _text(b"", 0, 0, 0, ended)
    start = offset if offset is not None else log.tail_start(tail) if tail is not None else 0
    data, start = _first_stretch(log, start, limit)
    size = log.size()
    at_the_end = ended and start + len(data) >= size
    whole = len(data) if raw or at_the_end else whole_characters(data) or len(data)
    return _text(data[:whole], start, start + whole, max(size, start + whole), ended, gap=log.gap(), raw=raw)


def _first_stretch(log: LogFile, start: int, limit: int) -> tuple[bytes, int]:
    """Output up to the next gap; a gap at the very beginning is skipped."""
    data, begin = [], start
    for piece in log.read(start, limit):
        if isinstance(piece, Chunk):
            data.append(piece.data)
        elif data:
            break
        else:
            begin = piece.end
    return b"".join(data), begin


def _text(
    data: bytes, start: int, end: int, size: int, ended: bool, *, gap: Gap | None = None, raw: bool = False
) -> Response:
    numbers = {"X-Log-Start": start, "X-Log-End": end, "X-Log-Size": size}
    headers = {name: str(number) for name, number in numbers.items()} | {"X-Log-Ended": str(ended).lower()}
    if gap is not None:
        headers["X-Log-Gap"] = f"{gap.start}-{gap.end}"
    if raw:
        return Response(data, headers=headers, media_type="application/octet-stream")
    return Response(data.decode("utf-8", "replace"), headers=headers, media_type="text/plain")


@doors.get("/workloads/{ref}/logs/download", response_class=StreamingResponse, responses=WHOLE_LOG)
def download_log(caller: Seeing, ref: Ref, replica: ReplicaName = None, attempt: AttemptNumber = None) -> Response:
    """The whole log as a file, as far as it is written now; a line stands where its middle was dropped."""
    with caller.parts.database.read() as conn:
        workload = find_workload(caller, conn, ref)
    wanted = choose(workload, replica, attempt)
    name = f"{workload.spec.name}-{workload.id}-{wanted.role}-{wanted.index}-{wanted.attempt or 0}.log"
    headers = {"Content-Disposition": f'attachment; filename="{name}"'}
    log = _log_of(caller, wanted)
    pieces = _whole(log, log.size()) if log else iter(())
    return StreamingResponse(pieces, headers=headers, media_type="text/plain; charset=utf-8")


def _whole(log: LogFile, size: int) -> Iterator[bytes]:
    """Up to a size that was seen, so that a job that writes without end does not make a download without end."""
    offset = 0
    while offset < size and (pieces := log.read(offset, min(DOWNLOAD_BYTES, size - offset))):
        for piece in pieces:
            yield piece.data if isinstance(piece, Chunk) else f"\n[... {piece.end - piece.start} bytes ...]\n".encode()
        offset = pieces[-1].end


@doors.get(
    "/workloads/{ref}/logs/follow",
    response_class=StreamingResponse,
    responses={200: {"content": {"text/event-stream": {"schema": {"type": "string"}}}}},
)
async def follow_log(
    caller: Seeing,
    request: Request,
    ref: Ref,
    replica: ReplicaName = None,
    attempt: AttemptNumber = None,
    offset: Offset = None,
    tail: Tail = None,
    last_event_id: Annotated[str | None, Header(pattern=models.EVENT_ID_PATTERN)] = None,
) -> Response:
    """The log as it grows, as server-sent events: `log`, `gap` (a dropped middle) and `end`.

    The id of an event is the offset after it; send it back as Last-Event-ID (or `offset`) to go on there.
    """
    resume_at = int(last_event_id) if last_event_id else offset
    wanted, first = await run_in_threadpool(_begin, caller, ref, replica, attempt)

    def start(log: LogFile) -> int:
        return resume_at if resume_at is not None else log.tail_start(tail) if tail is not None else 0

    followers: Followers = request.app.state.followers
    user = caller.actor.name
    follow = Follow(
        first,
        _looker(caller, wanted, first),
        start,
        _permission(caller, request, wanted),
        caller.parts.stopping,
        followers,
        caller.parts.limits.heartbeat_seconds,
    )
    followers.enter(user)
    return FollowResponse(follow, lambda: followers.leave(user))


def _begin(caller: Caller, ref: str, replica: str | None, attempt: int | None) -> tuple[Wanted, Sight]:
    with caller.parts.database.read() as conn:
        workload = find_workload(caller, conn, ref)
    wanted = choose(workload, replica, attempt)
    return wanted, Sight(_log_of(caller, wanted), is_over(workload, wanted))


def _looker(caller: Caller, wanted: Wanted, first: Sight) -> Callable[[], Sight]:
    """Looks at the store again. The first attempt there is, is the one that is followed to its end."""
    last = first

    def look() -> Sight:
        nonlocal wanted, last
        try:
            with caller.parts.database.read() as conn:
                workload = rows.get(conn, wanted.workload)
        except Unavailable:  # no reason to hang up: what was seen last is true until something else is seen
            return last
        if wanted.attempt is None and workload is not None:
            wanted = replace(wanted, attempt=workload.attempts_made or None)
        last = Sight(_log_of(caller, wanted), is_over(workload, wanted))
        return last

    return look


def _permission(caller: Caller, request: Request, wanted: Wanted) -> Callable[[], bool]:
    """A stream outlives its request, so the right to it is looked at again and again."""
    credentials = credentials_of(request, caller.parts.tls)

    def still_allowed() -> bool:
        try:
            actor = caller.parts.access.authenticate(credentials)
            with caller.parts.database.read() as conn:
                workload = rows.get(conn, wanted.workload)
        except Unavailable:
            return True
        except YardError:
            return False
        target = Work(workload.id, workload.owner, workload.group) if workload else None
        return target is not None and rights.may(actor, Action.SEE_WORKLOAD, target)

    return still_allowed


# --- which log ----------------------------------------------------------------------------------------------------


def choose(workload: Workload, replica: str | None, attempt: int | None) -> Wanted:
    """By default the first replica of the first role, in the newest attempt."""
    require_attempt(workload, attempt)
    role, index = _replica(workload.spec, replica)
    return Wanted(workload.id, attempt or workload.attempts_made or None, role, index)


def _replica(spec: Spec, name: str | None) -> tuple[str, int]:
    if name is None:
        return spec.roles[0].name, 0
    match = REPLICA_RULE.fullmatch(name)
    for role in spec.roles:
        if match and role.name == match.group(1) and int(match.group(2)) < role.replicas:
            return role.name, int(match.group(2))
    raise NotFound(because(Code.NOT_FOUND, what="replica", name=name[:80], there=_names(spec)))


def _names(spec: Spec) -> list[str]:
    """What its replicas are called; of many only the first and the last."""
    names = []
    for role in spec.roles:
        if role.replicas <= NAMED_SINGLY:
            names += [f"{role.name}-{index}" for index in range(role.replicas)]
        else:
            names.append(f"{role.name}-0 ... {role.name}-{role.replicas - 1}")
    return names


def _log_of(caller: Caller, wanted: Wanted) -> LogFile | None:
    return LogFile(caller.parts.logs.log_path(wanted.replica)) if wanted.replica else None


def is_over(workload: Workload | None, wanted: Wanted) -> bool:
    """True once nothing more will be written: the replica has ended, or a later attempt has begun."""
    if workload is None or workload.state in ENDED:
        return True
    attempt = workload.attempt
    if attempt is None or wanted.attempt is None:
        return False
    if wanted.attempt < attempt.number or attempt.ended_at is not None:
        return True
    return any(r.id == wanted.replica and r.seen.life is Life.ENDED for r in attempt.replicas)
