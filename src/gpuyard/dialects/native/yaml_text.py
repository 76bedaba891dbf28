"""YAML text to plain data, read more strictly than YAML allows.

Built on PyYAML's events. As in YAML 1.2, only `true` and `false` are booleans, and dates and `1:30` stay text. No tags,
no second document, no duplicate keys; size, depth and the number of values after following aliases are bounded.
"""

from __future__ import annotations

import math
import re
from dataclasses import dataclass, field
from typing import Any

import yaml

from gpuyard.dialects.native.marks import Findings, Mark, Marks, Path, describe, showable
from gpuyard.domain.errors import BadInput
from gpuyard.domain.problems import Problem
from gpuyard.domain.reasons import Code, Reason, because

MAX_TEXT_BYTES = 64 * 1024
MAX_NODES = 1000
MAX_DEPTH = 20

_UNPRINTABLE = re.compile("[^\t\n\r\x20-\x7e\x85\xa0-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
_INT = re.compile(r"[-+]?[0-9]+", re.ASCII)
_BASED_INT = re.compile(r"0o[0-7]+|0x[0-9a-fA-F]+", re.ASCII)
_FLOAT = re.compile(r"[-+]?(?:\.[0-9]+|[0-9]+(?:\.[0-9]*)?)(?:[eE][-+]?[0-9]+)?", re.ASCII)
_WORDS: dict[str, Any] = {
    **dict.fromkeys(("", "~", "null", "Null", "NULL")),
    **dict.fromkeys(("true", "True", "TRUE"), True),
    **dict.fromkeys(("false", "False", "FALSE"), False),
    **dict.fromkeys((".inf", ".Inf", ".INF", "+.inf", "+.Inf", "+.INF"), math.inf),
    **dict.fromkeys(("-.inf", "-.Inf", "-.INF"), -math.inf),
    **dict.fromkeys((".nan", ".NaN", ".NAN"), math.nan),
}
_MOST_DIGITS = 400


def parse_yaml(text: str | bytes) -> tuple[dict[str, Any], Marks]:
    """The data of one YAML document and where everything stands in it. Raises BadInput with line and column."""
    decoded = _decoded(text)
    bad = _UNPRINTABLE.search(decoded)
    if bad:
        raise _refusal(_mark_of(decoded, bad.start()), Problem.CONTROL_CHARACTER, character=describe(bad.group()))
    composer = _Composer(decoded)
    try:
        top = composer.document()
    except yaml.MarkedYAMLError as error:
        raise _syntax_refusal(decoded, error) from error
    except (yaml.YAMLError, ValueError, OverflowError) as error:
        raise _refusal(composer.reached(), Problem.YAML_SYNTAX) from error
    return _Expansion().expand_top(top)


def as_scalar(text: str) -> Any:
    """What a plain, unquoted word means: a number, true or false, nothing, or itself."""
    if text in _WORDS:
        return _WORDS[text]
    if _INT.fullmatch(text):
        return int(text) if len(text) <= _MOST_DIGITS else math.inf
    if _BASED_INT.fullmatch(text):
        return int(text, 0) if len(text) <= _MOST_DIGITS else math.inf
    return float(text) if _FLOAT.fullmatch(text) else text


def check_size(text: str | bytes) -> None:
    size = len(text) if isinstance(text, bytes) else len(text.encode("utf-8", "surrogatepass"))
    if size > MAX_TEXT_BYTES:
        raise BadInput(because(Code.TOO_LARGE, what="job_file", size=size, limit=MAX_TEXT_BYTES))


def _decoded(text: str | bytes) -> str:
    check_size(text)
    if isinstance(text, str):
        return text
    try:
        return text.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        before = text[: error.start].decode("utf-8", "replace")
        raise _refusal(_mark_of(before, len(before)), Problem.NOT_UTF8) from error


# --- text to a tree -----------------------------------------------------------------------------------------------


@dataclass(slots=True)
class _Node:
    """A scalar, a list or a mapping as written. An alias is the very node it refers to."""

    mark: Mark
    scalar: Any = None
    items: list[_Node] | None = None
    pairs: list[tuple[_Node, _Node]] | None = None
    open: bool = field(default=True)  # still being read: an alias to it would contain itself

    @property
    def is_scalar(self) -> bool:
        return self.items is None and self.pairs is None


class _Composer:
    """Builds the tree from events, so that depth and number are bounded before anything grows."""

    def __init__(self, text: str) -> None:
        self._loader: Any = yaml.SafeLoader(text)
        self._anchors: dict[str, _Node] = {}
        self._count = 0

    def document(self) -> _Node:
        self._next()  # stream start
        first = self._next()
        if isinstance(first, yaml.StreamEndEvent):
            raise _refusal(Mark(1, 1), Problem.EMPTY)
        top = self._node(self._next(), 1)
        self._next()  # document end
        second = self._next()
        if not isinstance(second, yaml.StreamEndEvent):
            raise _refusal(_start(second), Problem.SEVERAL_DOCUMENTS)
        return top

    def reached(self) -> Mark:
        """How far the reading has come."""
        return Mark(self._loader.line + 1, self._loader.column + 1)

    def _next(self) -> Any:
        return self._loader.get_event()

    def _node(self, event: Any, depth: int) -> _Node:
        mark = _start(event)
        self._count += 1
        if self._count > MAX_NODES:
            raise _refusal(mark, Problem.TOO_MANY_NODES, limit=MAX_NODES)
        if depth > MAX_DEPTH:
            raise _refusal(mark, Problem.TOO_DEEP, limit=MAX_DEPTH)
        if isinstance(event, yaml.AliasEvent):
            return self._aliased(event, mark)
        if event.tag is not None:
            raise _refusal(mark, Problem.TAG, tag=showable(event.tag.replace("tag:yaml.org,2002:", "!!")))
        node = self._begin(event, mark)
        if isinstance(event, yaml.SequenceStartEvent):
            self._read_items(node, depth)
        elif isinstance(event, yaml.MappingStartEvent):
            self._read_pairs(node, depth)
        node.open = False
        return node

    def _begin(self, event: Any, mark: Mark) -> _Node:
        if isinstance(event, yaml.ScalarEvent):
            value = as_scalar(event.value) if event.implicit[0] else event.value
            node = _Node(Mark(mark.line, mark.column, event.value), value)
        elif isinstance(event, yaml.SequenceStartEvent):
            node = _Node(mark, items=[])
        else:
            node = _Node(mark, pairs=[])
        if event.anchor is not None:
            self._anchors[event.anchor] = node
        return node

    def _aliased(self, event: Any, mark: Mark) -> _Node:
        node = self._anchors.get(event.anchor)
        if node is None:
            raise _refusal(mark, Problem.UNKNOWN_ALIAS, alias=showable(event.anchor))
        if node.open:
            raise _refusal(mark, Problem.ALIAS_LOOP, alias=showable(event.anchor))
        return node

    def _read_items(self, node: _Node, depth: int) -> None:
        assert node.items is not None
        while not isinstance(event := self._next(), yaml.SequenceEndEvent):
            node.items.append(self._node(event, depth + 1))

    def _read_pairs(self, node: _Node, depth: int) -> None:
        assert node.pairs is not None
        while not isinstance(event := self._next(), yaml.MappingEndEvent):
            key = self._node(event, depth + 1)
            if not key.is_scalar or not key.mark.written:
                raise _refusal(_start(event), Problem.KEY_NOT_TEXT)
            node.pairs.append((key, self._node(self._next(), depth + 1)))


# --- the tree to plain data ---------------------------------------------------------------------------------------


class _Expansion:
    """Follows aliases, counting what they grow to, and notes where everything stands."""

    def __init__(self) -> None:
        self._keys: dict[Path, Mark] = {}
        self._values: dict[Path, Mark] = {}
        self._count = 0
        self._findings = Findings(None)

    def expand_top(self, top: _Node) -> tuple[dict[str, Any], Marks]:
        if top.is_scalar and top.scalar is None:
            raise _refusal(top.mark, Problem.EMPTY)
        if top.pairs is None:
            raise _refusal(top.mark, Problem.TOP_NOT_MAPPING)
        data = self._expand(top, ())
        self._findings.raise_if_any()
        return data, Marks(self._keys, self._values)

    def _expand(self, node: _Node, path: Path) -> Any:
        self._count += 1
        if self._count > MAX_NODES:
            raise _refusal(node.mark, Problem.TOO_MANY_NODES, limit=MAX_NODES)
        if len(path) >= MAX_DEPTH:
            raise _refusal(node.mark, Problem.TOO_DEEP, limit=MAX_DEPTH)
        self._values[path] = node.mark
        if node.items is not None:
            return [self._expand(item, (*path, index)) for index, item in enumerate(node.items)]
        if node.pairs is not None:
            return self._mapping(node.pairs, path)
        return node.scalar

    def _mapping(self, pairs: list[tuple[_Node, _Node]], path: Path) -> dict[str, Any]:
        data: dict[str, Any] = {}
        for key_node, value_node in pairs:
            self._count += 1
            key = key_node.mark.written or ""
            place = (*path, key)
            if key in data:
                first = self._keys[place].line
                self._findings.problems.append(_twice(key_node.mark, key, first))
                continue
            self._keys[place] = key_node.mark
            data[key] = self._expand(value_node, place)
        return data


def _twice(mark: Mark, key: str, first_line: int) -> Reason:
    facts = {"line": mark.line, "column": mark.column, "key": showable(key), "first_line": first_line}
    return because(Code.BAD_YAML, problem=Problem.DUPLICATE_KEY.value, **facts)


# --- refusals -----------------------------------------------------------------------------------------------------


def _refusal(mark: Mark, problem: Problem, **facts: Any) -> BadInput:
    return BadInput(because(Code.BAD_YAML, line=mark.line, column=mark.column, problem=problem.value, **facts))


# What PyYAML says -> what we say, and whether the place where it began is the better one to show.
_SAID: tuple[tuple[str, Problem, bool], ...] = (
    ("mapping values are not allowed", Problem.COLON_IN_VALUE, False),
    ("could not find expected ':'", Problem.COLON_MISSING, True),
    ("found unexpected end of stream", Problem.UNCLOSED_QUOTE, True),
    ("found unexpected document separator", Problem.UNCLOSED_QUOTE, True),
    ("expected ',' or ", Problem.UNCLOSED_BRACKET, True),
    ("expected <block end>", Problem.INDENT, False),
    ("found undefined tag handle", Problem.TAG, True),
)


def _syntax_refusal(text: str, error: yaml.MarkedYAMLError) -> BadInput:
    said = error.problem or ""
    at = error.problem_mark or error.context_mark
    character = _character_at(text, at)
    if character == "\t":
        return _refusal(_mark(at), Problem.TAB)
    if "cannot start any token" in said and character:
        return _refusal(_mark(at), Problem.QUOTE_NEEDED, character=character)
    if "unknown escape character" in said:
        return _refusal(_mark(at), Problem.ESCAPE, character=character)
    if "expected <block end>" in said and character == ":":
        return _refusal(_mark(at), Problem.KEY_NOT_TEXT)
    if error.context in ("while scanning an alias", "while scanning an anchor"):
        begin = error.context_mark or at
        return _refusal(_mark(begin), Problem.QUOTE_NEEDED, character=_character_at(text, begin))
    if error.context in ("while scanning a tag", "while parsing a tag"):
        return _refusal(_mark(error.context_mark or at), Problem.TAG)
    for words, problem, where_it_began in _SAID:
        if words in said:
            return _refusal(_mark((error.context_mark if where_it_began else None) or at), problem)
    return _refusal(_mark(at), Problem.YAML_SYNTAX, detail=showable(said))


def _character_at(text: str, mark: Any) -> str:
    return text[mark.index] if mark is not None and mark.index < len(text) else ""


def _start(event: Any) -> Mark:
    return _mark(event.start_mark)


def _mark(mark: Any) -> Mark:
    return Mark(1, 1) if mark is None else Mark(mark.line + 1, mark.column + 1)


def _mark_of(text: str, index: int) -> Mark:
    before = text[:index]
    return Mark(before.count("\n") + 1, index - (before.rfind("\n") + 1) + 1)
