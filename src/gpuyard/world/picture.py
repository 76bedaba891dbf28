"""An index of everything live: workloads that have not ended, nodes, groups, users."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from gpuyard.dialects.policy import from_text
from gpuyard.domain.cluster import Node
from gpuyard.domain.people import Group, User
from gpuyard.domain.policy import Policy
from gpuyard.domain.usage import PastUse
from gpuyard.domain.workload import ENDED, State, Workload
from gpuyard.scheduling.snapshot import JobName, Person, Snapshot
from gpuyard.store import nodes as node_rows
from gpuyard.store import people as people_rows
from gpuyard.store import sharing as sharing_rows
from gpuyard.store import workloads as workload_rows
from gpuyard.store.database import Connection, Database
from gpuyard.store.feed import Change, FeedTooOld, newest_change

FEED_PAGE = 2000


class Picture:
    """Not thread-safe: each loop or request that needs one has its own, or locks around it."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self.position = -1  # nothing read yet
        self.live: dict[str, Workload] = {}
        self.nodes: tuple[Node, ...] = ()
        self._own: list[
            tuple[int, int]
        ] = []  # feed positions (after, upto] that the owner of this picture wrote itself
        self.groups: dict[str, Group] = {}
        self.users: dict[str, User] = {}
        self.policy = Policy()
        self.past: dict[Person, PastUse] = {}
        self.run_times: dict[JobName, tuple[float, ...]] = {}

    def follow(self) -> None:
        """Take in everything that was committed since the last time."""
        with self._database.read() as conn:
            if self.position < 0:
                self._reload(conn)
                return
            try:
                while changes := self._database.feed.changes_since(conn, self.position, FEED_PAGE):
                    self._take_in(conn, [change for change in changes if not self._is_own(change)])
                    self.position = changes[-1].seq
                self._own.clear()
            except FeedTooOld:
                self._reload(conn)

    def wrote(self, after: int, upto: int, workloads: Iterable[Workload]) -> None:
        """What the caller has itself written, in the feed after `after` up to `upto`: it need not be read back."""
        self._own.append((after, upto))
        for workload in workloads:
            self._put(workload)

    def _put(self, workload: Workload) -> None:
        if workload.state in ENDED:
            self.live.pop(workload.id, None)
        else:
            self.live[workload.id] = workload

    def snapshot(self, now: float) -> Snapshot:
        return Snapshot(
            now=now,
            nodes=self.nodes,
            queue=tuple(w for w in self.live.values() if w.state is State.QUEUED),
            holding=tuple(w for w in self.live.values() if w.holds_resources),
            groups=dict(self.groups),
            policy=self.policy,
            past=dict(self.past),
            run_times=dict(self.run_times),
        )

    def audit(self) -> list[str]:
        """Compare with the store, repair, and name what disagreed. An empty list is the normal answer."""
        fresh = Picture(self._database)
        fresh.follow()
        self.follow()
        wrong = [f"workload {id}" for id in _differing(self.live, fresh.live)]
        wrong += ["nodes"] if self.nodes != fresh.nodes else []
        wrong += ["groups"] if self.groups != fresh.groups else []
        wrong += ["users"] if self.users != fresh.users else []
        wrong += ["policy"] if self.policy != fresh.policy else []
        if wrong and self.position == fresh.position:
            self.live, self.nodes, self.groups, self.users = fresh.live, fresh.nodes, fresh.groups, fresh.users
            self.policy = fresh.policy
            return wrong
        return []

    def _reload(self, conn: Connection) -> None:
        # The position is read first: what is committed in between is then taken in twice, never missed.
        self.position = newest_change(conn)
        self.live = {w.id: w for w in workload_rows.live(conn)}
        self._reload_cluster(conn)
        self._reload_people(conn)
        self.policy = from_text(sharing_rows.policy_text(conn))
        self._reload_past(conn)

    def _is_own(self, change: Change) -> bool:
        return any(after < change.seq <= upto for after, upto in self._own)

    def _take_in(self, conn: Connection, changes: Sequence[Change]) -> None:
        kinds = {change.kind for change in changes}
        ids = {change.id for change in changes if change.kind == "workload"}
        if ids:
            found = {w.id: w for w in workload_rows.get_many(conn, sorted(ids))}
            for id in ids:
                if id in found:
                    self._put(found[id])
                else:
                    self.live.pop(id, None)
        if "node" in kinds:
            self._reload_cluster(conn)
        if kinds & {"group", "user"}:
            self._reload_people(conn)
        if "policy" in kinds:
            self.policy = from_text(sharing_rows.policy_text(conn))
        if "past" in kinds:  # one group's past became part of another's
            self._reload_past(conn)

    def _reload_past(self, conn: Connection) -> None:
        """In place: who plans with them holds on to them."""
        self.past.clear()
        self.past.update(sharing_rows.past_use(conn))
        self.run_times.clear()
        self.run_times.update(sharing_rows.run_times(conn))

    def _reload_cluster(self, conn: Connection) -> None:
        self.nodes = tuple(node_rows.all(conn))

    def _reload_people(self, conn: Connection) -> None:
        self.groups = {group.name: group for group in people_rows.all_groups(conn)}
        self.users = {user.name: user for user in people_rows.all_users(conn)}


def _differing(mine: dict[str, Workload], theirs: dict[str, Workload]) -> list[str]:
    """Reasons of the waiting are written without a version of their own, so they are not compared."""
    ids = mine.keys() | theirs.keys()
    return sorted(id for id in ids if id not in mine or id not in theirs or mine[id].version != theirs[id].version)
