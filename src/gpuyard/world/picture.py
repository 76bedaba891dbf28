"""An index of everything live: workloads that have not ended, nodes, groups, users."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from math import inf

from gpuyard.dialects.policy import from_text
from gpuyard.domain.amending import amended
from gpuyard.domain.cluster import Node
from gpuyard.domain.errors import BadInput
from gpuyard.domain.people import Group, User
from gpuyard.domain.policy import Policy
from gpuyard.domain.reasons import Reason
from gpuyard.domain.usage import PastUse
from gpuyard.domain.workload import HOLDS_RESOURCES, Spec, State, Workload
from gpuyard.journal.events import Anew, BooksMade, Charged, GroupsAre, NodesAre, NoNotes, Notes, PolicyIs, TypicalIs
from gpuyard.scheduling.books import Books
from gpuyard.scheduling.fragments import Typical
from gpuyard.scheduling.snapshot import JobName, Person, Snapshot
from gpuyard.store import nodes as node_rows
from gpuyard.store import people as people_rows
from gpuyard.store import sharing as sharing_rows
from gpuyard.store import workloads as workload_rows
from gpuyard.store.database import Connection, Database
from gpuyard.store.feed import Change, FeedTooOld, newest_change
from gpuyard.world.asked import REMEMBERED, Asked
from gpuyard.world.shelves import Shelves

log = logging.getLogger(__name__)

FEED_PAGE = 2000
HOLDING = tuple(state for state in State if state in HOLDS_RESOURCES)


class Picture:
    """Not thread-safe: each loop or request that needs one has its own, or locks around it."""

    def __init__(self, database: Database, notes: Notes | None = None, *, decides: bool = False) -> None:
        """`decides`: its owner makes one pass after the other with the books, and none may take long."""
        self._database = database
        self._decides = decides
        self._notes: Notes = notes or NoNotes()
        self.position = -1  # nothing read yet
        self._own: list[tuple[int, int]] = []  # feed positions (after, upto] that this picture's owner wrote itself
        self._shelves = Shelves()
        self._news: set[str] = set()
        self._touched: set[str] = set()
        self._books: Books | None = None
        self.nodes: tuple[Node, ...] = ()
        self.groups: dict[str, Group] = {}
        self.users: dict[str, User] = {}
        self.policy = Policy()
        self.past: dict[Person, PastUse] = {}
        self.run_times: dict[JobName, tuple[float, ...]] = {}
        self._asked = Asked()
        self.typical: tuple[Typical, ...] = ()

    def follow(self, most: float = inf) -> bool:
        """Take in what was committed since the last time, about so many changes at most. True when there are more."""
        with self._database.read() as conn:
            return self._follow(conn, most)

    def _follow(self, conn: Connection, most: float) -> bool:
        if self.position < 0:
            self._reload(conn)
            return False
        try:
            while changes := self._database.feed.changes_since(conn, self.position, FEED_PAGE):
                self._take_in(conn, [change for change in changes if not self._is_own(change)])
                self.position = changes[-1].seq
                most -= len(changes)
                if most <= 0:
                    return True
            self._own.clear()
        except FeedTooOld:
            self._reload(conn)
        return False

    @property
    def live(self) -> Mapping[str, Workload]:
        return self._shelves.live

    def in_state(self, *states: State) -> list[Workload]:
        return [workload for state in states for workload in self._shelves.in_state(state).values()]

    @property
    def has_queue(self) -> bool:
        return bool(self._shelves.in_state(State.QUEUED))

    def due(self, now: float) -> list[str]:
        """Whose back-off or maximum duration is over; each is told once."""
        return self._shelves.due(now)

    def next_moment(self) -> float | None:
        return self._shelves.next_moment()

    def take_news(self) -> set[str]:
        """What others changed since this was last asked: their wishes, and new work."""
        news, self._news = self._news, set()
        return news

    def take_touched(self) -> set[str]:
        """Workloads that may hold other resources than when this was last asked, or none any more."""
        touched, self._touched = self._touched, set()
        return touched

    @property
    def books(self) -> Books:
        """What scheduling decides with: made when first asked for, then kept current piece by piece."""
        if self._books is None:
            self._books = Books(self.nodes, self.groups, self.policy, self.past, self.run_times, self.typical)
            self._notes.add(BooksMade())
            for workload in self.live.values():
                self._books.put(workload)
        return self._books

    def close_books(self) -> None:
        """They are made anew when next asked for."""
        self._books = None

    def tell_all(self) -> None:
        """For who takes notes: everything, as it is now, and new books from it."""
        self.close_books()
        past, run_times, workloads = dict(self.past), dict(self.run_times), tuple(self.live.values())
        self._notes.add(Anew(self.nodes, self.groups, self.policy, past, run_times, workloads, self.typical))

    def charge(self, past: Mapping[Person, PastUse], run_times: Mapping[JobName, tuple[float, ...]]) -> None:
        """Past use and run times in place of what was known of these."""
        if past or run_times:
            self.past.update(past)
            self.run_times.update(run_times)
            self._notes.add(Charged(past, run_times))

    def wrote(self, after: int, upto: int, workloads: Iterable[Workload]) -> None:
        """What the caller has itself written, in the feed after `after` up to `upto`: it need not be read back."""
        if after == self.position:
            self.position = upto
        else:
            self._own.append((after, upto))
        for workload in workloads:
            self._put(workload)

    def told(self, reasons: Mapping[str, Reason]) -> None:
        """The caller has found out why these wait, and writes it now or soon."""
        for id, reason in reasons.items():
            workload = self.live.get(id)
            if workload is not None and workload.state is State.QUEUED:
                self._keep(amended(workload, reason=reason))  # noted with the decision it comes from

    def _put(self, workload: Workload) -> None:
        is_new = workload.id not in self.live and self._asked.lacks(workload)
        self._notes.add(workload)
        self._keep(workload)
        if is_new and self._asked.note(workload.id, workload.owner, workload.spec, workload.submitted_at):
            self._learn()

    def _keep(self, workload: Workload) -> None:
        before = self._shelves.live.get(workload.id)
        if workload.holds_resources or (before is not None and before.holds_resources):
            self._touched.add(workload.id)
        self._shelves.put(workload)
        if self._books is not None:
            self._books.put(workload)

    def _learn(self) -> None:
        """What is typical, from what was submitted of late."""
        typical = self._asked.typical()
        if typical != self.typical:
            self.typical = typical
            self._notes.add(TypicalIs(typical))
            if self._books is not None and self._decides:
                self._books.learn_typical(typical)
            elif self._books is not None:
                self._books.renew_typical(typical)

    def _remove(self, id: str) -> None:
        self._notes.add(id)
        self._touched.add(id)
        self._shelves.remove(id)
        if self._books is not None:
            self._books.remove(id)

    def snapshot(self, now: float) -> Snapshot:
        return Snapshot(
            now=now,
            nodes=self.nodes,
            queue=tuple(self.in_state(State.QUEUED)),
            holding=tuple(self.in_state(*HOLDING)),
            groups=dict(self.groups),
            policy=self.policy,
            past=dict(self.past),
            run_times=dict(self.run_times),
            typical=self.typical,
        )

    def audit(self) -> list[str]:
        """Compare with the store, repair, and name what disagreed. An empty list is the normal answer."""
        with self._database.read() as conn:
            self._follow(conn, inf)
            stored = workload_rows.live_versions(conn)
            differing = [
                id for id, version in stored.items() if id not in self.live or self.live[id].version != version
            ]
            differing += [id for id in self.live if id not in stored]
            if differing:
                self._take_in_workloads(conn, sorted(differing))
            before = (self.nodes, self.groups, self.users, self.policy)
            self._reload_cluster(conn)
            self._reload_people(conn)
            self._reload_policy(conn)
        after = (self.nodes, self.groups, self.users, self.policy)
        names = ("nodes", "groups", "users", "policy")
        wrong = [name for name, old, new in zip(names, before, after, strict=True) if old != new]
        return [f"workload {id}" for id in differing] + wrong

    def _reload(self, conn: Connection) -> None:
        # The position is read first: what is committed in between is then taken in twice, never missed.
        self.position = newest_change(conn)
        self._own.clear()
        self._touched.update(self.live)
        self._shelves = Shelves(workload_rows.live(conn))
        self._news = set(self.live)
        self._touched.update(self.live)
        self._reload_cluster(conn)
        self._reload_people(conn)
        self._reload_policy(conn)
        self._reload_past(conn)
        self._asked = Asked(_submitted(conn))
        self._learn()
        self.tell_all()

    def _is_own(self, change: Change) -> bool:
        return any(after < change.seq <= upto for after, upto in self._own)

    def _take_in(self, conn: Connection, changes: Sequence[Change]) -> None:
        kinds = {change.kind for change in changes}
        ids = {change.id for change in changes if change.kind == "workload"}
        if ids:
            self._take_in_workloads(conn, sorted(ids))
        if machines := sorted({change.id for change in changes if change.kind == node_rows.KIND}):
            self._take_in_nodes(conn, machines)
        if kinds & {"group", "user"}:
            self._reload_people(conn)
        if "policy" in kinds:
            self._reload_policy(conn)
        if "past" in kinds:  # one group's past became part of another's
            self._reload_past(conn)

    def _take_in_workloads(self, conn: Connection, ids: Sequence[str]) -> None:
        found = {w.id: w for w in workload_rows.get_many(conn, ids)}
        for id in ids:
            if id in found:
                self._put(found[id])
            else:
                self._remove(id)
        self._news.update(found)
        over = [w for w in found.values() if w.attempt is not None and w.attempt.ended_at is not None]
        if over:  # what they used was added to the past in the same breath
            past = sharing_rows.past_use(conn, {w.group for w in over})
            self.charge(past, sharing_rows.run_times(conn, {(w.owner, w.spec.name) for w in over}))

    def _reload_past(self, conn: Connection) -> None:
        """In place: who plans with them holds on to them."""
        self.past.clear()
        self.past.update(sharing_rows.past_use(conn))
        self.run_times.clear()
        self.run_times.update(sharing_rows.run_times(conn))
        self._notes.add(Charged(dict(self.past), dict(self.run_times), whole=True))

    def _reload_policy(self, conn: Connection) -> None:
        try:
            policy = from_text(sharing_rows.policy_text(conn))
        except BadInput as problem:  # written by another version: work goes on by the rules known so far
            log.error("the stored policy cannot be read and is not used: %s", problem)
            return
        if policy != self.policy:
            self.policy = policy
            self._notes.add(PolicyIs(policy))
            self.close_books()

    def _take_in_nodes(self, conn: Connection, names: Sequence[str]) -> None:
        known = {node.name: node for node in self.nodes}
        for name in names:
            known.pop(name, None)
        known.update((node.name, node) for node in node_rows.some(conn, names))
        self._put_nodes(tuple(known[name] for name in sorted(known)))

    def _reload_cluster(self, conn: Connection) -> None:
        self._put_nodes(tuple(node_rows.all(conn)))

    def _put_nodes(self, nodes: tuple[Node, ...]) -> None:
        if nodes == self.nodes:
            return
        renewed = self._books is not None and _alike_but_for_images(nodes, self.nodes)
        if self._books is not None and renewed:
            self._books.renew_images(nodes)
        else:
            self.close_books()
        self.nodes = nodes
        self._notes.add(NodesAre(nodes, renewed))

    def _reload_people(self, conn: Connection) -> None:
        self.users = {user.name: user for user in people_rows.all_users(conn)}
        groups = {group.name: group for group in people_rows.all_groups(conn)}
        if groups != self.groups:
            self.groups = groups
            self._notes.add(GroupsAre(groups))
            self.close_books()


def _submitted(conn: Connection) -> list[tuple[str, str, Spec, float]]:
    """What came last, oldest first, with whose it is."""
    newest = workload_rows.newest_specs(conn, REMEMBERED)
    owners = {id: owner for id, owner, _ in workload_rows.whose(conn, [id for id, _, _ in newest])}
    return [(id, owners[id], spec, at) for id, spec, at in newest if id in owners]


def _alike_but_for_images(nodes: Sequence[Node], before: Sequence[Node]) -> bool:
    """Images come and go all the time, and no books need to be made anew for them."""
    return len(nodes) == len(before) and all(
        one is other or replace(one, images=other.images) == other for one, other in zip(nodes, before, strict=True)
    )
