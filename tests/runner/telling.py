"""The tables at the end. Pure: rows in, lines out."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

BUDGETS = re.compile(r"<!-- seconds by folder -->\n(.*?)<!-- end -->", re.DOTALL)
ROW = re.compile(r"^\| `(tests(?:/\w+)?)` \| (\d+) \|$", re.MULTILINE)
ELSEWHERE = "tests"  # files in no folder of their own
MOST_UNSTEADY = 3
OVER = "!! OVER ITS BUDGET"


@dataclass
class Spent:
    """By the tests of one folder."""

    tests: int = 0
    seconds: float = 0.0
    cpu: float = 0.0


@dataclass(frozen=True)
class Unsteady:
    """It failed among others, and passed by itself."""

    test: str
    first: str  # how it failed

    def lines(self) -> list[str]:
        return [self.test, *(f"    {line}" for line in self.first.splitlines())]


def budgets_in(page: str) -> dict[str, int]:
    """Seconds by folder, as CONTRIBUTING tells them."""
    found = BUDGETS.search(page)
    return {folder: int(seconds) for folder, seconds in ROW.findall(found[1])} if found else {}


def folder_of(file: str) -> str:
    parts = file.split("/")
    return "/".join(parts[:2]) if len(parts) > 2 else ELSEWHERE


@dataclass
class Account:
    """Where the time went."""

    by_folder: dict[str, Spent] = field(default_factory=dict)

    def add(self, file: str, tests: int, seconds: float, cpu: float) -> None:
        spent = self.by_folder.setdefault(folder_of(file), Spent())
        spent.tests += tests
        spent.seconds += seconds
        spent.cpu += cpu

    def table(self, budgets: Mapping[str, int]) -> list[str]:
        """With a loud word where a folder took more than it may."""
        rows: list[tuple[str, ...]] = [("folder", "tests", "seconds", "budget", "cpu", "")]
        for folder, spent in sorted(self.by_folder.items(), key=lambda pair: -pair[1].seconds):
            rows.append(_row(folder, spent, budgets.get(folder)))
        every = self.by_folder.values()
        total = Spent(sum(s.tests for s in every), sum(s.seconds for s in every), sum(s.cpu for s in every))
        rows.append(_row("all", total, sum(budgets.values()) or None))
        return aligned(rows)


def _row(name: str, spent: Spent, budget: int | None) -> tuple[str, ...]:
    numbers = (str(spent.tests), f"{spent.seconds:.0f}", "" if budget is None else str(budget), f"{spent.cpu:.0f}")
    return (name, *numbers, OVER if budget is not None and spent.seconds > budget else "")


def aligned(rows: Sequence[tuple[str, ...]]) -> list[str]:
    """The first column to the left, numbers to the right."""
    widths = [max(len(row[column]) for row in rows) for column in range(len(rows[0]))]
    return [
        "  ".join(
            cell.ljust(width) if column in (0, len(row) - 1) else cell.rjust(width)
            for column, (cell, width) in enumerate(zip(row, widths, strict=True))
        ).rstrip()
        for row in rows
    ]


def slowest(seconds: Mapping[str, float], count: int = 20) -> list[str]:
    chosen = sorted(seconds.items(), key=lambda pair: -pair[1])[:count]
    return [f"{spent:7.1f} s  {test}" for test, spent in chosen]


def by_file(seconds: Mapping[str, float]) -> dict[str, float]:
    added: dict[str, float] = {}
    for test, spent in seconds.items():
        file = test.partition("::")[0]
        added[file] = added.get(file, 0.0) + spent
    return {file: round(spent, 1) for file, spent in added.items()}


def told_of(unsteady: Sequence[Unsteady]) -> list[str]:
    if not unsteady:
        return ["unsteady: none"]
    told = f"unsteady: {len(unsteady)} failed among others and passed by themselves"
    told += "" if len(unsteady) <= MOST_UNSTEADY else f"; that is more than {MOST_UNSTEADY}: the run has failed"
    return [told, *(line for test in unsteady for line in test.lines())]
