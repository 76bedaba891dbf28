"""Questions to one state of the books: why does this wait, who is before it, what would start it now?

A pass over the line is made once and kept open, so that many questions about the same state cost little.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from functools import cached_property

from gpuyard.domain.cluster import Allotment, CardShare, Node, NodeState
from gpuyard.domain.reasons import NEVER_STARTS, Code, Reason, because
from gpuyard.domain.resources import WHOLE_CARD
from gpuyard.domain.workload import Workload
from gpuyard.scheduling import explain, facts
from gpuyard.scheduling.backfill import START_SECONDS
from gpuyard.scheduling.books import Books
from gpuyard.scheduling.fit import Allotments, Ask, give_back, place_gang
from gpuyard.scheduling.line import Batch, longest_run
from gpuyard.scheduling.plan import Pass, Verdict, goes_on
from gpuyard.scheduling.queue import Heads, Queue
from gpuyard.scheduling.quota import amounts_of
from gpuyard.scheduling.room import ALONE, Room, Rooms, Standing
from gpuyard.scheduling.snapshot import Ahead, Sort, Why

# The reasons that say what a class says; another one is put in their place when the pass told something else.
SAYS = {
    Sort.QUOTA: frozenset({Code.OVER_QUOTA, Code.BORROW, Code.CLEARING}),
    Sort.BUSY: frozenset({Code.BUSY, Code.CLEARING, Code.MOVING}),
    Sort.ORDER: frozenset({Code.ORDER, Code.FIFO}),
    Sort.TROUBLE: frozenset({Code.CARD_HELD, Code.NO_NODES}),
}


class Inquiry:
    """The books are as after this pass until `close`; nothing may be put into them meanwhile."""

    def __init__(self, books: Books, now: float) -> None:
        self.books = books
        self.now = now
        self._known: dict[Ask, tuple[Reason, ...]] = {}

    def close(self) -> None:
        """The books are as they were; another question opens them again."""
        if "one" in self.__dict__:
            self.one.undo()
            for name in ("one", "queue", "heads", "placed", "_verdicts"):
                self.__dict__.pop(name, None)

    @cached_property
    def one(self) -> Pass:
        one = Pass(self.books, self.now)
        one.run()
        return one

    @cached_property
    def queue(self) -> Queue:
        return Queue(self.one)

    @cached_property
    def heads(self) -> Heads:
        return Heads(self.one, self.queue)

    @cached_property
    def placed(self) -> frozenset[str]:
        return frozenset(placement.workload for placement in self.one.placements)

    @cached_property
    def _verdicts(self) -> dict[Batch, list[Verdict]]:
        found: dict[Batch, list[Verdict]] = {}
        for verdict in self.one.verdicts:
            found.setdefault(verdict.batch, []).append(verdict)
        return found

    # --- the questions --------------------------------------------------------------------------------------------

    def why(self, id: str) -> Why | None:
        """The proof, without remedies. None when it does not wait, or this very pass gives it a place."""
        workload = self.books.line.workloads.get(id)
        if workload is None or id in self.placed:
            return None
        if id in self.books.line.resting:
            reason = because(Code.BACK_OFF, until=workload.not_before, cause=workload.reason.facts.get("cause"))
            return Why(Sort.TROUBLE, reason, (), 0, (), ())
        batch = self.books.line.batch_of(id)
        assert batch is not None
        if batch.never is not None:
            return self._never(batch, batch.never)
        sort, reason = self._class(batch, self._told(batch, id))
        shown = self._facts(batch, sort, reason)
        return Why(sort, reason, shown, self.queue.number_before(id), self.queue.ahead_of(id), ())

    def _facts(self, batch: Batch, sort: Sort, reason: Reason) -> tuple[Reason, ...]:
        """Those of nodes are the same for all that ask the same."""
        if sort is not Sort.BUSY:
            return facts.gathered(self, batch, sort, reason)
        if batch.ask not in self._known:
            self._known[batch.ask] = facts.gathered(self, batch, sort, reason)
        return self._known[batch.ask]

    def ranked(self, one: str, two: str) -> Ahead | None:
        return self.queue.ranked(one, two)

    def _never(self, batch: Batch, reason: Reason) -> Why:
        sort = Sort.TROUBLE if reason.code is Code.NO_NODES else Sort.NEVER
        return Why(sort, reason, facts.gathered(self, batch, sort, reason), 0, (), ())

    def _told(self, batch: Batch, id: str) -> Reason:
        """What the pass said to this one of the batch."""
        early = self.one.early.get(id)
        if early is not None:
            return early
        index = next(i for i, (_, job) in enumerate(batch.jobs) if job == id)
        said = [one for one in self._verdicts[batch] if one.position <= index]
        return max(said, key=lambda one: one.position).reason

    # --- the class ------------------------------------------------------------------------------------------------

    def _class(self, batch: Batch, told: Reason) -> tuple[Sort, Reason]:
        """What kind of thing stands in the way: found out by asking as if nobody else waited."""
        refusal = self.books.purse.refusal(batch.payer, batch.amounts, ALONE)
        taken = place_gang(batch.ask, self.books.rooms, ALONE) if refusal is None else None
        if taken is not None:
            give_back(taken, self.books.rooms)
            refusal = self.books.purse.refusal(batch.payer, amounts_of(taken.values()), ALONE)
        if refusal is not None:
            sort = Sort.NEVER if refusal.code in NEVER_STARTS else Sort.QUOTA
            return sort, told if told.code in SAYS.get(sort, ()) else refusal
        if taken is not None:
            return Sort.ORDER, told if told.code in SAYS[Sort.ORDER] else self._kept(batch, taken)
        trouble = self.trouble(batch)
        if trouble is not None:
            return Sort.TROUBLE, told if told.code in SAYS[Sort.TROUBLE] else trouble
        if told.code in SAYS[Sort.BUSY]:
            return Sort.BUSY, told
        return Sort.BUSY, explain.not_yet(batch.ask, self.books.rooms, (), self.books.on_node, self.one.came_to)

    def _kept(self, batch: Batch, taken: Allotments) -> Reason:
        """It would start, were nobody before it: name the one that keeps the room, or simply stands before it."""
        for allotment in taken.values():
            for keep in self.books.rooms.by_name[allotment.node].keeps:
                return self.one.kept_by(keep, batch.ask)
        ahead = self.queue.ahead_of(batch.jobs[-1][1])
        first = ahead[-1].workload if ahead else ""
        return because(Code.ORDER, ahead=first, ahead_name=self.name(first))

    def name(self, id: str) -> str:
        workload = self.books.line.workloads.get(id)
        return workload.spec.name if workload is not None else ""

    @cached_property
    def troubled(self) -> frozenset[Room]:
        return frozenset(self.books.troubled)

    @cached_property
    def kinds(self) -> tuple[Node, ...]:
        """One ready node of every kind: those alike share alike."""
        ready = (node for node in self.books.nodes if node.state is NodeState.READY)
        return tuple({(node.cpu_milli, node.memory, len(node.cards)): node for node in ready}.values())

    @cached_property
    def devices(self) -> tuple[str, ...]:
        return tuple(sorted({card.device for node in self.books.nodes for card in node.cards}))

    # --- trouble --------------------------------------------------------------------------------------------------

    @cached_property
    def away(self) -> tuple[Node, ...]:
        return tuple(node for node in self.books.nodes if node.state is not NodeState.READY)

    def trouble(self, batch: Batch) -> Reason | None:
        """The reason when only something broken stands in the way: held cards, or nodes that are lost or taken out."""
        if not self.away and not self.books.troubled:
            return None
        with self._healed() as rooms:
            taken = place_gang(batch.ask, rooms, ALONE)
            if taken is None:
                return None
            give_back(taken, rooms)
            return self._named(taken)

    def _named(self, taken: Allotments) -> Reason:
        away = {node.name: node for node in self.away}
        for allotment in taken.values():
            if allotment.node in away:
                node = away[allotment.node]
                return because(Code.NO_NODES, nodes=[f"{node.name} ({node.state.value})"])
        for allotment in taken.values():
            given = {share.index for share in allotment.cards}
            for card in self.books.rooms.by_name[allotment.node].node.cards:
                if card.trouble and card.index in given:
                    held = {"card": card.index, "pid": card.holder_pid, "holder": card.trouble}
                    return because(Code.CARD_HELD, node=allotment.node, **held)
        return because(Code.NO_NODES, nodes=[])

    @contextmanager
    def _healed(self) -> Iterator[Rooms]:
        """The rooms as if every card were well and every node there."""
        cures = [_cure(room) for room in self.books.troubled]
        for cure in cures:
            self.books.rooms.give_back(cure)
        try:
            yield _Wider(self.books, self.away) if self.away else self.books.rooms
        finally:
            for cure in cures:
                self.books.rooms.take(cure)

    # --- trying a change ------------------------------------------------------------------------------------------

    def start_of(self, workload: Workload, instead_of: str) -> Allotments | None:
        """Where the workload, changed, would start now in place of the one that waits. None when it would not."""
        ask = self.books.ask_of(workload)
        batch = Batch(workload, ask, longest_run(workload), self.books.rank_of(workload))
        batch.jobs.append((workload.submitted_at, workload.id))
        if self.books.never_fits(batch) is not None or self.books.purse.never(batch.payer, batch.amounts) is not None:
            return None
        seq = self.heads.turn_of(batch, instead_of)
        if seq is None:
            return None
        return self._room_for(batch, Standing(seq, self.now + batch.longest + START_SECONDS, None, goes_on(ask)))

    def start_in_a_pass(self, workload: Workload) -> Allotments | None:
        """The same, found out by a pass of its own: dear, but for changes that move those before it."""
        before = self.books.line.workloads[workload.id]
        self.close()
        self.books.put(workload)
        one = Pass(self.books, self.now)
        one.run()
        found = next((dict(p.allotments) for p in one.placements if p.workload == workload.id), None)
        one.undo()
        self.books.put(before)
        return found

    def _room_for(self, batch: Batch, standing: Standing) -> Allotments | None:
        purse, rooms = self.books.purse, self.books.rooms
        if purse.refusal(batch.payer, batch.amounts, standing) is not None:
            return None
        taken = place_gang(batch.ask, rooms, standing)
        if taken is None:
            return None
        give_back(taken, rooms)
        return taken if purse.refusal(batch.payer, amounts_of(taken.values()), standing) is None else None


def _cure(room: Room) -> Allotment:
    """Handing this back to a room makes its troubled cards whole."""
    troubled = tuple(CardShare(card.index, WHOLE_CARD) for card in room.node.cards if card.trouble)
    return Allotment(room.node.name, 0, 0, 0, "", troubled)


class _Wider(Rooms):
    """The rooms there are, and those of nodes that are away as far as running work leaves them."""

    def __init__(self, books: Books, away: Sequence[Node]) -> None:
        ready = [replace(node, state=NodeState.READY) for node in away]
        super().__init__(ready, books.policy, empty_and_well=True)
        shift = 1 + max((room.stacks[-1].serial for room in books.rooms), default=0)
        for room in self:
            room.rank += len(books.nodes)
            for stack in room.stacks:
                stack.serial += shift
        for held in books.held.values():
            for allotment in held.allotments:
                if allotment.node in self.by_name:
                    self.by_name[allotment.node].take(allotment)
        self.by_name = {**books.rooms.by_name, **self.by_name}
