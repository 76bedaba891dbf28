"""What was promised to work that moves, and to those it moves for: kept from everybody, before anyone is asked.

Work that is moved has its new place kept from the moment of the decision until it runs again, whoever comes meanwhile,
and is placed before anyone else as soon as it has stopped. When the place itself is lost (a node fails, a card is held)
it is still the first to be asked, for any place: so it can go back to where it was. The one it moves for has its place
kept in the same way, and starts in the pass in which the last of them has left.
"""

from __future__ import annotations

from collections.abc import Iterator
from math import inf
from typing import TYPE_CHECKING, NamedTuple

from gpuyard.domain.cluster import Allotment
from gpuyard.domain.promises import Promise
from gpuyard.scheduling.fit import Allotments, Ask
from gpuyard.scheduling.line import Batch
from gpuyard.scheduling.quota import amounts_of
from gpuyard.scheduling.room import Keep, Room, Rooms, Standing

if TYPE_CHECKING:
    from gpuyard.scheduling.books import Books

BEFORE_ALL = 0  # the place in a pass of what was promised; those who are asked come after it
FIRST = Standing(1)  # beside what was promised to others


class Returning(NamedTuple):
    """One that has stopped to move, and waits for nothing but this pass."""

    id: str
    batch: Batch
    position: int
    promise: Promise


def returning(books: Books) -> list[Returning]:
    """Those that have stopped, the oldest first. What can never start any more has no claim to anything."""
    found = []
    for id, promise in books.promised.items():
        one = _in_line(books, id)
        if one is not None:
            found.append(Returning(id, *one, promise))
    return sorted(found, key=lambda one: (books.line.workloads[one.id].submitted_at, one.id))


def awaiting(books: Books) -> Iterator[tuple[str, Batch, int, bool]]:
    """Those for whom others move, and whether some of these are still there."""
    leaving = {promise.by for id, promise in books.promised.items() if id in books.stopping}
    for by in sorted({promise.by for promise in books.promised.values()}):
        one = _in_line(books, by)
        if one is not None and by not in books.promised:
            yield by, *one, by in leaving


def _in_line(books: Books, id: str) -> tuple[Batch, int] | None:
    batch, workload = books.line.batch_of(id), books.line.workloads.get(id)
    if batch is None or workload is None or batch.never is not None:
        return None
    return batch, batch.place_of(workload)


def keeps(books: Books) -> Iterator[tuple[Room, Keep]]:
    """The places of those that are still stopping."""
    for id, promise in books.promised.items():
        for place in promise.places.values() if id in books.stopping else ():
            room = books.rooms.by_name.get(place.node)
            if room is not None:
                yield room, Keep(BEFORE_ALL, id, place.cpu_milli, place.memory, place.cards, -inf)


def keep_quota(books: Books) -> None:
    """What the new place takes beyond the old one: a share of a larger node may be larger."""
    for id, promise in books.promised.items():
        held = books.held.get(id)
        if held is None or id not in books.stopping:
            continue
        amounts = amounts_of(promise.places.values())
        more = {name: max(0, amount - held.amounts.get(name, 0)) for name, amount in amounts.items()}
        books.purse.keep_for(BEFORE_ALL, id, books.holding[id].spec.name, held.payer, more)


def taken_again(books: Books, one: Returning) -> Allotments | None:
    """Take the very place that was promised; None, and nothing is taken, when it is not to be had any more."""
    taken: Allotments = {}
    for key, place in one.promise.places.items():
        if not _is_there(books.rooms, one.batch.ask, key[0], place):
            break
        books.rooms.take(place)
        taken[key] = place
    else:
        if books.purse.refusal(one.batch.payer, amounts_of(taken.values()), FIRST) is None:
            return taken
    for place in taken.values():
        books.rooms.give_back(place)
    return None


def _is_there(rooms: Rooms, ask: Ask, role: str, place: Allotment) -> bool:
    room = rooms.by_name.get(place.node)
    asked = next((one for one in ask.roles if one.name == role), None)
    beside = room.beside_keeps(FIRST) if room is not None else None
    if room is None or asked is None or beside is None or place.cpu_milli > beside[0] or place.memory > beside[1]:
        return False
    models = {stack.model for share in place.cards if (stack := room.stack_of.get(share.index)) is not None}
    if not all(asked.sieve.lets(room.node, model) for model in models or {""}):
        return False
    return all(beside[2].get(share.index, 0) >= share.milli for share in place.cards)
