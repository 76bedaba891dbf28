"""Backups: taken from the running server, brought back while none runs."""

from __future__ import annotations

from pathlib import Path

import click

from gpuyard.cli.failures import BAD_INPUT, Refused
from gpuyard.cli.output import note
from gpuyard.cli.phrases import say
from gpuyard.cli.processes import is_gone, is_our_server
from gpuyard.cli.server import data_folder, data_option, running_server
from gpuyard.cli.shared import open_client
from gpuyard.domain.resources import show_bytes

_file = click.argument("file", type=click.Path(dir_okay=False, path_type=Path))


@click.command(help=say("backup"))
@_file
def backup(file: Path) -> None:
    if not file.absolute().parent.is_dir():
        raise Refused(say("client.workdir_missing", path=file.absolute().parent), BAD_INPUT)
    size = open_client().backup(file)
    note(say("done.backup", file=file, size=show_bytes(size)))


@click.command(help=say("restore"))
@_file
@data_option
@click.option("--database", envvar="YARD_DATABASE", metavar="URL", default="", help=say("opt.database"))
@click.option("--force", is_flag=True, help=say("opt.force"))
def restore(file: Path, data: Path | None, database: str, force: bool) -> None:
    folder = data_folder(data)
    told = running_server(folder)
    if told is not None and not is_gone(told.pid) and is_our_server(told.pid, told.started_at):
        raise Refused(say("restore.running", data=folder))
    file.open("rb").close()
    _restore(file, folder, database, force)
    note(say("done.restore", file=file))


def _restore(file: Path, folder: Path, database: str, force: bool) -> None:
    try:
        from gpuyard.settings import Settings
        from gpuyard.store.restore import restore as bring_back
    except ModuleNotFoundError as missing:
        if missing.name is not None and missing.name.partition(".")[0] == "gpuyard":
            raise
        raise Refused(say("up.no_server_part", detail=missing)) from missing
    from gpuyard.cli.local_words import domain_errors_in_words

    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    with domain_errors_in_words():
        bring_back(Settings(data=folder, database=database).database_url, file, force=force)


COMMANDS = (backup, restore)
