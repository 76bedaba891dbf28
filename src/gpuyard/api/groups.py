"""Groups over HTTP: who is in them, and how much they may use."""

from __future__ import annotations

from dataclasses import replace
from typing import Annotated, Any

from fastapi import Path

from gpuyard.access import audit
from gpuyard.access.rights import Action, InGroup, Limit, Person, Refused, Seat
from gpuyard.api import leaving, models, policies, quotas
from gpuyard.api.guard import Caller, Doors, needs
from gpuyard.api.quotas import Ledger
from gpuyard.api.users import LIVE_STATES, find_user
from gpuyard.dialects.policy import forget_group
from gpuyard.domain.errors import BadInput, Conflict, NotFound
from gpuyard.domain.people import Group, Role
from gpuyard.domain.reasons import Code, because
from gpuyard.store import people, workloads
from gpuyard.store.database import Connection
from gpuyard.store.workloads import EVERYTHING, WorkloadFilter

doors = Doors(prefix="/api/v1", tags=["groups"])
Name = Annotated[str, Path(description="the group's name")]
UserName = Annotated[str, Path(description="the user's name")]


@doors.get("/groups", response_model=models.GroupList)
def list_groups(caller: Annotated[Caller, needs(Action.SEE_GROUP)]) -> Any:
    holding = caller.parts.holding()
    with caller.parts.database.read() as conn:
        ledger = quotas.ledger(conn, holding)
        seen = [group for group in ledger.groups if caller.may(Action.SEE_GROUP, InGroup(group.name))]
        return models.GroupList(items=[_group_out(conn, group, ledger) for group in seen])


@doors.get("/groups/{name}", response_model=models.GroupOut)
def show_group(caller: Annotated[Caller, needs(Action.SEE_GROUP)], name: Name) -> Any:
    holding = caller.parts.holding()
    with caller.parts.database.read() as conn:
        group = _find_group(caller, conn, name, Action.SEE_GROUP)
        return _group_out(conn, group, quotas.ledger(conn, holding))


@doors.post("/groups", status_code=201, response_model=models.GroupOut)
def create_group(caller: Annotated[Caller, needs(Action.ADD_GROUP)], wish: models.GroupIn) -> Any:
    limits, guarantees = quotas.read_amounts(wish.quota), quotas.read_amounts(wish.guarantees, "guarantees")
    lines = quotas.changed(Group(wish.name), None, limits, guarantees)
    with caller.parts.database.write() as conn:
        gid = caller.parts.access.next_number(conn)
        group = Group(wish.name, tuple(lines.values()), gid, wish.weight, wish.fifo)
        people.create_group(conn, group, caller.now)
        facts = {"quota": limits, "guarantees": guarantees, "weight": wish.weight, "fifo": wish.fifo}
        audit.record(conn, caller.actor, Action.ADD_GROUP, wish.name, caller.now, facts=facts)
        return _group_out(conn, group, Ledger(), _warnings(caller, conn, guarantees))


@doors.patch("/groups/{name}", response_model=models.GroupOut)
def change_group(caller: Annotated[Caller, needs(Action.CHANGE_GROUP)], name: Name, wish: models.GroupChange) -> Any:
    """Change what fair share makes of the group, or some of its own limits."""
    with caller.parts.database.write() as conn:
        group = _find_group(caller, conn, name, Action.CHANGE_GROUP)
        weight = group.weight if wish.weight is None else wish.weight
        fifo = group.fifo if wish.fifo is None else wish.fifo
        if (weight, fifo) != (group.weight, group.fifo):
            people.set_group(conn, replace(group, weight=weight, fifo=fifo))
            facts = {"weight": weight, "fifo": fifo}
            audit.record(conn, caller.actor, Action.CHANGE_GROUP, name, caller.now, facts=facts)
        told = _set_quota(caller, conn, name, models.QuotaIn(limits=wish.quota, guarantees=wish.guarantees))
    return _with_use(caller, told, None, wish.quota)


