"""Who is asked first.

Among groups: work within a group's guarantee, then the admin's people, then priority (raised by waiting), then the
group that used less, then age; the id last, so that the answer never depends on chance. Inside a group its own order
counts: the admin's people, priority, and only then what stays within the guarantee; then the person who used less, then
age. Where the policy says so, the least served or the shortest comes first instead of the one who used less, among
groups and inside them alike; and before them, if wished, the one that has waited longest of all. At the top, where
waiting raises a priority no further, none of that counts: only age. A group that is strictly first in, first out knows
only age inside.
"""

from __future__ import annotations

from heapq import heapify, heappop, heapreplace
from typing import TYPE_CHECKING

from gpuyard.domain.policy import HOUR, First, Ordering
from gpuyard.domain.workload import MAX_PRIORITY, Workload
from gpuyard.scheduling.line import Batch
from gpuyard.scheduling.quota import Amounts, Payer
from gpuyard.scheduling.service import NONE, card_seconds, seconds_left
from gpuyard.scheduling.share import card_hours, level
from gpuyard.scheduling.snapshot import Person, Turn

if TYPE_CHECKING:
    from gpuyard.scheduling.books import Books

Head = tuple[int, int, int]  # among groups: guaranteed or not, place among the admin's people, priority
Key = tuple[Head, float, float, str]  # head, level of use or rank, submitted at, id
Stand = tuple[Head, float]  # head and rank: what gives a right over others
OLDEST = -1.0  # before every rank


