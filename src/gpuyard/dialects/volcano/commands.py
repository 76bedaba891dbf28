"""`command`, `args` and `workingDir` as one command of ours.

Text is run by the shell, a list as it is. Where a folder to run in is named, the shell goes there first.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field

_VARIABLE = re.compile(r"\$\$|\$\(([A-Za-z_][A-Za-z0-9_.-]*)\)")
_TAKES_A_SCRIPT = re.compile(r"-[a-z]*c")

Words = str | list[str] | None


class NothingToRun(ValueError):
    """No command is written."""


class OpenQuote(ValueError):
    """Text that cannot be taken apart into words."""


@dataclass(frozen=True, slots=True)
class Known:
    """What `$(NAME)` can stand for: values the file itself says, and names whose values each replica is told."""

    env: Mapping[str, str] = field(default_factory=dict)
    told: Collection[str] = ()


def command_of(command: Words, args: Words, folder: str = "", known: Known | None = None) -> str | list[str]:
    """What our job file has for it."""
    known = known or Known()
    if not command:
        raise NothingToRun("command")
    if isinstance(command, str):
        return in_folder(_line(command, args), folder)
    words = [*command, *_more_words(command, args)]
    needs_shell = folder or any(_names(word) & set(known.told) for word in words)
    if needs_shell:
        return in_folder(f"exec {' '.join(_shell_word(word, known) for word in words)}", folder)
    return [expanded(word, known.env) for word in words]


def _line(command: str, args: Words) -> str:
    if not args:
        return command
    return f"{command.rstrip()} {args if isinstance(args, str) else shlex.join(args)}"


def _more_words(command: list[str], args: Words) -> list[str]:
    """Text after a list: the whole script after `sh -c`, several words otherwise."""
    if not isinstance(args, str):
        return args or []
    if len(command) > 1 and _TAKES_A_SCRIPT.fullmatch(command[-1]):
        return [args]
    try:
        return shlex.split(args)
    except ValueError as error:
        raise OpenQuote(str(error)) from error


def in_folder(line: str, folder: str) -> str:
    return f"cd {shlex.quote(folder)} || exit 1\n{line}" if folder else line


def _names(word: str) -> set[str]:
    return {found.group(1) for found in _VARIABLE.finditer(word) if found.group(1)}


def _shell_word(word: str, known: Known) -> str:
    """Quoted, but for the variables that only the replica knows."""
    written, begin = "", 0
    for found in _VARIABLE.finditer(word):
        if found.group(1) in known.told and found.group(1) not in known.env:
            before = expanded(word[begin : found.start()], known.env)
            written += (shlex.quote(before) if before else "") + f'"${{{found.group(1)}}}"'
            begin = found.end()
    rest = expanded(word[begin:], known.env)
    return written + (shlex.quote(rest) if rest or not written else "")


def expanded(word: str, env: Mapping[str, str]) -> str:
    """`$(NAME)` is the variable's value where the file says it, and stays as it is otherwise; `$$` is one dollar."""

    def value(found: re.Match[str]) -> str:
        if found.group(0) == "$$":
            return "$"
        return env.get(found.group(1), found.group(0))

    return _VARIABLE.sub(value, word)
