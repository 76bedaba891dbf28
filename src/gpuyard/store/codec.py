"""The domain as JSON text and back: what a column holds where a value has parts of its own.

Only what is not left at its default is written, so that rows stay small and old rows read well when a field is added.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from gpuyard.domain.cluster import Allotment, Card, CardShare
from gpuyard.domain.reasons import Reason
from gpuyard.domain.resources import Cards, Resources
from gpuyard.domain.workload import (
    DEFAULT_GRACE_SECONDS,
    DEFAULT_PRIORITY,
    Cause,
    Ending,
    Kind,
    Life,
    Mount,
    Origin,
    Port,
    RoleSpec,
    Seen,
    Spec,
    Together,
    Verdict,
    Where,
)

Json = dict[str, Any]
_encode = json.JSONEncoder(separators=(",", ":"), sort_keys=True).encode
_quoted = json.encoder.encode_basestring_ascii


def to_text(data: Any) -> str:
    """JSON in one spelling: the same value is the same text, which comparing and hashing rely on."""
    return _encode(data)


def from_text(text: str) -> Any:
    return json.loads(text)


def _set_only(**fields: Any) -> Json:
    return {name: value for name, value in fields.items() if value is not None and value is not False and value != []}


# --- reasons ------------------------------------------------------------------------------------------------------


def reason_to_text(reason: Reason) -> str:
    facts = _encode(reason.facts) if reason.facts else "{}"
    return f'{{"code":"{reason.code.value}","facts":{facts}}}'


def reason_from_text(text: str) -> Reason:
    return Reason.from_json(json.loads(text))


# --- what was asked for -------------------------------------------------------------------------------------------


def spec_to_text(spec: Spec) -> str:
    return _encode(
        {
            "name": spec.name,
            "kind": spec.kind.value,
            "roles": [_role_to_json(role) for role in spec.roles],
            "priority": spec.priority,
            "retries": {cause.value: number for cause, number in spec.retries.items()},
            "grace_seconds": spec.grace_seconds,
            **_set_only(
                preemptible=spec.preemptible,
                max_seconds=spec.max_seconds,
                workdir=spec.workdir,
                together=None if spec.together is Together.ANY else spec.together.value,
                checkpoint=spec.checkpoint,
                idle_seconds=spec.idle_seconds,
                origin=_origin_to_json(spec.origin) if spec.origin else None,
            ),
        }
    )


def spec_from_text(text: str) -> Spec:
    data = json.loads(text)
    return Spec(
        name=data["name"],
        roles=tuple(_role_from_json(role) for role in data["roles"]),
        kind=Kind(data["kind"]),
        priority=data.get("priority", DEFAULT_PRIORITY),
        preemptible=data.get("preemptible", False),
        retries=retries_from_json(data["retries"]),
        max_seconds=data.get("max_seconds"),
        grace_seconds=data.get("grace_seconds", DEFAULT_GRACE_SECONDS),
        workdir=data.get("workdir"),
        together=Together(data.get("together", Together.ANY)),
        checkpoint=data.get("checkpoint"),
        idle_seconds=data.get("idle_seconds"),
        origin=_origin_from_json(data["origin"]) if "origin" in data else None,
    )


def _origin_to_json(origin: Origin) -> Json:
    return {"door": origin.door, "facts": [list(pair) for pair in origin.facts]}


def _origin_from_json(data: Json) -> Origin:
    return Origin(data["door"], tuple((name, value) for name, value in data["facts"]))


def retries_to_text(retries: Mapping[Cause, int]) -> str:
    if not retries:
        return "{}"
    return _encode({cause.value: number for cause, number in retries.items()})


def retries_from_json(data: Mapping[str, int]) -> dict[Cause, int]:
    return {Cause(cause): number for cause, number in data.items()}


def _role_to_json(role: RoleSpec) -> Json:
    return {
        "name": role.name,
        "command": role.command,
        "replicas": role.replicas,
        **_set_only(
            resources=_resources_to_json(role.resources) or None,
            image=role.image,
            env=[list(pair) for pair in role.env],
            mounts=[_mount_to_json(mount) for mount in role.mounts],
            ports=[[port.number, port.name] for port in role.ports],
            where=_where_to_json(role.where) or None,
            completes=role.completes,
        ),
    }


def _role_from_json(data: Json) -> RoleSpec:
    return RoleSpec(
        name=data["name"],
        command=tuple(data["command"]),
        replicas=data["replicas"],
        resources=_resources_from_json(data.get("resources", {})),
        image=data.get("image"),
        env=tuple((name, value) for name, value in data.get("env", ())),
        mounts=tuple(Mount(**mount) for mount in data.get("mounts", ())),
        ports=tuple(Port(number, name) for number, name in data.get("ports", ())),
        where=_where_from_json(data["where"]) if "where" in data else Where(),
        completes=data.get("completes", False),
    )


def _where_to_json(where: Where) -> Json:
    return _set_only(nodes=list(where.nodes), labels=[list(pair) for pair in where.labels])


def _where_from_json(data: Json) -> Where:
    labels = tuple((key, value) for key, value in data.get("labels", ()))
    return Where(tuple(data.get("nodes", ())), labels)


def _resources_to_json(resources: Resources) -> Json:
    amounts = {"cpu_milli": resources.cpu_milli, "memory": resources.memory, "shm": resources.shm}
    data: Json = {name: amount for name, amount in amounts.items() if amount is not None}
    if resources.cards:
        data["cards"] = [resources.cards.device, resources.cards.milli]
        if resources.cards.models:
            data["models"] = resources.cards.models
    return data


def _resources_from_json(data: Json) -> Resources:
    cards = None
    if "cards" in data:
        device, milli = data["cards"]
        cards = Cards(device, milli, tuple(data.get("models", ())))
    return Resources(data.get("cpu_milli"), data.get("memory"), data.get("shm"), cards)


def _mount_to_json(mount: Mount) -> Json:
    return {"volume": mount.volume, "at": mount.at, **_set_only(path=mount.path, read_only=mount.read_only)}


# --- what was given and what is seen ------------------------------------------------------------------------------


def allotment_to_text(allotment: Allotment) -> str:
    """Put into words by hand, like `seen_to_text`: thousands are written in one pass. A test compares the spelling."""
    cards = ",".join(f"[{share.index},{share.milli}]" for share in allotment.cards)
    simulated = ',"simulated":true' if allotment.simulated else ""
    return (
        f'{{"cards":[{cards}],"cpu_milli":{allotment.cpu_milli},"device":{_quoted(allotment.device)},'
        f'"memory":{allotment.memory},"node":{_quoted(allotment.node)},"shm":{allotment.shm}{simulated}}}'
    )


def allotment_from_text(text: str) -> Allotment:
    data = json.loads(text)
    cards = tuple(CardShare(index, milli) for index, milli in data["cards"])
    return Allotment(
        node=data["node"],
        cpu_milli=data["cpu_milli"],
        memory=data["memory"],
        shm=data["shm"],
        device=data["device"],
        cards=cards,
        simulated=data.get("simulated", False),
    )


def seen_to_text(seen: Seen) -> str:
    parts = [] if seen.cause is None else [f'"cause":"{seen.cause.value}"']
    if seen.ended_at is not None:
        parts.append(f'"ended_at":{seen.ended_at!r}')
    if seen.exit_code is not None:
        parts.append(f'"exit_code":{seen.exit_code}')
    parts.append(f'"life":"{seen.life.value}"')
    if seen.reason is not None:
        parts.append(f'"reason":{reason_to_text(seen.reason)}')
    if seen.started_at is not None:
        parts.append(f'"started_at":{seen.started_at!r}')
    return "{" + ",".join(parts) + "}"


def seen_from_text(text: str) -> Seen:
    data = json.loads(text)
    return Seen(
        life=Life(data["life"]),
        exit_code=data.get("exit_code"),
        cause=Cause(data["cause"]) if "cause" in data else None,
        reason=Reason.from_json(data["reason"]) if "reason" in data else None,
        started_at=data.get("started_at"),
        ended_at=data.get("ended_at"),
    )


def ending_to_text(ending: Ending) -> str:
    return _encode(
        {
            "verdict": ending.verdict.value,
            "reason": ending.reason.to_json(),
            "cause": ending.cause.value if ending.cause else None,
            "exit_code": ending.exit_code,
        }
    )


def ending_from_text(text: str) -> Ending:
    data = json.loads(text)
    cause = Cause(data["cause"]) if data["cause"] else None
    return Ending(Verdict(data["verdict"]), Reason.from_json(data["reason"]), cause, data["exit_code"])


# --- machines -----------------------------------------------------------------------------------------------------


def equipment_to_text(cards: Sequence[Card], images: Sequence[str]) -> str:
    """What is in a machine: a list of its cards; with the images it holds, if it holds any."""
    listed = [_card_to_json(card) for card in cards]
    return _encode({"cards": listed, "images": list(images)} if images else listed)


def equipment_from_text(text: str) -> tuple[tuple[Card, ...], tuple[str, ...]]:
    data = json.loads(text)
    cards, images = (data["cards"], data["images"]) if isinstance(data, dict) else (data, ())
    return tuple(Card(**card) for card in cards), tuple(images)


def _card_to_json(card: Card) -> Json:
    extras = _set_only(simulated=card.simulated, path=card.path, trouble=card.trouble)
    numbers = {"memory": card.memory, "holder_pid": card.holder_pid}
    return {"index": card.index, "device": card.device, "model": card.model, **numbers, **extras}
