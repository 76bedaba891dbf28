"""Submitting, looking at and steering jobs."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING

import click

from gpuyard.cli.failures import tell_api_error
from gpuyard.cli.output import age, local_time, note, number, print_fields, print_json, print_table, spent
from gpuyard.cli.phrases import say
from gpuyard.cli.shared import key_values, open_client, output_option, print_listing
from gpuyard.sdk.errors import YardApiError

if TYPE_CHECKING:
    from gpuyard.sdk.job import Job
    from gpuyard.sdk.results import Attempt

TABLE_LIMIT = 100
STATES = ["queued", "placed", "starting", "running", "stopping", "paused", "succeeded", "failed", "stopped"]
_id = click.argument("ref", metavar="ID")


def _read_job_file(file: str) -> bytes:
    return sys.stdin.buffer.read() if file == "-" else Path(file).read_bytes()


@click.command(help=say("submit"))
@click.argument("file")
@output_option
def submit(file: str, output: str) -> None:
    content = _read_job_file(file)
    job = open_client().submit_text(content)
    if output == "json":
        print_json(job.raw)
        return
    click.echo(job.id)
    note(say("run.detached", id=job.id))


@click.command(help=say("preview"))
@click.argument("file")
@output_option
def preview(file: str, output: str) -> None:
    told = open_client().preview_text(_read_job_file(file))
    if output == "json":
        print_json(told.raw)
        return
    if told.starts:
        click.echo(say("preview.starts", nodes=", ".join(told.nodes)))
        return
    click.echo(say("preview.waits", reason=told.reason))
    if told.position:
        click.echo(say("preview.position", count=told.position))
    for problem in told.problems:
        click.echo(f"  - {problem.message}")


@click.command(help=say("ls"))
@click.option("--state", multiple=True, type=click.Choice(STATES), help=say("opt.state"))
@click.option("--owner", help=say("opt.owner"))
@click.option("--group", help=say("opt.in_group"))
@click.option("--name", help=say("opt.name"))
@click.option("--mine", is_flag=True, help=say("opt.mine"))
@click.option("--limit", type=click.IntRange(1), help=say("opt.limit"))
@output_option
def ls(
    state: tuple[str, ...],
    owner: str | None,
    group: str | None,
    name: str | None,
    mine: bool,
    limit: int | None,
    output: str,
) -> None:
    # A program gets everything, a person the newest: a list cut short in silence is a trap for programs.
    most = limit if limit is not None or output == "json" else TABLE_LIMIT
    states = ",".join(state) or None
    found = list(open_client().jobs(state=states, owner=owner, group=group, name=name, mine=mine, limit=most))
    headings = ["ID", "NAME", "STATE", "OWNER", "GROUP", "CARDS", "AGE", "REASON"]
    print_listing(found, output, headings, _job_row, none=say("ls.none"))
    if output == "table" and limit is None and len(found) == TABLE_LIMIT:
        note(say("ls.more", count=TABLE_LIMIT))


def _job_row(job: Job) -> list[str]:
    cards = f"{number(job.cards)} {job.device or ''}{'*' if job.simulated_cards else ''}".strip() if job.cards else "-"
    return [job.id, job.name, job.state, job.owner, job.group, cards, age(job.submitted_at), job.reason]


@click.command(help=say("show"))
@_id
@output_option
def show(ref: str, output: str) -> None:
    job = open_client().job(ref)
    if output == "json":
        print_json(job.raw)
        return
    print_fields(_fields(job))
    for attempt in job.attempts:
        click.echo()
        _print_attempt(attempt)


def _fields(job: Job) -> list[tuple[str, str]]:
    cards = (
        f"{number(job.cards)} {job.device or ''}{' (simulated)' if job.simulated_cards else ''}" if job.cards else ""
    )
    fields = [
        ("id", job.id),
        ("name", job.name),
        ("state", job.state),
        ("reason", job.reason),
        ("owner", job.owner),
        ("group", job.group),
        ("priority", str(job.priority)),
        ("cards", cards),
        ("image", job.image or ""),
        ("submitted", local_time(job.submitted_at)),
        ("started", local_time(job.started_at)),
        ("ended", local_time(job.ended_at)),
        ("ran for", spent(job.started_at, job.ended_at)),
        ("exit code", "" if job.exit_code is None else str(job.exit_code)),
    ]
    for role in job.raw.get("roles") or []:
        fields.append((f"{role['name']} x{role['replicas']}", _shell_words(role.get("command") or [])))
    return fields


def _shell_words(command: list[str]) -> str:
    import shlex

    return shlex.join(command)


def _print_attempt(attempt: Attempt) -> None:
    ran = spent(attempt.started_at, attempt.ended_at)
    click.echo(" ".join(filter(None, [f"#{attempt.number}", local_time(attempt.created_at), ran, attempt.reason])))
    rows = [
        [
            f"  {replica.replica}",
            replica.node,
            ",".join(map(str, replica.cards)) or "-",
            replica.state,
            "" if replica.exit_code is None else str(replica.exit_code),
            replica.reason,
        ]
        for replica in attempt.replicas
    ]
    if rows:
        print_table(["  REPLICA", "NODE", "CARDS", "STATE", "EXIT", "REASON"], rows)


@click.command(help=say("why"))
@_id
@output_option
def why(ref: str, output: str) -> None:
    told = open_client().job(ref).why()
    if output == "json":
        print_json(told.raw)
        return
    click.echo(f"{told.id} {told.state}: {told.reason}")
    if told.ahead:
        click.echo(say("why.ahead", ids=" ".join(told.ahead[:20])))


@click.command(help=say("events"))
@_id
@output_option
def events(ref: str, output: str) -> None:
    story = open_client().job(ref).events()
    print_listing(
        story,
        output,
        ["TIME", "STATE", "TRY", "BY", "WHAT"],
        lambda event: [local_time(event.at), event.state, str(event.attempt or "-"), event.by or "-", event.message],
    )


@click.command(help=say("stop"))
@click.argument("refs", metavar="ID...", nargs=-1, required=True)
def stop(refs: tuple[str, ...]) -> int:
    """Every one is tried; the exit code is that of the first that could not be stopped."""
    client = open_client()
    first_failure = 0
    for ref in refs:
        try:
            job = client.job(ref).stop()
            note(say("done.stop", id=job.id))
        except YardApiError as error:
            code = tell_api_error(error)
            first_failure = first_failure or code
    return first_failure


@click.command(help=say("pause"))
@_id
def pause(ref: str) -> None:
    note(say("done.pause", id=open_client().job(ref).pause().id))


@click.command(help=say("resume"))
@_id
def resume(ref: str) -> None:
    note(say("done.resume", id=open_client().job(ref).resume().id))


@click.command(help=say("rerun"))
@_id
@click.option("--set", "changes", multiple=True, metavar="KEY=VALUE", help=say("opt.rerun_set"))
@output_option
def rerun(ref: str, changes: tuple[str, ...], output: str) -> None:
    wanted = key_values(changes, "--set")
    job = open_client().rerun(ref, wanted)
    if output == "json":
        print_json(job.raw)
        return
    click.echo(job.id)
    note(say("run.detached", id=job.id))


COMMANDS = (submit, preview, ls, show, why, events, stop, pause, resume, rerun)
