"""Machines, what is in use, and shipped folders."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any

from fastapi import Path, Request, Response
from starlette.concurrency import run_in_threadpool

from gpuyard.access import audit
from gpuyard.access.rights import Action, InGroup, Work
from gpuyard.api import models, quotas, views
from gpuyard.api.guard import Caller, Doors, needs
from gpuyard.api.uploads import Uploads
from gpuyard.domain.cluster import LABEL_KEY_RULE, LONGEST_LABEL, is_label_value
from gpuyard.domain.errors import BadInput, NotFound
from gpuyard.domain.problems import Problem
from gpuyard.domain.reasons import Code, Reason, because
from gpuyard.store import nodes

doors = Doors(prefix="/api/v1", tags=["cluster"])
Seeing = Annotated[Caller, needs(Action.SEE_CLUSTER)]
Cordoning = Annotated[Caller, needs(Action.CORDON)]
Shipping = Annotated[Caller, needs(Action.SHIP_FOLDER)]
NodeName = Annotated[str, Path(description="the machine's name")]
Digest = Annotated[str, Path(pattern=models.DIGEST_PATTERN, description="SHA-256 of the tar file")]
LATEST_SECONDS = 60.0  # older looks are of replicas that are gone


@doors.get("/nodes", response_model=models.NodeList)
def list_nodes(caller: Seeing) -> Any:
    return models.NodeList(items=_nodes(caller))


def _nodes(caller: Caller) -> list[models.NodeOut]:
    used = views.use_by_node(caller.parts.holding())
    with caller.parts.database.read() as conn:
        found = nodes.all(conn)
    return [views.node_out(node, used.get(node.name)) for node in found]


@doors.post("/nodes/{name}/cordon", response_model=models.Done)
def cordon(caller: Cordoning, name: NodeName) -> Any:
    """Give no new work to it. What runs there goes on."""
    return _set_cordoned(caller, name, True)


@doors.post("/nodes/{name}/uncordon", response_model=models.Done)
def uncordon(caller: Cordoning, name: NodeName) -> Any:
    return _set_cordoned(caller, name, False)


@doors.patch("/nodes/{name}/labels", response_model=models.LabelsOut)
def label(caller: Annotated[Caller, needs(Action.LABEL)], name: NodeName, wish: models.LabelsIn) -> Any:
    """Set labels of a machine, or take some away. Jobs and pools choose machines by them."""
    _check_labels(wish.labels)
    with caller.parts.database.write() as conn:
        before = nodes.labels_of(conn, name)
        if before is None:
            raise NotFound(because(Code.NOT_FOUND, what="node", name=name[:80]))
        wanted = {**before, **wish.labels}
        labels = {key: value for key, value in sorted(wanted.items()) if value is not None}
        if len(labels) > models.MAX_LABELS:
            raise BadInput(_wrong_label("labels", Problem.TOO_MANY, "", models.MAX_LABELS))
        if labels != before:
            nodes.set_labels(conn, name, labels)
            audit.record(conn, caller.actor, Action.LABEL, name, caller.now, facts={"labels": wish.labels})
    return models.LabelsOut(name=name, labels=labels)


def _check_labels(labels: Mapping[str, str | None]) -> None:
    problems = []
    for key, value in labels.items():
        if not LABEL_KEY_RULE.fullmatch(key):
            problems.append(_wrong_label("labels", Problem.LABEL_KEY, key, LONGEST_LABEL))
        elif value is not None and not is_label_value(value):
            problems.append(_wrong_label(f"labels.{key}", Problem.LABEL_VALUE, value, LONGEST_LABEL))
    if problems:
        raise BadInput(*problems)


def _wrong_label(at: str, problem: Problem, value: str, limit: int) -> Reason:
    shown = {"value": value[:80]} if value else {}
    return because(Code.BAD_VALUE, at=at, problem=problem.value, limit=limit, **shown)


def _set_cordoned(caller: Caller, name: str, wish: bool) -> models.Done:
    with caller.parts.database.write() as conn:
        if not nodes.set_cordoned(conn, name, wish):
            raise NotFound(because(Code.NOT_FOUND, what="node", name=name[:80]))
        audit.record(conn, caller.actor, "node.cordon" if wish else "node.uncordon", name, caller.now)
    return models.Done()


@doors.get("/quota", response_model=models.QuotaList)
def quota(caller: Seeing) -> Any:
    """What the groups one is in may use, can count on, use now, and have borrowed or lent."""
    holding = caller.parts.holding()
    with caller.parts.database.read() as conn:
        ledger = quotas.ledger(conn, holding)
    groups = [group for group in ledger.groups if caller.may(Action.SEE_GROUP, InGroup(group.name))]
    return models.QuotaList(items=[line for group in groups for line in ledger.lines(group)])


@doors.get("/top", response_model=models.TopOut)
def top(caller: Seeing) -> Any:
    """What running work uses now: one's own and what one leads; machines as a whole."""
    holding = caller.parts.holding()
    latest = caller.parts.series.latest(since=caller.now - LATEST_SECONDS)
    seen = [w for w in holding if caller.may(Action.SEE_WORKLOAD, Work(w.id, w.owner, w.group))]
    replicas = [
        views.top_replica(workload, replica, latest.get(replica.id))
        for workload in seen
        for replica in (workload.attempt.replicas if workload.attempt else ())
    ]
    return models.TopOut(replicas=replicas, nodes=_nodes(caller))


# --- shipped folders ----------------------------------------------------------------------------------------------


@doors.head("/workdirs/{digest}", response_model=None, responses={200: {"description": "It is here."}})
def has_workdir(caller: Shipping, digest: Digest) -> Response:
    """Is this folder here already? Only one's own count."""
    if not caller.parts.workdirs.has(caller.actor.name, digest):
        raise NotFound(because(Code.NOT_FOUND, what="workdir", name=digest))
    return Response(status_code=200)


TAR_BODY = {
    "requestBody": {
        "required": True,
        "content": {
            kind: {"schema": {"type": "string", "format": "binary"}}
            for kind in ("application/x-tar", "application/octet-stream")
        },
    }
}


@doors.put("/workdirs/{digest}", response_model=models.Done, openapi_extra=TAR_BODY)
async def put_workdir(caller: Shipping, digest: Digest, request: Request) -> Any:
    """Ship a folder as a tar file, named by its SHA-256. It goes to disk as it arrives."""
    parts, owner = caller.parts, caller.actor.name
    uploads: Uploads = request.app.state.uploads
    await uploads.receive(owner, request.stream(), lambda pieces: parts.workdirs.receive(owner, digest, pieces))
    await run_in_threadpool(_note_upload, caller, digest)
    return models.Done()


def _note_upload(caller: Caller, digest: str) -> None:
    with caller.parts.database.write() as conn:
        audit.record(conn, caller.actor, Action.SHIP_FOLDER, digest, caller.now)
