"""Users, groups, who belongs where, and how much they may use."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import sqlalchemy as sa
from sqlalchemy.exc import IntegrityError

from gpuyard.domain.errors import Conflict, NotFound
from gpuyard.domain.people import BLOCK, MOST_BLOCKS, Group, Membership, Quota, Role, User
from gpuyard.domain.reasons import Code, because
from gpuyard.store import facts
from gpuyard.store.feed import note_change
from gpuyard.store.schema import groups, memberships, quotas, users

USER_KIND, GROUP_KIND = "user", "group"  # as the change feed names them
_LAST_UID = "people.last_uid"


# --- users --------------------------------------------------------------------------------------------------------


def create_user(conn: sa.Connection, user: User, password_hash: str | None, now: float) -> None:
    """Remember a new user, with the memberships it names. Raises Conflict when the name or the uid is taken."""
    row = {**_user_row(user), "name": user.name, "password_hash": password_hash, "created_at": now}
    try:
        conn.execute(sa.insert(users), row)
    except IntegrityError as error:
        raise Conflict(because(Code.ALREADY_THERE, what="user", name=user.name)) from error
    for membership in user.memberships:
        set_member(conn, membership.group, user.name, membership.role)
    note_change(conn, USER_KIND, user.name)


def get_user(conn: sa.Connection, name: str) -> User | None:
    found = _read_users(conn, users.c.name == name)
    return found[0] if found else None


def all_users(conn: sa.Connection) -> list[User]:
    return _read_users(conn, sa.true())


def count_users(conn: sa.Connection) -> int:
    return int(conn.execute(sa.select(sa.func.count()).select_from(users)).scalar_one())


def password_hash(conn: sa.Connection, name: str) -> str | None:
    return conn.execute(sa.select(users.c.password_hash).where(users.c.name == name)).scalar()


def set_user(conn: sa.Connection, user: User) -> None:
    """Change what a user is (admin, active, uid, must_change_password). Memberships have their own verbs."""
    _must_exist(
        conn.execute(sa.update(users).where(users.c.name == user.name).values(_user_row(user))), "user", user.name
    )
    note_change(conn, USER_KIND, user.name)


def set_password(conn: sa.Connection, name: str, password_hash: str, *, must_change: bool) -> None:
    values = {"password_hash": password_hash, "must_change_password": must_change}
    _must_exist(conn.execute(sa.update(users).where(users.c.name == name).values(values)), "user", name)
    note_change(conn, USER_KIND, name)


def remove_user(conn: sa.Connection, name: str) -> None:
    """Forget a user with its memberships, quotas, tokens and sessions. What it submitted stays, under its name."""
    conn.execute(sa.delete(quotas).where(quotas.c.user_name == name))
    _must_exist(conn.execute(sa.delete(users).where(users.c.name == name)), "user", name)
    note_change(conn, USER_KIND, name)


def next_uid(conn: sa.Connection, start: int) -> int:
    """The first of a block of system numbers never given before, blocks counted from `start`.

    Numbers of removed users are not given again: files on disk still belong to them.
    """
    last = int(facts.get(conn, _LAST_UID) or 0)
    in_use = [conn.execute(sa.select(sa.func.max(column))).scalar() or 0 for column in (users.c.uid, groups.c.gid)]
    block = (max(last, *in_use, start - 1) - start) // BLOCK + 1
    if block >= MOST_BLOCKS:
        raise Conflict(because(Code.NO_NUMBERS, limit=MOST_BLOCKS))
    uid = start + block * BLOCK
    facts.put(conn, _LAST_UID, str(uid))
    return uid


def _user_row(user: User) -> dict[str, Any]:
    return {
        "admin": user.admin,
        "uid": user.uid,
        "active": user.active,
        "must_change_password": user.must_change_password,
    }


def _read_users(conn: sa.Connection, which: sa.ColumnElement[bool]) -> list[User]:
    rows = conn.execute(sa.select(users).where(which).order_by(users.c.name)).all()
    query = (
        sa.select(memberships)
        .join(users, users.c.name == memberships.c.user_name)
        .where(which)
        .order_by(memberships.c.group_name)
    )
    belongs: dict[str, list[Membership]] = {}
    for row in conn.execute(query):
        belongs.setdefault(row.user_name, []).append(Membership(row.group_name, Role(row.role)))
    return [
        User(row.name, row.admin, tuple(belongs.get(row.name, ())), row.uid, row.active, row.must_change_password)
        for row in rows
    ]


# --- groups -------------------------------------------------------------------------------------------------------


def create_group(conn: sa.Connection, group: Group, now: float) -> None:
    """Remember a new group with its quotas. Raises Conflict when the name is taken."""
    try:
        conn.execute(sa.insert(groups), {**_group_row(group), "name": group.name, "created_at": now})
    except IntegrityError as error:
        raise Conflict(because(Code.ALREADY_THERE, what="group", name=group.name)) from error
    for quota in group.quotas:
        set_quota(conn, quota)
    note_change(conn, GROUP_KIND, group.name)


def get_group(conn: sa.Connection, name: str) -> Group | None:
    found = _read_groups(conn, groups.c.name == name)
    return found[0] if found else None


def all_groups(conn: sa.Connection) -> list[Group]:
    return _read_groups(conn, sa.true())


def set_group(conn: sa.Connection, group: Group) -> None:
    """Change a group's gid, weight and order. Quotas and members have their own verbs."""
    changed = conn.execute(sa.update(groups).where(groups.c.name == group.name).values(_group_row(group)))
    _must_exist(changed, "group", group.name)
    note_change(conn, GROUP_KIND, group.name)


