"""The commands about queues: here they are groups."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any

from gpuyard.dialects.volcano import telling
from gpuyard.doors.asking import Refusal, Server, in_path
from gpuyard.doors.cobra import Given
from gpuyard.doors.vcctl.failing import QUEUES, Failure, already_exists, not_found
from gpuyard.doors.vcctl.master import server_of

LIVE = "queued,placed,starting,running,stopping,paused"
ACTIONS = ("open", "close", "update")
CANNOT_CLOSE = (
    "a queue is a group here, and is always open. To start nothing new in it, set its limits to 0: "
    "`yard group set {name} --quota nvidia=0`; what is submitted then waits"
)


def create(given: Given) -> None:
    name, weight = _named(given), given.number("weight")
    if given.text("state") not in ("", telling.OPEN):
        raise Failure(CANNOT_CLOSE.format(name=name))
    if weight <= 0:
        raise Failure(_wrong_weight(weight))
    try:
        with server_of(given) as server:
            server.post("/groups", {"name": name, "weight": weight})
    except Refusal as refusal:
        if refusal.status == 409:
            raise already_exists(QUEUES, name) from refusal
        raise


def list_queues(given: Given) -> None:
    with server_of(given) as server:
        groups = server.get("/groups")["items"]
        if not groups:
            print(telling.NOTHING_FOUND)
            return
        print(_table(server, groups))


def get(given: Given) -> None:
    with server_of(given) as server:
        print(_table(server, [_group(server, _named(given))]))


def operate(given: Given) -> None:
    name, action = _named(given), given.text("action")
    if not action:
        raise Failure("action can not be null")
    if action not in ACTIONS:
        raise Failure(f"action {action} invalid, valid actions are open, close and update")
    weight = given.number("weight")
    if action == "update" and weight == 0:
        raise Failure(f"when update queue {name}, weight must be specified, the value must be greater than 0")
    if weight < 0:
        raise Failure(_wrong_weight(weight))
    with server_of(given) as server:
        _group(server, name)
        if action == "close":
            raise Failure(CANNOT_CLOSE.format(name=name))
        if action == "update":
            server.patch(f"/groups/{in_path(name)}", {"weight": weight})


def delete(given: Given) -> None:
    name = _named(given)
    with server_of(given) as server:
        _group(server, name)
        server.delete(f"/groups/{in_path(name)}")


def _named(given: Given) -> str:
    name = given.text("name")
    if not name:
        raise Failure("queue name must be specified")
    return name


def _wrong_weight(weight: int) -> str:
    words = f"spec.weight: Invalid value: {weight}: queue weight must be a positive integer"
    return f'admission webhook "validatequeue.volcano.sh" denied the request: {words}'


def _group(server: Server, name: str) -> dict[str, Any]:
    try:
        group: dict[str, Any] = server.get(f"/groups/{in_path(name)}")
        return group
    except Refusal as refusal:
        if refusal.status == 404:
            raise not_found(QUEUES, name) from refusal
        raise


def _table(server: Server, groups: Sequence[dict[str, Any]]) -> str:
    only = groups[0]["name"] if len(groups) == 1 else None
    count: dict[str, Counter[str]] = {group["name"]: Counter() for group in groups}
    for item in server.every("/workloads", kind="job", state=LIVE, group=only):
        if item["group"] in count:
            count[item["group"]][telling.queue_state(item)] += 1
    return telling.queue_table((group["name"], group["weight"], count[group["name"]]) for group in groups)
