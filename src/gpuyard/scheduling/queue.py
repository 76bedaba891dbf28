"""The order in which a pass asks everyone who waits, laid out: who is before whom, how many, and by which rule."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Iterator
from heapq import nlargest
from typing import TYPE_CHECKING, Any, NamedTuple

from gpuyard.domain.reasons import Code, Reason, because
from gpuyard.scheduling.line import Batch
from gpuyard.scheduling.order import Head, Key, counted, inside_head, raised
from gpuyard.scheduling.service import NONE, by_itself
from gpuyard.scheduling.snapshot import Ahead

if TYPE_CHECKING:
    from gpuyard.scheduling.plan import Pass

AHEAD_AT_MOST = 20
NO_HEAD: Head = (0, 0, 0)  # inside a group that is strictly first in, first out


class Place(NamedTuple):
    """Where one stands: inside its group, and its group among the groups while it is the group's next."""

    inside: Key
    among: Key
    batch: Batch
    position: int
    seq: int = 0  # when the pass asked it, for the heads of batches

    @property
    def id(self) -> str:
        return self.inside[3]

    @property
    def submitted(self) -> float:
        return self.inside[2]


class Row:
    """Those of one group in order. One that stands behind another comes no sooner than that one, whatever its own key:
    `reached` is the largest key up to each."""

    def __init__(self, places: Iterable[Place]) -> None:
        self.places = sorted(places, key=lambda place: place.inside)
        self.reached: list[Key] = []
        for place in self.places:
            self.reached.append(max(self.reached[-1], place.among) if self.reached else place.among)

    def index(self, inside: Key) -> int:
        return bisect_left(self.places, inside, key=lambda place: place.inside)

    def reached_by(self, inside: Key, among: Key) -> Key:
        """When one with this place would be asked."""
        index = self.index(inside)
        return max(self.reached[index - 1], among) if index else among

    def blocker(self, index: int) -> Place:
        """The one before it, or itself, that holds it back most."""
        return max(self.places[: index + 1], key=lambda place: place.among)


EMPTY = Row(())


