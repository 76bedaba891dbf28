"""What a command line is made of: commands in a tree, each with its flags, and what was typed for them."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Literal

Kind = Literal["string", "int", "bool", "strings"]
TRUE = frozenset({"1", "t", "T", "TRUE", "true", "True"})
FALSE = frozenset({"0", "f", "F", "FALSE", "false", "False"})


class UsageError(Exception):
    """What was typed cannot be meant. `hint` follows the sentence instead of the whole usage, when there is one."""

    def __init__(self, message: str, *, hint: str = "") -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint


@dataclass(frozen=True, slots=True)
class Flag:
    name: str
    about: str = ""
    short: str = ""
    kind: Kind = "string"
    default: str = ""
    hidden: bool = False

    @property
    def takes_value(self) -> bool:
        return self.kind != "bool"


HELP = Flag("help", "help", "h", "bool")


@dataclass(frozen=True, slots=True)
class Given:
    """What was typed: the values of the flags that were given, as text, and the words that belong to no flag."""

    flags: Mapping[str, str] = field(default_factory=dict)
    words: tuple[str, ...] = ()
    defaults: Mapping[str, str] = field(default_factory=dict)
    lists: Mapping[str, tuple[str, ...]] = field(default_factory=dict)  # every value of flags given several times

    def text(self, name: str) -> str:
        return self.flags.get(name, self.defaults.get(name, ""))

    def is_set(self, name: str) -> bool:
        return self.text(name) in TRUE

    def number(self, name: str) -> int:
        return int(self.text(name) or 0)


Run = Callable[[Given], int]


@dataclass(frozen=True, slots=True)
class Command:
    """One command. Flags of a command are known to all below it. `most`: None for any number of words."""

    name: str
    about: str
    run: Run | None = None
    flags: tuple[Flag, ...] = ()
    children: tuple[Command, ...] = ()
    words: str = ""  # as the usage shows them
    least: int = 0
    most: int | None = 0
    aliases: tuple[str, ...] = ()
    example: str = ""
    long: str = ""
    hidden: bool = False

    def child(self, name: str) -> Command | None:
        return next((child for child in self.children if name in (child.name, *child.aliases)), None)

    def all_flags(self) -> Iterator[Flag]:
        yield from self.flags
        for child in self.children:
            yield from child.all_flags()


Path = tuple[Command, ...]  # from the program itself down to the command meant


def path_name(path: Path) -> str:
    return " ".join(command.name for command in path)


def own_flags(path: Path) -> list[Flag]:
    help = Flag("help", f"help for {path[-1].name}", "h", "bool")
    there = [flag for flag in path[-1].flags if not flag.hidden]
    return sorted([*there, help], key=lambda flag: flag.name)


def inherited_flags(path: Path) -> list[Flag]:
    found = [flag for command in path[:-1] for flag in command.flags if not flag.hidden]
    return sorted(found, key=lambda flag: flag.name)


def known_flags(path: Path) -> list[Flag]:
    return [HELP, *(flag for command in path for flag in command.flags)]
