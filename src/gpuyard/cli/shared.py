"""What several commands need: the client, and the options they have in common."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any, TypeVar

import click

from gpuyard.cli.failures import words_of
from gpuyard.cli.output import note, print_json, print_table
from gpuyard.cli.phrases import LANGUAGE, say
from gpuyard.domain.resources import show_bytes

if TYPE_CHECKING:
    from gpuyard.sdk.client import Client
    from gpuyard.sdk.results import Told

F = TypeVar("F", bound=Callable[..., Any])


class InOrder(click.Group):
    """Commands are listed in the order of a day's work, not of the alphabet."""

    def list_commands(self, context: click.Context) -> list[str]:
        return list(self.commands)


def open_client() -> Client:
    """The server this person means, closed when the command ends. Loaded here: `--help` must not pay for it."""
    from gpuyard.sdk.client import SUBMIT_PATIENCE_SECONDS, WATCH_PATIENCE_SECONDS, Client

    client = Client(
        language=LANGUAGE,
        submit_patience_seconds=_patience(SUBMIT_PATIENCE_SECONDS),
        patience_seconds=_patience(WATCH_PATIENCE_SECONDS),
        say_waiting=lambda error: note(say("wait.server", problem=words_of(error))),
    )
    return click.get_current_context().with_resource(client)


def _patience(usual: float) -> float:
    """YARD_RETRY_SECONDS: for scripts that would rather fail soon."""
    text = os.environ.get("YARD_RETRY_SECONDS")
    try:
        return float(text) if text else usual
    except ValueError:
        raise click.UsageError(say("usage.pair", pair=text, form="YARD_RETRY_SECONDS=10")) from None


def output_option(command: F) -> F:
    return click.option(
        "-o", "--output", type=click.Choice(["table", "json"]), default="table", help=say("opt.output")
    )(command)


def print_listing(
    items: Iterable[Told],
    output: str,
    headings: list[str],
    row: Callable[[Any], list[str]],
    none: str = "",
    *,
    wrap: bool = False,
) -> None:
    """A listing as JSON (the server's own objects) or as a table."""
    told = list(items)
    if output == "json":
        print_json([item.raw for item in told])
    elif told:
        print_table(headings, [row(item) for item in told], wrap=wrap)
    else:
        note(none or say("none"))


def shipping_progress(folder: str) -> Callable[[int, int], None] | None:
    """Tells how far the upload is, on one line of a terminal."""
    if not sys.stderr.isatty():
        return None

    def tell(sent: int, size: int) -> None:
        line = say("run.shipping", path=folder, sent=show_bytes(sent), size=show_bytes(size))
        click.echo(f"\r\x1b[K{line}", err=True, nl=sent >= size)

    return tell


def key_values(pairs: Iterable[str], option: str) -> dict[str, str]:
    """`K=V` given several times."""
    found = {}
    for pair in pairs:
        key, equals, value = pair.partition("=")
        if not key or not equals:
            raise click.BadParameter(say("usage.pair", pair=pair, form="KEY=VALUE"), param_hint=option)
        found[key] = value
    return found


def limits(text: str, option: str = "--quota") -> dict[str, str | None]:
    """`nvidia=8,cpu=64,memory=none`."""
    pairs = key_values((part.strip() for part in text.split(",") if part.strip()), option)
    return {key: None if value.lower() in ("", "none") else value for key, value in pairs.items()}
