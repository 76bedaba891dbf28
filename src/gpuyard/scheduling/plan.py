"""One pass over the queue. Everyone is either given a place or a reason.

An earlier workload that waits keeps back what it could use of the free rest, on the nodes where it is closest to
starting, and of the quota it waits for. So a later one may use what nobody before it can use, and never takes what an
earlier one waits for, unless it is sure to be over before that one can start.
"""

from __future__ import annotations

from collections.abc import Iterator
from math import inf
from typing import NamedTuple

from gpuyard.domain.reasons import NEVER_STARTS, Code, Reason, because
from gpuyard.domain.workload import Workload
from gpuyard.scheduling import explain
from gpuyard.scheduling.backfill import START_SECONDS, Release, ends_by, latest_start
from gpuyard.scheduling.books import Books, Place
from gpuyard.scheduling.fit import Allotments, Ask, give_back, place_gang
from gpuyard.scheduling.line import Batch
from gpuyard.scheduling.order import Asking, Turns
from gpuyard.scheduling.preempt import Preemption
from gpuyard.scheduling.prospects import prospects
from gpuyard.scheduling.quota import Amounts, Payer, amounts_of
from gpuyard.scheduling.room import ALONE, Keep, Room, Standing
from gpuyard.scheduling.share import rate_of
from gpuyard.scheduling.snapshot import Eviction, Placement, Plan, Preview, Snapshot

DEEPEST = 300  # so many different requests of one person are asked in one pass
USES_AT_MOST = 8  # and the use of so many
PASSED_AT_MOST = 5  # of those a placement passed by, this many are written down
CLAIMS_AT_MOST = 8  # searches for victims in one pass
TIMED_AT_MOST = 4  # waiting workloads whose latest start is worked out in one pass
TOLD_AGAIN_SECONDS = 5.0  # the same reason with other numbers is told this often at most


def plan(snapshot: Snapshot) -> Plan:
    """Decide for the whole queue."""
    return decide(Books.of(snapshot), snapshot.now)


def decide(books: Books, now: float, *, news_only: bool = False, most: float = inf) -> Plan:
    """Decide for the whole queue, and leave the books as they were. With `news_only` only changed reasons are told.

    Once `most` replicas have their places the rest of the queue is left for the next time: neither placed nor told.
    """
    one = Pass(books, now)
    one.run(most)
    waiting = dict(one.news() if news_only else one.reasons())
    uses = one.uses() if one.placements else {}
    one.undo()
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


