"""The domain as clients see it: pure, one function per thing, words in the asker's language."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from gpuyard.api import models, usage_models
from gpuyard.domain.cluster import Node
from gpuyard.domain.people import User
from gpuyard.domain.reasons import Code, Reason
from gpuyard.domain.resources import WHOLE_CARD
from gpuyard.domain.usage import CardUse
from gpuyard.domain.workload import (
    Attempt,
    Kind,
    Life,
    Origin,
    Replica,
    ReplicaId,
    RoleSpec,
    State,
    StoryEvent,
    Workload,
)
from gpuyard.forecast.estimate import Estimate
from gpuyard.metrics.series import CardPoint, Latest, Point
from gpuyard.world.outlook import NOTHING, Moments

Say = Callable[[Reason], str]
# Facts that name a workload or its owner, and the fact with the id of the workload meant.
NAMES_WORK: Mapping[str, str] = {
    "ahead_name": "ahead",
    "by_name": "by",
    "by_owner": "by",
    "owner": "job",
    "job_name": "job",
}
REASONS_INSIDE = ("cause", "reason")
SAID_BY_NAME = frozenset({Code.IDLE_SOON, Code.TIMER_SOON, Code.IDLE, Code.TIMER, Code.RESTS, Code.LEFT})
_CODES = frozenset(code.value for code in Code)


def is_told_reason(value: Any) -> bool:
    """A reason inside a reason, of a code that is still known."""
    return isinstance(value, Mapping) and value.get("code") in _CODES and isinstance(value.get("facts"), Mapping)


def work_named(reason: Reason) -> set[str]:
    """The ids of the other workloads whose names this reason tells."""
    ids = {str(reason.facts[id]) for name, id in NAMES_WORK.items() if reason.facts.get(name) and reason.facts.get(id)}
    for key in REASONS_INSIDE:
        inside: Any = reason.facts.get(key)
        if is_told_reason(inside):
            ids |= work_named(Reason.from_json(inside))
    return ids


@dataclass(frozen=True, slots=True)
class Glasses:
    """How the asker sees things: in which language, which devices are stand-ins, whose work may be called by name."""

    say: Say
    simulated_devices: frozenset[str] = frozenset()
    nameable: Callable[[str], bool] = lambda id: True  # may the workload with this id be called by its name?

    def reason(self, reason: Reason) -> Reason:
        """The same reason without names of somebody else's work: of that only the id and the group are shown."""
        hidden = {
            name: ""
            for name, id in NAMES_WORK.items()
            if reason.facts.get(name) and reason.facts.get(id) and not self.nameable(str(reason.facts[id]))
        }
        inside = {key: self._inside(reason.facts[key]) for key in REASONS_INSIDE if key in reason.facts}
        if isinstance(
            uses := reason.facts.get("uses"), Mapping
        ):  # of groups; of persons they are nobody else's business
            inside["uses"] = {who: use for who, use in uses.items() if "/" not in who}
        return Reason(reason.code, {**reason.facts, **hidden, **inside}) if hidden or inside else reason

    def _inside(self, value: Any) -> Any:
        if not is_told_reason(value):
            return value
        return self.reason(Reason.from_json(value)).to_json()


