"""`yard import`: a file of another system, shown as a job file of ours, with everything that was lost on the way."""

from __future__ import annotations

import sys
from pathlib import Path

import click

from gpuyard.cli.output import print_json, printable
from gpuyard.cli.phrases import say
from gpuyard.cli.shared import open_client, output_option
from gpuyard.cli.yaml_lines import as_yaml
from gpuyard.sdk.documents import split
from gpuyard.sdk.results import Imported

DIALECTS = ("dlc", "volcano")


@click.command("import", help=say("import"), epilog=say("import.examples"))
@click.argument("file")
@click.option("--from", "dialect", type=click.Choice(DIALECTS), help=say("opt.from"))
@output_option
def bring(file: str, dialect: str | None, output: str) -> None:
    content = sys.stdin.buffer.read() if file == "-" else Path(file).read_bytes()
    name, client = "" if file == "-" else Path(file).name, open_client()
    found = [client.read_text(one, dialect=dialect, filename=name) for one in documents(content)]
    if output == "json":
        print_json(found[0].raw if len(found) == 1 else {"items": [one.raw for one in found]})
        return
    if len(found) > 1:
        click.echo(f"# {say('import.several', count=len(found))}")
    click.echo("---\n".join(as_job_file(one, file) for one in found), nl=False)


def documents(content: bytes) -> list[bytes]:
    """The jobs of one file of Volcano. What cannot be taken apart is for the server to refuse."""
    try:
        return [document.encode() for document in split(content.decode("utf-8-sig"))]
    except UnicodeDecodeError:
        return [content]


def as_job_file(found: Imported, file: str) -> str:
    """Ready to be saved and submitted; what has no meaning here stands above it."""
    comments = [say("import.from", file=printable(file), dialect=say(f"dialect.{found.dialect}"))]
    comments += [printable(note.message) for note in found.notes]
    return "".join(f"# {line}\n" for line in comments) + as_yaml(found.job)


COMMANDS = (bring,)