@doors.put("/groups/{name}/quota", response_model=models.GroupOut)
def set_quota(caller: Annotated[Caller, needs(Action.SET_QUOTA)], name: Name, wish: models.QuotaIn) -> Any:
    """Set some limits of the group, or of one user in it, or what is guaranteed to it. Those not named stay."""
    if wish.limits is None and wish.guarantees is None:
        raise BadInput(because(Code.MISSING_KEY, at="", key="limits"))
    with caller.parts.database.write() as conn:
        told = _set_quota(caller, conn, name, wish)
    return _with_use(caller, told, wish.user, wish.limits)


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
        policies.rewrite(conn, lambda policy: forget_group(policy, name))
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
        facts: dict[str, Any] = {"user": user_name, "role": role.value if role else ""}
        if role is None:
            facts["paused"] = leaving.pause_work(conn, user_name, name, caller.actor.name, caller.now)
        else:
            people.set_member(conn, name, user_name, role)
        audit.record(conn, caller.actor, Action.SET_MEMBER, name, caller.now, facts=facts)
        shown = _group_out(conn, group, Ledger())
    caller.parts.access.forget()
    return shown


def _require_seat(caller: Caller, seat: Seat) -> None:
    """Who is not in the group does not exist for its lead, who could else go through all names."""
    if seat.now is None and not caller.actor.is_admin:
        raise Refused(Action.SET_MEMBER, Person(seat.user))
    caller.require(Action.SET_MEMBER, seat)


def _set_quota(caller: Caller, conn: Connection, name: str, wish: models.QuotaIn) -> models.GroupOut:
    limits = quotas.read_amounts(wish.limits or {})
    guarantees = quotas.read_amounts(wish.guarantees or {}, "guarantees")
    group = _find_group(caller, conn, name, Action.SET_QUOTA)
    own = {quota.resource: quota.limit for quota in group.quotas if quota.user is None}
    for resource, limit in limits.items():
        caller.require(Action.SET_QUOTA, Limit(name, wish.user, limit, own.get(resource)))
    for resource, amount in guarantees.items():  # never a lead's to set, so asked for the group as a whole
        caller.require(Action.SET_QUOTA, Limit(name, None, amount, own.get(resource)))
    if wish.user is not None and wish.user not in dict(people.members(conn, name)):
        raise BadInput(because(Code.NOT_FOUND, what="user", name=wish.user))
    for resource, line in quotas.changed(group, wish.user, limits, guarantees).items():
        if line.limit is None and not line.guaranteed:
            people.remove_quota(conn, name, resource, wish.user)
        else:
            people.set_quota(conn, line)
    if limits or guarantees:
        facts = {"user": wish.user or "", "limits": limits} | ({"guarantees": guarantees} if guarantees else {})
        audit.record(conn, caller.actor, Action.SET_QUOTA, name, caller.now, facts=facts)
    after = people.get_group(conn, name) or group
    return _group_out(conn, after, Ledger(), _warnings(caller, conn, guarantees))


def _warnings(caller: Caller, conn: Connection, guarantees: quotas.Amounts) -> list[str]:
    return [caller.say(note) for note in quotas.over_guaranteed(conn, guarantees)]


def _with_use(caller: Caller, told: models.GroupOut, user: str | None, limits: models.Limits | None) -> models.GroupOut:
    """With a note on each new limit that is below what is in use. Looked up once everything is written."""
    amounts = quotas.read_amounts(limits or {})
    holding = caller.parts.holding() if any(amounts.values()) or 0 in amounts.values() else ()
    notes = [caller.say(note) for note in quotas.below_use(holding, told.name, user, amounts)]
    return told.model_copy(update={"warnings": [*told.warnings, *notes]})


def _find_group(caller: Caller, conn: Connection, name: str, action: Action) -> Group:
    """Of a group one is not in, one learns nothing: not even that it exists."""
    group = people.get_group(conn, name)
    if group is None:
        raise NotFound(because(Code.NOT_FOUND, what="group", name=name[:80]))
    if not caller.may(Action.SEE_GROUP, InGroup(name)):
        caller.require(action, InGroup(name))
    return group


def _group_out(conn: Connection, group: Group, ledger: Ledger, warnings: list[str] | None = None) -> models.GroupOut:
    return models.GroupOut(
        name=group.name,
        members=[models.MemberOut(user=user, role=role) for user, role in people.members(conn, group.name)],
        quotas=ledger.lines(group),
        used=ledger.used_by(group.name),
        weight=group.weight,
        fifo=group.fifo,
        warnings=warnings or [],
    )