def remove_group(conn: sa.Connection, name: str) -> None:
    """Forget a group with its memberships and quotas. What was submitted in it stays, under its name."""
    _must_exist(conn.execute(sa.delete(groups).where(groups.c.name == name)), "group", name)
    note_change(conn, GROUP_KIND, name)


def members(conn: sa.Connection, group: str) -> list[tuple[str, Role]]:
    query = sa.select(memberships).where(memberships.c.group_name == group).order_by(memberships.c.user_name)
    return [(row.user_name, Role(row.role)) for row in conn.execute(query)]


def set_member(conn: sa.Connection, group: str, user: str, role: Role) -> None:
    """Make a user a member or the lead of a group, or change which of them."""
    its_row = (memberships.c.group_name == group, memberships.c.user_name == user)
    if conn.execute(sa.update(memberships).where(*its_row).values(role=role.value)).rowcount == 0:
        _find(conn, groups.c.name, "group", group)
        _find(conn, users.c.name, "user", user)
        conn.execute(sa.insert(memberships), {"group_name": group, "user_name": user, "role": role.value})
    note_change(conn, USER_KIND, user)


def remove_member(conn: sa.Connection, group: str, user: str) -> bool:
    its_row = (memberships.c.group_name == group, memberships.c.user_name == user)
    gone = conn.execute(sa.delete(memberships).where(*its_row)).rowcount > 0
    if gone:
        note_change(conn, USER_KIND, user)
    return gone


# --- quotas -------------------------------------------------------------------------------------------------------


def set_quota(conn: sa.Connection, quota: Quota) -> None:
    its_row = _quota_row(quota.group, quota.resource, quota.user)
    amounts = {"most": quota.limit, "guaranteed": quota.guaranteed}
    if conn.execute(sa.update(quotas).where(*its_row).values(amounts)).rowcount == 0:
        _find(conn, groups.c.name, "group", quota.group)
        names = {"group_name": quota.group, "user_name": quota.user or "", "resource": quota.resource}
        conn.execute(sa.insert(quotas), {**names, **amounts})
    note_change(conn, GROUP_KIND, quota.group)


def remove_quota(conn: sa.Connection, group: str, resource: str, user: str | None = None) -> bool:
    gone = conn.execute(sa.delete(quotas).where(*_quota_row(group, resource, user))).rowcount > 0
    if gone:
        note_change(conn, GROUP_KIND, group)
    return gone


def _quota_row(group: str, resource: str, user: str | None) -> Sequence[sa.ColumnElement[bool]]:
    return (quotas.c.group_name == group, quotas.c.user_name == (user or ""), quotas.c.resource == resource)


def _read_groups(conn: sa.Connection, which: sa.ColumnElement[bool]) -> list[Group]:
    rows = conn.execute(sa.select(groups).where(which).order_by(groups.c.name)).all()
    query = (
        sa.select(quotas)
        .join(groups, groups.c.name == quotas.c.group_name)
        .where(which)
        .order_by(quotas.c.group_name, quotas.c.user_name, quotas.c.resource)
    )
    limits: dict[str, list[Quota]] = {}
    for row in conn.execute(query):
        limits.setdefault(row.group_name, []).append(
            Quota(row.group_name, row.resource, row.most, row.user_name or None, row.guaranteed)
        )
    return [Group(row.name, tuple(limits.get(row.name, ())), row.gid, row.weight, row.fifo) for row in rows]


def _group_row(group: Group) -> dict[str, Any]:
    return {"gid": group.gid, "weight": group.weight, "fifo": group.fifo}


# --- small pieces -------------------------------------------------------------------------------------------------


def _must_exist(result: sa.CursorResult[Any], what: str, name: str) -> None:
    if result.rowcount == 0:
        raise NotFound(because(Code.NOT_FOUND, what=what, name=name))


def _find(conn: sa.Connection, column: sa.Column[Any], what: str, name: str) -> None:
    if conn.execute(sa.select(column).where(column == name)).first() is None:
        raise NotFound(because(Code.NOT_FOUND, what=what, name=name))
