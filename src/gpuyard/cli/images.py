"""`yard image`: the images that work can run in, in plain form."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

import click

from gpuyard.cli.output import local_time, note, printable
from gpuyard.cli.phrases import say
from gpuyard.cli.shared import open_client, output_option, print_listing, shipping_progress
from gpuyard.domain.resources import show_bytes

if TYPE_CHECKING:
    from gpuyard.sdk.images import Image

_SHORT_ID = 12


@click.group(help=say("image"))
def image() -> None:
    """Text is in the phrases."""


@image.command(help=say("image.ls"))
@output_option
def ls(output: str) -> None:
    print_listing(open_client().images(), output, ["NAME", "ID", "SIZE", "CREATED"], _row, say("image.none"))


def _row(image: Image) -> list[str]:
    id = image.id.removeprefix("sha256:")[:_SHORT_ID]
    return [image.name, id, show_bytes(image.size), local_time(image.created_at)]


@image.command(help=say("image.pull"))
@click.argument("name")
def pull(name: str) -> None:
    open_client().pull_image(name, _tell)
    note(say("image.pulled", name=name))


def _tell(step: str) -> None:
    """One line that changes on a terminal, a line for each step elsewhere."""
    if sys.stderr.isatty():
        click.echo(f"\r\x1b[K{printable(step)[:100]}", err=True, nl=False)
    else:
        note(printable(step))


@image.command(help=say("image.load"))
@click.argument("file", type=click.Path(exists=True, dir_okay=False))
def load(file: str) -> None:
    names = open_client().load_image(file, progress=shipping_progress(file))
    note(say("image.loaded", names=", ".join(names)))


@image.command(help=say("image.rm"))
@click.argument("names", metavar="NAME...", nargs=-1, required=True)
def rm(names: tuple[str, ...]) -> None:
    client = open_client()
    for name in names:
        client.remove_image(name)
        note(say("image.removed", name=name))


COMMANDS = (image,)