def raised(priority: int, submitted_at: float, now: float, rule: Ordering) -> int:
    """The priority with what waiting adds."""
    steps = max(0, int((now - submitted_at) // rule.age_every)) if rule.age_points else 0
    return min(MAX_PRIORITY, priority + steps * rule.age_points)


def inside_head(head: Head) -> Head:
    """Inside a group priority comes before its guarantee: its small work must not hold up its own urgent work."""
    guaranteed, place, priority = head
    return (place, priority, guaranteed)


def counted(head: Head, level: float) -> float:
    """The level of use, or the rank, as far as it counts. At the top it does not: whoever has waited so long is passed
    by nobody who came later. Else groups that used less in turn would take what a large one gathers, again and again.
    """
    return level if -head[2] < MAX_PRIORITY else 0


class Turns:
    """The numbers of one pass: they move as the pass gives things out."""

    def __init__(self, books: Books, now: float, *, untold: bool = False) -> None:
        self._books = books
        self._now = now
        self._rule = books.policy.order
        self._alone = _alone(books) if untold else set()  # with whom nobody is compared, unless somebody asks why
        self.by_rank = self._rule.first is not First.SHARE  # not use decides, but what the workload itself had or needs
        self._people = {name: place for place, name in enumerate(self._rule.people)}
        self._added: dict[Person, float] = {}  # rates of what this pass has placed
        self._hours: dict[Person, float] = {}
        self._ranks: dict[str, float] = {}  # of running work
        self._awaited: dict[str, Amounts] = {}  # group -> what those will use who have a place that others are leaving
        self.oldest = _oldest(books) if self.by_rank and self._rule.oldest_first else ""

    def expect(self, group: str, amounts: Amounts) -> None:
        """One of the group will start as soon as others are gone: its guarantee is as good as used by that."""
        awaited = self._awaited.setdefault(group, {})
        for resource, amount in amounts.items():
            awaited[resource] = awaited.get(resource, 0) + amount

    def add(self, payer: Payer, rate: float) -> None:
        for person in ((payer.group, None), (payer.group, payer.owner)):
            self._added[person] = self._added.get(person, 0.0) + rate
            self._hours.pop(person, None)

    @property
    def have_moved(self) -> bool:
        """Has this pass given anybody a place, or one that others are leaving? Then who asked before that had another
        turn than one who asks now."""
        return bool(self._added or self._awaited)

    def inside(self, batch: Batch, position: int) -> Key:
        """Its place inside its group."""
        submitted, id = batch.jobs[position]
        group = self._books.groups.get(batch.group)
        if group is not None and group.fifo:
            return ((0, 0, 0), 0, submitted, id)
        head = self._head(batch, submitted)
        level = self.rank(batch, id) if self.by_rank else self.level((batch.group, batch.owner))
        return (inside_head(head), counted(head, level), submitted, id)

    def among(self, batch: Batch, position: int) -> Key:
        """The place of its group among the groups, while it is the group's next."""
        submitted, id = batch.jobs[position]
        head = self._head(batch, submitted)
        level = self.rank(batch, id) if self.by_rank else self.level((batch.group, None))
        return (head, counted(head, level), submitted, id)

    def rank(self, batch: Batch, id: str) -> float:
        """Of one that waits, as the order counts it."""
        return OLDEST if id == self.oldest else batch.rank

    def turn(self, batch: Batch, position: int) -> Turn:
        return Turn(
            guaranteed=self._is_guaranteed(batch),
            priority=raised(batch.priority, batch.jobs[position][0], self._now, self._rule),
            group_use=self.hours((batch.group, None)),
            user_use=self.hours((batch.group, batch.owner)),
            **self.by_itself(batch.jobs[position][1]),
        )

    def by_itself(self, id: str) -> dict[str, float]:
        """What one that waits has left, or had so far (card-hours), where its turn is found by that."""
        workload = self._books.line.workloads[id]
        if self._rule.first is First.LEAST_SERVED:
            return {"served": card_seconds(workload, self._rule, self._now) / HOUR}
        return {"left": seconds_left(workload, self._now)} if self.by_rank else {}

    def hours(self, person: Person) -> float:
        found = self._hours.get(person)
        if found is None:
            books, group = self._books, self._books.groups.get(person[0])
            weight = group.weight if group is not None and person[1] is None else 1.0
            past, running = books.past.get(person), books.running.get(person)
            found = card_hours(past, running, self._added.get(person, 0.0), self._now, weight, self._rule)
            self._hours[person] = found
        return found

    def _head(self, batch: Batch, submitted: float) -> Head:
        place = self._people.get(batch.owner, len(self._people)) if self._people else 0
        priority = raised(batch.priority, submitted, self._now, self._rule)
        return (0 if self._is_guaranteed(batch) else 1, place, -priority)

    def stand_if_queued(self, workload: Workload, *, guaranteed: bool) -> Stand:
        """Where running work would stand if it were put back into the queue; no later than that."""
        place = self._people.get(workload.owner, len(self._people)) if self._people else 0
        priority = raised(workload.spec.priority, workload.submitted_at, self._now, self._rule)
        head = (0 if guaranteed else 1, place, -priority)
        return head, counted(head, self.rank_now(workload))

    def rank_now(self, workload: Workload) -> float:
        """Of running work. Found out once in a pass: many may ask."""
        if not self.by_rank:
            return NONE
        if workload.id not in self._ranks:
            self._ranks[workload.id] = self._books.rank_of(workload, self._now)
        return self._ranks[workload.id]

    def _is_guaranteed(self, batch: Batch) -> bool:
        """Work that asks for nothing that is guaranteed to anybody is not before others because of that."""
        purse = self._books.purse
        return purse.is_promised(batch.amounts) and purse.is_within_guarantee(batch.group, self._with_awaited(batch))

    def _with_awaited(self, batch: Batch) -> Amounts:
        awaited = self._awaited.get(batch.group)
        if not awaited:
            return batch.amounts
        return {resource: amount and amount + awaited.get(resource, 0) for resource, amount in batch.amounts.items()}

    def taken_back(self, batch: Batch) -> list[str]:
        """What is guaranteed to its group, of all that it asks for; nothing when the group would go beyond that."""
        common = self._books.purse.common
        return (
            [r for r, amount in batch.amounts.items() if amount and r in common] if self._is_guaranteed(batch) else []
        )

    def level(self, person: Person) -> int:
        if not self._rule.fair_share or person in self._alone:
            return 0
        return level(self.hours(person), self._rule.tolerance)


def _oldest(books: Books) -> str:
    """The one that has waited longest of all that may start some day."""
    return min((batch.jobs[0] for batch in books.line.batches()), default=(0.0, ""))[1]


def _alone(books: Books) -> set[Person]:
    """The only group that waits, and of each group the only one who does."""
    groups = books.line.groups
    found: set[Person] = {(group, None) for group in groups} if len(groups) == 1 else set()
    for group, batches in groups.items():
        owners = {batch.owner for batch in batches.values()}
        found.update((group, owner) for owner in owners if len(owners) == 1)
    return found


class Asking:
    """Goes through the line in order. After each one the pass says what became of it."""

    def __init__(self, books: Books, turns: Turns) -> None:
        self._turns = turns
        self._next: dict[Batch, int] = {}
        self._inside: dict[str, list[tuple[Key, Batch]]] = {}
        self._among: list[tuple[Key, str]] = []
        self._reached: dict[str, Stand] = {}
        for group, batches in books.line.groups.items():
            heap = [(turns.inside(batch, 0), batch) for batch in batches.values()]
            heapify(heap)
            self._inside[group] = heap
            self._among.append((turns.among(heap[0][1], 0), group))
        heapify(self._among)

    def next(self) -> tuple[Batch, int] | None:
        if not self._among:
            return None
        batch = self._inside[self._among[0][1]][0][1]
        return batch, self._next.get(batch, 0)

    def stands(self) -> tuple[Stand, Stand]:
        """The place of the next one by itself, and as it is: no sooner than those its group put before it."""
        key, group = self._among[0]
        head, batch = key[0], self._inside[group][0][1]
        # Not the key's: having waited longest gives no right over others.
        stand = (head, counted(head, batch.rank) if self._turns.by_rank else NONE)
        self._reached[group] = reached = max(self._reached.get(group, stand), stand)
        return stand, reached

    def placed(self, batch: Batch) -> None:
        """It has its place; the next of the batch steps up."""
        self._next[batch] = self._next.get(batch, 0) + 1
        if self._next[batch] >= len(batch.jobs):
            heappop(self._inside[batch.group])
        self._settle(batch.group)

    def waits(self, batch: Batch) -> None:
        """It waits, and with it all that are alike."""
        heappop(self._inside[batch.group])
        self._settle(batch.group)

    def group_waits(self, group: str) -> list[tuple[Batch, int]]:
        """Strictly first in, first out: all of the group wait behind the first. Returns the others."""
        heappop(self._among)
        others = sorted(self._inside.pop(group))[1:]
        return [(batch, self._next.get(batch, 0)) for _, batch in others]

    def _settle(self, group: str) -> None:
        """Keys inside a group only grow during a pass, so only the front needs to be looked at again."""
        heap = self._inside[group]
        while heap:
            key, batch = heap[0]
            now = self._turns.inside(batch, self._next.get(batch, 0))
            if now == key:
                break
            heapreplace(heap, (now, batch))
        if heap:
            front = heap[0][1]
            heapreplace(self._among, (self._turns.among(front, self._next.get(front, 0)), group))
        else:
            heappop(self._among)
