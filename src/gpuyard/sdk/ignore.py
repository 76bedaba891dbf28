"""Which files of a folder stay at home: `.yardignore`, written like `.gitignore`."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass

IGNORE_FILE = ".yardignore"
ALWAYS_IGNORED = (".git/", "__pycache__/", ".venv/", "node_modules/", ".ipynb_checkpoints/")


@dataclass(frozen=True, slots=True)
class _Rule:
    pattern: re.Pattern[str]
    keep: bool  # a line that begins with "!"
    folders_only: bool


class IgnoreRules:
    """The lines of an ignore file after the built-in ones. The last line that matches decides."""

    def __init__(self, lines: Iterable[str] = ()) -> None:
        parsed = (_parse(line) for line in (*ALWAYS_IGNORED, *lines))
        self._rules = [rule for rule in parsed if rule is not None]

    def ignores(self, path: str, is_folder: bool) -> bool:
        """`path` is relative to the folder, with forward slashes."""
        for rule in reversed(self._rules):
            if (is_folder or not rule.folders_only) and rule.pattern.fullmatch(path):
                return not rule.keep
        return False


def _parse(line: str) -> _Rule | None:
    text = line.rstrip("\n").rstrip("\r")
    text = re.sub(r"(?<!\\)\s+$", "", text)
    if not text or text.startswith("#"):
        return None
    keep = text.startswith("!")
    text = text[1:] if keep else text
    folders_only = text.endswith("/")
    text = text.rstrip("/")
    if not text:
        return None
    anchored = "/" in text
    body = _regex(text.lstrip("/"))
    return _Rule(re.compile(body if anchored else f"(?:.*/)?{body}", re.DOTALL), keep, folders_only)


def _regex(glob: str) -> str:
    """`*` and `?` stay inside one name, `**` crosses folders, `[...]` is a set, a backslash takes away meaning."""
    out, at = "", 0
    while at < len(glob):
        piece, length = _next_piece(glob, at)
        out += piece
        at += length
    return out


def _next_piece(glob: str, at: int) -> tuple[str, int]:
    rest = glob[at:]
    if rest.startswith("**/"):
        return "(?:.*/)?", 3
    if rest.startswith("/**") and len(rest) == 3:
        return "/.+", 3
    if rest.startswith("**"):
        return ".*", 2
    if rest[0] == "*":
        return "[^/]*", 1
    if rest[0] == "?":
        return "[^/]", 1
    if rest[0] == "\\" and len(rest) > 1:
        return re.escape(rest[1]), 2
    if rest[0] == "[":
        return _set(rest)
    return re.escape(rest[0]), 1


def _set(rest: str) -> tuple[str, int]:
    end = rest.find("]", 2)
    if end < 0:
        return re.escape("["), 1
    inside = rest[1:end].replace("\\", r"\\").replace("[", r"\[")
    if inside[0] == "!":
        inside = "^" + inside[1:]
    try:
        re.compile(f"[{inside}]")
    except re.error:  # a range the wrong way round matches nothing, as in git
        return "(?!)", end + 1
    return f"(?!/)[{inside}]", end + 1
