"""Who is let go from a group uses nothing of it any more: what they run there is paused, and goes on only once they are
back. Their share of the group's folder ends with the processes that had it open."""

from __future__ import annotations

from gpuyard.domain.errors import NotAllowed
from gpuyard.domain.people import User
from gpuyard.domain.reasons import Code, because
from gpuyard.domain.workload import Wanted, Workload
from gpuyard.store import people, workloads
from gpuyard.store.database import Connection


def pause_work(conn: Connection, user: str, group: str, by: str, now: float) -> list[str]:
    """The ids of what was to run. An admin needs no seat, so theirs goes on."""
    if _has_seat(people.get_user(conn, user), group):
        return []
    theirs = [work for work in workloads.live(conn) if (work.owner, work.group) == (user, group)]
    running = [work.id for work in theirs if work.wanted is Wanted.RUN]
    for id in running:
        workloads.want(conn, id, Wanted.PAUSE, by, now)
    return running


def require_seat(conn: Connection, work: Workload) -> None:
    """Before it starts again."""
    if not _has_seat(people.get_user(conn, work.owner), work.group):
        raise NotAllowed(because(Code.OWNER_LEFT_GROUP, owner=work.owner, group=work.group, name=work.spec.name))


def _has_seat(user: User | None, group: str) -> bool:
    return user is not None and (user.admin or group in user.groups)
