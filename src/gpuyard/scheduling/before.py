"""Why one came before the other: from their stories, or, while both wait, from the order they stand in."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from math import inf
from typing import Any

from gpuyard.domain.policy import HOUR, Ordering
from gpuyard.domain.reasons import Code, Reason, because
from gpuyard.domain.workload import MAX_PRIORITY, State, StoryEvent, Workload
from gpuyard.scheduling.service import by_itself, cards_of
from gpuyard.scheduling.snapshot import Ahead

# Lines of a story that tell what kept it from starting. All other lines tell of something else.
KEPT = frozenset({Code.RETRY, Code.PAUSED, Code.PAUSE_ASKED, Code.PREEMPTED, Code.MOVES, Code.REQUEUED})
# Reasons to wait that its order among others may explain as well: then the numbers of both tell more than they do.
ABOUT_ORDER = frozenset(
    {Code.NEW, Code.ORDER, Code.FIFO, Code.CLEARING, Code.MOVING, Code.BUSY, Code.PREEMPTED, Code.MOVES, Code.REQUEUED}
)
WAITED = frozenset({State.QUEUED, State.PAUSED})
Ranked = Callable[[str, str], Ahead | None]  # of two that both wait: the first, and the rule
Raised = Callable[[Workload, float], int]  # the priority with what waiting had added at that moment


@dataclass(frozen=True, slots=True)
class Past:
    """A workload and its story, oldest line first."""

    workload: Workload
    story: tuple[StoryEvent, ...]

    @property
    def placed(self) -> list[StoryEvent]:
        return [line for line in self.story if line.reason.code is Code.PLACED]

    def waited_at(self, moment: float) -> bool:
        """Was it there, and without a place? One that got its place at the same moment did not wait for the other."""
        if self.workload.submitted_at > moment:
            return False
        lines = [line for line in self.story if line.at <= moment]
        return not lines or lines[-1].state in WAITED

    def kept_by(self, moment: float) -> Reason | None:
        """What the story says kept it from starting at that moment."""
        lines = [line.reason for line in self.story if line.at <= moment]
        return next(
            (told for told in reversed(lines) if told.code in KEPT or told.code.value.startswith("waiting.")), None
        )

    def made_room_for(self, other: str, until: float) -> StoryEvent | None:
        """The line that says it was put back for the other, unless it had a place again since then."""
        for line in reversed([line for line in self.story if line.at <= until]):
            if line.reason.code is Code.PLACED:
                return None
            if line.reason.code in (Code.PREEMPTED, Code.MOVES) and line.reason.facts.get("by") == other:
                return line
        return None


@dataclass(frozen=True, slots=True)
class Answer:
    first: str
    other: str
    rule: Reason


def before(one: Past, two: Past, ranked: Ranked, raised: Raised) -> Answer:
    """Which of the two came first, and why. The question supposes it was the one; the answer may be the other.

    Both may have had several places. What counts is the last time the one got ahead of the other."""
    rule = _last_time(one, two, raised)
    if rule is not None:
        return Answer(one.workload.id, two.workload.id, rule)
    found = ranked(one.workload.id, two.workload.id)
    if found is not None:  # both wait
        behind = two if found.workload == one.workload.id else one
        return Answer(found.workload, behind.workload.id, found.rule)
    rule = _last_time(two, one, raised)
    if rule is not None:
        return Answer(two.workload.id, one.workload.id, rule)
    return _never_at_once(one, two, raised)


def _last_time(first: Past, other: Past, raised: Raised) -> Reason | None:
    """The rule by which it last got ahead of the other: by taking its place, or by getting one while that waited."""
    room = other.made_room_for(first.workload.id, float("inf"))
    if room is not None:
        return _made_room(first.workload, other.workload, room)
    for placed in reversed(first.placed):
        if other.waited_at(placed.at):
            return _rule(first, other, placed, raised)
    return None


def _made_room(first: Workload, other: Workload, line: StoryEvent) -> Reason:
    numbers = {"mine": other.spec.priority, "theirs": first.spec.priority}
    return because(Code.RULE_MADE_ROOM, rule=line.reason.facts.get("rule"), group=first.group, at=line.at, **numbers)


def _never_at_once(one: Past, two: Past, raised: Raised) -> Answer:
    """They never waited side by side: one had its place before the other was there, or one went without any."""
    first, other = (two, one) if _came_later(one, two) else (one, two)
    lines = first.placed
    if lines:
        return Answer(first.workload.id, other.workload.id, _rule(first, other, lines[0], raised))
    waits = two if one.workload.state is not State.QUEUED else one
    gone = one if waits is two else two
    facts = {"reason": gone.workload.reason.to_json(), "at": gone.workload.ended_at or gone.story[-1].at}
    return Answer(waits.workload.id, gone.workload.id, because(Code.RULE_PASSED, **facts))


def _came_later(one: Past, two: Past) -> bool:
    if not one.placed or not two.placed:
        return not one.placed and bool(two.placed)
    return two.placed[0].at < one.placed[0].at


def _rule(first: Past, other: Past, placed: StoryEvent, raised: Raised) -> Reason:
    at, facts = placed.at, placed.reason.facts
    if other.workload.submitted_at > at:
        return because(Code.RULE_NOT_THERE, submitted_at=other.workload.submitted_at, at=at)
    room = other.made_room_for(first.workload.id, at)
    if room is not None:
        return _made_room(first.workload, other.workload, room)
    kept = other.kept_by(at)
    could_not = because(Code.RULE_PASSED, reason=kept.to_json(), at=at) if kept is not None else None
    if other.workload.id in (facts.get("passed") or ()):  # it was asked before, and had to wait
        return _gap(facts) or could_not or because(Code.RULE_UNKNOWN, job=first.workload.id)
    if kept is not None and could_not is not None and kept.code not in ABOUT_ORDER:
        return could_not
    by_numbers = _by_numbers(first, other, placed, raised)
    return by_numbers or _gap(facts) or could_not or because(Code.RULE_UNKNOWN, job=first.workload.id)


def _gap(facts: Mapping[str, Any]) -> Reason | None:
    """It used the time in which the other could not start yet."""
    gap = facts.get("backfill")
    if not isinstance(gap, Mapping):
        return None
    return because(Code.RULE_BACKFILL, ends_by=gap.get("ends_by"), starts_at=gap.get("starts_at"))


def _by_numbers(first: Past, other: Past, placed: StoryEvent, raised: Raised) -> Reason | None:
    turn = placed.reason.facts.get("turn")
    told: Mapping[str, Any] = turn if isinstance(turn, Mapping) else {}
    one, two = first.workload, other.workload
    if told.get("guaranteed") and one.group != two.group:
        return because(Code.RULE_GUARANTEE, group=one.group, **_guaranteed(placed))
    theirs, mine = int(told.get("priority") or raised(one, placed.at)), raised(two, placed.at)
    if theirs > mine:
        points = theirs - one.spec.priority
        waited = placed.at - one.submitted_at
        return because(Code.RULE_PRIORITY, mine=mine, theirs=theirs, waited=waited, points=max(0, points))
    if theirs < mine:
        return None
    if theirs >= MAX_PRIORITY:
        return _by_age(one, two)
    if "left" in told or "served" in told:
        return _by_itself(told, other, placed.at) or _by_age(one, two)
    return _by_share(one, two, placed, told) or _by_age(one, two)


def _by_itself(told: Mapping[str, Any], other: Past, at: float) -> Reason | None:
    """It had been served less, or had less left, than the other by then."""
    mine = _served_by(other, at) if "served" in told else _left_by(other, at)
    theirs = told.get("served", told.get("left"))
    if mine is None or theirs is None or not theirs < mine:
        return None
    name = "served" if "served" in told else "left"
    return by_itself({name: theirs}, {name: mine})


def _served_by(other: Past, at: float) -> float | None:
    """Card-hours it had by then; None when nobody can tell any more."""
    workload, later = other.workload, sum(line.at > at for line in other.placed)
    if workload.attempt is None or later == workload.attempt.number:
        return 0.0
    if later > 1:
        return None
    seconds = workload.attempt.served_before if later else workload.attempt.served(at)
    return seconds * cards_of(workload.spec, Ordering()) / HOUR


def _left_by(other: Past, at: float) -> float | None:
    workload, later = other.workload, sum(line.at > at for line in other.placed)
    if workload.spec.max_seconds is None or workload.attempt is None or later == workload.attempt.number:
        return inf if workload.spec.max_seconds is None else workload.spec.max_seconds
    if later > 1:
        return None
    kept = workload.attempt.kept_before if later else workload.attempt.kept
    return max(0.0, workload.spec.max_seconds - kept)


def _guaranteed(placed: StoryEvent) -> dict[str, Any]:
    facts = placed.reason.facts
    return {key: facts[key] for key in ("resource", "guaranteed") if key in facts}


def _by_share(first: Workload, other: Workload, placed: StoryEvent, turn: Mapping[str, Any]) -> Reason | None:
    uses = placed.reason.facts.get("uses")
    known: Mapping[str, Any] = uses if isinstance(uses, Mapping) else {}
    if first.group != other.group:
        mine, theirs = known.get(other.group), turn.get("group_use")
        if not _less(theirs, mine):
            return None
        facts = {"group": first.group, "use": _hours(theirs), "other_group": other.group, "other_use": _hours(mine)}
        return because(Code.RULE_SHARE, **facts)
    mine, theirs = known.get(f"{other.group}/{other.owner}"), turn.get("user_use")
    if first.owner == other.owner or not _less(theirs, mine):
        return None
    facts = {"user": first.owner, "use": _hours(theirs), "other_user": other.owner, "other_use": _hours(mine)}
    return because(Code.RULE_USER_SHARE, group=first.group, **facts)


def _by_age(first: Workload, other: Workload) -> Reason | None:
    if first.submitted_at > other.submitted_at:
        return None
    return because(Code.RULE_AGE, mine=other.submitted_at, theirs=first.submitted_at)


def _less(one: Any, two: Any) -> bool:
    return isinstance(one, int | float) and isinstance(two, int | float) and one < two


def _hours(use: Any) -> float:
    return round(float(use), 1)
