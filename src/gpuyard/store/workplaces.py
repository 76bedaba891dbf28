"""What is remembered of dev environments besides the workload: timers, when each was last used, and which are to be
started again."""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Any

import sqlalchemy as sa

from gpuyard.domain.reasons import Code, because
from gpuyard.domain.workload import ENDED, Spec, State, StoryEvent, Wanted, Workload
from gpuyard.store import codec
from gpuyard.store import workloads as workload_rows
from gpuyard.store.schema import workloads, workplaces


@dataclass(frozen=True, slots=True)
class Anew:
    """A wish to start a dev environment, perhaps with something else than it had."""

    spec: Spec
    by: str
    changes: str = ""  # what is different, for the story
    timer_seconds: float | None = None  # from the start on


@dataclass(frozen=True, slots=True)
class Workplace:
    stop_at: float | None = None  # the timer its owner set
    used_at: float | None = None  # when somebody last worked in it, through browser or SSH
    warned_at: float | None = None  # when its owner was told that it will be stopped soon
    restarting: bool = False  # it is stopped to be started again


def add(conn: sa.Connection, id: str, stop_at: float | None = None) -> None:
    conn.execute(sa.insert(workplaces), {"workload_id": id, "stop_at": stop_at})


def get_many(conn: sa.Connection, ids: Iterable[str]) -> dict[str, Workplace]:
    query = sa.select(workplaces).where(workplaces.c.workload_id.in_(list(ids)))
    return {
        row.workload_id: Workplace(row.stop_at, row.used_at, row.warned_at, row.again is not None)
        for row in conn.execute(query)
    }


def get(conn: sa.Connection, id: str) -> Workplace | None:
    return get_many(conn, [id]).get(id)


def set_timer(conn: sa.Connection, id: str, stop_at: float | None) -> None:
    """A new time is also a new warning."""
    _update(conn, id, stop_at=stop_at, warned_at=None)


def touch(conn: sa.Connection, id: str, now: float) -> None:
    """Somebody works in it."""
    _update(conn, id, used_at=now, warned_at=None)


def warned(conn: sa.Connection, id: str, now: float) -> None:
    _update(conn, id, warned_at=now)


def start_anew(conn: sa.Connection, env: Workload, wish: Anew, now: float) -> bool:
    """One that is stopped asks for resources as if it were new. False when somebody changed it meanwhile."""
    told = because(Code.ASKED_ANEW, changes=wish.changes)
    story = [StoryEvent(now, told, env.state, env.attempts_made, wish.by)] if wish.changes else []
    if not workload_rows.amend(conn, env, wish.spec, story, asked_at=now):
        return False
    set_timer(conn, env.id, None if wish.timer_seconds is None else now + wish.timer_seconds)
    return workload_rows.want(conn, env.id, Wanted.RUN, wish.by, now)


def stop_to_start_anew(conn: sa.Connection, env: Workload, wish: Anew, now: float) -> None:
    """Stop it; control starts it again when it has stopped, whatever becomes of whoever asked."""
    workload_rows.want(conn, env.id, Wanted.PAUSE, wish.by, now)
    _update(conn, env.id, again=_to_text(wish))


def start_those_that_stopped(conn: sa.Connection, ids: Iterable[str], now: float) -> None:
    """Of these the ones that were stopped to be started again. What of them was changed in the meantime stays so."""
    query = sa.select(workplaces.c.workload_id, workplaces.c.again).where(
        workplaces.c.workload_id.in_(list(ids)), workplaces.c.again.is_not(None)
    )
    for row in conn.execute(query).all():
        env, wish = workload_rows.get(conn, row.workload_id), _from_text(row.again)
        if env is not None and env.state is State.PAUSED:
            spec = replace(wish.spec, idle_seconds=env.spec.idle_seconds, priority=env.spec.priority)
            start_anew(conn, env, replace(wish, spec=spec), now)


def _to_text(wish: Anew) -> str:
    told = {"by": wish.by, "changes": wish.changes, "timer_seconds": wish.timer_seconds}
    return json.dumps(told | {"spec": codec.spec_to_text(wish.spec)})


def _from_text(text: str) -> Anew:
    told = json.loads(text)
    return Anew(codec.spec_from_text(told["spec"]), told["by"], told["changes"], told["timer_seconds"])


def gone(conn: sa.Connection) -> list[str]:
    """Those that were removed, and whose belongings are still to be thrown away."""
    ended = [state.value for state in ENDED]
    query = (
        sa.select(workplaces.c.workload_id)
        .join(workloads, workloads.c.id == workplaces.c.workload_id)
        .where(workloads.c.state.in_(ended))
    )
    return list(conn.execute(query).scalars())


def forget(conn: sa.Connection, id: str) -> None:
    conn.execute(sa.delete(workplaces).where(workplaces.c.workload_id == id))


def _update(conn: sa.Connection, id: str, **values: Any) -> None:
    conn.execute(sa.update(workplaces).where(workplaces.c.workload_id == id).values(values))
