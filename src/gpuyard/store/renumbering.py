"""Numbers of an older version, one for each user and group, replaced by blocks of them.

In two steps, because files follow: the new numbers are given and the old ones remembered beside them, in one
transaction; once every file has been given to the new numbers, the old ones are forgotten. A crash in between leaves
what is needed to go on.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import dataclass, field, replace

import sqlalchemy as sa

from gpuyard.domain.people import BLOCK, Group, User
from gpuyard.domain.workload import HOLDS_RESOURCES
from gpuyard.store import facts, people
from gpuyard.store.schema import workloads

_UNDER_WAY = "people.renumbering"


@dataclass(frozen=True, slots=True)
class Renumbering:
    """Old number -> new number, of users and of groups; and who keeps the old one for now, because their work runs."""

    uids: dict[int, int] = field(default_factory=dict)
    gids: dict[int, int] = field(default_factory=dict)
    later: tuple[str, ...] = ()

    def __bool__(self) -> bool:
        return bool(self.uids or self.gids)


def begin(conn: sa.Connection, first: int) -> Renumbering:
    """Give blocks, counted from `first`, to whoever has an older number and no work that runs. What an earlier call
    gave and did not finish is part of the answer."""
    before = under_way(conn)
    users = [user for user in people.all_users(conn) if _is_old(user.uid, first)]
    groups = [group for group in people.all_groups(conn) if _is_old(group.gid, first)]
    working, shared = _at_work(conn)
    uids, gids = dict(before.uids), dict(before.gids)
    for user in users:
        if user.name not in working:
            uids[user.uid] = people.next_uid(conn, first)
            people.set_user(conn, replace(user, uid=uids[user.uid]))
    for group in groups:
        if group.name not in shared:
            gids[group.gid] = people.next_uid(conn, first)
            people.set_group(conn, replace(group, gid=gids[group.gid]))
    if (uids, gids) != (before.uids, before.gids):
        facts.put(conn, _UNDER_WAY, json.dumps({"uids": uids, "gids": gids}))
    return Renumbering(uids, gids, _names_in(users, working) + _names_in(groups, shared))


def under_way(conn: sa.Connection) -> Renumbering:
    told = json.loads(facts.get(conn, _UNDER_WAY) or "{}")
    numbers = {which: {int(old): int(new) for old, new in told.get(which, {}).items()} for which in ("uids", "gids")}
    return Renumbering(numbers["uids"], numbers["gids"])


def finish(conn: sa.Connection) -> None:
    """All files have been given to the new numbers."""
    facts.put(conn, _UNDER_WAY, "{}")


def is_needed(conn: sa.Connection, first: int) -> bool:
    numbers = [user.uid for user in people.all_users(conn)] + [group.gid for group in people.all_groups(conn)]
    return bool(under_way(conn)) or any(_is_old(number, first) for number in numbers)


def _is_old(number: int, first: int) -> bool:
    return number != 0 and (number < first or (number - first) % BLOCK != 0)


def _at_work(conn: sa.Connection) -> tuple[set[str], set[str]]:
    """The users and the groups whose work may be running."""
    states = [state.value for state in HOLDS_RESOURCES]
    query = sa.select(workloads.c.owner, workloads.c.group_name).where(workloads.c.state.in_(states)).distinct()
    rows = conn.execute(query).all()
    return {row.owner for row in rows}, {row.group_name for row in rows}


def _names_in(them: Iterable[User | Group], names: set[str]) -> tuple[str, ...]:
    return tuple(one.name for one in them if one.name in names)
