"""Where the cards' time went."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any

import click

from gpuyard.cli.output import local_time, note, print_json, print_table
from gpuyard.cli.phrases import say
from gpuyard.cli.replaying import span
from gpuyard.cli.shared import open_client, output_option

CARD_HOUR = 3_600_000_000  # in the server's unit: thousandths of a card times milliseconds
BAR = 40  # columns that stand for the whole capacity
_HEADINGS = {"day": "DAY (UTC)", "node": "NODE", "model": "MODEL"}
_SHARES = ("used", "idle", "fragmented", "quota", "reserved", "free", "draining", "unhealthy")
_SHARE_HEADINGS = ("USED", "IDLE", "FRAGMENTED", "BY QUOTA", "RESERVED", "FREE", "CLOSED", "UNHEALTHY")


@click.command(help=say("ledger"), epilog=say("ledger.examples"))
@click.option("--since", metavar="TIME", help=say("opt.ledger_since"))
@click.option("--until", metavar="TIME", help=say("opt.ledger_until"))
@click.option("--by", type=click.Choice(list(_HEADINGS)), default="day", help=say("opt.ledger_by"))
@output_option
def ledger(since: str | None, until: str | None, by: str, output: str) -> None:
    found = open_client().ledger(**span(since, until), by=by)
    if output == "json":
        print_json(found)
    elif not found["total"]["capacity"]:
        note(say("ledger.none"))
    else:
        _print_waterfall(found)
        _print_wider(found, since is not None, until is not None)
        click.echo()
        rows = [_row(line, found["total"]["capacity"]) for line in found["items"]]
        print_table([_HEADINGS[by], "CARD-HOURS", *_SHARE_HEADINGS], _to_the_right(rows), whole=1)


def _print_waterfall(found: Mapping[str, Any]) -> None:
    """From the cards there are to the cards that worked: each line takes its part away from the one before."""
    total = found["total"]
    capacity = left = total["capacity"]
    hours = _hours(capacity, capacity)
    click.echo(say("ledger.period", since=local_time(found["since"]), until=local_time(found["until"]), hours=hours))
    rows = [[say("ledger.capacity"), hours, _share(capacity, capacity), _bar(0, capacity, capacity)]]
    for bucket, amount in total["buckets"].items():
        left -= amount
        rows.append(
            [say(f"ledger.{bucket}"), _hours(amount, capacity), _share(amount, capacity), _bar(left, amount, capacity)]
        )
    print_table(["", "CARD-HOURS", "SHARE", ""], _to_the_right(rows, last=3), whole=3)
    if total["untold"]:
        note(say("ledger.untold", share=_share(total["untold"], max(1, total["buckets"]["used"]))))


def _print_wider(found: Mapping[str, Any], since: bool, until: bool) -> None:
    """More is told than was asked for. Who named no time does not mind."""
    earlier = since and _at(found["since"]) < _at(found["asked_since"])
    if earlier or (until and _at(found["until"]) > _at(found["asked_until"])):
        times = {name: local_time(found[f"asked_{name}"]) for name in ("since", "until")}
        note(say("ledger.wider", **times))


def _at(told: str) -> datetime:
    return datetime.fromisoformat(told)


def _to_the_right(rows: list[list[str]], last: int | None = None) -> list[list[str]]:
    """Numbers below each other: all but the name, and what comes from column `last` on."""
    sizes = [max(map(len, column)) for column in zip(*(row[1:last] for row in rows), strict=True)]
    numbers = ([cell.rjust(size) for cell, size in zip(row[1:last], sizes, strict=True)] for row in rows)
    return [[row[0], *told, *(row[last:] if last else ())] for row, told in zip(rows, numbers, strict=True)]


def _bar(start: int, amount: int, capacity: int) -> str:
    """A block where it stands within the whole; what is there at all is seen."""
    first = start * BAR // capacity
    last = max(-(-(start + amount) * BAR // capacity), first) if amount else first
    return " " * first + "█" * (last - first)


def _row(line: Mapping[str, Any], whole: int) -> list[str]:
    shares = [_share(line["buckets"].get(bucket, 0), line["capacity"]) for bucket in _SHARES]
    return [line["name"], _hours(line["capacity"], whole), *shares]


def _hours(amount: int, whole: int) -> str:
    """As exact as the whole is small, and all below each other alike."""
    digits = next((digits for least, digits in ((100, 1), (1, 2)) if whole >= least * CARD_HOUR), 3)
    return f"{amount / CARD_HOUR:,.{digits}f}"


def _share(amount: int, whole: int) -> str:
    return f"{100 * amount / whole:.1f}%" if whole else "-"


COMMANDS = (ledger,)
