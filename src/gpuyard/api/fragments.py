"""What is fragmented, and for whom. Cards are everybody's to see; of others' work the id and the group are."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from gpuyard.api.cluster import Seeing
from gpuyard.api.finding import visible
from gpuyard.api.fragment_models import ApartOut, FragmentOut, FragmentsOut, MoveOut, RequestOut
from gpuyard.api.guard import Caller, Doors
from gpuyard.api.views import from_milli
from gpuyard.domain.reasons import Code, because
from gpuyard.domain.workload import Workload
from gpuyard.scheduling.copies import Served
from gpuyard.scheduling.defragment import Move
from gpuyard.scheduling.proposals import Apart, Fragment

doors = Doors(prefix="/api/v1", tags=["cluster"])
Known = Mapping[str, Workload]


@doors.get("/nodes/fragments", response_model=FragmentsOut)
def show_fragments(caller: Seeing) -> Any:
    """Free cards that typical requests cannot use, the jobs that wait for that reason, and moves that would help."""
    told = caller.parts.fragments()
    ids = {one.workload.id for one in told.waiting}
    ids |= {move.workload for one in told.waiting if one.moves is not None for move in one.moves.moves}
    with caller.parts.database.read() as conn:
        known = visible(caller, conn, ids)
    running = caller.parts.held(ids)
    return FragmentsOut(
        mode=told.mode.value,
        requests=_requests(told.requests),
        learned=told.learned,
        nodes=[_fragment(one) for one in told.nodes],
        closed=told.closed,
        waiting=[_apart(caller, one, told.mode.value, known, running) for one in told.waiting],
    )


def _requests(known: Sequence[Served]) -> list[RequestOut]:
    every = sum(one.typical.times for one in known)
    return [_request(one, every) for one in known]


def _request(one: Served, every: int) -> RequestOut:
    cpu = one.typical.resources.cpu_milli
    return RequestOut(
        device=one.cards.device,
        cards=from_milli(one.cards.milli),
        models=list(one.cards.models),
        cpu=from_milli(cpu) if cpu is not None else None,
        share=round(one.typical.times / every, 4),
        fit=one.fit,
        free=from_milli(one.free),
        stranded=from_milli(one.stranded),
    )


def _fragment(one: Fragment) -> FragmentOut:
    free, unusable = from_milli(one.free), from_milli(one.unusable)
    return FragmentOut(node=one.node, device=one.device, model=one.model, cards=one.cards, free=free, unusable=unusable)


def _apart(caller: Caller, one: Apart, mode: str, known: Known, running: Known) -> ApartOut:
    moves = one.moves.moves if one.moves is not None else ()
    nodes = _nodes(place.node for place in one.moves.place.values()) if one.moves is not None else []
    reason = because(Code.MOVES_FACT, moves=len(moves), nodes=nodes, mode=mode, lacks=one.lacks)
    name, owner = _named(one.workload.id, known)
    return ApartOut(
        id=one.workload.id,
        name=name,
        owner=owner,
        group=one.workload.group,
        asked=_asked(one.workload),
        nodes=nodes,
        moves=[_move(move, known, running) for move in moves],
        words=caller.say(reason),
    )


def _asked(workload: Workload) -> dict[str, int | float]:
    total: dict[str, int] = {}
    for role in workload.spec.roles:
        cards = role.resources.cards
        if cards is not None:
            total[cards.device] = total.get(cards.device, 0) + cards.milli * role.replicas
    return {device: from_milli(milli) for device, milli in total.items()}


def _move(move: Move, known: Known, running: Known) -> MoveOut:
    name, owner = _named(move.workload, known)
    workload = running.get(move.workload)
    replicas = workload.attempt.replicas if workload is not None and workload.attempt is not None else ()
    return MoveOut(
        id=move.workload,
        name=name,
        owner=owner,
        group=workload.group if workload is not None else "",
        source=_nodes(replica.allotment.node for replica in replicas),
        nodes=_nodes(place.node for place in move.places.values()),
        lost_seconds=round(move.lost_seconds, 1),
    )


def _named(id: str, known: Known) -> tuple[str | None, str | None]:
    workload = known.get(id)
    return (workload.spec.name, workload.owner) if workload is not None else (None, None)


def _nodes(names: Iterable[str]) -> list[str]:
    return sorted(set(names))