def instant(seconds: float) -> str:
    return datetime.fromtimestamp(seconds, UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def instant_or_none(seconds: float | None) -> str | None:
    return None if seconds is None else instant(seconds)


def from_milli(milli: int) -> int | float:
    """2000 -> 2, 500 -> 0.5."""
    return milli // 1000 if milli % 1000 == 0 else milli / 1000


def cards_of(workload: Workload) -> tuple[int, str | None]:
    """Thousandths of cards over all replicas, and their device type."""
    total, device = 0, None
    for role in workload.spec.roles:
        if role.resources.cards is not None:
            total += role.resources.cards.milli * role.replicas
            device = device or role.resources.cards.device
    return total, device


def workload_out(workload: Workload, glasses: Glasses, moments: Moments = NOTHING) -> models.WorkloadOut:
    return models.WorkloadOut(**workload_fields(workload, glasses), **expected(moments, glasses.say))


def expected(moments: Moments, say: Say) -> dict[str, Any]:
    """When it starts and when it ends, as far as that is to be told."""
    return {"expected_start": estimate_out(moments.start, say), "expected_end": estimate_out(moments.end, say)}


def estimate_out(estimate: Estimate | None, say: Say) -> models.EstimateOut | None:
    if estimate is None:
        return None
    unknown = estimate.unknown
    return models.EstimateOut(
        p50=instant_or_none(estimate.middle),
        p90=instant_or_none(estimate.late),
        rough=estimate.rough,
        unknown=say(unknown) if unknown is not None else None,
        unknown_code=unknown.code.value if unknown is not None else None,
    )


def answered(
    workload: Workload, warnings: Iterable[Reason], glasses: Glasses, notes: Iterable[Reason] = ()
) -> models.Answered:
    return models.Answered(
        **workload_fields(workload, glasses),
        warnings=[glasses.say(warning) for warning in warnings],
        notes=[glasses.say(note) for note in notes],
    )


def workload_detail(
    workload: Workload, attempts: Iterable[Attempt], glasses: Glasses, moments: Moments = NOTHING
) -> models.WorkloadDetail:
    return models.WorkloadDetail(
        **workload_fields(workload, glasses),
        **expected(moments, glasses.say),
        roles=[_role(role) for role in workload.spec.roles],
        attempts=[attempt_out(attempt, glasses, workload) for attempt in attempts],
        retries_used={cause.value: number for cause, number in workload.retries_used.items()},
        max_seconds=workload.spec.max_seconds,
        preemptible=workload.spec.preemptible,
        workdir=workload.spec.workdir,
        together=workload.spec.together,
        checkpoint=workload.spec.checkpoint,
    )


def workload_fields(workload: Workload, glasses: Glasses) -> dict[str, Any]:
    milli, device = cards_of(workload)
    reason = glasses.reason(named(workload.reason, workload))
    return {
        "id": workload.id,
        "name": workload.spec.name,
        "kind": workload.spec.kind,
        "state": workload.state,
        "reason": glasses.say(reason),
        "reason_code": reason.code.value,
        "reason_facts": dict(reason.facts),
        "owner": workload.owner,
        "group": workload.group,
        "priority": workload.spec.priority,
        "wanted": workload.wanted,
        "submitted_at": instant(workload.submitted_at),
        "started_at": instant_or_none(_started(workload)),
        "ended_at": instant_or_none(workload.ended_at),
        "exit_code": workload.exit_code,
        "attempt": workload.attempts_made,
        "image": next((role.image for role in workload.spec.roles if role.image), None),
        "cards": from_milli(milli),
        "device": device,
        "replicas": sum(role.replicas for role in workload.spec.roles),
        "simulated_cards": _on_stand_ins(workload, device, glasses),
        "saved_step": workload.attempt.saved_step if workload.attempt else None,
        "replicas_by_state": replicas_by_state(workload),
        "origin": _origin(workload.spec.origin),
        "removed_at": instant_or_none(workload.removed_at),
    }


def _origin(origin: Origin | None) -> models.OriginOut | None:
    return models.OriginOut(door=origin.door, facts=dict(origin.facts)) if origin is not None else None


def replicas_by_state(workload: Workload) -> dict[str, int]:
    """Of the newest attempt, as people count them. Before it there is none, all are yet to come."""
    counts = dict.fromkeys(("pending", "running", "succeeded", "failed"), 0)
    again = workload.attempt is None or (workload.state is State.QUEUED and workload.attempt.ended_at is not None)
    if again or workload.attempt is None:
        return counts | {"pending": sum(role.replicas for role in workload.spec.roles)}
    for replica in workload.attempt.replicas:
        counts[_counted_as(replica)] += 1
    return counts


def _counted_as(replica: Replica) -> str:
    match replica.seen.life:
        case Life.RUNNING:
            return "running"
        case Life.ENDED:
            return "succeeded" if replica.seen.exit_code == 0 else "failed"
    return "pending"


def named(reason: Reason, workload: Workload) -> Reason:
    """What is said of a dev environment says which commands help: with its name in them."""
    if workload.spec.kind is not Kind.ENV or reason.code not in SAID_BY_NAME:
        return reason
    return Reason(reason.code, {**reason.facts, "name": workload.spec.name})


def _started(workload: Workload) -> float | None:
    """Of a dev environment since when it runs: it is started again and again."""
    if workload.spec.kind is not Kind.ENV:
        return workload.started_at
    return workload.attempt.started_at if workload.attempt is not None and workload.holds_resources else None


def _on_stand_ins(workload: Workload, device: str | None, glasses: Glasses) -> bool:
    """What has been given cards remembers what they were; the machine may have others by now."""
    if workload.attempt is None:
        return device in glasses.simulated_devices
    return any(replica.allotment.simulated for replica in workload.attempt.replicas)


def _role(role: RoleSpec) -> models.RoleOut:
    asked = role.resources
    return models.RoleOut(
        name=role.name,
        replicas=role.replicas,
        command=list(role.command),
        image=role.image,
        cards=from_milli(asked.cards.milli) if asked.cards else 0,
        device=asked.cards.device if asked.cards else None,
        models=list(asked.cards.models) if asked.cards else [],
        where=models.WhereOut(nodes=list(role.where.nodes), labels=dict(role.where.labels)),
        cpu=None if asked.cpu_milli is None else from_milli(asked.cpu_milli),
        memory=asked.memory,
        shm=asked.shm,
    )


def attempt_out(attempt: Attempt, glasses: Glasses, workload: Workload) -> models.AttemptOut:
    reason = named(attempt.ending.reason, workload) if attempt.ending else None
    return models.AttemptOut(
        number=attempt.number,
        created_at=instant(attempt.created_at),
        started_at=instant_or_none(attempt.started_at),
        ended_at=instant_or_none(attempt.ended_at),
        saved_at=instant_or_none(attempt.saved_at),
        saved_step=attempt.saved_step,
        reason=glasses.say(glasses.reason(reason)) if reason else None,
        reason_code=reason.code.value if reason else None,
        replicas=[_replica(replica, glasses) for replica in attempt.replicas],
    )


def _replica(replica: Replica, glasses: Glasses) -> models.ReplicaOut:
    seen, given = replica.seen, replica.allotment
    return models.ReplicaOut(
        replica=replica.id.short,
        node=given.node,
        cards=[share.index for share in given.cards],
        state=seen.life.value,
        exit_code=seen.exit_code,
        reason=glasses.say(seen.reason) if seen.reason else None,
        started_at=instant_or_none(seen.started_at),
        ended_at=instant_or_none(seen.ended_at),
        cpu=from_milli(given.cpu_milli),
        memory=given.memory,
    )


def event_out(event: StoryEvent, glasses: Glasses, workload: Workload) -> models.EventOut:
    reason = glasses.reason(named(event.reason, workload))
    return models.EventOut(
        at=instant(event.at),
        state=event.state,
        attempt=event.attempt,
        by=event.by,
        code=reason.code.value,
        message=glasses.say(reason),
        facts=dict(reason.facts),
    )


# --- the cluster --------------------------------------------------------------------------------------------------


@dataclass(slots=True)
class NodeUse:
    """What is given out on one node."""

    cpu_milli: int = 0
    memory: int = 0
    cards: dict[int, int] | None = None  # index -> thousandths


def use_by_node(holding: Iterable[Workload]) -> dict[str, NodeUse]:
    used: dict[str, NodeUse] = {}
    for workload in holding:
        for replica in workload.attempt.replicas if workload.attempt else ():
            given = replica.allotment
            node = used.setdefault(given.node, NodeUse(cards={}))
            node.cpu_milli += given.cpu_milli
            node.memory += given.memory
            assert node.cards is not None
            for share in given.cards:
                node.cards[share.index] = node.cards.get(share.index, 0) + share.milli
    return used


def node_out(node: Node, use: NodeUse | None) -> models.NodeOut:
    use = use or NodeUse()
    shares = use.cards or {}
    total: dict[str, int] = {}
    free: dict[str, int] = {}
    for card in node.cards:
        total[card.device] = total.get(card.device, 0) + 1
        left = 0 if card.trouble else WHOLE_CARD - shares.get(card.index, 0)
        free[card.device] = free.get(card.device, 0) + left
    return models.NodeOut(
        name=node.name,
        state=node.state.value,
        cpu=from_milli(node.cpu_milli),
        cpu_used=from_milli(use.cpu_milli),
        memory=node.memory,
        memory_used=use.memory,
        cards=[
            models.CardOut(
                index=card.index,
                device=card.device,
                model=card.model,
                memory=card.memory,
                simulated=card.simulated,
                used=shares.get(card.index, 0) / WHOLE_CARD,
                trouble=card.trouble or None,
            )
            for card in node.cards
        ],
        cards_total=total,
        cards_free={device: from_milli(milli) for device, milli in free.items()},
        labels=dict(node.labels),
        images=list(node.images),
    )


def use_by_quota(holding: Iterable[Workload]) -> dict[tuple[str, str | None, str], int]:
    """(group, user or None for the whole group, resource) -> amount in use, in the units of Quota."""
    used: dict[tuple[str, str | None, str], int] = {}
    for workload in holding:
        for replica in workload.attempt.replicas if workload.attempt else ():
            given = replica.allotment
            amounts: Mapping[str, int] = {"cpu": given.cpu_milli, "memory": given.memory}
            if given.cards:
                amounts = {**amounts, given.device: given.cards_milli}
            for resource, amount in amounts.items():
                for user in (None, workload.owner):
                    key = (workload.group, user, resource)
                    used[key] = used.get(key, 0) + amount
    return used


def amount(resource: str, value: int) -> int | float:
    """In the units people use: bytes for memory, whole numbers and fractions for the rest."""
    return value if resource == "memory" else from_milli(value)


# --- use ----------------------------------------------------------------------------------------------------------


def series_out(id: ReplicaId, points: Iterable[Point]) -> usage_models.ReplicaSeries:
    return usage_models.ReplicaSeries(
        replica=id.short,
        attempt=id.attempt,
        points=[
            usage_models.UsagePoint(
                at=instant(point.at), cores=point.cores, memory=round(point.memory), cards=_card_use(point.cards)
            )
            for point in points
        ],
    )


def _card_use(cards: Iterable[CardPoint | CardUse]) -> list[models.CardUseOut]:
    return [models.CardUseOut(index=card.index, percent=card.percent, memory=round(card.memory)) for card in cards]


def top_replica(workload: Workload, replica: Replica, latest: Latest | None) -> models.TopReplica:
    given = replica.allotment
    return models.TopReplica(
        workload=workload.id,
        name=workload.spec.name,
        owner=workload.owner,
        group=workload.group,
        attempt=replica.id.attempt,
        replica=replica.id.short,
        node=given.node,
        cards=[share.index for share in given.cards],
        device=given.device or None,
        at=instant(latest.at) if latest else None,
        cores=latest.cores if latest else None,
        cores_given=from_milli(given.cpu_milli),
        memory=latest.usage.memory if latest else None,
        memory_given=given.memory,
        card_use=_card_use(latest.usage.cards) if latest else [],
    )


# --- people -------------------------------------------------------------------------------------------------------


def user_fields(user: User) -> dict[str, Any]:
    return {
        "name": user.name,
        "admin": user.admin,
        "active": user.active,
        "must_change_password": user.must_change_password,
        "uid": user.uid,
        "memberships": [models.MembershipOut(group=m.group, role=m.role) for m in user.memberships],
    }


def user_out(user: User) -> models.UserOut:
    return models.UserOut(**user_fields(user))
