"""Groups over HTTP: who is in them, and how much they may use."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Annotated, Any

from fastapi import Path

from gpuyard.access import audit
from gpuyard.access.rights import Action, InGroup, Limit, Person, Refused, Seat
from gpuyard.api import models, views
from gpuyard.api.guard import Caller, Doors, needs
from gpuyard.api.users import LIVE_STATES, find_user
from gpuyard.domain.errors import BadInput, Conflict, NotFound
from gpuyard.domain.people import Group, Quota, Role
from gpuyard.domain.problems import Problem
from gpuyard.domain.reasons import Code, because
from gpuyard.domain.resources import parse_bytes, parse_cards, parse_cpu
from gpuyard.store import people, workloads
from gpuyard.store.database import Connection
from gpuyard.store.workloads import EVERYTHING, WorkloadFilter

doors = Doors(prefix="/api/v1", tags=["groups"])
Name = Annotated[str, Path(description="the group's name")]
UserName = Annotated[str, Path(description="the user's name")]
Used = Mapping[tuple[str, str | None, str], int]


@doors.get("/groups", response_model=models.GroupList)
def list_groups(caller: Annotated[Caller, needs(Action.SEE_GROUP)]) -> Any:
    used = views.use_by_quota(caller.parts.holding())
    with caller.parts.database.read() as conn:
        seen = [group for group in people.all_groups(conn) if caller.may(Action.SEE_GROUP, InGroup(group.name))]
        return models.GroupList(items=[_group_out(conn, group, used) for group in seen])


@doors.get("/groups/{name}", response_model=models.GroupOut)
def show_group(caller: Annotated[Caller, needs(Action.SEE_GROUP)], name: Name) -> Any:
    used = views.use_by_quota(caller.parts.holding())
    with caller.parts.database.read() as conn:
        group = _find_group(caller, conn, name, Action.SEE_GROUP)
        return _group_out(conn, group, used)


@doors.post("/groups", status_code=201, response_model=models.GroupOut)
def create_group(caller: Annotated[Caller, needs(Action.ADD_GROUP)], wish: models.GroupIn) -> Any:
    limits = _read_limits(wish.quota)
    quotas = tuple(Quota(wish.name, resource, limit) for resource, limit in limits.items() if limit is not None)
    with caller.parts.database.write() as conn:
        group = Group(wish.name, quotas, gid=caller.parts.access.next_number(conn))
        people.create_group(conn, group, caller.now)
        audit.record(conn, caller.actor, Action.ADD_GROUP, wish.name, caller.now, facts={"quota": limits})
        return _group_out(conn, group, {})


@doors.patch("/groups/{name}", response_model=models.GroupOut)
def change_group(caller: Annotated[Caller, needs(Action.CHANGE_GROUP)], name: Name, wish: models.GroupChange) -> Any:
    """Set some of the group's own limits."""
    return _set_quota(caller, name, wish.quota, None)


@doors.put("/groups/{name}/quota", response_model=models.GroupOut)
def set_quota(caller: Annotated[Caller, needs(Action.SET_QUOTA)], name: Name, wish: models.QuotaIn) -> Any:
    """Set some limits of the group, or of one user in it. Those not named stay."""
    return _set_quota(caller, name, wish.limits, wish.user)


@doors.delete("/groups/{name}", response_model=models.Done)
def remove_group(caller: Annotated[Caller, needs(Action.REMOVE_GROUP)], name: Name) -> Any:
    """A group with members, or with work that runs or waits, cannot be removed."""
    with caller.parts.database.write() as conn:
        _find_group(caller, conn, name, Action.REMOVE_GROUP)
        filters = WorkloadFilter(groups=(name,), states=LIVE_STATES)
        live, _ = workloads.page(conn, filters=filters, visible_to=EVERYTHING, limit=1)
        holders = [workload.id for workload in live] or [user for user, _ in people.members(conn, name)]
        if holders:
            raise Conflict(because(Code.IN_USE, what="group", name=name, by=holders[0]))
        people.remove_group(conn, name)
        audit.record(conn, caller.actor, Action.REMOVE_GROUP, name, caller.now)
    return models.Done()


@doors.put("/groups/{name}/members/{user}", response_model=models.GroupOut)
def set_member(
    caller: Annotated[Caller, needs(Action.SET_MEMBER)],
    name: Name,
    user: UserName,
    wish: models.MemberIn | None = None,
) -> Any:
    """Put someone into a group, or change what they are in it. Only admins bring someone in."""
    return _set_seat(caller, name, user, Role(wish.role) if wish else Role.MEMBER)


