"""`yard toolbox`: on the server's machine, by whoever owns its data; no server needs to run."""

from __future__ import annotations

import os
from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import click

from gpuyard.cli.failures import Refused
from gpuyard.cli.output import local_time, note, print_json, print_table
from gpuyard.cli.phrases import say
from gpuyard.cli.server import data_folder, data_option
from gpuyard.cli.shared import output_option
from gpuyard.domain.resources import show_bytes


@click.group(help=say("toolbox"))
def toolbox() -> None:
    """Text is in the phrases."""


@toolbox.command(help=say("toolbox.build"))
@data_option
@click.option("--without-ide", is_flag=True, help=say("opt.toolbox_without_ide"))
def build(data: Path | None, without_ide: bool) -> None:
    from gpuyard.images.toolbox.build import BuildFailed, Missing
    from gpuyard.images.toolbox.build import build as make

    folder = _own_folder(data)
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    try:
        place = make(folder, _tell, frozenset({"ide"} if without_ide else ()))
    except Missing as problem:
        raise Refused(say("toolbox.missing", what=problem)) from problem
    except BuildFailed as problem:
        raise Refused(say("toolbox.failed", detail=problem)) from problem
    click.echo(say("toolbox.built", version=place.name, path=place))


def _own_folder(data: Path | None) -> Path:
    folder = data_folder(data)
    if folder.exists() and os.geteuid() not in (0, folder.stat().st_uid):
        raise Refused(say("toolbox.not_owner", data=folder))
    return folder


def _tell(what: str, facts: Mapping[str, object]) -> None:
    """A line for each thing that begins or is done."""
    told = dict(facts)
    if "step" in told:
        told["step"] = say(f"toolbox.step.{told['step']}", what=told.get("what", ""))
    if what == "done":
        told["seconds"] = f"{facts['seconds']:.1f}"
        told["size"] = show_bytes(int(str(facts["bytes"])))
    note(say(f"toolbox.{what}", **told))


@toolbox.command(help=say("toolbox.show"))
@data_option
@output_option
def show(data: Path | None, output: str) -> None:
    from gpuyard.images.toolbox.build import show as look

    found = [box.to_json() for box in look(_own_folder(data))]
    if output == "json":
        print_json(found)
    elif not found:
        note(say("toolbox.none"))
    else:
        print_table(["VERSION", "CURRENT", "SIZE", "CREATED", "PARTS"], [_row(box) for box in found])


def _row(box: Mapping[str, Any]) -> list[str]:
    built = datetime.fromtimestamp(box["built_at"], UTC).isoformat()
    size, mark = show_bytes(box["bytes"]), "*" if box["current"] else ""
    return [box["version"], mark, size, local_time(built), ", ".join(box["parts"])]


@toolbox.command(help=say("toolbox.rm"))
@data_option
@click.option("--all", "everything", is_flag=True, help=say("opt.toolbox_all"))
def rm(data: Path | None, everything: bool) -> None:
    from gpuyard.images.toolbox.build import remove

    removed = remove(_own_folder(data), keep_current=not everything)
    note(say("toolbox.removed", versions=", ".join(removed)) if removed else say("toolbox.none_removed"))


COMMANDS = (toolbox,)
