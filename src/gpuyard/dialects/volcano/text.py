"""YAML text to plain data. Refusals are worded as go-yaml words them, with the line.

A TAB is no indentation in YAML, and yet the template that people copy has one. It is taken when every way of reading it
as spaces that can be read at all means the same; otherwise it is refused.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

from gpuyard.dialects import native
from gpuyard.dialects.brought import refused
from gpuyard.domain.errors import BadInput
from gpuyard.domain.problems import Problem
from gpuyard.domain.reasons import Code, Reason

MOST_TABS = 30
_UNREADABLE = "failed to unmarshal file, err:  error converting YAML to JSON: yaml: "
_WORDS = {
    Problem.TAB.value: "found character that cannot start any token (a TAB: indent with spaces)",
    Problem.COLON_MISSING.value: "could not find expected ':'",
    Problem.COLON_IN_VALUE.value: "mapping values are not allowed in this context",
    Problem.INDENT.value: "did not find expected key (look at the indentation)",
    Problem.UNCLOSED_QUOTE.value: "found unexpected end of stream (a quote is not closed)",
    Problem.UNCLOSED_BRACKET.value: "did not find expected ',' or ']' (a bracket is not closed)",
    Problem.QUOTE_NEEDED.value: "found character that cannot start any token (put the value in quotes)",
    Problem.ESCAPE.value: "found unknown escape character",
    Problem.TAG.value: "tags are not taken",
    Problem.KEY_NOT_TEXT.value: "invalid map key",
    Problem.SEVERAL_DOCUMENTS.value: "a second document begins here",
    Problem.EMPTY.value: "the file says nothing",
    Problem.TOP_NOT_MAPPING.value: "cannot unmarshal into v1alpha1.Job: expected `key: value` lines",
    Problem.NOT_UTF8.value: "invalid trailing UTF-8 octet",
    Problem.CONTROL_CHARACTER.value: "control characters are not allowed",
    Problem.TOO_DEEP.value: "exceeded max depth",
    Problem.TOO_MANY_NODES.value: "document contains too many values",
    Problem.UNKNOWN_ALIAS.value: "unknown anchor referenced",
    Problem.ALIAS_LOOP.value: "anchor value contains itself",
}


@dataclass(frozen=True, slots=True)
class Parsed:
    data: dict[str, Any]
    marks: native.Marks
    warnings: tuple[Reason, ...] = ()


def parse(text: str) -> Parsed:
    """Raises BadInput with the line of what cannot be read."""
    try:
        data, marks = native.parse_yaml(text)
    except BadInput as error:
        if error.reason.facts.get("problem") != Problem.TAB.value:
            raise _in_their_words(error) from error
        return _with_tabs(text, error)
    return Parsed(data, marks)


def _with_tabs(text: str, first: BadInput) -> Parsed:
    """All ways to read the TABs that lead to something; they must lead to the same."""
    read = [found for found in (_mended(text, spaces) for spaces in _SPACES) if found is not None]
    if not read or any(found.data != read[0].data for found in read):
        raise _in_their_words(first) from first
    return read[0]


def _stops(width: int) -> Callable[[str], str]:
    return lambda indent: indent.expandtabs(width)


def _fixed(width: int) -> Callable[[str], str]:
    return lambda indent: indent.replace("\t", " " * width)


_SPACES: tuple[Callable[[str], str], ...] = (_stops(2), _stops(4), _stops(8), _fixed(2), _fixed(4))


def _mended(text: str, spaces: Callable[[str], str]) -> Parsed | None:
    """Read with the TABs in the way as so many spaces; None when that leads nowhere."""
    lines = text.split("\n")
    warned: dict[int, Reason] = {}
    for _ in range(MOST_TABS):
        try:
            data, marks = native.parse_yaml("\n".join(lines))
            return Parsed(data, marks, tuple(warned.values()))
        except BadInput as error:
            facts = error.reason.facts
            if facts.get("problem") != Problem.TAB.value:
                return None
            line, column = facts["line"], facts["column"]
        if not lines[line - 1][: column - 1].strip():  # after a value it means nothing, and is nothing to speak of
            warned[line] = Reason(Code.DOOR_READ_AS, {"line": line, "what": "door.read.tab"})
        lines[line - 1] = _without_tab(lines[line - 1], column, spaces)
    return None


def _without_tab(line: str, column: int, spaces: Callable[[str], str]) -> str:
    """In the indentation it may mean something; after a value it only stands between that and a comment."""
    rest = line.lstrip(" \t")
    indent = line[: len(line) - len(rest)]
    if "\t" in indent:
        return spaces(indent) + rest
    return line[: column - 1] + " " + line[column:]


def _in_their_words(error: BadInput) -> BadInput:
    return BadInput(*(problem for reason in error.problems for problem in _retold(reason)))


def _retold(reason: Reason) -> Iterator[Reason]:
    facts = reason.facts
    if reason.code is not Code.BAD_YAML:
        yield reason
        return
    line, problem = facts.get("line"), str(facts.get("problem"))
    said = _WORDS.get(problem) or str(facts.get("detail") or problem)
    if problem == Problem.DUPLICATE_KEY.value:
        said = f'key "{facts.get("key")}" already set in map (line {facts.get("first_line")})'
    yield refused(f"{_UNREADABLE}line {line}: {said}", **facts).reason
