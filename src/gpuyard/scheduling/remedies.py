"""What would start a waiting workload now: candidates for a change, each tried on the present state of the books.

The least painful first: what costs the owner nothing, then the same work in another shape, then less of it.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from math import inf

from gpuyard.domain.reasons import BORROWS, Code
from gpuyard.domain.resources import GIB, MIB, WHOLE_CARD, Cards, Resources, show_bytes, show_milli
from gpuyard.domain.workload import RoleSpec, Spec, Together, Where, Workload
from gpuyard.scheduling.fit import Allotments
from gpuyard.scheduling.inquiry import Inquiry
from gpuyard.scheduling.room import fair_share
from gpuyard.scheduling.snapshot import Remedy, Sort, Why

AT_MOST = 6
NODES_NAMED = 20
ROLES_TRIED = 3
MANY_REPLICAS, MANY_WAIT = 40, 2000
PLAIN_ROLE = "worker"  # the only role of a job file without roles: its keys stand at the top
EFFORT = 40_000  # replicas placed in trials; beyond that nothing more is tried

Changes = dict[str, str]
Trial = tuple[Changes, Workload]

_GIBS = (
    1,
    2,
    3,
    4,
    6,
    8,
    10,
    12,
    16,
    20,
    24,
    32,
    40,
    48,
    64,
    80,
    96,
    128,
    160,
    192,
    256,
    320,
    384,
    512,
    768,
    1024,
    2048,
)
MEMORIES = (256 * MIB, 512 * MIB, *(gib * GIB for gib in _GIBS))
CORES = (500, *(n * 1000 for n in (*range(1, 17), 20, 24, 28, 32, 40, 48, 56, 64, 80, 96, 128, 192, 256)))
SHARES = (500, 250, 200, 100)
MINUTES = (5, 10, 15, 20, 30, 45, 60, 90, 120, 180, 240, 360, 480, 720, 1440, 2880, 4320, 10080)


def remedies(inquiry: Inquiry, id: str, proof: Why, groups: Sequence[str] = ()) -> tuple[Remedy, ...]:
    """At most a handful of changes, the best first; none when nothing would help or it is about to start anyway."""
    workload = inquiry.books.line.workloads[id]
    if proof.reason.code in (Code.BACK_OFF, Code.CLEARING, Code.MOVING):
        return ()
    search = _Search(inquiry, workload)
    found = [remedy for kind, trials in _single(workload, proof, inquiry, groups) if (remedy := search(kind, trials))]
    if not found:
        found = [remedy for kind, trials in _combined(workload, inquiry) if (remedy := search(kind, trials))][:2]
    if proof.sort is Sort.ORDER:
        short = _shorter(search)
        found = [short, *found] if short is not None else found
    return tuple(found[:AT_MOST])


@dataclass(slots=True)
class _Search:
    """Tries changes, within a bound on the work that this may take."""

    inquiry: Inquiry
    workload: Workload
    effort: int = EFFORT
    in_a_pass: bool = False  # try each change with a pass of its own

    def __call__(self, kind: str, trials: Sequence[Trial]) -> Remedy | None:
        """The first that starts, of trials that are ever easier: found by halves, since there may be many."""
        low, high = 0, len(trials)
        best: Remedy | None = None
        while low < high:
            middle = (low + high) // 2 if len(trials) > 4 else low
            remedy = self._start(kind, *trials[middle])
            if remedy is None:
                low = middle + 1
            else:
                best, high = remedy, middle
        return best

    def _start(self, kind: str, changes: Changes, changed: Workload) -> Remedy | None:
        self.effort -= sum(role.replicas for role in changed.spec.roles)
        if self.effort < 0:
            return None
        if self.in_a_pass:
            taken = self.inquiry.start_in_a_pass(changed)
        else:
            taken = self.inquiry.start_of(changed, self.workload.id)
        return None if taken is None else Remedy(kind, tuple(changes.items()), nodes_of(taken))


def nodes_of(taken: Allotments) -> tuple[str, ...]:
    return tuple(sorted({allotment.node for allotment in taken.values()}))[:NODES_NAMED]


# --- one change ---------------------------------------------------------------------------------------------------


def _single(
    workload: Workload, proof: Why, inquiry: Inquiry, groups: Sequence[str]
) -> Iterator[tuple[str, list[Trial]]]:
    """Every kind of change with its trials, those that change least first."""
    spec = workload.spec
    if proof.reason.code in BORROWS:
        yield "preemptible", [({"preemptible": "true"}, replace(workload, spec=replace(spec, preemptible=True)))]
    for group in groups:
        if group != workload.group:
            yield "group", [({"group": group}, replace(workload, group=group))]
    if any(role.where != Where() for role in spec.roles):
        yield "where", [_anywhere(workload)]
    if spec.together is not Together.ANY:
        yield "together", [({"together": "any"}, replace(workload, spec=replace(spec, together=Together.ANY)))]
    lacks_cards = proof.reason.facts.get("resource") not in ("cpu", "memory")
    for role in spec.roles[:ROLES_TRIED]:
        yield "model", list(_other_models(workload, role, inquiry))
        if lacks_cards:
            yield "replicas", list(_split(workload, role))
        yield "memory", list(_less_memory(workload, role, inquiry))
        yield "cpu", list(_less_cpu(workload, role, inquiry))
        if not lacks_cards:
            yield "replicas", list(_split(workload, role))
        yield "cards", list(_fewer_cards(workload, role))
        yield "share", list(_share(workload, role))
        yield "replicas", list(_fewer_replicas(workload, role))
        yield "device", list(_other_devices(workload, role, inquiry))


def _anywhere(workload: Workload) -> Trial:
    changes, spec = {}, workload.spec
    for role in spec.roles:
        if role.where != Where():
            changes[key_of(spec, role, "where")] = ""
    roles = tuple(replace(role, where=Where()) for role in spec.roles)
    return changes, replace(workload, spec=replace(spec, roles=roles))


def _other_models(workload: Workload, role: RoleSpec, inquiry: Inquiry) -> Iterator[Trial]:
    cards = role.resources.cards
    if cards is None or not cards.models:
        return
    free = replace(cards, models=())
    yield {key_of(workload.spec, role, "models"): ""}, _with(workload, role, replace(role.resources, cards=free))


def _split(workload: Workload, role: RoleSpec) -> Iterator[Trial]:
    """The same cards over several nodes: twice as many replicas with half of everything, and so on."""
    asked, spec = role.resources, workload.spec
    if asked.cards is None or asked.cards.whole < 2 or spec.together is Together.ONE_NODE:
        return
    for parts in range(2, asked.cards.whole + 1):
        if asked.cards.whole % parts:
            continue
        each = replace(asked.cards, milli=asked.cards.milli // parts)
        less = Resources(
            None if asked.cpu_milli is None else max(1, asked.cpu_milli // parts),
            None if asked.memory is None else asked.memory // parts,
            None if asked.shm is None else asked.shm // parts,
            each,
        )
        changes = {
            key_of(spec, role, "replicas"): str(role.replicas * parts),
            **_told(spec, role, less, but=asked),
        }
        yield changes, _with(workload, role, less, replicas=role.replicas * parts)


def _less_memory(workload: Workload, role: RoleSpec, inquiry: Inquiry) -> Iterator[Trial]:
    asked = role.resources.memory or _largest_share(role, inquiry, 1)
    for memory in reversed(MEMORIES):
        if memory < asked:
            less = replace(role.resources, memory=memory, shm=_within(role.resources.shm, memory))
            yield _told(workload.spec, role, less, but=role.resources), _with(workload, role, less)


def _less_cpu(workload: Workload, role: RoleSpec, inquiry: Inquiry) -> Iterator[Trial]:
    asked = role.resources.cpu_milli or _largest_share(role, inquiry, 0)
    for cpu in reversed(CORES):
        if cpu < asked:
            less = replace(role.resources, cpu_milli=cpu)
            yield _told(workload.spec, role, less, but=role.resources), _with(workload, role, less)


def _within(shm: int | None, memory: int) -> int | None:
    return None if shm is None else min(shm, memory)


def _largest_share(role: RoleSpec, inquiry: Inquiry, which: int) -> int:
    """What is left open is a share of the node: the largest there is."""
    return max((fair_share(role.resources, node)[which] for node in inquiry.kinds), default=0)


def _fewer_cards(workload: Workload, role: RoleSpec) -> Iterator[Trial]:
    cards = role.resources.cards
    for whole in range(cards.whole - 1, 0, -1) if cards is not None else ():
        assert cards is not None
        less = replace(role.resources, cards=replace(cards, milli=whole * WHOLE_CARD))
        yield _told(workload.spec, role, less, but=role.resources), _with(workload, role, less)


def _share(workload: Workload, role: RoleSpec) -> Iterator[Trial]:
    cards = role.resources.cards
    for milli in SHARES if cards is not None and cards.milli <= WHOLE_CARD else ():
        assert cards is not None
        if milli < cards.milli:
            less = replace(role.resources, cards=replace(cards, milli=milli))
            yield _told(workload.spec, role, less, but=role.resources), _with(workload, role, less)


def _fewer_replicas(workload: Workload, role: RoleSpec) -> Iterator[Trial]:
    numbers = list(range(role.replicas - 1, 0, -1))
    if len(numbers) > MANY_REPLICAS:
        numbers = sorted({max(1, role.replicas * percent // 100) for percent in range(1, 100, 3)}, reverse=True)
    for number in numbers:
        yield (
            {key_of(workload.spec, role, "replicas"): str(number)},
            _with(workload, role, role.resources, replicas=number),
        )


def _other_devices(workload: Workload, role: RoleSpec, inquiry: Inquiry) -> Iterator[Trial]:
    cards = role.resources.cards
    if cards is None:
        return
    for device in inquiry.devices:
        if device == cards.device:
            continue
        other = replace(role.resources, cards=Cards(device, cards.milli))
        yield _told(workload.spec, role, other, but=role.resources), _with(workload, role, other)


# --- several changes ----------------------------------------------------------------------------------------------


def _combined(workload: Workload, inquiry: Inquiry) -> Iterator[tuple[str, list[Trial]]]:
    """Only where no single change helps: fewer cards and no more of the rest than a fair share; less of everything."""
    for role in workload.spec.roles[:ROLES_TRIED]:
        yield "memory", list(_less_of_both(workload, role, inquiry))
        yield "cards", list(_fewer_and_fair(workload, role))
        yield "replicas", list(_fewer_and_smaller(workload, role))


def _less_of_both(workload: Workload, role: RoleSpec, inquiry: Inquiry) -> Iterator[Trial]:
    asked = role.resources
    cpu = asked.cpu_milli or _largest_share(role, inquiry, 0)
    memory = asked.memory or _largest_share(role, inquiry, 1)
    for part in (75, 50, 25, 12, 6):
        fewer = max((c for c in CORES if c <= cpu * part // 100), default=CORES[0])
        smaller = max((m for m in MEMORIES if m <= memory * part // 100), default=MEMORIES[0])
        if fewer < cpu and smaller < memory:
            less = replace(asked, cpu_milli=fewer, memory=smaller, shm=_within(asked.shm, smaller))
            yield _told(workload.spec, role, less, but=asked), _with(workload, role, less)


def _fewer_and_fair(workload: Workload, role: RoleSpec) -> Iterator[Trial]:
    """Fewer cards, and CPU and memory cut down in the same proportion."""
    asked = role.resources
    for whole in range(asked.cards.whole - 1, 0, -1) if asked.cards is not None else ():
        assert asked.cards is not None
        part = whole / asked.cards.whole
        cpu = None if asked.cpu_milli is None else max(500, int(asked.cpu_milli * part) // 500 * 500)
        memory = None if asked.memory is None else max(256 * MIB, int(asked.memory * part) // (256 * MIB) * 256 * MIB)
        shm = None if memory is None else _within(asked.shm, memory)
        cards = replace(asked.cards, milli=whole * WHOLE_CARD, models=())
        less = Resources(cpu, memory, shm if memory is not None else asked.shm, cards)
        yield _told(workload.spec, role, less, but=asked), _with(workload, role, less)


def _fewer_and_smaller(workload: Workload, role: RoleSpec) -> Iterator[Trial]:
    """Fewer replicas with fewer cards each."""
    asked = role.resources
    if asked.cards is None or role.replicas < 2 or asked.cards.whole < 2:
        return
    replicas, whole = role.replicas, asked.cards.whole
    while replicas > 1 and whole > 1:
        replicas, whole = replicas // 2, whole // 2
        less = replace(asked, cards=replace(asked.cards, milli=whole * WHOLE_CARD))
        changes = {key_of(workload.spec, role, "replicas"): str(replicas)}
        yield (
            {**changes, **_told(workload.spec, role, less, but=asked)},
            _with(workload, role, less, replicas=replicas),
        )


# --- a promise to be over soon ------------------------------------------------------------------------------------


def _shorter(search: _Search) -> Remedy | None:
    """The longest time it may promise to be over in, so that it passes those before it without delaying them."""
    inquiry, workload = search.inquiry, search.workload
    if not inquiry.books.policy.backfill:
        return None
    declared = workload.spec.max_seconds or inf
    trials = [_within_minutes(workload, minutes) for minutes in reversed(MINUTES) if minutes * 60 < declared]
    if inquiry.books.line.has_sure_ends:
        return search("max_time", trials)
    # The first promise in the line makes it known when those before it can start: only a pass of its own tells.
    if len(inquiry.books.line.workloads) > MANY_WAIT:
        trials = [trial for trial in trials if trial[0]["max_time"] in ("1h", "10m")]
    search.in_a_pass = True
    return search("max_time", trials)


def _within_minutes(workload: Workload, minutes: int) -> Trial:
    text = f"{minutes // 1440}d" if minutes % 1440 == 0 else f"{minutes // 60}h" if minutes % 60 == 0 else f"{minutes}m"
    return {"max_time": text}, replace(workload, spec=replace(workload.spec, max_seconds=minutes * 60.0))


# --- how a change is written --------------------------------------------------------------------------------------


def key_of(spec: Spec, role: RoleSpec, key: str) -> str:
    """As `yard rerun --set` takes it."""
    plain = len(spec.roles) == 1 and role.name == PLAIN_ROLE
    return key if plain else f"roles.{role.name}.{key}"


def _told(spec: Spec, role: RoleSpec, now: Resources, *, but: Resources) -> Changes:
    """What differs between two requests; empty text takes a key out."""
    values: list[tuple[str, str | None, str | None]] = [
        ("cards", _cards(now), _cards(but)),
        ("device", now.cards.device if now.cards else None, but.cards.device if but.cards else None),
        ("models", ",".join(now.cards.models) if now.cards else "", ",".join(but.cards.models) if but.cards else ""),
        ("cpu", _milli(now.cpu_milli), _milli(but.cpu_milli)),
        ("memory", _bytes(now.memory), _bytes(but.memory)),
        ("shm", _bytes(now.shm), _bytes(but.shm)),
    ]
    return {key_of(spec, role, key): value or "" for key, value, before in values if value != before}


def _cards(asked: Resources) -> str | None:
    return show_milli(asked.cards.milli) if asked.cards else None


def _milli(value: int | None) -> str | None:
    return None if value is None else show_milli(value)


def _bytes(value: int | None) -> str | None:
    """Exactly this much, in the largest unit that has it whole."""
    if value is None:
        return None
    for unit, size in (("G", GIB), ("M", MIB)):
        if value % size == 0:
            return f"{value // size}{unit}"
    return show_bytes(value) if value < 1024 else str(value)


def _with(workload: Workload, role: RoleSpec, resources: Resources, replicas: int | None = None) -> Workload:
    changed = replace(role, resources=resources, replicas=replicas or role.replicas)
    roles = tuple(changed if one is role else one for one in workload.spec.roles)
    return replace(workload, spec=replace(workload.spec, roles=roles))