class Queue:
    """Made from a pass that has gone through the line and is not undone yet."""

    def __init__(self, one: Pass) -> None:
        self._one = one
        self._levels: dict[tuple[str, str], int] = {}  # of persons
        waiting: dict[str, list[Place]] = {}
        for batch, first in _first_waiting(one).items():
            if first < len(batch.jobs):
                waiting.setdefault(batch.group, []).extend(self._places(batch, first))
        self._rows = {group: Row(places) for group, places in waiting.items()}
        self._index = {place.id: (group, i) for group, row in self._rows.items() for i, place in enumerate(row.places)}

    def place(self, batch: Batch, position: int) -> Place:
        turns = self._one.turns
        return Place(turns.inside(batch, position), turns.among(batch, position), batch, position)

    def waiting(self, id: str) -> Place | None:
        found = self._index.get(id)
        return self._rows[found[0]].places[found[1]] if found else None

    def _places(self, batch: Batch, first: int) -> Iterator[Place]:
        """All of a batch from here on. They differ by age alone, so most of their keys is worked out once."""
        one = self._one
        rule, now = one.books.policy.order, one.now
        guaranteed, person, priority = one.turns.among(batch, first)[0]
        by_rank = one.turns.by_rank
        level = one.turns.level((batch.group, None)) if not by_rank else NONE
        group = one.books.groups.get(batch.group)
        who, fifo = (batch.group, batch.owner), group is not None and group.fifo
        if who not in self._levels:
            self._levels[who] = one.turns.level(who)
        head = (guaranteed, person, priority)
        mine: float = self._levels[who]
        for position in range(first, len(batch.jobs)):
            submitted, id = batch.jobs[position]
            priority = -raised(batch.priority, submitted, now, rule)
            if priority != head[2]:
                head = (guaranteed, person, priority)
            if by_rank:
                level = mine = one.turns.rank(batch, id)
            inside: Key = (NO_HEAD, 0, submitted, id)
            if not fifo:
                inside = (inside_head(head), counted(head, mine), submitted, id)
            yield Place(inside, (head, counted(head, level), submitted, id), batch, position)

    def in_order(self) -> list[str]:
        """All that wait and can start some day, in the order in which they are asked."""
        return sorted(self._index, key=self._reached)

    def number_before(self, id: str) -> int:
        """How many that can start some day are asked before it."""
        return sum(index for _, index in self._before(id))

    def ahead_of(self, id: str) -> tuple[Ahead, ...]:
        """The next ones before it, the nearest first, each with the rule that puts it there."""
        nearest: list[tuple[Key, Key, Place]] = []
        for row, index in self._before(id):
            first = max(0, index - AHEAD_AT_MOST)
            nearest += [(row.reached[i], row.places[i].inside, row.places[i]) for i in range(first, index)]
        chosen = nlargest(AHEAD_AT_MOST, nearest, key=lambda one: one[:2])
        return tuple(Ahead(place.id, self._rule(place, id)) for _, _, place in chosen)

    def ranked(self, one: str, two: str) -> Ahead | None:
        """Of two that wait: the one that is asked first, and why. None when one of them is not in the line."""
        if one not in self._index or two not in self._index:
            return None
        first, other = sorted((one, two), key=self._reached)
        group, index = self._index[first]
        return Ahead(first, self._rule(self._rows[group].places[index], other))

    def _reached(self, id: str) -> tuple[Key, Key]:
        group, index = self._index[id]
        row = self._rows[group]
        return (row.reached[index], row.places[index].inside)

    def _before(self, id: str) -> Iterator[tuple[Row, int]]:
        """Each row with how many of it are asked before this one."""
        found = self._index.get(id)
        if found is None:
            return
        mine, index = found
        reached = self._rows[mine].reached[index]
        for group, row in self._rows.items():
            yield row, index if group == mine else bisect_left(row.reached, reached)

    def _rule(self, first: Place, other: str) -> Reason:
        group, index = self._index[other]
        row = self._rows[group]
        behind = row.places[index]
        if first.batch.group != group and first.among > behind.among:
            behind = row.blocker(index)
        return self.rule(first, behind)

    def rule(self, first: Place, other: Place) -> Reason:
        """Why the one comes before the other, with the numbers of both."""
        same = first.batch.group == other.batch.group
        group = self._one.books.groups.get(first.batch.group)
        if not (same and group is not None and group.fifo):
            by_head = self._by_head(first, other)
            if by_head is not None:
                return by_head
            if (first.inside[1] < other.inside[1]) if same else (first.among[1] < other.among[1]):
                return self._by_level(first, other, same)
        return because(Code.RULE_AGE, mine=other.submitted, theirs=first.submitted)

    def _by_level(self, first: Place, other: Place, same: bool) -> Reason:
        turns = self._one.turns
        if first.id == turns.oldest:
            return because(Code.RULE_AGE, mine=other.submitted, theirs=first.submitted)
        if turns.by_rank:
            return by_itself(turns.by_itself(first.id), turns.by_itself(other.id))
        return self._by_use(first, other) if same else self._by_group_use(first, other)

    def _by_head(self, first: Place, other: Place) -> Reason | None:
        (guaranteed, person, _), (others, other_person, _) = first.among[0], other.among[0]
        inside = first.batch.group == other.batch.group
        if guaranteed != others and not inside:
            return self._by_guarantee(first.batch)
        if person != other_person:
            return because(Code.RULE_PEOPLE, who=first.batch.owner, place=person + 1)
        turns = self._one.turns
        theirs, mine = turns.turn(first.batch, first.position), turns.turn(other.batch, other.position)
        if theirs.priority == mine.priority:
            return self._by_guarantee(first.batch) if guaranteed != others else None
        points, waited = theirs.priority - first.batch.priority, self._one.now - first.submitted
        facts = {"mine": mine.priority, "theirs": theirs.priority, "waited": waited, "points": points}
        return because(Code.RULE_PRIORITY, **facts)

    def _by_guarantee(self, batch: Batch) -> Reason:
        guaranteed = self._one.books.purse.guaranteed
        for resource in batch.amounts:
            if (batch.group, resource) in guaranteed:
                amount = guaranteed[batch.group, resource]
                return because(Code.RULE_GUARANTEE, group=batch.group, resource=resource, guaranteed=amount)
        return because(Code.RULE_GUARANTEE, group=batch.group)

    def _by_group_use(self, first: Place, other: Place) -> Reason:
        hours = self._one.turns.hours
        theirs, mine = hours((first.batch.group, None)), hours((other.batch.group, None))
        facts = {"other_group": other.batch.group, "other_use": round(mine, 1), **self._counting()}
        for key, name in (("weight", first.batch.group), ("other_weight", other.batch.group)):
            group = self._one.books.groups.get(name)
            if group is not None and group.weight != 1:
                facts[key] = group.weight
        return because(Code.RULE_SHARE, group=first.batch.group, use=round(theirs, 1), **facts)

    def _counting(self) -> dict[str, Any]:
        """What makes the numbers differ from what was used: running work counts for a while to come."""
        ahead = self._one.books.policy.order.ahead
        return {"ahead": ahead} if ahead else {}

    def _by_use(self, first: Place, other: Place) -> Reason:
        group, hours = first.batch.group, self._one.turns.hours
        theirs, mine = hours((group, first.batch.owner)), hours((group, other.batch.owner))
        facts = {"other_user": other.batch.owner, "other_use": round(mine, 1), **self._counting()}
        return because(Code.RULE_USER_SHARE, group=group, user=first.batch.owner, use=round(theirs, 1), **facts)


