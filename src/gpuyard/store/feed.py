"""The change feed: a numbered list of what changed, and a way to wait for the next number.

Each change is written in the transaction that made it. There is one writer at a time, so numbers become visible in
order: a follower that has seen number n has missed nothing below it.
"""

from __future__ import annotations

import json
import logging
import threading
import time
from collections.abc import Callable, Iterable, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass

import sqlalchemy as sa

from gpuyard.store import facts
from gpuyard.store.bulk import execute_many
from gpuyard.store.schema import changes
from gpuyard.store.watch import CHANNEL, Watch

KEPT_SECONDS = 3600.0
KEPT_CHANGES = 100_000
_PRUNED_TO = "feed.pruned_to"
_MARKS = "feed.marks"
_MARK_EVERY_SECONDS = 60.0

_log = logging.getLogger(__name__)
_insert = sa.insert(changes)
_newest = sa.select(sa.func.coalesce(sa.func.max(changes.c.seq), 0))
_since = (
    sa.select(changes.c.seq, changes.c.kind, changes.c.object_id)
    .where(changes.c.seq > sa.bindparam("after"))
    .order_by(changes.c.seq)
    .limit(sa.bindparam("most"))
)
_others = (
    sa.select(changes.c.seq)
    .where(changes.c.seq > sa.bindparam("after"), changes.c.kind != sa.bindparam("but"))
    .limit(1)
)


@dataclass(frozen=True, slots=True)
class Change:
    """Something of this kind with this id is not what it was. What it is now must be read."""

    seq: int
    kind: str
    id: str


class FeedTooOld(Exception):
    """The follower has slept so long that the changes it missed are gone; it must load everything anew."""


def note_change(conn: sa.Connection, kind: str, id: str) -> None:
    """Tell the followers, in this transaction. They hear of it once it is committed."""
    note_changes(conn, kind, (id,))


def note_changes(conn: sa.Connection, kind: str, ids: Iterable[str]) -> None:
    rows = [{"kind": kind, "object_id": id} for id in ids]
    if rows:
        execute_many(conn, _insert, rows)
        conn.info["changed"] = True


def announce(conn: sa.Connection) -> int | None:
    """The last word of a write transaction: the newest number if it noted a change, sent to whoever listens."""
    if not conn.info.get("changed"):
        return None
    newest: int = conn.execute(_newest).scalar_one()
    if conn.dialect.name == "postgresql":
        conn.execute(sa.select(sa.func.pg_notify(CHANNEL, str(newest))))
    return newest


def newest_change(conn: sa.Connection) -> int:
    """The number this snapshot stands at: load from the same snapshot, then follow from here."""
    return int(conn.execute(_newest).scalar_one())


def changes_since(conn: sa.Connection, seq: int, limit: int = 10_000) -> list[Change]:
    """What changed after `seq`, oldest first. Raises FeedTooOld when part of it has been pruned."""
    if seq < int(facts.get(conn, _PRUNED_TO) or 0):
        raise FeedTooOld
    rows = conn.execute(_since, {"after": seq, "most": limit})
    return [Change(row.seq, row.kind, row.object_id) for row in rows]


def has_other_changes(conn: sa.Connection, seq: int, kind: str) -> bool:
    """Did anything but this kind change after `seq`?"""
    return conn.execute(_others, {"after": seq, "but": kind}).first() is not None


def has_changes_of(conn: sa.Connection, seq: int, kinds: Sequence[str]) -> bool:
    """Did anything of these kinds change after `seq`? Not to be relied on beyond the hour that changes are kept."""
    query = sa.select(changes.c.seq).where(changes.c.seq > seq, changes.c.kind.in_(kinds)).limit(1)
    return conn.execute(query).first() is not None


def prune(
    conn: sa.Connection, now: float, *, kept_seconds: float = KEPT_SECONDS, kept_changes: int = KEPT_CHANGES
) -> int:
    """Drop changes that are both older than an hour and beyond the newest 100,000. Returns how many.

    Changes carry no time; instead each call leaves a mark "at this time the newest was n", and old marks tell the age.
    """
    newest = newest_change(conn)
    marks: list[tuple[float, int]] = [(at, seq) for at, seq in json.loads(facts.get(conn, _MARKS) or "[]")]
    old_enough = max((seq for at, seq in marks if at <= now - kept_seconds), default=0)
    marks = [(at, seq) for at, seq in marks if seq >= old_enough and at <= now]
    if not marks or marks[-1][0] <= now - min(_MARK_EVERY_SECONDS, kept_seconds):
        marks.append((now, newest))
    facts.put(conn, _MARKS, json.dumps(marks))
    upto = min(old_enough, newest - max(kept_changes, 1))  # the newest row stays: it is how the feed knows its number
    if upto <= int(facts.get(conn, _PRUNED_TO) or 0):
        return 0
    facts.put(conn, _PRUNED_TO, str(upto))
    return conn.execute(sa.delete(changes).where(changes.c.seq <= upto)).rowcount


class Feed:
    """The feed as a process meets it: where it stands, what came since, and waiting for more."""

    def __init__(self, read: Callable[[], AbstractContextManager[sa.Connection]], watch: Watch) -> None:
        self._read = read
        self._watch = watch
        self._news = threading.Condition()
        self._newest = 0
        self._watching = False
        self._closed = False
        self._subscribers: dict[object, Callable[[], None]] = {}

    def position(self) -> int:
        with self._read() as conn:
            return newest_change(conn)

    def changes_since(self, conn: sa.Connection, seq: int, limit: int = 10_000) -> list[Change]:
        return changes_since(conn, seq, limit)

    def wait_for_change(self, after: int, timeout: float) -> int:
        """Wait until there is a number above `after` and return the newest; `after` itself when time is up."""
        self._start_watching()
        deadline = time.monotonic() + timeout
        with self._news:
            while self._newest <= after and not self._closed:
                left = deadline - time.monotonic()
                if left <= 0:
                    return after
                self._news.wait(left)
            return max(self._newest, after)

    def subscribe(self, call: Callable[[], None]) -> Callable[[], None]:
        """Have `call` called, from some thread, after changes. Returns how to end it. It must be quick."""
        key = object()
        with self._news:
            self._subscribers[key] = call
        self._start_watching()

        def unsubscribe() -> None:
            with self._news:
                self._subscribers.pop(key, None)

        return unsubscribe

    def publish(self, newest: int) -> None:
        """A change up to this number is committed: wake whoever waits."""
        with self._news:
            if newest <= self._newest:
                return
            self._newest = newest
            self._news.notify_all()
            calls = list(self._subscribers.values())
        for call in calls:
            try:
                call()
            except Exception:  # the change is committed; one listener's failure must not reach the writer
                _log.exception("a listener of the change feed failed")

    def close(self) -> None:
        with self._news:
            self._closed = True
            self._news.notify_all()
        self._watch.close()

    def _start_watching(self) -> None:
        """Watch for other processes' changes from the first wish to know on; a short command never does."""
        with self._news:
            if self._watching or self._closed:
                return
            self._watching = True
            self._watch.start(self.publish)  # under the lock, so that close() finds it started or never to be
