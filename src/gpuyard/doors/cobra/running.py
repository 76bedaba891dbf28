"""One run of such a program: help, completion and usage errors are answered here, all else by the command itself."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import dataclass, replace

from gpuyard.doors.cobra import completing
from gpuyard.doors.cobra.commands import Command, Given, Path, Run, UsageError
from gpuyard.doors.cobra.helping import help_text, usage
from gpuyard.doors.cobra.parsing import HelpWanted, find, parse

ASKS_FOR_WORDS = "__complete"


@dataclass(frozen=True, slots=True)
class Program:
    """A tree of commands, with `help` and `completion` beside its own."""

    root: Command

    @property
    def whole(self) -> Command:
        name = self.root.name
        shells = tuple(
            Command(shell, f"Generate the autocompletion script for {shell}", _prints(name, shell))
            for shell in completing.SHELLS
        )
        completion = Command(
            "completion", "Generate the autocompletion script for the specified shell", children=shells
        )
        help = Command("help", "Help about any command", self._help, words="[command]", most=None)
        return replace(self.root, children=(*self.root.children, completion, help))

    def _help(self, given: Given) -> int:
        path: Path = (self.whole,)
        for word in given.words:
            child = path[-1].child(word)
            if child is None:
                print(f"Unknown help topic {list(given.words)}", file=sys.stderr)
                print(usage((self.whole,)), file=sys.stderr)
                return 1
            path = (*path, child)
        print(help_text(path))
        return 0


def _prints(program: str, shell: str) -> Run:
    def run(given: Given) -> int:
        print(completing.script(program, shell), end="")
        return 0

    return run


def run(program: Program, typed: Sequence[str]) -> int:
    """The exit code. What goes wrong in a command itself is not caught here."""
    root = program.whole
    path: Path = (root,)
    if typed and typed[0] == ASKS_FOR_WORDS:
        print("\n".join(completing.candidates(root, typed[1:])))
        return 0
    try:
        path, words = find(root, typed)
        given = parse(path, words)
        if path[-1].run is None:
            raise HelpWanted
        return path[-1].run(given)
    except HelpWanted:
        print(help_text(path))
        return 0
    except UsageError as error:
        print(f"Error: {error.message}", file=sys.stderr)
        print(error.hint or f"{usage(path)}\n", file=sys.stderr)
        return 1