class Pass:
    """The state of one pass over the books. Until `undo` the books are as if its placements were made."""

    def __init__(self, books: Books, now: float) -> None:
        self.books = books
        self.now = now
        self.placements: list[Placement] = []
        self.verdicts: list[Verdict] = []
        self.evictions: list[Eviction] = []
        self.turns = Turns(books, now)
        self.preemption = Preemption(books, self.turns, now)
        self._given: list[_Given] = []
        self._no_room: dict[Ask, _NoRoom] = {}  # asks that found no room: room only shrinks in a pass
        self._keeping: list[Room] = []
        self._depth: dict[
            tuple[str, str], tuple[int, str]
        ] = {}  # (group, owner) -> requests that wait, the last of them
        self._has_place = ""  # the one for whom a place was last kept that others are leaving
        self._timed = self._claims = self._seq = self._replicas = 0
        self._ends: dict[str, float] = {}
        self._new_on: dict[str, list[Release]] = {}
        books.line.wake(now)

    # --- the walk -------------------------------------------------------------------------------------------------

    def run(self, most: float = inf) -> None:
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
            elif group is not None and group.fifo and not self._is_hopeless(batch, reason):
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

    def _is_hopeless(self, batch: Batch, reason: Reason) -> bool:
        """No waiting will help it: it holds nobody up."""
        return reason.code in NEVER_STARTS or self.books.purse.borrows_too_much(batch.payer, batch.amounts)

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
        standing = self.standing(batch)
        amounts = batch.amounts
        reason = self.books.purse.refusal(batch.payer, amounts, standing)
        if reason is None:
            place = self._find_room(batch, position, standing)
            if place.taken is not None:
                self._take(batch, position, place.taken, place.amounts, standing)
                return None
            if place.refusal is None:
                return self._wait_for_room(batch, position, standing)
            amounts, reason = place.amounts, place.refusal
        return self._wait_for_quota(batch, position, amounts, standing, reason)

    def standing(self, batch: Batch) -> Standing:
        return Standing(self._seq, self.now + batch.longest + START_SECONDS)

    def _find_room(self, batch: Batch, position: int, standing: Standing) -> Place:
        tried = self._no_room.get(batch.ask)
        if tried is not None and tried.ends_by <= standing.ends_by:
            return Place(None, batch.amounts, None)
        return self.books.place(batch, standing, self.books.images_of(batch.jobs[position][1]))

    def _take(self, batch: Batch, position: int, taken: Allotments, amounts: Amounts, standing: Standing) -> None:
        turn = self.turns.turn(batch, position)
        passed = tuple(v.batch.jobs[v.position][1] for v in self.verdicts[:PASSED_AT_MOST])
        id, gap = batch.jobs[position][1], self._gap(taken, standing)
        self.placements.append(Placement(id, taken, turn, passed, gap, self.books.images_at_hand(id, taken)))
        self._given.append(_Given(batch.payer, amounts, taken))
        for allotment in taken.values():
            self._new_on.setdefault(allotment.node, []).append((standing.ends_by, allotment))
        self._replicas += len(taken)
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
        cleared = self._claim(batch, position, standing)
        if cleared is not None:
            return cleared
        id = batch.jobs[position][1]
        tried = self._no_room.get(batch.ask)
        if tried is None or tried.ends_by > standing.ends_by:
            tried = self._no_room[batch.ask] = self._no_room_for(batch, id, standing)
        # Its quota is kept as well: else it would wait for that as soon as there is room.
        self.books.purse.keep_for(self._seq, id, self._name(id), batch.payer, batch.amounts, tried.starts_at)
        return self._until_ripe(batch, tried.reason)

    def _until_ripe(self, batch: Batch, reason: Reason) -> Reason:
        """Where others may be interrupted for it, but not yet: say from when on."""
        ripe_at = self.preemption.ripe_at(batch) if reason.code is Code.BUSY else None
        return reason if ripe_at is None else because(reason.code, **reason.facts, ripe_at=ripe_at)

    def _no_room_for(self, batch: Batch, id: str, standing: Standing) -> _NoRoom:
        kept = self._kept_from(batch, standing)
        if kept is None:
            return _NoRoom(standing.ends_by, self._busy(batch.ask), self._keep_room(batch, id))
        # It cannot start before that one does: whoever is over by then is in nobody's way.
        self._keep_prospects(batch, id, kept.starts_at)
        reason = because(Code.ORDER, ahead=kept.workload, ahead_name=self._name(kept.workload))
        return _NoRoom(standing.ends_by, reason, kept.starts_at)

    def _busy(self, ask: Ask) -> Reason:
        return explain.not_yet(ask, self.books.rooms, self.books.troubled, self.books.on_node)

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

    def _keep_room(self, batch: Batch, id: str) -> float:
        """Keep the free rest where it will start first: where running work is known to end, or most is free now.

        Returns when it will start at the latest; minus infinity when nobody knows.
        """
        books, start = self.books, None
        if books.policy.backfill and books.line.has_sure_ends and self._timed < TIMED_AT_MOST:
            self._timed += 1
            start = latest_start(batch.ask, books.rooms, self._releases, self.now)
        if start is None:
            self._keep_prospects(batch, id, -inf)
            return -inf
        for place in start.places:
            cpu, memory, _ = place.room.fair_share(batch.ask.roles[0].resources)
            self._keep(place.room, Keep(self._seq, id, cpu, memory, place.cards, start.at))
        return start.at

    def _keep_prospects(self, batch: Batch, id: str, starts_at: float) -> None:
        for prospect in prospects(batch.ask, self.books.rooms, self.books.empty):
            self._keep(prospect.stack.room, prospect.keep(self._seq, id, starts_at))

    def _keep(self, room: Room, keep: Keep) -> None:
        room.keeps.append(keep)
        self._keeping.append(room)

    def _releases(self, node: str) -> Iterator[Release]:
        """When what is given out on a node comes free: running work, and what this pass has placed."""
        yield from self._new_on.get(node, ())
        for id in self.books.on_node.get(node, ()):
            if id not in self._ends:
                workload = self.books.holding[id]
                learned = self.books.run_times.get((workload.owner, workload.spec.name), ())
                self._ends[id] = ends_by(workload, learned, self.now)
            for allotment in self.books.held[id].allotments:
                if allotment.node == node:
                    yield self._ends[id], allotment

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
                self._keep_place(batch, id, place)
                return otherwise or self._busy(batch.ask)
            self.evictions += preemption.victims_for(batch, id, standing)
        place = preemption.fits_once_stopped(batch, standing)
        if place is None:
            return None
        self._keep_place(batch, id, place)
        return because(Code.CLEARING, jobs=preemption.clearing_for(id))

    def _keep_place(self, batch: Batch, id: str, place: Allotments) -> None:
        """It will start there as soon as others are gone."""
        self._has_place = id
        amounts = amounts_of(place.values())
        self.turns.expect(batch.group, amounts)
        self.books.purse.keep_for(self._seq, id, self._name(id), batch.payer, amounts)
        for one in place.values():
            keep = Keep(self._seq, id, one.cpu_milli, one.memory, one.cards, -inf)
            self._keep(self.books.rooms.by_name[one.node], keep)

    # --- what is told ---------------------------------------------------------------------------------------------

    def reasons(self) -> Iterator[tuple[str, Reason]]:
        """Everyone who waits, in the order in which they were asked; last those whom nobody asks."""
        for verdict in self.verdicts:
            last = verdict.position + 1 if verdict.alone else None
            for _, id in verdict.batch.jobs[verdict.position : last]:
                yield id, verdict.reason
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
        for id, workload in self.books.line.resting.items():
            yield from self._differing([id], _back_off(workload))
        for batch in self.books.line.parked.values():
            if batch.fresh:
                assert batch.never is not None
                yield from self._differing(sorted(batch.fresh), batch.never)
                batch.fresh.clear()

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
            ids = [id for _, id in batch.jobs[position:]]
            batch.told, batch.told_at = verdict.reason, self.now
        else:
            place = batch.place_of
            ids = [id for id in sorted(batch.fresh) if place(self.books.line.workloads[id]) >= position]
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


def _back_off(workload: Workload) -> Reason:
    return because(Code.BACK_OFF, until=workload.not_before, cause=workload.reason.facts.get("cause"))
