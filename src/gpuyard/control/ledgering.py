"""Keeps the card ledger: what becomes known about cards in a pass, and now and then what is to be remembered of it.

A pass costs the machines on which something changed. What waiting work makes of free cards is looked at every few
seconds only; in between the last look holds. What could not be written is forgotten: the ledger goes on from what is
stored, with the instant up to which that is accounted for, as after a crash.
"""

from __future__ import annotations

from typing import NamedTuple

from gpuyard.control.metering import CardMeter
from gpuyard.domain.cluster import Node
from gpuyard.domain.errors import YardError
from gpuyard.domain.ledger import HOUR, Amounts
from gpuyard.domain.resources import WHOLE_CARD
from gpuyard.domain.workload import Replica, Workload
from gpuyard.ledger.accounts import Accounts
from gpuyard.ledger.splitting import NO_REST, Given, Plain, Rest, plain, split
from gpuyard.scheduling.plan import Pass
from gpuyard.scheduling.rest import NOTHING, FreeRest, rest_of, stranded
from gpuyard.store import ledger as ledger_rows
from gpuyard.store.control_lock import ControlLock
from gpuyard.store.database import Database
from gpuyard.world.picture import Picture

NOBODY_WAITS = FreeRest()


class _Held(NamedTuple):
    """The cards one attempt holds, by machine."""

    attempt: int
    cards: dict[str, list[Replica]]