@doors.delete("/groups/{name}/members/{user}", response_model=models.GroupOut)
def remove_member(caller: Annotated[Caller, needs(Action.SET_MEMBER)], name: Name, user: UserName) -> Any:
    return _set_seat(caller, name, user, None)


def _set_seat(caller: Caller, name: str, user_name: str, role: Role | None) -> models.GroupOut:
    with caller.parts.database.write() as conn:
        group = _find_group(caller, conn, name, Action.SET_MEMBER)
        if not caller.actor.is_admin and not caller.actor.user.leads(name):
            caller.require(Action.SET_MEMBER, InGroup(name))
        user = find_user(conn, user_name)
        now = dict(people.members(conn, name)).get(user_name)
        _require_seat(caller, Seat(name, user, now, role))
        if role is None and not people.remove_member(conn, name, user_name):
            raise NotFound(because(Code.NOT_FOUND, what="user", name=user_name))
        if role is not None:
            people.set_member(conn, name, user_name, role)
        facts = {"user": user_name, "role": role.value if role else ""}
        audit.record(conn, caller.actor, Action.SET_MEMBER, name, caller.now, facts=facts)
        shown = _group_out(conn, group, {})
    caller.parts.access.forget()
    return shown


def _require_seat(caller: Caller, seat: Seat) -> None:
    """Who is not in the group does not exist for its lead, who could else go through all names."""
    if seat.now is None and not caller.actor.is_admin:
        raise Refused(Action.SET_MEMBER, Person(seat.user))
    caller.require(Action.SET_MEMBER, seat)


def _set_quota(caller: Caller, name: str, given: models.Limits, user: str | None) -> models.GroupOut:
    limits = _read_limits(given)
    with caller.parts.database.write() as conn:
        group = _find_group(caller, conn, name, Action.SET_QUOTA)
        own = {quota.resource: quota.limit for quota in group.quotas if quota.user is None}
        for resource, limit in limits.items():
            caller.require(Action.SET_QUOTA, Limit(name, user, limit, own.get(resource)))
        if user is not None and user not in dict(people.members(conn, name)):
            raise BadInput(because(Code.NOT_FOUND, what="user", name=user))
        for resource, limit in limits.items():
            if limit is None:
                people.remove_quota(conn, name, resource, user)
            else:
                people.set_quota(conn, Quota(name, resource, limit, user))
        facts = {"user": user or "", "limits": limits}
        audit.record(conn, caller.actor, Action.SET_QUOTA, name, caller.now, facts=facts)
        return _group_out(conn, people.get_group(conn, name) or group, {})


def _find_group(caller: Caller, conn: Connection, name: str, action: Action) -> Group:
    """Of a group one is not in, one learns nothing: not even that it exists."""
    group = people.get_group(conn, name)
    if group is None:
        raise NotFound(because(Code.NOT_FOUND, what="group", name=name[:80]))
    if not caller.may(Action.SEE_GROUP, InGroup(name)):
        caller.require(action, InGroup(name))
    return group


def _group_out(conn: Connection, group: Group, used: Used) -> models.GroupOut:
    members = [models.MemberOut(user=user, role=role) for user, role in people.members(conn, group.name)]
    return models.GroupOut(name=group.name, members=members, quotas=quotas_out(group.quotas, used))


def quotas_out(quotas: Iterable[Quota], used: Used) -> list[models.QuotaOut]:
    return [
        models.QuotaOut(
            group=quota.group,
            user=quota.user,
            resource=quota.resource,
            limit=views.amount(quota.resource, quota.limit),
            used=views.amount(quota.resource, used.get((quota.group, quota.user, quota.resource), 0)),
        )
        for quota in quotas
    ]


# --- limits as people write them ----------------------------------------------------------------------------------


def _read_limits(given: models.Limits) -> dict[str, int | None]:
    """{"nvidia": 8, "cpu": "64", "memory": "256G"} in the units of Quota; null means: no limit."""
    limits: dict[str, int | None] = {}
    problems = []
    for resource, written in given.items():
        try:
            limits[resource] = None if written is None else _read_amount(resource, str(written).strip())
        except ValueError:
            problem = {"memory": Problem.BYTES, "cpu": Problem.CPU}.get(resource, Problem.CARDS)
            facts = {"problem": problem.value, "value": str(written)[:40]}
            problems.append(because(Code.BAD_VALUE, at=f"quota.{resource}", **facts))
    if problems:
        raise BadInput(*problems)
    return limits


def _read_amount(resource: str, text: str) -> int:
    if text in ("0", "0.0"):
        return 0
    if resource == "memory":
        return parse_bytes(text)
    return parse_cpu(text) if resource == "cpu" else parse_cards(text)
