"""Users over HTTP. Making, changing and removing them is for admins; everyone sees themselves, leads their members."""

from __future__ import annotations

from dataclasses import replace
from typing import Annotated, Any

from fastapi import Path

from gpuyard.access import audit, tokens
from gpuyard.access.passwords import make_one_time_password
from gpuyard.access.rights import Action, Person
from gpuyard.access.service import FIRST_GROUP
from gpuyard.api import models, policies, views
from gpuyard.api.guard import Caller, Doors, needs
from gpuyard.dialects.policy import forget_person
from gpuyard.domain.errors import BadInput, Conflict, NotFound
from gpuyard.domain.people import Membership, Role, User
from gpuyard.domain.reasons import Code, because
from gpuyard.domain.workload import ENDED, State
from gpuyard.store import logins, people, workloads
from gpuyard.store.database import Connection
from gpuyard.store.workloads import EVERYTHING, WorkloadFilter

doors = Doors(prefix="/api/v1", tags=["users"])
Name = Annotated[str, Path(description="the user's name")]
LIVE_STATES = tuple(state for state in State if state not in ENDED)
LAST_ADMIN = "the last admin"


@doors.get("/users", response_model=models.UserList)
def list_users(caller: Annotated[Caller, needs(Action.SEE_USER)]) -> Any:
    with caller.parts.database.read() as conn:
        everyone = people.all_users(conn)
    seen = [user for user in everyone if caller.may(Action.SEE_USER, Person(user))]
    return models.UserList(items=[views.user_out(user) for user in seen])


@doors.get("/users/{name}", response_model=models.UserOut)
def show_user(caller: Annotated[Caller, needs(Action.SEE_USER)], name: Name) -> Any:
    with caller.parts.database.read() as conn:
        user = find_user(conn, name)
    caller.require(Action.SEE_USER, Person(user))
    return views.user_out(user)


@doors.post("/users", status_code=201, response_model=models.UserMade)
def create_user(caller: Annotated[Caller, needs(Action.ADD_USER)], wish: models.UserIn) -> Any:
    """With a password, or with a one-time password that is shown here and has to be changed."""
    access, now = caller.parts.access, caller.now
    if access.rules.single_user:
        raise Conflict(because(Code.SINGLE_USER))
    one_time = None if wish.password else make_one_time_password()
    hashed = access.hash_new_password(wish.password or one_time or "", wish.name)
    with caller.parts.database.write() as conn:
        user = User(
            wish.name,
            admin=wish.role is Role.ADMIN,
            memberships=_first_seat(conn, wish),
            uid=access.next_number(conn),
            must_change_password=one_time is not None,
        )
        _refuse_used_name(conn, wish.name)
        people.create_user(conn, user, hashed, now)
        facts = {"role": wish.role.value, "group": wish.group or ""}
        audit.record(conn, caller.actor, Action.ADD_USER, wish.name, now, facts=facts)
    return models.UserMade(**views.user_fields(user), password=one_time)


def _first_seat(conn: Connection, wish: models.UserIn) -> tuple[Membership, ...]:
    group = wish.group or FIRST_GROUP
    if people.get_group(conn, group) is None:
        if wish.group is None:
            return ()
        raise BadInput(because(Code.NOT_FOUND, what="group", name=group))
    return (Membership(group, Role.LEAD if wish.role is Role.LEAD else Role.MEMBER),)


def _refuse_used_name(conn: Connection, name: str) -> None:
    """Whoever had the name before left work under it; it must not become a stranger's."""
    left, _ = workloads.page(conn, filters=WorkloadFilter(owner=name), visible_to=EVERYTHING, limit=1)
    if left or people.get_user(conn, name) is not None:
        raise Conflict(because(Code.ALREADY_THERE, what="user", name=name))


@doors.patch("/users/{name}", response_model=models.UserOut)
def change_user(caller: Annotated[Caller, needs(Action.CHANGE_USER)], name: Name, wish: models.UserChange) -> Any:
    """Someone deactivated is out at once: sessions end and tokens stop working. Their work goes on."""
    with caller.parts.database.write() as conn:
        before = find_user(conn, name)
        changes = wish.model_dump(exclude_none=True)
        after = replace(before, **changes)
        if before.admin and before.active and not (after.admin and after.active):
            _require_another_admin(conn, name)
        if after != before:
            people.set_user(conn, after)
            if not after.active:
                _put_out(conn, name, caller.now)
            audit.record(conn, caller.actor, Action.CHANGE_USER, name, caller.now, facts=changes)
    caller.parts.access.forget()
    return views.user_out(after)


@doors.post("/users/{name}/password", response_model=models.NewPasswordOut)
def set_password(
    caller: Annotated[Caller, needs(Action.SET_PASSWORD)], name: Name, wish: models.NewPasswordIn | None = None
) -> Any:
    """Give someone a new password. All their sessions end, and all their tokens unless told to keep them."""
    given, keep_tokens = (wish.password, wish.keep_tokens) if wish else (None, False)
    one_time = None if given else make_one_time_password()
    with caller.parts.database.read() as conn:
        find_user(conn, name)
    hashed = caller.parts.access.hash_new_password(given or one_time or "", name)
    with caller.parts.database.write() as conn:
        people.set_password(conn, name, hashed, must_change=one_time is not None)
        logins.remove_sessions_of(conn, name)
        count = 0 if keep_tokens else tokens.revoke_all(conn, name, caller.now, but=caller.actor.token_id)
        audit.record(conn, caller.actor, Action.SET_PASSWORD, name, caller.now, facts={"tokens": count})
    caller.parts.access.forget()
    return models.NewPasswordOut(password=one_time)


@doors.delete("/users/{name}", response_model=models.Done)
def remove_user(caller: Annotated[Caller, needs(Action.REMOVE_USER)], name: Name) -> Any:
    """Someone whose work still runs or waits cannot be removed."""
    with caller.parts.database.write() as conn:
        user = find_user(conn, name)
        if user.admin and user.active:
            _require_another_admin(conn, name)
        filters = WorkloadFilter(owner=name, states=LIVE_STATES)
        live, _ = workloads.page(conn, filters=filters, visible_to=EVERYTHING, limit=1)
        if live:
            raise Conflict(because(Code.IN_USE, what="user", name=name, by=live[0].id))
        _put_out(conn, name, caller.now)
        people.remove_user(conn, name)
        policies.rewrite(conn, lambda policy: forget_person(policy, name))
        audit.record(conn, caller.actor, Action.REMOVE_USER, name, caller.now)
    caller.parts.access.forget()
    return models.Done()


def find_user(conn: Connection, name: str) -> User:
    user = people.get_user(conn, name)
    if user is None:
        raise NotFound(because(Code.NOT_FOUND, what="user", name=name[:80]))
    return user


def _put_out(conn: Connection, name: str, now: float) -> None:
    logins.remove_sessions_of(conn, name)
    tokens.revoke_all(conn, name, now)


def _require_another_admin(conn: Connection, name: str) -> None:
    if not any(user.admin and user.active and user.name != name for user in people.all_users(conn)):
        raise Conflict(because(Code.IN_USE, what="user", name=name, by=LAST_ADMIN))
