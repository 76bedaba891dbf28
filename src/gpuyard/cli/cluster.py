"""The machines, the quotas, and what is used now."""

from __future__ import annotations

import contextlib
import os
import select
import sys
import termios
import time
import tty
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING

import click

from gpuyard.cli.fragments import print_fragments
from gpuyard.cli.labels import label, state_label
from gpuyard.cli.output import amount, note, number, print_json, print_table
from gpuyard.cli.phrases import say
from gpuyard.cli.shared import open_client, output_option, print_listing
from gpuyard.domain.resources import show_bytes

if TYPE_CHECKING:
    from gpuyard.sdk.results import Node, QuotaLine, ReplicaUse, Top

REFRESH_SECONDS = 2.0
_TO_THE_TOP = "\x1b[H\x1b[2J"
_USED_HEADINGS = ["NAME", "STATE", "CPU FREE", "MEMORY FREE", "CARDS FREE", "TROUBLE"]
_NODE_HEADINGS = [*_USED_HEADINGS[:-1], "MODEL", "LABELS", "TROUBLE"]
_USE_HEADINGS = ["ID", "NAME", "OWNER", "REPLICA", "NODE", "CPU", "MEMORY", "CARDS"]


@click.group(help=say("nodes"), invoke_without_command=True)
@click.option("--fragments", is_flag=True, help=say("opt.fragments"))
@output_option
@click.pass_context
def nodes(context: click.Context, fragments: bool, output: str) -> None:
    if context.invoked_subcommand is not None:
        if fragments:
            raise click.UsageError(say("usage.fragments", command=context.invoked_subcommand))
        return
    if fragments:
        print_fragments(open_client().fragments(), output)
    else:
        print_listing(open_client().nodes(), output, _NODE_HEADINGS, _node_row)


@nodes.command(help=say("cordon"))
@click.argument("name")
def cordon(name: str) -> None:
    open_client().cordon(name)
    note(say("done.cordon", node=name))


@nodes.command(help=say("uncordon"))
@click.argument("name")
def uncordon(name: str) -> None:
    open_client().uncordon(name)
    note(say("done.uncordon", node=name))


@nodes.command("label", help=say("label"), epilog=say("label.examples"))
@click.argument("name")
@click.argument("labels", nargs=-1, required=True, metavar="KEY=VALUE|KEY-...")
def label_node(name: str, labels: tuple[str, ...]) -> None:
    now = open_client().label(name, dict(_label(text) for text in labels))
    told = _in_pairs(now)
    note(say("done.label", node=name, labels=told) if told else say("done.no_labels", node=name))


def _label(text: str) -> tuple[str, str | None]:
    """`zone=north` sets, `zone-` takes away. A value may hold anything, so the first `=` counts."""
    key, equals, value = text.partition("=")
    if equals and key:
        return key, value
    if not equals and len(text) > 1 and text.endswith("-"):
        return text[:-1], None
    raise click.BadParameter(say("usage.label", text=text))


def _in_pairs(labels: Mapping[str, str]) -> str:
    return ", ".join(f"{key}={value}" for key, value in labels.items())


def _node_row(node: Node) -> list[str]:
    models = dict.fromkeys(card.model for card in node.cards)
    *used, trouble = _used_row(node)
    return [*used, ", ".join(models) or "-", _in_pairs(node.labels) or "-", trouble]


def _used_row(node: Node) -> list[str]:
    marks = {card.device: f" ({label('simulated')})" for card in node.cards if card.simulated}
    cards = [
        f"{number(node.cards_free.get(device, 0))}/{total} {device}{marks.get(device, '')}"
        for device, total in node.cards_total.items()
    ]
    trouble = [f"{card.index}: {card.trouble}" for card in node.cards if card.trouble]
    return [
        node.name,
        state_label(node.state),
        f"{number(node.cpu - node.cpu_used)}/{number(node.cpu)}",
        f"{show_bytes(node.memory - node.memory_used)}/{show_bytes(node.memory)}",
        ", ".join(cards) or "-",
        "; ".join(trouble),
    ]


@click.command(help=say("quota"))
@output_option
def quota(output: str) -> None:
    print_listing(open_client().quota(), output, QUOTA_HEADINGS, quota_row, none=say("quota.none"))


QUOTA_HEADINGS = ["GROUP", "USER", "RESOURCE", "USED", "LIMIT", "GUARANTEED", "BORROWED", "LENT"]


def quota_row(line: QuotaLine) -> list[str]:
    amounts = [line.used, line.limit, *(value or None for value in (line.guaranteed, line.borrowed, line.lent))]
    return [line.group, line.user or "-", line.resource, *(amount(value, line.resource) or "-" for value in amounts)]


@click.command(help=say("top"))
@click.option("--once", is_flag=True, help=say("opt.once"))
@output_option
def top(once: bool, output: str) -> None:
    client = open_client()
    if output == "json":
        print_json(client.top().raw)
        return
    if once or not sys.stdout.isatty():
        _print_top(client.top())
        return
    with single_keys():
        quit_asked = False
        while not quit_asked:
            told = client.top()
            click.echo(_TO_THE_TOP, nl=False)
            _print_top(told)
            note(say("top.quit"))
            quit_asked = _key_pressed(REFRESH_SECONDS) in ("q", "Q")


@contextlib.contextmanager
def single_keys() -> Iterator[None]:
    """Keys come one by one and unseen while this lasts; Ctrl-C works as ever."""
    if not sys.stdin.isatty():
        yield
        return
    keyboard = sys.stdin.fileno()
    before = termios.tcgetattr(keyboard)
    try:
        tty.setcbreak(keyboard)
        yield
    finally:
        termios.tcsetattr(keyboard, termios.TCSADRAIN, before)


def _key_pressed(seconds: float) -> str:
    """The key pressed within this time, or an empty text."""
    if not sys.stdin.isatty():
        time.sleep(seconds)
        return ""
    if not select.select([sys.stdin], [], [], seconds)[0]:
        return ""
    return os.read(sys.stdin.fileno(), 1).decode("ascii", "replace")


def _print_top(told: Top) -> None:
    print_table(_USED_HEADINGS, [_used_row(node) for node in told.nodes])
    click.echo()
    print_table(_USE_HEADINGS, [_use_row(use) for use in told.replicas])


def _use_row(use: ReplicaUse) -> list[str]:
    cards = []
    for card in use.card_use:
        percent = "?" if card["percent"] is None else f"{card['percent']:.0f}"
        cards.append(f"{card['index']}:{percent}% {show_bytes(card['memory'])}")
    return [
        use.workload,
        use.name,
        use.owner,
        use.replica,
        use.node,
        f"{'?' if use.cores is None else number(round(use.cores, 2))}/{number(use.cores_given)}",
        f"{'?' if use.memory is None else show_bytes(use.memory)}/{show_bytes(use.memory_given)}",
        ", ".join(cards) or ",".join(map(str, use.cards)) or "-",
    ]


COMMANDS = (nodes, quota, top)
