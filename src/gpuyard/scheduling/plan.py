"""One pass over the queue. Everyone is either given a place or a reason.

An earlier workload that waits keeps back what it could use of the free rest, on the nodes where it is closest to
starting, and of the quota it waits for. So a later one may use what nobody before it can use, and never takes what an
earlier one waits for, unless it is sure to be over before that one can start.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from math import inf
from typing import NamedTuple

from gpuyard.domain.reasons import NEVER_STARTS, Code, Reason, because
from gpuyard.domain.workload import MAX_PRIORITY, Kind, Workload
from gpuyard.scheduling import explain
from gpuyard.scheduling.backfill import START_SECONDS, Release, ends_by, latest_start
from gpuyard.scheduling.books import Books, Place
from gpuyard.scheduling.fit import Allotments, Ask, give_back, place_gang
from gpuyard.scheduling.hindrance import Hindrances, Waiter, waits_since
from gpuyard.scheduling.line import Batch
from gpuyard.scheduling.moving import Moving
from gpuyard.scheduling.order import Asking, Turns
from gpuyard.scheduling.preempt import Preemption
from gpuyard.scheduling.prospects import Prospect, prospects
from gpuyard.scheduling.quota import Amounts, Payer, amounts_of
from gpuyard.scheduling.room import ALONE, Keep, Precedence, Room, Standing
from gpuyard.scheduling.share import rate_of
from gpuyard.scheduling.snapshot import Eviction, Placement, Plan, Preview, Snapshot

DEEPEST = 300  # so many different requests of one person are asked in one pass
USES_AT_MOST = 8  # and the use of so many
PASSED_AT_MOST = 5  # of those a placement passed by, this many are written down
CLAIMS_AT_MOST = 8  # searches for victims in one pass
TIMED_AT_MOST = 4  # waiting workloads whose latest start is worked out in one pass
UNTOLD = Reason(Code.BUSY)
TOLD_AGAIN_SECONDS = 5.0  # the same reason with other numbers is told this often at most


def plan(snapshot: Snapshot) -> Plan:
    """Decide for the whole queue."""
    return decide(Books.of(snapshot), snapshot.now)


def decide(
    books: Books,
    now: float,
    *,
    news_only: bool = False,
    most: float = inf,
    untold: bool = False,
    look: Callable[[Pass], object] | None = None,
) -> Plan:
    """Decide for the whole queue, and leave the books as they were. With `news_only` only changed reasons are told,
    and none with `untold`: telling thousands that wait costs more than the decision.

    Once `most` replicas have their places the rest of the queue is left for the next time: neither placed nor told.
    `look` is shown the pass when it has run, before the books are put back.
    """
    one = Pass(books, now, untold=untold)
    one.run(most)
    if look is not None:
        look(one)
    waiting = {} if untold else dict(one.news() if news_only else one.reasons())
    uses = one.uses() if one.placements and not untold else {}
    one.undo()
    books.rooms.go_on_learning(sum(len(placement.allotments) for placement in one.placements))
    return Plan(tuple(one.placements), waiting, tuple(one.evictions), uses)


def preview(snapshot: Snapshot, workload: Workload) -> Preview:
    """What would happen if it were submitted now, behind everyone who already waits with the same priority."""
    return preview_in(Books.of(snapshot), workload, snapshot.now)


def preview_in(books: Books, workload: Workload, now: float) -> Preview:
    """The same with books that are at hand; they are left as they were."""
    books.put(workload)
    outcome = decide(books, now)
    books.remove(workload.id)
    placement = next((p for p in outcome.placements if p.workload == workload.id), None)
    if placement is not None:
        nodes = tuple(sorted({allotment.node for allotment in placement.allotments.values()}))
        return Preview(True, None, nodes, len(placement.passed), placement.passed)
    ahead = []
    for id in outcome.waiting:
        if id == workload.id:
            break
        ahead.append(id)
    return Preview(False, outcome.waiting[workload.id], (), len(ahead), tuple(ahead[:20]))


class Verdict(NamedTuple):
    """Why a batch waits from one of its members on. `seq` is its place in the pass."""

    seq: int
    batch: Batch
    position: int
    reason: Reason
    alone: bool = False  # only that member: the others have a verdict of their own


class _Given(NamedTuple):
    payer: Payer
    amounts: Amounts
    allotments: Allotments


class _NoRoom(NamedTuple):
    ends_by: float  # of the one that tried: one that is over later will not fit either
    reason: Reason
    starts_at: float  # when there will be room at the latest; minus infinity when nobody knows
    lends: bool  # is half of what is kept for it open to jobs?
    borrows: tuple[str, int] | None = None  # group and priority of the one that tried, if it may use what is lent


class Pass:
    """The state of one pass over the books. Until `undo` the books are as if its placements were made."""

    def __init__(self, books: Books, now: float, *, untold: bool = False) -> None:
        self.books = books
        self.now = now
        self._untold = untold  # nobody will read what was decided: only the decision counts
        self.placements: list[Placement] = []
        self.came_to: dict[str, dict[str, None]] = {}  # node -> who was given something there
        self.verdicts: list[Verdict] = []
        self.evictions: list[Eviction] = []
        self.turns = Turns(books, now, untold=untold)
        self.preemption = Preemption(books, self.turns, now)
        self._moving = Moving(books, now)
        self._hindrances = Hindrances(books, now)
        self._without_end: dict[str, tuple[str, ...]] = {}  # one that lends half of what it keeps -> what is in its way
        self._given: list[_Given] = []
        self._no_room: dict[Ask, _NoRoom] = {}  # asks that found no room: room only shrinks in a pass
        self._keeping: list[Room] = []
        self._depth: dict[
            tuple[str, str], tuple[int, str]
        ] = {}  # (group, owner) -> requests that wait, the last of them
        self.early: dict[str, Reason | None] = {}  # asked before all others: placed, or why it still waits
        self._has_place = ""  # the one for whom a place was last kept that others are leaving
        self._timed = self._claims = self._seq = self._replicas = 0
        self._lends = False  # is anything kept that may be lent?
        self._ends: dict[str, float] = {}
        self._new_on: dict[str, list[Release]] = {}
        books.line.wake(now)

    # --- the walk -------------------------------------------------------------------------------------------------

    def run(self, most: float = inf) -> None:
        self._moving.honour(self)
        asking = Asking(self.books, self.turns)
        while self._replicas < most and (found := asking.next()) is not None:
            batch, position = found
            self.preemption.stands = asking.stands()
            reason = self._too_deep(batch) or self._ask(batch, position)
            if reason is None:
                asking.placed(batch)
                continue
            group = self.books.groups.get(batch.group)
            if self._has_place == batch.jobs[position][1] and not (group is not None and group.fifo):
                # Others are leaving, and it will have their place: the next of the batch may ask for as much.
                self.verdicts.append(Verdict(self._seq, batch, position, reason, alone=True))
                asking.placed(batch)
            elif group is not None and group.fifo and reason.code not in NEVER_STARTS:  # those hold nobody up
                self._hold_group(asking, batch, position, reason)
            else:
                self.verdicts.append(Verdict(self._seq, batch, position, reason))
                asking.waits(batch)
                number, _ = self._depth.get(batch.payer[:2], (0, ""))
                self._depth[batch.payer[:2]] = (number + 1, batch.jobs[position][1])

    def _too_deep(self, batch: Batch) -> Reason | None:
        """One person's requests that are all different are not looked at without end: it would cost everybody."""
        waiting = self._depth.get(batch.payer[:2])
        if waiting is None or waiting[0] < DEEPEST:
            return None
        return because(Code.ORDER, ahead=waiting[1], ahead_name=self._name(waiting[1]))

    def _hold_group(self, asking: Asking, batch: Batch, position: int, reason: Reason) -> None:
        """Strictly first in, first out: everyone of the group waits behind the first."""
        first = batch.jobs[position][1]
        behind = because(Code.FIFO, group=batch.group, ahead=first, ahead_name=self._name(first))
        self.verdicts.append(Verdict(self._seq, batch, position, reason, alone=True))
        others = [(batch, position + 1), *asking.group_waits(batch.group)]
        self.verdicts += [Verdict(self._seq, other, at, behind) for other, at in others if at < len(other.jobs)]

    def _ask(self, batch: Batch, position: int) -> Reason | None:
        """Place the batch's next and return None, or return why it waits."""
        self._seq += 1
        id = batch.jobs[position][1]
        if id in self.early:
            self._has_place = id
            return self.early[id]
        standing = self.standing(batch)
        amounts = batch.amounts
        reason = self.books.purse.refusal(batch.payer, amounts, standing)
        if reason is None:
            place = self._find_room(batch, position, standing)
            if place.taken is not None:
                self.take(batch, position, place.taken, place.amounts, standing)
                return None
            if place.refusal is None:
                return self._wait_for_room(batch, position, standing)
            amounts, reason = place.amounts, place.refusal
        return self._wait_for_quota(batch, position, amounts, standing, reason)

    def standing(self, batch: Batch) -> Standing:
        precedence = self._precedence(batch) if self.turns.by_rank else None
        return Standing(self._seq, self.now + batch.longest + START_SECONDS, precedence, goes_on(batch.ask))

    def _precedence(self, batch: Batch) -> Precedence | None:
        """Where it stands, when what it keeps may be lent: not at the top, where only age counts."""
        preempt, (head, rank) = self.books.policy.preempt, self.preemption.stands[1]
        if not (preempt.enabled and preempt.for_turn) or -head[2] >= MAX_PRIORITY:
            return None
        ripe_at = self.now + START_SECONDS + preempt.min_run if batch.payer.preemptible else inf
        return Precedence(batch.group, batch.priority, batch.rank, (head, rank), ripe_at, bool(self.books.purse.common))

    def _find_room(self, batch: Batch, position: int, standing: Standing) -> Place:
        tried = self._no_room.get(batch.ask)
        if tried is not None and tried.ends_by <= standing.ends_by:
            borrows = standing.borrows if self._lends else None
            if borrows is None or borrows == tried.borrows:  # whatever is lent to this one was lent to that
                return Place(None, batch.amounts, None)
        return self.books.place(batch, standing, self.books.images_of(batch.jobs[position][1]))

    def take(self, batch: Batch, position: int, taken: Allotments, amounts: Amounts, standing: Standing) -> None:
        turn = None if self._untold else self.turns.turn(batch, position)
        passed = tuple(v.batch.jobs[v.position][1] for v in self.verdicts[:PASSED_AT_MOST])
        id, gap = batch.jobs[position][1], self._gap(taken, standing)
        self.placements.append(Placement(id, taken, turn, passed, gap, self.books.images_at_hand(id, taken)))
        self._given.append(_Given(batch.payer, amounts, taken))
        for allotment in taken.values():
            self._new_on.setdefault(allotment.node, []).append((standing.ends_by, allotment))
            self.came_to.setdefault(allotment.node, {})[id] = None
        self._replicas += len(taken)
        self._hindrances.note(self.books.line.workloads[id], taken)
        self.books.purse.spend(batch.payer, amounts)
        self.turns.add(batch.payer, rate_of(taken.values(), self.books.policy.order.cores_per_card))

    def _gap(self, taken: Allotments, standing: Standing) -> tuple[float, float] | None:
        """The moment it is over, and the one at which somebody it passes can start, if it uses what that one keeps."""
        if not self._keeping or standing.ends_by == inf:
            return None
        rooms = {allotment.node: self.books.rooms.by_name[allotment.node] for allotment in taken.values()}
        starts = [k.starts_at for room in rooms.values() for k in room.keeps if standing.ends_by <= k.starts_at]
        return (standing.ends_by, min(starts)) if starts else None

    def uses(self) -> dict[str, float]:
        """The numbers of some of those who wait, for the answer to "why did that one run before mine"."""
        found: dict[str, float] = {}
        for verdict in self.verdicts[:USES_AT_MOST]:
            group, owner = verdict.batch.group, verdict.batch.owner
            found[group] = self.turns.hours((group, None))
            found[f"{group}/{owner}"] = self.turns.hours((group, owner))
        return found

    # --- those who wait -------------------------------------------------------------------------------------------

    def _wait_for_quota(
        self, batch: Batch, position: int, amounts: Amounts, standing: Standing, reason: Reason
    ) -> Reason:
        cleared = self._claim(batch, position, standing, reason) if reason.code is Code.OVER_QUOTA else None
        if cleared is not None:
            return cleared
        id = batch.jobs[position][1]
        self.books.purse.keep_for(self._seq, id, self._name(id), batch.payer, amounts)
        return reason

    def _wait_for_room(self, batch: Batch, position: int, standing: Standing) -> Reason:
        cleared = self._claim(batch, position, standing) or self._moving.bring_together(self, batch, position, standing)
        if cleared is not None:
            return cleared
        id = batch.jobs[position][1]
        tried = self._no_room.get(batch.ask)
        if tried is None or tried.ends_by > standing.ends_by:
            tried = self._no_room[batch.ask] = self._no_room_for(batch, id, standing)
        if standing.borrows is not None and tried.borrows is None:
            self._no_room[batch.ask] = tried._replace(borrows=standing.borrows)
        # Its quota is kept as well: else it would wait for that as soon as there is room.
        name, lends = self._name(id), tried.lends
        self.books.purse.keep_for(self._seq, id, name, batch.payer, batch.amounts, tried.starts_at, lends=lends)
        return self._until_ripe(batch, tried.reason)

    def _until_ripe(self, batch: Batch, reason: Reason) -> Reason:
        """Where others may be interrupted for it, but not yet: say from when on."""
        if self._untold or reason.code is not Code.BUSY:
            return reason
        ripe_at = self.preemption.ripe_at(batch)
        return reason if ripe_at is None else because(reason.code, **reason.facts, ripe_at=ripe_at)

    def _no_room_for(self, batch: Batch, id: str, standing: Standing) -> _NoRoom:
        # Where nobody's end is sure, what another keeps makes no difference here but in what is told.
        matters = not self._untold or self.books.line.has_sure_ends
        kept = self._kept_from(batch, standing) if matters else None
        if kept is None:
            reason, starts_at = self._busy(batch.ask), self._keep_room(batch, id, standing)
            reason = self._with_what_has_no_end(reason, id)
            return _NoRoom(standing.ends_by, reason, starts_at, id in self._without_end)
        # It cannot start before that one does: whoever is over by then is in nobody's way.
        self._keep_prospects(batch, id, kept.starts_at, standing)
        reason = self.kept_by(kept, batch.ask)
        return _NoRoom(standing.ends_by, reason, kept.starts_at, id in self._without_end)

    def _with_what_has_no_end(self, reason: Reason, id: str) -> Reason:
        """It lends half of what it keeps: say for how long."""
        there = self._without_end.get(id)
        if not there or reason.code is not Code.BUSY or self._untold:
            return reason
        return because(reason.code, **reason.facts, without_end=list(there))

    def kept_by(self, keep: Keep, ask: Ask) -> Reason:
        """It waits for nothing but what another one keeps."""
        there = self._without_end.get(keep.workload)
        lends = {"without_end": list(there), "kind": ask.kind} if there else {}
        return because(Code.ORDER, ahead=keep.workload, ahead_name=self._name(keep.workload), **lends)

    def _busy(self, ask: Ask) -> Reason:
        if self._untold:
            return UNTOLD
        return explain.not_yet(ask, self.books.rooms, self.books.troubled, self.books.on_node, self.came_to)

    def _kept_from(self, batch: Batch, standing: Standing) -> Keep | None:
        """What an earlier workload keeps, if that is all that stands in the way."""
        taken = place_gang(batch.ask, self.books.rooms, ALONE) if self._keeping else None
        if taken is None:
            return None
        give_back(taken, self.books.rooms)
        for allotment in taken.values():
            room = self.books.rooms.by_name[allotment.node]
            for keep in room.keeps:
                if room.is_kept_from(keep, standing):
                    return keep
        return None

    def _name(self, id: str) -> str:
        workload = self.books.line.workloads.get(id)
        return workload.spec.name if workload is not None else ""

    # --- room that is kept ----------------------------------------------------------------------------------------

    def _keep_room(self, batch: Batch, id: str, standing: Standing) -> float:
        """Keep the free rest where it will start first: where running work is known to end, or most is free now.

        Returns when it will start at the latest; minus infinity when nobody knows.
        """
        books, start = self.books, None
        if not self._may_keep():
            return -inf
        if books.policy.backfill and books.line.has_sure_ends and self._timed < TIMED_AT_MOST:
            self._timed += 1
            lent = self.preemption.lent(batch)
            start = latest_start(batch.ask, books.rooms, lambda node: self._releases(node, lent), self.now)
        if start is None:
            self._keep_prospects(batch, id, -inf, standing)
            return -inf
        for place in start.places:
            cpu, memory, _ = place.room.fair_share(batch.ask.roles[0].resources)
            self.keep(place.room, Keep(self._seq, id, cpu, memory, place.cards, start.at, standing.precedence))
        return start.at

    def _keep_prospects(self, batch: Batch, id: str, starts_at: float, standing: Standing) -> None:
        if not self._may_keep():
            return
        books = self.books

        def as_keeps(found: list[Prospect]) -> list[tuple[Room, Keep]]:
            return [(one.stack.room, one.keep(self._seq, id, starts_at, standing.precedence)) for one in found]

        with self.preemption.without_lent(batch):
            found = prospects(batch.ask, books.rooms, books.empty)
            keeps = as_keeps(found)
        if starts_at > -inf or not books.policy.backfill:
            self._keep_all(keeps)
            return
        waiter = Waiter(waits_since(books.line.workloads[id]), self.preemption.could_go(batch))
        there = self._hindrances.of(found, waiter)
        elsewhere = self._hindrances.elsewhere(batch.ask, books.rooms, waiter) if there else []
        if elsewhere:
            there, keeps = (), as_keeps(elsewhere)
        there = there or self._in_the_way_of_one_before(batch, keeps, standing)
        if there:
            self._without_end[id] = there
        self._keep_all(keeps, waiter if there else None)

    def _keep_all(self, keeps: list[tuple[Room, Keep]], lends: Waiter | None = None) -> None:
        for room, keep in keeps:
            self.keep(room, keep if lends is None else self._hindrances.half_kept(room, keep, lends))

    def _in_the_way_of_one_before(
        self, batch: Batch, keeps: list[tuple[Room, Keep]], standing: Standing
    ) -> tuple[str, ...]:
        """It cannot start before one that lends does: nobody knows its start either."""
        if all(other.firm is None for room, _ in keeps for other in room.keeps):
            return ()
        kept = self._kept_from(batch, standing)
        return self._without_end.get(kept.workload, ()) if kept is not None else ()

    def _may_keep(self) -> bool:
        return not (self.books.policy.keep_for_first and self._keeping)

    def keep(self, room: Room, keep: Keep) -> None:
        self._lends = self._lends or keep.precedence is not None
        room.keeps.append(keep)
        self._keeping.append(room)

    def _releases(self, node: str, lent: Mapping[str, float]) -> Iterator[Release]:
        """When what is given out on a node comes free: running work, and what this pass has placed. What is only lent
        to others comes free as soon as it is asked for."""
        yield from self._new_on.get(node, ())
        for id in self.books.on_node.get(node, ()):
            if id not in self._ends:
                workload = self.books.holding[id]
                learned = self.books.run_times.get((workload.owner, workload.spec.name), ())
                self._ends[id] = ends_by(workload, learned, self.now)
            for allotment in self.books.held[id].allotments:
                if allotment.node == node:
                    yield min(self._ends[id], lent.get(id, inf)), allotment

    # --- preemption -----------------------------------------------------------------------------------------------

    def _claim(self, batch: Batch, position: int, standing: Standing, otherwise: Reason | None = None) -> Reason | None:
        """Have others make room for it, if it is entitled. None when it must simply wait.

        When work that stops anyway makes room enough, that is kept for it, and it waits for the other reason.
        """
        preemption, id = self.preemption, batch.jobs[position][1]
        if not self.books.policy.preempt.enabled or self._claims >= CLAIMS_AT_MOST:
            return None
        if not preemption.clearing_for(id):
            if not preemption.has_victims_for(batch):
                return None
            self._claims += 1
            place = preemption.fits_once_stopped(batch, standing)
            if place is not None:
                self.keep_place(batch, id, place)
                return otherwise or self._busy(batch.ask)
            found = preemption.victims_for(batch, id, standing)
            self.evictions += found
            self._claims -= not found and self.turns.by_rank  # it cost little, and is not repeated for those behind
        place = preemption.fits_once_stopped(batch, standing)
        if place is None:
            return None
        self.keep_place(batch, id, place)
        return because(Code.CLEARING, jobs=preemption.clearing_for(id))

    def keep_place(self, batch: Batch, id: str, place: Allotments) -> None:
        """It will start there as soon as others are gone."""
        self._has_place = id
        amounts = amounts_of(place.values())
        self.turns.expect(batch.group, amounts)
        self.books.purse.keep_for(self._seq, id, self._name(id), batch.payer, amounts)
        for one in place.values():
            keep = Keep(self._seq, id, one.cpu_milli, one.memory, one.cards, -inf)
            self.keep(self.books.rooms.by_name[one.node], keep)

    # --- what is told ---------------------------------------------------------------------------------------------

    def reasons(self) -> Iterator[tuple[str, Reason]]:
        """Everyone who waits, in the order in which they were asked; last those whom nobody asks."""
        for verdict in self.verdicts:
            last = verdict.position + 1 if verdict.alone else None
            for _, id in verdict.batch.jobs[verdict.position : last]:
                if verdict.alone or id not in self.early:
                    yield id, verdict.reason
        yield from self._early_that_wait()
        for id, workload in self.books.line.resting.items():
            yield id, _back_off(workload)
        for batch in self.books.line.parked.values():
            assert batch.never is not None
            for _, id in batch.jobs:
                yield id, batch.never

    def news(self) -> Iterator[tuple[str, Reason]]:
        """Those whose reason is not what they were told last. Only they cost anything."""
        for verdict in self.verdicts:
            yield from self._news_of_one(verdict) if verdict.alone else self._news_of_all(verdict)
        for id, reason in self._early_that_wait():
            yield from self._differing([id], reason)
        for id, workload in self.books.line.resting.items():
            yield from self._differing([id], _back_off(workload))
        for batch in self.books.line.parked.values():
            if batch.fresh:
                assert batch.never is not None
                yield from self._differing(sorted(batch.fresh), batch.never)
                batch.fresh.clear()

    def _early_that_wait(self) -> Iterator[tuple[str, Reason]]:
        """Those that have their place already, in a batch whose first had none: nobody has told them."""
        asked = {v.batch.jobs[v.position][1] for v in self.verdicts if v.alone} if self.early else ()
        for id, reason in self.early.items():
            if reason is not None and id not in asked:
                yield id, reason

    def _news_of_one(self, verdict: Verdict) -> Iterator[tuple[str, Reason]]:
        batch, reason = verdict.batch, verdict.reason
        id = batch.jobs[verdict.position][1]
        batch.fresh.add(id)  # it was not told what the others are told
        same_kind = self.books.line.known_reason(id).code is reason.code
        if not same_kind or self.now >= batch.one_told_at + TOLD_AGAIN_SECONDS:
            batch.one_told_at = self.now
            yield from self._differing([id], reason)

    def _news_of_all(self, verdict: Verdict) -> Iterator[tuple[str, Reason]]:
        batch, position = verdict.batch, verdict.position
        if batch.told is None or not self._is_old(batch, verdict.reason):
            ids = [id for _, id in batch.jobs[position:] if id not in self.early]
            batch.told, batch.told_at = verdict.reason, self.now
        else:
            place = batch.place_of
            waiting = self.books.line.workloads
            ids = [id for id in sorted(batch.fresh - self.early.keys()) if place(waiting[id]) >= position]
        batch.fresh.difference_update(ids)
        return self._differing(ids, batch.told)

    def _is_old(self, batch: Batch, reason: Reason) -> bool:
        if batch.told is None or batch.told.code is not reason.code:
            return False
        return batch.told == reason or self.now < batch.told_at + TOLD_AGAIN_SECONDS

    def _differing(self, ids: list[str], reason: Reason) -> Iterator[tuple[str, Reason]]:
        line = self.books.line
        for id in ids:
            if line.known_reason(id) != reason:
                line.told[id] = reason
                yield id, reason

    # --- the end --------------------------------------------------------------------------------------------------

    def undo(self) -> None:
        for given in reversed(self._given):
            give_back(given.allotments, self.books.rooms)
            self.books.purse.refund(given.payer, given.amounts)
        self._given.clear()
        for room in self._keeping:
            room.keeps.clear()
        self._keeping.clear()
        self.books.purse.keep_nothing()


def goes_on(ask: Ask) -> bool:
    """Jobs come to an end, declared or not; a dev environment stays until somebody stops it."""
    return ask.kind == Kind.JOB.value


def _back_off(workload: Workload) -> Reason:
    return because(Code.BACK_OFF, until=workload.not_before, cause=workload.reason.facts.get("cause"))
