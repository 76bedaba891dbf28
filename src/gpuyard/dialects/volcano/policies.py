"""What becomes of a job when something happens to its pods: their policies as our retries and endings."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from gpuyard.dialects.volcano.notes import Notes, Path, dotted
from gpuyard.domain.problems import Problem

MAX_RETRIES = 100
USUAL_RETRIES = 3
EVENTS = ("*", "PodFailed", "PodEvicted", "PodPending", "Unknown", "TaskCompleted", "TaskFailed", "JobUpdated")
ACTIONS = (
    *("AbortJob", "RestartJob", "RestartTask", "RestartPod", "RestartPartition"),
    *("TerminateJob", "CompleteJob", "ResumeJob"),
)
_FAILURES = frozenset({"*", "PodFailed", "TaskFailed", "exitCode"})
_AGAIN = frozenset({"RestartJob", "RestartTask", "RestartPod", "RestartPartition"})
_ENDS_AS = {"AbortJob": "Aborted", "TerminateJob": "Terminated", "CompleteJob": "Completed"}


@dataclass(slots=True)
class Rules:
    """What a list of policies comes to."""

    retries: set[str] = field(default_factory=set)  # causes after which it is tried again
    completes: bool = False  # a completed task completes the job
    fails_as: str = ""  # the phase that a failure ends in, where it is not Failed

    def add(self, other: Rules) -> None:
        self.retries |= other.retries
        self.fails_as = self.fails_as or other.fails_as


def read(value: Any, path: Path, notes: Notes) -> Rules:
    rules = Rules()
    seen: list[str] = []
    for index, item in enumerate(notes.items(value, path)):
        where = (*path, index)
        policy = notes.mapping(item, where)
        action = notes.text(policy.get("action"), (*where, "action"))
        for event in _events(policy, where, notes):
            _check(event, action, seen, where, notes)
            seen.append(event)
            _apply(rules, event.partition("=")[0], action, where, notes)
        if policy.get("timeout") is not None:
            notes.leave_out((*where, "timeout"), "door.unused.at_once")
    if "*" in seen and len({event for event in seen if not event.startswith("exitCode")}) > 1:
        words = "if there's * here, no other policy should be here"
        raise _denied(path, words, notes, "door.problem.policy_star")
    return rules


def _events(policy: Any, path: Path, notes: Notes) -> list[str]:
    """Its events; a code of exit is told as `exitCode=3`."""
    several = notes.items(policy.get("events"), (*path, "events"))
    named = [notes.text(event, (*path, "events", index)) for index, event in enumerate(several)]
    named += [notes.text(policy["event"], (*path, "event"))] if policy.get("event") else []
    code = notes.whole(policy.get("exitCode"), (*path, "exitCode"))
    if named and code is not None:
        raise _denied(path, "must not specify event and exitCode simultaneously", notes, "door.problem.policy_both")
    if not named and code is None:
        raise _denied(path, "either event and exitCode should be specified", notes, "door.problem.policy_neither")
    if code == 0:
        raise _denied(path, "0 is not a valid error code", notes, "door.problem.policy_zero")
    return list(dict.fromkeys(named)) or [f"exitCode={code}"]


def _check(event: str, action: str, seen: list[str], path: Path, notes: Notes) -> None:
    field_name = "spec.tasks.policies" if "tasks" in path else "spec.policies"
    if not event.startswith("exitCode=") and event not in EVENTS:
        words = f'{field_name}: Invalid value: "{event}": invalid policy event'
        raise _denied(path, words, notes, Problem.ONE_OF, field=dotted((*path, "event")), allowed=list(EVENTS))
    if action not in ACTIONS:
        words = f'{field_name}: Invalid value: "{action}": invalid policy action'
        raise _denied(path, words, notes, Problem.ONE_OF, field=dotted((*path, "action")), allowed=list(ACTIONS))
    if event in seen:
        code = event.removeprefix("exitCode=")
        words = f"duplicate exitCode {code}" if code != event else f"duplicate event {event}  across different policy"
        raise _denied(path, words, notes, "door.problem.policy_twice", value=event)


def _denied(path: Path, words: str, notes: Notes, problem: str, **facts: Any) -> Exception:
    events, actions = " ".join(EVENTS), " ".join(ACTIONS)
    whole = f"1 error occurred:\n\t* {words}\n\n valid events are [{events}], valid actions are [{actions}];"
    return notes.deny(path, whole, problem, **facts)


def _apply(rules: Rules, event: str, action: str, path: Path, notes: Notes) -> None:
    if event in _FAILURES and action in _AGAIN:
        rules.retries |= {"exit", "oom"} if event != "*" else {"exit", "oom", "lost"}
        if event == "exitCode":
            notes.read_as(path, "door.read.any_exit_code")
    elif event == "PodEvicted" and action in _AGAIN:
        rules.retries.add("lost")
    elif event in ("TaskCompleted", "*") and action == "CompleteJob":
        rules.completes = True
    elif event in _FAILURES and action in _ENDS_AS:
        rules.fails_as = _ENDS_AS[action]
    else:
        notes.leave_out(path, "door.unused.policy")