class Heads:
    """The heads of the batches as the pass asked them: tells when a changed workload would be asked instead."""

    def __init__(self, one: Pass, queue: Queue) -> None:
        self._one, self._queue = one, queue
        heads: dict[str, list[Place]] = {}
        seen: set[Batch] = set()
        for verdict in one.verdicts:
            if verdict.batch not in seen and verdict.position < len(verdict.batch.jobs):
                seen.add(verdict.batch)
                place = queue.waiting(verdict.batch.jobs[verdict.position][1])
                if place is not None:
                    heads.setdefault(verdict.batch.group, []).append(place._replace(seq=verdict.seq))
        self._rows = {group: Row(places) for group, places in heads.items()}

    def turn_of(self, batch: Batch, instead_of: str) -> int | None:
        """The place in the pass of a batch that is not in the line, in place of this workload. None when nobody asks,
        or when the exchange would move others, so that the pass tells nothing about it."""
        inside, among = self._one.turns.inside(batch, 0), self._one.turns.among(batch, 0)
        row = self._rows.get(batch.group, EMPTY)
        index = row.index(inside)
        before = [p for p in row.places[:index] if p.id != instead_of or self._stays_before(p, inside)]
        if self._is_fifo(batch.group) and before:
            return None
        reached = max([among, *(place.among for place in before)])
        seq = self._seq(batch.group, before, reached)
        if any(place.seq < seq and place.id != instead_of for place in row.places[index:]):
            return None  # it would hold back one that was asked before it
        if not self._leaves_quietly(instead_of, batch.group, seq, reached):
            return None
        if self._one.turns.have_moved:  # numbers moved during the pass: behind everyone, to be sure
            return max((verdict.seq for verdict in self._one.verdicts), default=0) + 1
        return seq

    def _seq(self, group: str, before: list[Place], reached: Key) -> int:
        last = max((place.seq for place in before), default=0)
        for name, other in self._rows.items():
            count = bisect_left(other.reached, reached) if name != group else 0
            last = max(last, other.places[count - 1].seq if count else 0)
        return last + 1

    def _leaves_quietly(self, id: str, new_group: str, seq: int, reached: Key) -> bool:
        """Does everyone who is asked before the changed one stand as before once this one has left its place?"""
        old = self._one.books.line.batch_of(id)
        if old is None or old.never is not None:
            return True
        mine = self._queue.place(old, next(i for i, (_, job) in enumerate(old.jobs) if job == id))
        row = self._rows[old.group]
        index = row.index(mine.inside)
        before = [place for place in row.places[:index] if place.id != id]
        if seq > self._seq(old.group, before, max([mine.among, *(place.among for place in before)])):
            return False
        if new_group == old.group:
            return True
        if self._is_fifo(old.group):
            return False
        return not any(p.id != id and p.seq >= seq and p.among < reached for p in row.places[index:])

    def _is_fifo(self, name: str) -> bool:
        group = self._one.books.groups.get(name)
        return group is not None and group.fifo

    def _stays_before(self, head: Place, inside: Key) -> bool:
        """Without its head a batch still has the next of it, if that one is early enough."""
        following = head.position + 1
        return following < len(head.batch.jobs) and self._one.turns.inside(head.batch, following) < inside


def _first_waiting(one: Pass) -> dict[Batch, int]:
    """Each batch with the position of the first of it that waits."""
    first: dict[Batch, int] = {}
    for verdict in one.verdicts:
        first[verdict.batch] = min(verdict.position, first.get(verdict.batch, verdict.position))
    return first
