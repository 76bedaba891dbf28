"""The table of `yard ls`: everything in a wide terminal or a pipe; in a narrow one what matters most stays readable."""

from __future__ import annotations

import re
import shutil
import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING

from gpuyard.cli.expected import in_table
from gpuyard.cli.labels import label, workload_state_label
from gpuyard.cli.output import GAP, age, by_local_clock, number, print_table, width
from gpuyard.cli.phrases import knows, say
from gpuyard.domain.reasons import NEVER_STARTS

if TYPE_CHECKING:
    from gpuyard.sdk.job import Job

HEADINGS = ["ID", "NAME", "STATE", "OWNER", "GROUP", "CARDS", "AGE", "REASON"]
EXPECTED = HEADINGS.index("REASON")  # before the reason, where something waits or its end is foreseen
TOLD_BY_ALL = ("GROUP", "OWNER")  # left out of a narrow terminal where they are the same for all
LEAST_REASON = 30
_NEVER = frozenset(code.value for code in NEVER_STARTS)


def print_jobs(jobs: Sequence[Job]) -> None:
    # Of two with the same place in the queue, the one that took it from the other comes first.
    ordered = sorted(jobs, key=_recency, reverse=True)
    rows = [_row(job) for job in ordered]
    headings = list(HEADINGS)
    if any(row[EXPECTED] for row in rows):
        headings.insert(EXPECTED, "EXPECTED")
    else:
        rows = [[*row[:EXPECTED], *row[EXPECTED + 1 :]] for row in rows]
    if any(job.kind != "job" for job in ordered):
        headings, rows = _with_kinds(ordered, headings, rows)
    if sys.stdout.isatty():
        headings, rows = narrowed(headings, rows, shutil.get_terminal_size().columns)
        rows = _with_short_reasons(ordered, headings, rows)
    print_table(headings, rows, whole=1, least_last=LEAST_REASON)


def _recency(job: Job) -> tuple[str, bool, str]:
    return job.submitted_at or "", job.ended_at is None, job.ended_at or ""


def _row(job: Job) -> list[str]:
    cards = f"{number(job.cards)} {job.device or ''}{'*' if job.simulated_cards else ''}".strip() if job.cards else "-"
    return [
        job.id,
        job.name,
        workload_state_label(job.kind, job.state),
        job.owner,
        job.group,
        cards,
        age(job.submitted_at),
        _expected(job),
        by_local_clock(job.reason),
    ]


def _expected(job: Job) -> str:
    """Of one that waits always something: that nobody knows is an answer, too. `yard why` says why."""
    known = in_table(job.expected_start, "start") or in_table(job.expected_end, "end")
    if known or job.state != "queued":
        return known
    return "-" if job.reason_code in _NEVER else say("expected.unknown")


def _with_kinds(jobs: Sequence[Job], headings: list[str], rows: list[list[str]]) -> tuple[list[str], list[list[str]]]:
    """Only where there is something to tell apart."""
    place = headings.index("NAME") + 1
    told = [
        [*row[:place], say(f"kind.{job.kind}") if knows(f"kind.{job.kind}") else job.kind, *row[place:]]
        for job, row in zip(jobs, rows, strict=True)
    ]
    return [*headings[:place], "KIND", *headings[place:]], told


def narrowed(headings: list[str], rows: list[list[str]], room: int) -> tuple[list[str], list[list[str]]]:
    """Cards and age in short, and without the columns that tell all the same, as far as the reasons need their room."""
    for name, shorten in (("CARDS", _short_cards), ("AGE", _short_age)):
        place = headings.index(name)
        if left_for_last(headings, rows, room) < LEAST_REASON:
            rows = [[*row[:place], shorten(row[place]), *row[place + 1 :]] for row in rows]
    for name in TOLD_BY_ALL:
        place = headings.index(name)
        if left_for_last(headings, rows, room) < LEAST_REASON and len({row[place] for row in rows}) == 1:
            headings, rows = _without(place, headings, rows)
    if "EXPECTED" in headings and left_for_last(headings, rows, room) < LEAST_REASON:
        headings, rows = _without(headings.index("EXPECTED"), headings, rows)
    return headings, rows


def _without(place: int, headings: list[str], rows: list[list[str]]) -> tuple[list[str], list[list[str]]]:
    return [*headings[:place], *headings[place + 1 :]], [[*row[:place], *row[place + 1 :]] for row in rows]


def _short_cards(cell: str) -> str:
    """`8 nvidia*` -> `8*`."""
    return cell.split(" ")[0] + ("*" if " " in cell and cell.endswith("*") else "")


def _short_age(cell: str) -> str:
    """`3d4h` -> `3d`."""
    return re.sub(r"^(\d+[dhms]).*", r"\1", cell)


def left_for_last(headings: Sequence[str], rows: Sequence[Sequence[str]], room: int) -> int:
    columns = list(zip([label(heading) for heading in headings], *rows, strict=True))[:-1]
    return room - sum(max(map(width, column)) + len(GAP) for column in columns)


def _with_short_reasons(jobs: Sequence[Job], headings: list[str], rows: list[list[str]]) -> list[list[str]]:
    """Where the sentence is too long, what kind of reason it is: `yard why` has the whole."""
    room = max(LEAST_REASON, left_for_last(headings, rows, shutil.get_terminal_size().columns))
    return [
        [*row[:-1], row[-1] if width(row[-1]) <= room else short_reason(job.reason_code, row[-1])]
        for job, row in zip(jobs, rows, strict=True)
    ]


def short_reason(code: str, sentence: str) -> str:
    if code in _NEVER:
        return say("short.never")
    return say(f"short.{code}") if knows(f"short.{code}") else sentence