class CardLedger:
    def __init__(self, database: Database, lock: ControlLock, meter: CardMeter, every_seconds: float) -> None:
        self._database = database
        self._lock = lock
        self._meter = meter
        self._every = every_seconds
        self._accounts: Accounts | None = None  # None: to be read from the store
        self._nodes: tuple[Node, ...] | None = None
        self._by_name: dict[str, Node] = {}
        self._plain: dict[str, Plain | None] = {}
        self._held: dict[str, _Held] = {}
        self._on: dict[str, dict[str, None]] = {}  # machine -> who holds cards there
        self._rest = self._seen = NOBODY_WAITS
        self._next_look = self._next_write = 0.0
        self._hour = 0

    # --- what waits -----------------------------------------------------------------------------------------------

    def wants_to_see(self, now: float) -> bool:
        """Is it time to look again at what waiting work makes of the free cards?"""
        return now >= self._next_look or now < self._next_look - self._every

    def see(self, one: Pass) -> None:
        self._seen = rest_of(one)
        self._next_look = one.now + self._every

    def _take_in_rest(self, picture: Picture) -> set[str]:
        """The machines whose free cards are seen otherwise now."""
        before, self._rest = self._rest, self._seen if picture.has_queue else NOBODY_WAITS
        after = self._seen = self._rest
        if before is after:
            return set()
        touched = {*before.kept, *before.blocked, *after.kept, *after.blocked}
        changed = {
            name
            for name in touched
            if before.kept.get(name) != after.kept.get(name) or before.blocked.get(name) != after.blocked.get(name)
        }
        if before.wants == after.wants:
            return changed
        return changed | {room.node.name for room in picture.books.rooms if any(stack.milli for stack in room.stacks)}

    # --- one pass -------------------------------------------------------------------------------------------------

    def look(self, picture: Picture, now: float) -> None:
        """At the end of a pass."""
        at = int(now * 1000)
        accounts = self._accounts or self._begin()
        changed = self._take_in_work(picture)
        for replica in self._meter.take_changed():
            held = self._held.get(replica.workload)
            changed.update(held.cards if held is not None else ())
        changed |= self._take_in_rest(picture)
        if picture.nodes is not self._nodes:
            changed |= self._take_in_nodes(picture.nodes, accounts)
        for name in changed:
            node = self._by_name.get(name)
            if node is None:
                accounts.remove(name, at)
            else:
                accounts.put(name, self._split(node, picture), at)
        if at // HOUR != self._hour:  # so that no account is ever long open
            self._hour = at // HOUR
            accounts.settle(at)
        if now >= self._next_write or now < self._next_write - self._every:
            self._next_write = now + self._every
            self._write(accounts)

    def _begin(self) -> Accounts:
        """Go on from what is stored: the time since is accounted by that, whoever should have looked meanwhile."""
        with self._database.read() as conn:
            self._accounts = Accounts(ledger_rows.accounts(conn))
        self._nodes, self._by_name = None, {}
        return self._accounts

    def _write(self, accounts: Accounts) -> None:
        page = accounts.take()
        if not page.sums and not page.accounts:
            return
        try:
            with self._database.write() as conn:
                self._lock.check(conn)
                ledger_rows.write(conn, page)
        except YardError:
            self._accounts = None
            raise

    # --- what is known --------------------------------------------------------------------------------------------

    def _take_in_nodes(self, nodes: tuple[Node, ...], accounts: Accounts) -> set[str]:
        before, self._nodes = self._by_name, nodes
        self._by_name = {node.name: node for node in nodes}
        self._plain = {}
        gone = {name for name in accounts.nodes if name not in self._by_name}
        return gone | {name for name, node in self._by_name.items() if not _is_alike(node, before.get(name))}

    def _take_in_work(self, picture: Picture) -> set[str]:
        changed: set[str] = set()
        live, known, on = picture.live, self._held, self._on
        for id in picture.take_touched():
            workload, before = live.get(id), known.get(id)
            holds = workload is not None and workload.holds_resources
            if before is not None:
                if workload is not None and holds and before.attempt == workload.attempts_made:
                    continue
                del known[id]
                for name in before.cards:
                    del on[name][id]
                changed.update(before.cards)
            if workload is not None and holds:
                held = known[id] = _held(workload)
                for name in held.cards:
                    if name not in on:
                        on[name] = {}
                    on[name][id] = None
                    changed.add(name)
        return changed

    def _split(self, node: Node, picture: Picture) -> dict[str, Amounts]:
        given, rest = self._given(node.name), self._rest_of(node.name, picture)
        if rest is NO_REST:
            if node.name not in self._plain:
                self._plain[node.name] = plain(node)
            simple = self._plain[node.name]
            found = simple.split(given) if simple is not None else None
            if found is not None:
                return found
        return split(node, given, rest)

    def _given(self, name: str) -> dict[int, Given]:
        found: dict[int, Given] = {}
        is_busy, known = self._meter.is_busy, self._held
        for id in self._on.get(name, ()):
            for replica in known[id].cards[name]:
                for share in replica.allotment.cards:
                    index, milli = share.index, share.milli
                    busy = is_busy(replica.id, index)
                    more = WHOLE[busy] if milli == WHOLE_CARD else _given(busy, milli)
                    before = found.get(index)
                    found[index] = more if before is None else Given(*map(sum, zip(before, more, strict=True)))
        return found

    def _rest_of(self, name: str, picture: Picture) -> Rest:
        rest = self._rest
        if rest is NOBODY_WAITS:
            return NO_REST
        room = picture.books.rooms.by_name.get(name) if rest.wants else None
        lost = stranded(room, rest) if room is not None else NOTHING
        kept, blocked = rest.kept.get(name, NOTHING), rest.blocked.get(name, NOTHING)
        return Rest(kept, blocked, lost) if kept or blocked or lost else NO_REST


def _is_alike(node: Node, other: Node | None) -> bool:
    return node is other or (other is not None and node.state is other.state and node.cards == other.cards)


def _given(busy: bool | None, milli: int) -> Given:
    if busy is None:
        return Given(untold=milli)
    return Given(busy=milli) if busy else Given(idle=milli)


WHOLE = {busy: _given(busy, WHOLE_CARD) for busy in (None, False, True)}


def _held(workload: Workload) -> _Held:
    cards: dict[str, list[Replica]] = {}
    for replica in workload.attempt.replicas if workload.attempt else ():
        allotment = replica.allotment
        if allotment.cards:
            there = cards.get(allotment.node)
            if there is None:
                cards[allotment.node] = [replica]
            else:
                there.append(replica)
    return _Held(workload.attempts_made, cards)
