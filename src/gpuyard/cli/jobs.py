"""Submitting, looking at and steering jobs."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING

import click

from gpuyard.cli.expected import in_words
from gpuyard.cli.failures import FAILED, naming, tell_api_error
from gpuyard.cli.job_table import print_jobs
from gpuyard.cli.labels import workload_state_label
from gpuyard.cli.output import by_local_clock, local_time, note, print_json, printable
from gpuyard.cli.phrases import say
from gpuyard.cli.shared import key_values, open_client, output_option, print_listing, shipping_progress
from gpuyard.cli.show import show
from gpuyard.cli.taken import never_in_words, tell_if_never, tell_warnings
from gpuyard.cli.why import why
from gpuyard.domain.workload import ENDED
from gpuyard.sdk.errors import YardApiError
from gpuyard.sdk.results import NEVER_STARTS

if TYPE_CHECKING:
    from gpuyard.sdk.client import Client
    from gpuyard.sdk.job import Job
    from gpuyard.sdk.results import Event, Preview

TABLE_LIMIT = 100
ENV = "env"  # the kind of what is stopped and started rather than paused and resumed
STATES = ["queued", "placed", "starting", "running", "stopping", "paused", "succeeded", "failed", "stopped"]
_id = click.argument("ref", metavar="ID")
_workdir = click.option("--workdir", metavar="DIR", help=say("opt.workdir"))


def _read_job_file(file: str) -> bytes:
    return sys.stdin.buffer.read() if file == "-" else Path(file).read_bytes()


def _ship(client: Client, workdir: str | None) -> str | None:
    """The digest of the folder, which is then on the server."""
    return None if workdir is None else client.ship_workdir(workdir, progress=shipping_progress(workdir))


@click.command(help=say("submit"))
@click.argument("file")
@_workdir
@output_option
def submit(file: str, workdir: str | None, output: str) -> None:
    content, client = _read_job_file(file), open_client()
    digest = _ship(client, workdir)
    with naming(file):
        job = client.submit_text(content, workdir=digest)
    _tell_taken(job, output)


def _tell_taken(job: Job, output: str) -> None:
    if output == "json":
        print_json(job.raw)
    else:
        click.echo(job.id)
        note(say("run.taken", id=job.id))
    tell_warnings(job)
    tell_if_never(job)


@click.command(help=say("preview"))
@click.argument("file")
@_workdir
@output_option
def preview(file: str, workdir: str | None, output: str) -> int:
    """Fails when it can never start, so that a script can ask before it submits."""
    content, client = _read_job_file(file), open_client()
    digest = _ship(client, workdir)
    with naming(file):
        told = client.preview_text(content, workdir=digest, remedies=True)
    never = told.never or (not told.starts and told.reason_code in NEVER_STARTS)
    if output == "json":
        print_json(told.raw)
    elif told.starts:
        click.echo(say("preview.starts", nodes=", ".join(told.nodes)))
    else:
        _print_waiting(told, never)
    for text in told.warnings if output == "table" else ():
        note(say("run.warning", text=printable(text)))
    return FAILED if never else 0


def _print_waiting(told: Preview, never: bool) -> None:
    if told.reason:
        click.echo(never_in_words(told.reason) if never else say("preview.waits", reason=by_local_clock(told.reason)))
    if told.position and not never:
        click.echo(say("preview.position", count=told.position))
    if when := in_words(told.expected_start, "start"):
        click.echo(say("why.start", when=when))
    for problem in told.problems:
        click.echo(f"  - {problem.message}")
    if told.remedies:
        click.echo(say("why.remedies"))
    for remedy in told.remedies:
        click.echo(f"  - {printable(remedy.words)}")


@click.command(help=say("ls"))
@click.option("--state", multiple=True, type=click.Choice(STATES), help=say("opt.state"))
@click.option("--owner", help=say("opt.owner"))
@click.option("--group", help=say("opt.in_group"))
@click.option("--name", help=say("opt.name"))
@click.option("--mine", is_flag=True, help=say("opt.mine"))
@click.option("--all", "removed", is_flag=True, help=say("opt.removed"))
@click.option("--limit", metavar="N", type=click.IntRange(1), help=say("opt.limit"))
@output_option
def ls(
    state: tuple[str, ...],
    owner: str | None,
    group: str | None,
    name: str | None,
    mine: bool,
    removed: bool,
    limit: int | None,
    output: str,
) -> None:
    # A program gets everything, a person the newest: a list cut short in silence is a trap for programs.
    most = limit if limit is not None or output == "json" else TABLE_LIMIT
    states = ",".join(state) or None
    wanted = open_client().jobs(
        state=states, owner=owner, group=group, name=name, mine=mine, removed=removed, limit=most
    )
    found = list(wanted)
    if output == "json":
        print_json([job.raw for job in found])
    elif found:
        print_jobs(found)
    else:
        note(say("ls.none"))
    if output == "table" and any(job.cards and job.simulated_cards for job in found):
        note(say("simulated.note"))
    if output == "table" and limit is None and len(found) == TABLE_LIMIT:
        note(say("ls.more", count=TABLE_LIMIT))


@click.command(help=say("events"))
@_id
@output_option
def events(ref: str, output: str) -> None:
    job = open_client().job(ref)
    print_listing(
        job.events(),
        output,
        ["TIME", "STATE", "TRY", "BY", "WHAT"],
        lambda event: _event_row(event, job.kind),
        wrap=True,
    )


def _event_row(event: Event, kind: str) -> list[str]:
    return [
        local_time(event.at),
        workload_state_label(kind, event.state),
        str(event.attempt or "-"),
        event.by or "-",
        by_local_clock(event.message),
    ]


@click.command(help=say("stop"))
@click.argument("refs", metavar="ID...", nargs=-1, required=True)
def stop(refs: tuple[str, ...]) -> int:
    """Every one is tried; the exit code is that of the first that could not be stopped."""
    client = open_client()
    first_failure = 0
    for ref in refs:
        try:
            job = client.job(ref).stop()
            tell_warnings(job)
            if job.kind == ENV:
                note(say("env.stopping", name=job.name))
            elif job.state not in ENDED:
                note(say("done.stop", job=job.id if job.id == ref else f"{ref} ({job.id})"))
        except YardApiError as error:
            code = tell_api_error(error, about=ref if len(refs) > 1 else "")
            first_failure = first_failure or code
    return first_failure


@click.command("rm", help=say("rm_job"))
@click.argument("refs", metavar="ID...", nargs=-1, required=True)
def remove(refs: tuple[str, ...]) -> int:
    """Every one is tried; the exit code is that of the first that could not be removed."""
    client = open_client()
    first_failure = 0
    for ref in refs:
        try:
            job = client.job(ref).remove()
            note(say("done.rm", job=job.id if job.id == ref else f"{ref} ({job.id})"))
        except YardApiError as error:
            code = tell_api_error(error, about=ref if len(refs) > 1 else "")
            first_failure = first_failure or code
    return first_failure


@click.command(help=say("pause"))
@_id
def pause(ref: str) -> None:
    job = open_client().job(ref).pause()
    note(say("env.stopping", name=job.name) if job.kind == ENV else say("done.pause", id=job.id))


@click.command(help=say("resume"))
@_id
def resume(ref: str) -> None:
    job = open_client().job(ref).resume()
    note(say("env.starting", name=job.name) if job.kind == ENV else say("done.resume", id=job.id))


@click.command(help=say("priority"))
@_id
@click.argument("priority", metavar="N")
def priority(ref: str, priority: str) -> None:
    job = open_client().job(ref).set_priority(int(priority) if priority.isdecimal() else priority)
    note(say("done.priority", id=job.id, priority=job.priority))


@click.command(help=say("rerun"))
@_id
@click.option("--set", "changes", multiple=True, metavar="KEY=VALUE", help=say("opt.rerun_set"))
@click.option("--instead", is_flag=True, help=say("opt.instead"))
@output_option
def rerun(ref: str, changes: tuple[str, ...], instead: bool, output: str) -> None:
    wanted = key_values(changes, "--set")
    _tell_taken(open_client().rerun(ref, wanted, instead=instead), output)


COMMANDS = (submit, preview, ls, show, why, events, stop, remove, pause, resume, priority, rerun)
