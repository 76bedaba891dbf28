"""How a sentence is made from a template and facts; the same for every language.

A template is text with `{fact}` or `{fact:kind}` in it. A part in `[square brackets]` is left out when one of its facts
is missing, so that a reason with few facts still reads well. Outside of brackets a missing fact shows as `?`.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from gpuyard.domain.reasons import Code, Reason
from gpuyard.domain.workload import State
from gpuyard.words import facts as shown

DEEPEST_CAUSE = 3

Facts = Mapping[str, Any]
Template = str | Callable[[Facts], str]


def by_name(text: str) -> Template:
    """A sentence with a command about NAME in it, which is the name itself where that is known."""
    named = text.replace("NAME", "{name}")
    return lambda facts: named if facts.get("name") else text


@dataclass(frozen=True)
class Language:
    """Everything that differs between languages."""

    sentences: Mapping[Code, Template]
    problems: Mapping[str, str]
    states: Mapping[State, str]
    nouns: Mapping[str, str]  # what things, actions and causes are called
    comma: str
    more: str  # "and {count} more"
    core: str
    cores: str
    card: str
    cards: str
    seconds: Callable[[float], str]
    rough: Callable[[float], str]  # as one says it in passing: "3 min"
    sorts: Mapping[str, str]  # the classes of reasons to wait
    changes: Mapping[str, str]  # what to change in a job, by the key of the job file
    change_of_role: str
    changes_and: str
    change_starts: str
    change_starts_somewhere: str
    at_line: str
    at_path: str
    at_both: str

    def say(self, reason: Reason, depth: int = 0) -> str:
        template = self.sentences.get(reason.code, reason.code.value)
        facts = reason.facts
        return self._fill(template if isinstance(template, str) else template(facts), facts, depth)

    def _fill(self, template: str, facts: Facts, depth: int) -> str:
        def optional(match: re.Match[str]) -> str:
            inner = match.group(1)
            texts = [self._show(name, kind, facts, depth) for name, kind in _PLACE.findall(inner)]
            return inner if all(texts) else ""

        def place(match: re.Match[str]) -> str:
            return self._show(match.group(1), match.group(2), facts, depth) or "?"

        return _PLACE.sub(place, _OPTIONAL.sub(optional, template))

    def _show(self, name: str, kind: str, facts: Facts, depth: int) -> str:
        value = facts.get(name)
        match kind:
            case "where":
                return self._where(facts)
            case "problem":
                return self._problem(value, facts, depth)
            case _ if value is None or value == "":
                return ""
            case "amount":
                return self._amount(facts.get("resource"), value)
            case "bare":
                return _bare(facts.get("resource"), value)
            case "memory":
                return shown.memory(value)
            case "seconds":
                known = shown.number(value)
                return shown.plain(value) if known is None else self.seconds(max(0.0, float(known)))
            case "rough":
                known = shown.number(value)
                return shown.plain(value) if known is None else self.rough(max(0.0, float(known)))
            case "cards":
                device = facts.get("device")
                return self._amount(device if isinstance(device, str) and device else None, value)
            case "moment":
                return shown.moment(value)
            case "list":
                return self._list(value)
            case "noun":
                return self._noun(value)
            case "reason":
                return self._cause(value, depth)
        return shown.plain(value)

    def _amount(self, resource: Any, value: Any) -> str:
        count = _bare(resource, value)
        match resource:
            case "cpu":
                return (self.core if count == "1" else self.cores).format(count=count)
            case "memory" | "shm":
                return f"{count} {self._noun(resource)}"
            case str():
                return (self.card if count == "1" else self.cards).format(count=count, device=shown.clean(resource))
        return count

    def _list(self, value: Any) -> str:
        text, left = shown.listed(value, self.comma)
        return text + self.more.format(count=left) if left else text

    def _noun(self, value: Any) -> str:
        return self.nouns.get(value, shown.clean(value)) if isinstance(value, str) else shown.plain(value)

    def _cause(self, value: Any, depth: int) -> str:
        """A reason inside a reason. What is no longer a known code is shown by its name."""
        if not isinstance(value, Mapping):
            return self._noun(value)
        code, facts = value.get("code"), value.get("facts")
        if depth >= DEEPEST_CAUSE or not isinstance(code, str) or code not in _CODES:
            return shown.plain(code)
        return self.say(Reason(Code(code), facts if isinstance(facts, Mapping) else {}), depth + 1)

    def _problem(self, value: Any, facts: Facts, depth: int) -> str:
        phrase = self.problems.get(value) if isinstance(value, str) and depth < DEEPEST_CAUSE else None
        return shown.plain(value) if phrase is None else self._fill(phrase, facts, depth + 1)

    def _where(self, facts: Facts) -> str:
        """Line and column when it came from a file, the path of the key when there is one."""
        line, column, path = (shown.plain(facts.get(name)) for name in ("line", "column", "at"))
        if line and path:
            return self.at_both.format(line=line, column=column or "1", path=path)
        if line:
            return self.at_line.format(line=line, column=column or "1")
        return self.at_path.format(path=path) if path else ""


def _bare(resource: Any, value: Any) -> str:
    """The amount without its unit of counting: cores and cards are stored in thousandths, memory in bytes."""
    if resource in ("memory", "shm"):
        return shown.memory(value)
    return shown.milli(value) if isinstance(resource, str) else shown.plain(value)


_CODES = frozenset(code.value for code in Code)
_PLACE = re.compile(r"\{([a-z_]+)(?::([a-z]+))?\}")
_OPTIONAL = re.compile(r"\[([^\[\]]*)\]")
