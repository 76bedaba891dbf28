"""`yard why`: the proof on one screen. The kind of reason, the facts, the place in the queue, what would start it."""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

import click

from gpuyard.cli.expected import in_words
from gpuyard.cli.labels import workload_state_label
from gpuyard.cli.output import by_local_clock, print_json, printable, wrapped
from gpuyard.cli.phrases import say
from gpuyard.cli.shared import open_client, output_option

if TYPE_CHECKING:
    from gpuyard.sdk.results import Ahead, Before, Remedy, Why

WIDEST, NARROWEST = 100, 40
MOST_FACTS, MOST_AHEAD, MOST_REMEDIES = 5, 3, 4  # what fits on a screen; the rest is in `-o json`


@click.command(help=say("why"), epilog=say("why.examples"))
@click.argument("ref", metavar="ID")
@click.option("--before", "other", metavar="ID", help=say("opt.before"))
@output_option
def why(ref: str, other: str | None, output: str) -> None:
    client = open_client()
    if other is not None:
        before = client.before(ref, other)
        _print(before, _before_lines(before), output)
    else:
        job = client.job(ref)
        told = job.why()
        _print(told, _why_lines(told, job.kind), output)


def _print(told: Why | Before, lines: Iterator[Line], output: str) -> None:
    if output == "json":
        print_json(told.raw)
        return
    for indent, hang, text in lines:
        for line in wrapped(by_local_clock(printable(text)), _columns(), indent, hang):
            click.echo(line)


def _columns() -> int | None:
    """Lines are broken for a screen; never in a pipe, unless it says how wide it is."""
    if not sys.stdout.isatty() and "COLUMNS" not in os.environ:
        return None
    return max(NARROWEST, min(WIDEST, shutil.get_terminal_size().columns))


Line = tuple[str, str, str]  # what stands before the first line, before the following ones, and the text


def _why_lines(told: Why, kind: str) -> Iterator[Line]:
    who = told.id if told.name in ("", told.id) else f"{told.id} ({told.name})"
    if not told.sort:
        yield "", "  ", say("why.state", who=who, state=workload_state_label(kind, told.state), reason=told.reason)
        yield from _when(told, "start")  # of one that is paused
        yield from _when(told, "end")
        return
    yield "", "  ", say("why.waits", who=who, sort=told.sort_words)
    yield "  ", "  ", told.reason
    yield from _listed([fact.words for fact in told.facts], MOST_FACTS)
    yield from _queue(told)
    yield from _when(told, "start")
    yield from _remedies(told.remedies)


def _listed(texts: Sequence[str], most: int) -> Iterator[Line]:
    for text in texts[:most]:
        yield "  - ", "    ", text
    if len(texts) > most:
        yield "  - ", "    ", say("why.more", count=len(texts) - most)


def _queue(told: Why) -> Iterator[Line]:
    if told.sort == "never":  # it stands in no queue
        return
    if not told.position:
        yield "", "", say("why.first")
        return
    yield "", "", say("why.behind", count=told.position)
    for ahead in told.ahead[:MOST_AHEAD]:
        yield "  ", "    ", _who_is_ahead(ahead)


def _when(told: Why, what: str) -> Iterator[Line]:
    if when := in_words(told.expected_start if what == "start" else told.expected_end, what):
        yield "", "  ", say(f"why.{what}", when=when)


def _who_is_ahead(ahead: Ahead) -> str:
    owner = f" {ahead.owner}" if ahead.owner else ""
    name = f" {ahead.name}" if ahead.name and ahead.name != ahead.id else ""
    return say("why.ahead", who=f"{ahead.id}{name}{owner}", group=ahead.group, rule=ahead.rule.words)


def _remedies(remedies: Sequence[Remedy]) -> Iterator[Line]:
    if not remedies:
        return
    yield "", "", say("why.remedies")
    for number, remedy in enumerate(remedies[:MOST_REMEDIES], 1):
        yield f"  {number}. ", "     ", remedy.words
        yield "     ", "     ", remedy.command


def _before_lines(told: Before) -> Iterator[Line]:
    if not told.as_asked:
        yield "", "", say("why.reversed", first=told.first, other=told.other)
    yield "", "  ", say("why.before", first=told.first, other=told.other)
    yield "  ", "  ", told.rule.words


COMMANDS = (why,)
