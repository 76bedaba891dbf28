"""The whole at a glance, live: the board of machines and cards, the line of those that wait, and news of both."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import AsyncExitStack
from dataclasses import replace
from typing import Annotated, Any

from fastapi import Header, Query, Request, Response
from fastapi.responses import JSONResponse, StreamingResponse
from starlette.types import Receive, Scope, Send

from gpuyard.access import rights
from gpuyard.access.rights import Action, Work
from gpuyard.api import models, overview_models, views
from gpuyard.api.board import make_board, show_rows, show_work, show_works
from gpuyard.api.cluster import LATEST_SECONDS
from gpuyard.api.following import CHECK_RIGHTS_SECONDS, Followers, encode
from gpuyard.api.guard import Caller, Doors, credentials_of, needs
from gpuyard.api.live import Batch, Live
from gpuyard.domain.errors import YardError
from gpuyard.domain.workload import Workload

doors = Doors(prefix="/api/v1", tags=["overview"])
Seeing = Annotated[Caller, needs(Action.SEE_CLUSTER)]
AGAIN_MILLISECONDS = 1000  # after a lost connection, browsers come back after this


@doors.get("/board", response_model=overview_models.BoardOut)
def board(caller: Seeing) -> JSONResponse:
    """Every machine as a row, every card as a cell with the work on it. Foreign work has no names."""
    whole = make_board(caller.parts.nodes(), caller.parts.holding())
    use = _card_use(caller)
    answer = {
        "nodes": show_rows(whole, whole.rows),
        "works": show_works(whole, whole.rows, lambda work: _sees(caller, work)),
        "percent": use,
    }
    return JSONResponse(answer)  # thousands of cards: made by hand, as the model says


def _card_use(caller: Caller) -> dict[str, dict[str, float]]:
    """How busy cards are, where it was measured: by machine and index."""
    latest = caller.parts.series.latest(since=caller.now - LATEST_SECONDS)
    found: dict[str, dict[str, float]] = {}
    for workload in caller.parts.holding():
        for replica in workload.attempt.replicas if workload.attempt else ():
            look = latest.get(replica.id)
            for card in look.usage.cards if look else ():
                if card.percent is not None:
                    found.setdefault(replica.allotment.node, {})[str(card.index)] = card.percent
    return found


@doors.get("/queue", response_model=overview_models.QueueOut)
def queue(
    caller: Seeing, limit: Annotated[int, Query(ge=1, le=500, description="how many from the front")] = 100
) -> Any:
    """Those that wait, in the order in which they are asked: the first ones, and all that are the asker's."""
    line = caller.parts.line()
    chosen = [(n, w) for n, w in enumerate(line, 1) if n <= limit or w.owner == caller.actor.name]
    lines = [_queue_line(caller, n, workload) for n, workload in chosen[: 2 * limit]]
    return overview_models.QueueOut(waiting=len(line), items=lines)


def _queue_line(caller: Caller, position: int, workload: Workload) -> overview_models.QueueLine:
    milli, device = views.cards_of(workload)
    return overview_models.QueueLine(
        id=workload.id,
        position=position,
        mine=workload.owner == caller.actor.name,
        cards=milli / 1000,
        device=device,
        priority=workload.spec.priority,
        submitted_at=views.instant(workload.submitted_at),
        **show_work(workload, lambda work: _sees(caller, work)),
    )


def _sees(caller: Caller, workload: Workload) -> bool:
    return caller.may(Action.SEE_WORKLOAD, Work(workload.id, workload.owner, workload.group))


# --- news ---------------------------------------------------------------------------------------------------------


@doors.get(
    "/live",
    response_class=StreamingResponse,
    responses={200: {"content": {"text/event-stream": {"schema": {"type": "string"}}}}},
)
async def live(
    caller: Seeing,
    request: Request,
    last_event_id: Annotated[str | None, Header(pattern=models.EVENT_ID_PATTERN)] = None,
) -> Response:
    """News as server-sent events: `changed` says what, `reload` asks to load all again. Last-Event-ID resumes."""
    followers: Followers = request.app.state.followers
    followers.enter(caller.actor.name)
    return Listening(caller, request, int(last_event_id) if last_event_id else None)


class Listening(StreamingResponse):
    """One open page. Its place among the followers is given back however it ends."""

    media_type = "text/event-stream"

    def __init__(self, caller: Caller, request: Request, seen: int | None) -> None:
        super().__init__(self._events(), headers={"X-Accel-Buffering": "no"})
        self._caller = caller
        self._live: Live = request.app.state.live
        self._followers: Followers = request.app.state.followers
        self._credentials = credentials_of(request, caller.parts.tls)
        self._seen = seen

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        try:
            await super().__call__(scope, receive, send)
        finally:
            self._followers.leave(self._caller.actor.name)

    async def _events(self) -> AsyncIterator[bytes]:
        """At least a word every second or so: whoever is gone is noticed, and a lost server as well."""
        parts, quiet = self._caller.parts, 0
        yield f"retry: {AGAIN_MILLISECONDS}\n\n".encode()
        async with AsyncExitStack() as stack:
            position = await stack.enter_async_context(self._live.listening())
            seen = self._seen if self._seen is not None else position
            yield encode("hello", {"version": parts.version}, seen)
            while not parts.stopping() and await self._may_stay(quiet):
                batches = self._live.since(seen)
                if batches is None:
                    seen = self._live.position
                    yield encode("reload", {}, seen)
                for batch in batches or ():
                    seen = batch.seq
                    yield encode("changed", self._told(batch), seen)
                if not batches:
                    yield b": still here\n\n"
                quiet += 1
                await self._live.wait(seen)

    async def _may_stay(self, rounds: int) -> bool:
        """A stream outlives its request, so what the listener may know is looked at again and again."""
        if rounds % int(CHECK_RIGHTS_SECONDS):
            return True
        access = self._caller.parts.access
        if (actor := access.remembered(self._credentials)) is None:
            try:
                actor = await self._followers.in_thread(access.authenticate, self._credentials)
            except YardError:
                return False
        self._caller = replace(self._caller, actor=actor)
        return rights.may(actor, Action.SEE_CLUSTER, None)

    def _told(self, batch: Batch) -> dict[str, Any]:
        caller, board = self._caller, batch.board
        may_see = [
            whose.id
            for whose in batch.workloads
            if caller.may(Action.SEE_WORKLOAD, Work(whose.id, whose.owner, whose.group))
        ]
        return {
            "workloads": may_see,
            "many": batch.many,
            "line": bool(batch.workloads) or batch.many,
            "nodes": show_rows(board, batch.machines),
            "works": show_works(board, batch.machines, lambda work: _sees(caller, work)),
            "kinds": sorted(batch.kinds),
        }
