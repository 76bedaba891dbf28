"""Work that holds cards which it was not given: told in time, then ended.

A card that is open in somebody's process can be given to nobody, and an open file can be handed from one process to
the next. So the time is counted for the card, whoever holds it, and goes on when it was out of sight for a moment:
otherwise a few jobs that hand it round in a ring would keep it for good.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass, field

from gpuyard.access.service import SYSTEM
from gpuyard.domain.cluster import Allotment
from gpuyard.domain.reasons import Code, Reason, because
from gpuyard.domain.workload import ReplicaId, Workload
from gpuyard.engines.seam import HeldCard, HolderLook
from gpuyard.store.audit import AuditEntry

CardName = tuple[str, str, int]  # node, device, index
REMEMBERED_SECONDS = 60.0  # at least; a card that is out of sight for longer is held anew when it is seen again


@dataclass(frozen=True, slots=True)
class Holding:
    workload: str
    reason: Reason
    ends: bool


@dataclass(slots=True)
class _Stretch:
    """One card, held since a moment of the looks' own clock."""

    since: float
    last: float
    warned: set[ReplicaId] = field(default_factory=set)


class HoldingWatch:
    """Remembers since when cards are held and whom it has warned; a new control begins anew."""

    def __init__(self, seconds: float) -> None:
        self._seconds = seconds  # 0: nobody is ended
        self._looked = float("-inf")
        self._stretches: dict[CardName, _Stretch] = {}

    def due(self, look: HolderLook | None, find: Callable[[str], Workload | None], *, has_rooms: bool) -> list[Holding]:
        """Whom to warn and whom to end. A look is judged once. Without rooms every card can be seen by everybody, and
        programs that only measure open all of them: there, who was given cards of the kind is warned, not ended."""
        if look is None or look.began <= self._looked:
            return []
        self._looked = look.began
        self._forget_old(look.began)
        found: list[Holding] = []
        for id, cards in sorted(look.held.items(), key=lambda item: item[0]):
            workload = find(id.workload)
            if workload is None or workload.attempts_made != id.attempt:
                continue  # it is on its way out already
            foreign = [card for card in cards if not _is_given(workload, card)]
            bound = {card for card in foreign if has_rooms or not _has_kind(workload, card)}
            holding = self._judge(id, foreign, bound, look.began)
            if holding is not None:
                found.append(holding)
        return found

    def _forget_old(self, now: float) -> None:
        kept = max(self._seconds, REMEMBERED_SECONDS)
        self._stretches = {name: one for name, one in self._stretches.items() if now - one.last <= kept}

    def _judge(
        self, id: ReplicaId, cards: Sequence[HeldCard], bound: Collection[HeldCard], now: float
    ) -> Holding | None:
        """Nobody is ended for a card who was not warned of it by an earlier look."""
        over, news = [], []
        for card in cards:
            stretch = self._stretches.setdefault(_name(card), _Stretch(now, now))
            stretch.last = now
            if id not in stretch.warned:
                stretch.warned.add(id)
                news.append(card)
            elif 0 < self._seconds <= now - stretch.since and card in bound:
                over.append(card)
        if over:
            return Holding(id.workload, self._reason(Code.KEPT_CARD, id, over), ends=True)
        return Holding(id.workload, self._reason(Code.KEEPS_CARD, id, news), ends=False) if news else None

    def _reason(self, code: Code, id: ReplicaId, cards: Sequence[HeldCard]) -> Reason:
        first = cards[0]
        where = {"device": first.device, "cards": sorted({card.index for card in cards}), "node": first.node}
        bound = {"seconds": self._seconds} if self._seconds else {}
        return because(code, **where, **bound, pid=first.pid, command=first.command, replica=id.short)


def _name(card: HeldCard) -> CardName:
    return card.node, card.device, card.index


def _is_given(workload: Workload, card: HeldCard) -> bool:
    """One replica may use what a sibling was given: it is the workload that has it."""
    return any(
        (share.index, there.node, there.device) == (card.index, card.node, card.device)
        for there in _allotments(workload)
        for share in there.cards
    )


def _has_kind(workload: Workload, card: HeldCard) -> bool:
    return any(there.cards and there.device == card.device for there in _allotments(workload))


def _allotments(workload: Workload) -> Iterable[Allotment]:
    return (replica.allotment for replica in workload.attempt.replicas) if workload.attempt else ()


def audited(holding: Holding, now: float) -> AuditEntry:
    """For admins: nobody asked for it, so it is the platform's own doing."""
    facts = {name: value for name, value in holding.reason.facts.items() if name != "seconds"}
    action = "workload.end_holder" if holding.ends else "workload.warn_holder"
    return AuditEntry(now, SYSTEM, action, holding.workload, facts=facts)
