"""Which command is meant, and what was typed for its flags. Mistakes are told in the sentences of cobra and pflag."""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterable, Sequence

from gpuyard.doors.cobra.commands import (
    FALSE,
    HELP,
    TRUE,
    Command,
    Flag,
    Given,
    Path,
    UsageError,
    known_flags,
    path_name,
)

_INT = re.compile(r"[-+]?[0-9]{1,18}", re.ASCII)


class HelpWanted(Exception):
    """`--help` stands among the words."""


def find(root: Command, typed: Sequence[str]) -> tuple[Path, list[str]]:
    """The command that is meant, and the other words in their order. Flags may stand before the command's name."""
    path: tuple[Command, ...] = (root,)
    valued = {f"--{flag.name}" for flag in root.all_flags() if flag.takes_value}
    valued |= {f"-{flag.short}" for flag in root.all_flags() if flag.takes_value and flag.short}
    rest: list[str] = []
    still_looking = True
    words = iter(typed)
    for word in words:
        if word == "--":
            return path, [*rest, word, *words]
        if word.startswith("-") and word != "-":
            rest.append(word)
            if word in valued:
                rest += [value] if (value := next(words, None)) is not None else []
            continue
        child = path[-1].child(word) if still_looking else None
        if child is None:
            _require_known(path, word)
            still_looking = False
            rest.append(word)
        else:
            path = (*path, child)
    return path, rest


def _require_known(path: Path, word: str) -> None:
    """A command that only holds others takes no words of its own."""
    if not path[-1].children or path[-1].run is not None:
        return
    near = nearest(word, [child.name for child in path[-1].children if not child.hidden])
    meant = f"\n\nDid you mean this?\n\t{near}\n" if near else ""
    name = path_name(path)
    raise UsageError(f'unknown command "{word}" for "{name}"{meant}', hint=f"Run '{name} --help' for usage.")


def nearest(word: str, known: Iterable[str]) -> str:
    return next(iter(difflib.get_close_matches(word[:100], list(known), n=1, cutoff=0.6)), "")


def parse(path: Path, words: Sequence[str]) -> Given:
    """Raises HelpWanted, or UsageError with the sentence pflag would say."""
    flags = known_flags(path)
    taken: dict[str, list[str]] = {}
    positional: list[str] = []
    rest = list(words)
    while rest:
        word = rest.pop(0)
        if word == "--":
            positional += rest
            break
        if word.startswith("--"):
            _long(flags, word[2:], rest, taken)
        elif word.startswith("-") and word != "-":
            _shorts(flags, word, rest, taken)
        else:
            positional.append(word)
    _check_count(path[-1], len(positional))
    defaults = {flag.name: flag.default for flag in flags}
    lists = {name: tuple(values) for name, values in taken.items()}
    return Given({name: values[-1] for name, values in taken.items()}, tuple(positional), defaults, lists)


def _long(flags: Sequence[Flag], text: str, rest: list[str], taken: dict[str, list[str]]) -> None:
    name, has_value, value = text.partition("=")
    flag = next((flag for flag in flags if flag.name == name), None)
    if not name or flag is None:
        near = nearest(name, [flag.name for flag in flags if not flag.hidden])
        meant = f"\n\nDid you mean this?\n\t--{near}\n" if near else ""
        raise UsageError(f"unknown flag: --{name}{meant}" if name else f"bad flag syntax: --{text}")
    if not has_value:
        value = _following(flag, f"--{name}", rest)
    _take(flag, value, taken)


def _shorts(flags: Sequence[Flag], word: str, rest: list[str], taken: dict[str, list[str]]) -> None:
    """`-f`, `-cFILE`, `-c=FILE`, and several without values in one: `-fq`."""
    letters = word[1:]
    while letters:
        letter, letters = letters[0], letters[1:]
        flag = next((flag for flag in flags if flag.short == letter), None)
        if flag is None:
            raise UsageError(f"unknown shorthand flag: '{letter}' in {word}")
        if letters.startswith("="):
            return _take(flag, letters[1:], taken)
        if flag.takes_value and letters:
            return _take(flag, letters, taken)
        _take(flag, _following(flag, f"'{letter}' in {word}", rest), taken)
    return None


def _following(flag: Flag, shown: str, rest: list[str]) -> str:
    if not flag.takes_value:
        return "true"
    if not rest:
        raise UsageError(f"flag needs an argument: {shown}")
    return rest.pop(0)


def _take(flag: Flag, value: str, taken: dict[str, list[str]]) -> None:
    if flag is HELP and value in TRUE:
        raise HelpWanted
    shown = f"-{flag.short}, --{flag.name}" if flag.short else f"--{flag.name}"
    if flag.kind == "bool" and value not in TRUE | FALSE:
        cause = f'strconv.ParseBool: parsing "{value}": invalid syntax'
        raise UsageError(f'invalid argument "{value}" for "{shown}" flag: {cause}')
    if flag.kind == "int" and not _INT.fullmatch(value):
        cause = f'strconv.ParseInt: parsing "{value}": invalid syntax'
        raise UsageError(f'invalid argument "{value}" for "{shown}" flag: {cause}')
    taken.setdefault(flag.name, []).append(value)


def _check_count(command: Command, count: int) -> None:
    least, most = command.least, command.most
    if least <= count and (most is None or count <= most):
        return
    if most is None:
        raise UsageError(f"requires at least {least} arg(s), only received {count}")
    if least == most:
        raise UsageError(f"accepts {least} arg(s), received {count}")
    raise UsageError(f"accepts between {least} and {most} arg(s), received {count}")


def require_flags(given: Given, *names: str) -> None:
    """Raises the sentence cobra has for flags that must be there."""
    missing = [f'"{name}"' for name in names if name not in given.flags]
    if missing:
        raise UsageError(f"required flag(s) {', '.join(missing)} not set")
