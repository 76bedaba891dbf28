"""`yard nodes --fragments`: free cards that few can use, who waits for that reason, and which moves would help."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import click

from gpuyard.cli.output import number, print_json, print_table, printable
from gpuyard.cli.phrases import say

_HEADINGS = ["NODE", "MODEL", "CARDS", "FREE", "NO FIT"]
_REQUEST_HEADINGS = ["REQUEST", "CPU", "HOW OFTEN", "STILL FIT", "LEFT OVER"]


def print_fragments(found: Mapping[str, Any], output: str) -> None:
    if output == "json":
        print_json(found)
        return
    _print_nodes(found)
    click.echo()
    _print_requests(found)
    click.echo()
    _print_waiting(found["waiting"])


def _print_nodes(found: Mapping[str, Any]) -> None:
    nodes = found["nodes"]
    print_table(_HEADINGS, [_row(one) for one in nodes])
    free, unusable = (sum(one[key] for one in nodes) for key in ("free", "unusable"))
    click.echo(
        say("fragments.total" if found["requests"] else "fragments.free", free=number(free), none=_mean(unusable))
    )
    if found["closed"]:
        click.echo(say("fragments.closed", count=found["closed"]))


def _print_requests(found: Mapping[str, Any]) -> None:
    """Said of what they are, too: what is left over for one of them is more than what fits none."""
    if not found["requests"]:
        click.echo(say("fragments.no_requests"))
        return
    click.echo(say("fragments.learned" if found["learned"] else "fragments.asked_now"))
    print_table(_REQUEST_HEADINGS, [_request(one) for one in found["requests"]])
    click.echo(say("fragments.left_over"))


def _print_waiting(waiting: Sequence[Mapping[str, Any]]) -> None:
    if not waiting:
        click.echo(say("fragments.none_waits"))
    for one in waiting:
        asked = ", ".join(_cards(count, device) for device, count in one["asked"].items())
        click.echo(
            printable(say("fragments.waits", who=_who(one), group=one["group"], asked=asked, words=one["words"]))
        )
        for move in one["moves"]:
            places = {key: ", ".join(move[key]) for key in ("source", "nodes")}
            lost = number(round(move["lost_seconds"]))
            told = say("fragments.move", who=_who(move), group=move["group"], lost=lost, **places)
            click.echo(f"  - {printable(told)}")


def _row(one: Mapping[str, Any]) -> list[str]:
    return [one["node"], one["model"], str(one["cards"]), number(one["free"]), _mean(one["unusable"])]


def _mean(cards: float) -> str:
    """A mean over requests: more digits would only seem exact."""
    return number(round(cards, 1))


def _request(one: Mapping[str, Any]) -> list[str]:
    cards = " ".join([number(one["cards"]), "/".join(one["models"]) or one["device"]])
    cpu = "-" if one["cpu"] is None else number(one["cpu"])
    return [cards, cpu, f"{one['share']:.0%}", str(one["fit"]), number(one["stranded"])]


def _cards(count: float, device: str) -> str:
    return say("fragments.card" if count == 1 else "fragments.cards", count=number(count), device=device)


def _who(one: Mapping[str, Any]) -> str:
    known = [one["id"], one["name"] if one["name"] != one["id"] else None, one["owner"]]
    return " ".join(word for word in known if word)
