"""Why a workload waits, as a proof, and what would start it now. The answers are found by `inquiry` and `remedies`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from gpuyard.domain.reasons import Code
from gpuyard.domain.workload import Workload
from gpuyard.scheduling.books import Books
from gpuyard.scheduling.inquiry import Inquiry
from gpuyard.scheduling.proposals import as_facts, beside_cards, moves_for
from gpuyard.scheduling.remedies import remedies as look_for
from gpuyard.scheduling.snapshot import Ahead, Remedy, Why


def why(books: Books, id: str, now: float, *, remedies: bool = True, groups: Sequence[str] = ()) -> Why | None:
    """The proof. None when it does not wait, or is about to start. `groups`: others its owner could submit it in."""
    inquiry = Inquiry(books, now)
    try:
        return asked(inquiry, id, remedies=remedies, groups=groups)
    finally:
        inquiry.close()


def asked(inquiry: Inquiry, id: str, *, remedies: bool = True, groups: Sequence[str] = ()) -> Why | None:
    """The same of a state that is kept open for several questions."""
    proof = inquiry.why(id)
    moves = moves_for(inquiry, id) if proof is not None and proof.reason.code is Code.BUSY else None
    if proof is not None and moves is not None:
        proof = replace(proof, facts=(*as_facts(inquiry, moves, beside_cards(proof.reason)), *proof.facts))
    if proof is None or not remedies:
        return proof
    return replace(proof, remedies=look_for(inquiry, id, proof, groups))


def offers(books: Books, workload: Workload, now: float, groups: Sequence[str]) -> tuple[Remedy, ...]:
    """What would start one that is not submitted yet. It stands in the line while it is asked about, no longer."""
    books.put(workload)
    try:
        proof = why(books, workload.id, now, groups=groups)
    finally:
        books.remove(workload.id)
    return proof.remedies if proof is not None else ()


def ranked(books: Books, one: str, two: str, now: float) -> Ahead | None:
    """Of two that wait: the one that is asked first, and by which rule."""
    inquiry = Inquiry(books, now)
    try:
        return inquiry.ranked(one, two)
    finally:
        inquiry.close()
