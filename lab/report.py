"""What a replay has to say: tables with aligned columns, promises beside what was measured, and plots."""

from __future__ import annotations

import platform
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from gpuyard.domain.policy import DAY, HOUR
from lab.lines import Line

Cell = str | int | float | None


class Unfit(Exception):
    """What was asked for cannot be replayed: what is wrong and what to do, in one line."""


def chosen(there: Iterable[str], only: Sequence[str]) -> list[str]:
    """Of the traces there are those asked for; all when none is named."""
    known = list(there)
    unknown = [name for name in only if name not in known]
    if unknown:
        raise Unfit(f"there is no {', '.join(unknown)}; there is {', '.join(known)}")
    return [name for name in known if not only or name in only]


@dataclass(frozen=True)
class Unit:
    """Of times in tables and along axes."""

    short: str
    long: str
    seconds: float


SECONDS, MINUTES, HOURS, DAYS = (
    Unit("s", "seconds", 1.0),
    Unit("min", "minutes", 60.0),
    Unit("h", "hours", HOUR),
    Unit("d", "days", DAY),
)


def unit_of_axis(span: float) -> Unit:
    """So that an axis of so many seconds has at least two of them."""
    return next((unit for unit in (DAYS, HOURS, MINUTES) if span >= 2 * unit.seconds), SECONDS)


def unit_of_table(span: float) -> Unit:
    """Two decimals of it tell something of what happens in so many seconds. Never days: even months are told in hours,
    so that traces can be compared."""
    return HOURS if span >= DAY else MINUTES if span >= HOUR else SECONDS


@dataclass(frozen=True)
class Table:
    title: str
    columns: tuple[str, ...]
    rows: list[tuple[Cell, ...]]
    note: str = ""

    def __str__(self) -> str:
        cells = [list(self.columns), *([shown(cell) for cell in row] for row in self.rows)]
        widths = [max(len(row[place]) for row in cells) for place in range(len(self.columns))]
        words = [any(isinstance(row[place], str) for row in self.rows) for place in range(len(self.columns))]
        lines = [_line(row, widths, words) for row in cells]
        lines.insert(1, "  ".join("-" * width for width in widths))
        return "\n".join([self.title, *lines, *([self.note] if self.note else [])])

    def to_json(self) -> dict[str, object]:
        rows = [dict(zip(self.columns, row, strict=True)) for row in self.rows]
        return {"title": self.title, "rows": rows, "note": self.note}

    def markdown(self) -> str:
        """For the documentation."""
        rows = ["| " + " | ".join(shown(cell) for cell in row) + " |" for row in self.rows]
        return "\n".join(["| " + " | ".join(self.columns) + " |", "|---" * len(self.columns) + "|", *rows])


@dataclass
class Report:
    """Promises are told as kept or missed; `plots` are file names with what is to be written into them."""

    name: str
    tables: list[Table] = field(default_factory=list)
    lines: list[Line] = field(default_factory=list)
    plots: dict[str, str] = field(default_factory=dict)

    def __str__(self) -> str:
        told = [str(table) for table in self.tables]
        if self.lines:
            told.append("\n".join(str(line) for line in self.lines))
        return "\n\n".join([*told, f"measured on: {machine()}"])

    def to_json(self) -> dict[str, object]:
        promises = [
            {"what": one.what, "value": one.value, "promised": one.promised, "unit": one.unit, "kept": one.kept}
            for one in self.lines
        ]
        tables = [table.to_json() for table in self.tables]
        return {"name": self.name, "machine": machine(), "tables": tables, "promises": promises}

    def write_plots(self, folder: Path) -> list[Path]:
        folder.mkdir(parents=True, exist_ok=True)
        paths = [folder / name for name in sorted(self.plots)]
        for path in paths:
            path.write_text(self.plots[path.name], encoding="utf-8")
        return paths


def shown(cell: Cell) -> str:
    """Numbers as people read them: thousands apart, and no more digits than mean something."""
    if cell is None:
        return "-"
    if isinstance(cell, float):
        return f"{cell:,.0f}" if abs(cell) >= 1000 else f"{cell:,.1f}" if abs(cell) >= 100 else f"{cell:.2f}"
    return f"{cell:,}" if isinstance(cell, int) else cell


def counted(number: int, one: str) -> str:
    """`1 job`, `2,000 jobs`."""
    return f"{number:,} {one}{'' if number == 1 else 's'}"


def _line(cells: Sequence[str], widths: Sequence[int], words: Sequence[bool]) -> str:
    parts = zip(cells, widths, words, strict=True)
    return "  ".join(cell.ljust(width) if word else cell.rjust(width) for cell, width, word in parts).rstrip()


def machine() -> str:
    """Processor, how many of it, memory and Python: no number means anything without them."""
    facts = Path("/proc/cpuinfo")
    lines = facts.read_text(encoding="utf-8").splitlines() if facts.exists() else []
    models = [line.split(":", 1)[1].strip() for line in lines if line.startswith("model name")]
    model = models[0] if models else platform.processor() or platform.machine()
    memory = Path("/proc/meminfo")
    kib = int(memory.read_text(encoding="utf-8").split()[1]) if memory.exists() else 0
    return f"{len(models) or 1} x {model}, {kib / (1 << 20):.0f} GiB, Python {platform.python_version()}"
