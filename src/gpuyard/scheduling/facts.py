"""The facts that show why something waits: node by node, quota by quota, job by job. Those alike are told once."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Any, NamedTuple

from gpuyard.domain.reasons import BORROWS, Code, Reason, because
from gpuyard.domain.resources import WHOLE_CARD
from gpuyard.domain.workload import State, Together, Workload
from gpuyard.scheduling.backfill import ends_by
from gpuyard.scheduling.fit import RoleAsk, give_back, how_many, place_gang
from gpuyard.scheduling.line import Batch
from gpuyard.scheduling.room import ALONE, Room, Stack
from gpuyard.scheduling.snapshot import Sort

if TYPE_CHECKING:
    from gpuyard.scheduling.inquiry import Inquiry

KINDS_AT_MOST = 8  # of nodes that lack something; the others are told as one
JOBS_AT_MOST = 4
JOBS_NAMED = 5


def gathered(inquiry: Inquiry, batch: Batch, sort: Sort, reason: Reason) -> tuple[Reason, ...]:
    """The smallest set of facts that shows the class."""
    match sort:
        case Sort.NEVER:
            return tuple(_never(inquiry, batch, reason))
        case Sort.QUOTA:
            return (*_quotas(inquiry, batch, reason), *_jobs(inquiry, _payers_of(inquiry, batch, reason)))
        case Sort.ORDER:
            return tuple(_kept(inquiry, batch))
        case Sort.TROUBLE:
            return tuple(_trouble(inquiry, batch, reason))
    return tuple(_busy(inquiry, batch))


# --- quotas -------------------------------------------------------------------------------------------------------


def _quotas(inquiry: Inquiry, batch: Batch, reason: Reason) -> Iterator[Reason]:
    """The quotas that refuse it."""
    purse, payer = inquiry.books.purse, batch.payer
    resources = dict.fromkeys([reason.facts.get("resource"), *batch.amounts])
    for resource in [name for name in resources if isinstance(name, str)]:
        asked = batch.amounts.get(resource) or reason.facts.get("asked", 0)
        guaranteed = purse.guaranteed.get((payer.group, resource), 0)
        for user in (None, payer.owner):
            limit = purse.limit(payer.group, user, resource)
            used = purse.used(payer.group, user, resource)
            borrows = reason.code in BORROWS and user is None and resource == reason.facts["resource"]
            if borrows or (limit is not None and asked and used + asked > limit):
                scope, who = ("user", user) if user else ("group", payer.group)
                amounts = {"used": used, "limit": limit, "guaranteed": guaranteed if user is None else 0}
                yield because(
                    Code.QUOTA_FACT, scope=scope, who=who, group=payer.group, resource=resource, asked=asked, **amounts
                )


def _payers_of(inquiry: Inquiry, batch: Batch, reason: Reason) -> Iterator[Workload]:
    """Running work on the same quota, the largest first."""
    resource = str(reason.facts.get("resource", ""))
    user = batch.owner if reason.facts.get("scope") == "user" else None
    books = inquiry.books
    mine = [
        (held.amounts.get(resource, 0), id)
        for id, held in books.held.items()
        if held.payer.group == batch.group and user in (None, held.payer.owner) and held.amounts.get(resource, 0)
    ]
    return (books.holding[id] for _, id in sorted(mine, key=lambda one: (-one[0], one[1])))


# --- nodes --------------------------------------------------------------------------------------------------------


class _Lack(NamedTuple):
    """What one stack of cards, or one node, has too little of."""

    resource: str
    asked: int
    free: int
    trouble: str = ""


def _busy(inquiry: Inquiry, batch: Batch) -> Iterator[Reason]:
    role = batch.ask.roles[0]
    stacks = list(inquiry.books.rooms.shelf(role.sieve))
    if batch.ask.replicas > 1:
        yield from _gang(batch, role, stacks)
    short = _short(inquiry, role, stacks)
    yield from _alike(inquiry, short)
    if short:
        closest = max(short, key=lambda one: _closeness(*one))[1]
        on_it = inquiry.books.on_node.get(closest.room.node.name, ())
        yield from _jobs(inquiry, (inquiry.books.holding[id] for id in on_it))


def _gang(batch: Batch, role: RoleAsk, stacks: Iterable[Stack]) -> Iterator[Reason]:
    """How many of the replicas have room now: all of them start, or none."""
    if batch.ask.together is Together.ANY and len(batch.ask.roles) == 1:
        room = sum(how_many(stack, role.resources, role.replicas) for stack in stacks)
        yield because(Code.GANG_FACT, replicas=role.replicas, fit=min(room, role.replicas))


def _short(inquiry: Inquiry, role: RoleAsk, stacks: Iterable[Stack]) -> list[tuple[_Lack, Stack]]:
    """What each lacks that could hold a replica if it were empty. Those alike in everything are looked at once."""
    found: dict[tuple[object, ...], _Lack | None] = {}
    short = []
    for stack in stacks:
        room, node = stack.room, stack.room.node
        special = stack.rings or room in inquiry.troubled or stack.milli != stack.whole * WHOLE_CARD
        alike: tuple[object, ...] = (
            *(stack.whole, stack.milli, room.cpu, room.memory, len(stack.indices)),
            *(node.cpu_milli, node.memory, len(node.cards)),
            *((node.name,) if special else ()),
        )
        if alike not in found:
            found[alike] = _lack(role, stack) if _could(inquiry, role, stack) else None
        lack = found[alike]
        if lack is not None:
            short.append((lack, stack))
    return short


def _could(inquiry: Inquiry, role: RoleAsk, stack: Stack) -> bool:
    """A node that could not hold a replica even when empty is no part of the proof."""
    room = inquiry.books.empty.by_name[stack.room.node.name]
    return how_many(room.stacks[stack.serial - stack.room.stacks[0].serial], role.resources, 1) > 0


def _lack(role: RoleAsk, stack: Stack) -> _Lack | None:
    """None when a replica has room here: it is the others that have not."""
    asked, room = role.resources, stack.room
    if asked.cards is not None:
        if asked.cards.is_share:
            free = max((room.cards[index] for index in stack.indices), default=0)
        else:
            free = stack.whole * WHOLE_CARD
        if free < asked.cards.milli:
            return _Lack(stack.device, asked.cards.milli, max(0, free), _held(room, stack))
    cpu, memory, _ = room.fair_share(asked)
    if memory > room.memory:
        return _Lack("memory", memory, max(0, room.memory))
    if cpu > room.cpu:
        return _Lack("cpu", cpu, max(0, room.cpu))
    if stack.offer(asked, ALONE) is None:  # enough chips, but not in one ring
        return _Lack(stack.device, asked.cards.milli if asked.cards else 0, stack.whole * WHOLE_CARD, "ring")
    return None


def _held(room: Room, stack: Stack) -> str:
    """A card that something still holds, with its number."""
    held = [card for card in room.node.cards if card.trouble and card.index in stack.indices]
    return f"#{held[0].index}: {held[0].trouble}" if held else ""


def _closeness(lack: _Lack, stack: Stack) -> tuple[float, int]:
    return (lack.free / lack.asked if lack.asked else 0.0, -stack.room.rank)


def _alike(inquiry: Inquiry, lacks: list[tuple[_Lack, Stack]], **more: Any) -> Iterator[Reason]:
    """Nodes that lack the same are one fact; the closest come first, the last fact is about all others."""
    kinds: dict[_Lack, list[Stack]] = {}
    for lack, stack in sorted(lacks, key=lambda one: _closeness(*one), reverse=True):
        kinds.setdefault(lack, []).append(stack)
    shown = list(kinds.items())
    for lack, stacks in shown[:KINDS_AT_MOST]:
        yield _node_fact(inquiry, lack, stacks, **more)
    rest = shown[KINDS_AT_MOST:]
    if rest:
        lack = rest[0][0]
        yield _node_fact(inquiry, lack, [stack for _, stacks in rest for stack in stacks], most=True)


def _node_fact(inquiry: Inquiry, lack: _Lack, stacks: list[Stack], **more: Any) -> Reason:
    node = stacks[0].room.node.name
    jobs = list(inquiry.books.on_node.get(node, ()))[:JOBS_NAMED] if len(stacks) == 1 else []
    amounts = {"resource": lack.resource, "asked": lack.asked, "free": lack.free, "jobs": jobs}
    trouble = {"trouble": lack.trouble} if lack.trouble else {}
    return because(Code.NODE_FACT, node=node, nodes=len(stacks), **amounts, **trouble, **more)


def _never(inquiry: Inquiry, batch: Batch, reason: Reason) -> Iterator[Reason]:
    """The kinds of machines there are, as they would be if nothing ran on them."""
    if reason.code in (Code.QUOTA_NEVER, Code.BORROW_NEVER):
        yield from _quotas(inquiry, batch, reason)
        return
    role = batch.ask.roles[0]
    stacks = list(inquiry.books.empty.shelf(role.sieve))
    lacks = [(lack._replace(trouble="empty"), stack) for stack in stacks if (lack := _lack(role, stack)) is not None]
    yield from _alike(inquiry, lacks)


def _kept(inquiry: Inquiry, batch: Batch) -> Iterator[Reason]:
    """Where it would start, and for whom that is kept."""
    rooms = inquiry.books.rooms
    taken = place_gang(batch.ask, rooms, ALONE)
    if taken is None:
        return
    give_back(taken, rooms)
    cards = batch.ask.roles[0].resources.cards
    found: dict[tuple[str, int], list[Room]] = {}
    for node in dict.fromkeys(allotment.node for allotment in taken.values()):
        room = rooms.by_name[node]
        free = room.free_milli(cards.device) if cards else room.cpu
        keeper = next((keep.workload for keep in room.keeps), "")
        found.setdefault((keeper, free), []).append(room)
    asked = cards.milli if cards else batch.ask.roles[0].resources.cpu_milli or 0
    for (keeper, free), kept in list(found.items())[:KINDS_AT_MOST]:
        amounts = {"resource": cards.device if cards else "cpu", "asked": asked, "free": free}
        kept_for = {"kept_for": keeper} if keeper else {}
        yield because(Code.NODE_FACT, node=kept[0].node.name, nodes=len(kept), **amounts, **kept_for)


def _trouble(inquiry: Inquiry, batch: Batch, reason: Reason) -> Iterator[Reason]:
    """The nodes that are away and would do, and those whose cards something holds."""
    role = batch.ask.roles[0]
    away = [node for node in inquiry.away if any(role.sieve.lets(node, card.model) for card in node.cards)]
    if not role.sieve.device:
        away = [node for node in inquiry.away if role.sieve.lets(node, "")]
    for state in dict.fromkeys(node.state.value for node in away):
        names = [node.name for node in away if node.state.value == state]
        yield because(Code.NODE_FACT, node=names[0], nodes=len(names), trouble=state)
    stacks = [s for room in inquiry.books.troubled for s in room.stacks if s.device == role.sieve.device]
    mine = [stack for stack in stacks if role.sieve.lets(stack.room.node, stack.model)]
    lacks = [(lack, stack) for stack in mine if (lack := _lack(role, stack)) is not None and lack.trouble]
    yield from _alike(inquiry, lacks)


# --- jobs ---------------------------------------------------------------------------------------------------------


def _jobs(inquiry: Inquiry, workloads: Iterable[Workload]) -> Iterator[Reason]:
    """What they hold, and when they are over at the latest: a declared end is enforced, a learned one is no promise."""
    books = inquiry.books
    for workload, _ in zip(workloads, range(JOBS_AT_MOST), strict=False):
        held = books.held[workload.id]
        device = next((allotment.device for allotment in held.allotments if allotment.device), "")
        cards = sum(allotment.cards_milli for allotment in held.allotments)
        nodes = list(dict.fromkeys(allotment.node for allotment in held.allotments))
        known = {"node": nodes[0]} if len(nodes) == 1 else {}
        declared = workload.spec.max_seconds is not None and workload.state is not State.STOPPING
        sure = {"ends_by": ends_by(workload, (), inquiry.now)} if declared else {}
        owner = {"job_name": workload.spec.name, "owner": workload.owner, "group": workload.group}
        amount = {"cards": cards, "device": device} if cards else {}
        yield because(Code.JOB_FACT, job=workload.id, **owner, **amount, **known, **sure)
