"""The images that work can run in: which are here, fetching one, taking one in from a file, removing one.

Anybody may fetch from a registry that may be asked, as every job that names an image does. What puts other content
under a name that all use, or takes a name away, is for admins.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterator, Sequence
from typing import IO, Annotated, Any

from fastapi import Query, Request, Response
from fastapi.responses import StreamingResponse
from pydantic import Field, StringConstraints
from starlette.concurrency import run_in_threadpool

from gpuyard.access import audit, rights
from gpuyard.access.rights import Action
from gpuyard.api.cluster import TAR_BODY
from gpuyard.api.errors import body_of
from gpuyard.api.guard import Caller, Doors, credentials_of, needs
from gpuyard.api.models import In, Instant, Out
from gpuyard.api.pulling import Pulled, Steps
from gpuyard.api.uploads import Uploads
from gpuyard.api.views import instant
from gpuyard.dialects.native import check_image_name
from gpuyard.domain.errors import BadInput, Conflict, EngineError, NotFound, Unavailable, YardError
from gpuyard.domain.reasons import Code, Reason, because
from gpuyard.engines.seam import KeepsImages
from gpuyard.store import workloads

doors = Doors(prefix="/api/v1", tags=["images"])
COPY_BYTES = 1 << 20
ImageName = Annotated[str, StringConstraints(min_length=1, max_length=512)]


class ImageOut(Out):
    name: str
    id: str
    size: int = Field(description="bytes on this machine")
    created_at: Instant


class ImageList(Out):
    items: list[ImageOut]


class PullIn(In):
    image: ImageName


class LoadedOut(Out):
    images: list[str] = Field(description="the names they have here")


@doors.get("/images", response_model=ImageList)
def list_images(caller: Annotated[Caller, needs(Action.SEE_IMAGES)]) -> Any:
    """Those that are here: work that names one of them starts without waiting for a registry."""
    held = _store(caller).images()
    return ImageList(
        items=[ImageOut(name=i.name, id=i.id, size=i.size, created_at=instant(i.created_at)) for i in held]
    )


@doors.post("/images/pull", response_class=StreamingResponse)
async def pull(caller: Annotated[Caller, needs(Action.PULL_IMAGE)], request: Request, asked: PullIn) -> Response:
    """Fetch one from its registry. The answer is lines of JSON: `{"told": ...}` for every step, an empty one now and
    then, then `{"done": true}` or `{"error": ...}`. Few are fetched at a time, and no longer than somebody waits."""
    steps = Steps()
    leave = await run_in_threadpool(_begin, caller, check_image_name(asked.image), steps)
    gone = because(Code.ENGINE_CANNOT, engine=caller.parts.images.engine, what="engine.away")
    every = caller.parts.limits.heartbeat_seconds
    return Pulled(steps, leave, _permission(caller, request), every, body_of(gone, (), caller.language))


def _begin(caller: Caller, name: str, steps: Steps) -> Callable[[], None]:
    store = _store(caller)
    refusal = store.fetch_refusal(name)
    if refusal is not None:
        raise BadInput(refusal)

    def over(problem: Reason | None) -> None:
        steps.end({"done": True} if problem is None else body_of(problem, (), caller.language))

    leave = store.pull_image(name, caller.actor.name, steps.tell, over)
    if not steps.has_any:
        steps.tell(caller.say(because(Code.PULL_WAITS, image=name)))
    try:
        _note(caller, Action.PULL_IMAGE, name)
    except YardError:
        leave()
        raise
    return leave


def _permission(caller: Caller, request: Request) -> Callable[[], bool]:
    """An answer that goes on for long outlives its request, so the right to it is looked at again and again."""
    credentials = credentials_of(request, caller.parts.tls)

    def may_stay() -> bool:
        if caller.parts.stopping():
            return False
        try:
            return rights.may(caller.parts.access.authenticate(credentials), Action.PULL_IMAGE)
        except Unavailable:
            return True
        except YardError:
            return False

    return may_stay


@doors.put("/images/load", response_model=LoadedOut, openapi_extra=TAR_BODY)
async def load(caller: Annotated[Caller, needs(Action.CHANGE_IMAGES)], request: Request) -> Any:
    """Take in the images of a `docker save` file. It goes to disk first, then to the engine."""
    store, uploads = _store(caller), request.app.state.uploads
    assert isinstance(uploads, Uploads)
    with tempfile.TemporaryFile(prefix="gpuyard-image-") as file:

        def keep(pieces: Iterator[bytes]) -> None:
            for piece in pieces:
                file.write(piece)
            file.seek(0)

        await uploads.receive(caller.actor.name, request.stream(), keep)
        names = await run_in_threadpool(_load, store, file)
    await run_in_threadpool(_note, caller, Action.CHANGE_IMAGES, ",".join(names)[:200])
    return LoadedOut(images=names)


def _load(store: KeepsImages, file: IO[bytes]) -> list[str]:
    try:
        return list(store.load_image(_pieces(file)))
    except EngineError as error:
        if error.reason.code is Code.NOT_AN_IMAGE:
            raise BadInput(error.reason) from error
        raise


def _pieces(file: IO[bytes]) -> Iterator[bytes]:
    while piece := file.read(COPY_BYTES):
        yield piece


@doors.delete("/images", response_model=LoadedOut)
def remove(caller: Annotated[Caller, needs(Action.CHANGE_IMAGES)], image: Annotated[ImageName, Query()]) -> Any:
    """Remove one from this machine. What is in use is refused."""
    name = check_image_name(image)
    try:
        was_here = _store(caller).remove_image(name)
    except EngineError as error:
        if error.reason.code is not Code.IMAGE_IN_USE:
            raise
        users = _named(caller, error.reason.facts["by"])
        raise Conflict(because(Code.IMAGE_IN_USE, image=name, by=users)) from error
    if not was_here:
        raise NotFound(because(Code.NOT_FOUND, what="image", name=name))
    _note(caller, Action.CHANGE_IMAGES, name)
    return LoadedOut(images=[name])


def _named(caller: Caller, ids: Sequence[str]) -> list[str]:
    """Workloads as people call them, by name and id; what is no workload of ours as it is."""
    with caller.parts.database.read() as conn:
        found = [(id, workloads.get(conn, id)) for id in ids]
    return [f"{workload.spec.name} ({id}, {workload.owner})" if workload else id for id, workload in found]


def _store(caller: Caller) -> KeepsImages:
    policy = caller.parts.images
    if policy.held is None:
        raise Conflict(because(Code.ENGINE_CANNOT, engine=policy.engine, what="images"))
    return policy.held


def _note(caller: Caller, action: Action, name: str) -> None:
    with caller.parts.database.write() as conn:
        audit.record(conn, caller.actor, action, name, caller.now)
