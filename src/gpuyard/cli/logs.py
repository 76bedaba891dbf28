"""`yard logs`: the output of a job, kept or live, byte for byte as far as the terminal can show it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from gpuyard.cli.output import by_local_clock, note, printable
from gpuyard.cli.phrases import say
from gpuyard.cli.shared import open_client

if TYPE_CHECKING:
    from gpuyard.sdk.job import Job

MOST_NAMES = 10


@click.command(help=say("logs"))
@click.argument("ref", metavar="ID")
@click.option("-f", "--follow", is_flag=True, help=say("opt.follow"))
@click.option("--tail", type=click.IntRange(0), metavar="N", help=say("opt.tail"))
@click.option("--replica", metavar="R", help=say("opt.replica"))
@click.option("--attempt", type=click.IntRange(1), metavar="A", help=say("opt.attempt"))
def logs(ref: str, follow: bool, tail: int | None, replica: str | None, attempt: int | None) -> None:
    from gpuyard.cli.watch import Screen, write_piece

    job = open_client().job(ref)
    if job.kind == "env":
        note(say("env.no_log", name=job.name))
    if not job.attempt and not follow:
        note(say("logs.not_started", id=job.id, reason=by_local_clock(printable(job.reason))))
        return
    if replica is None:
        replica = _choose_replica(job, attempt)
    screen = Screen()
    for piece in job.log_pieces(follow=follow, tail=tail, replica=replica, attempt=attempt):
        write_piece(piece, screen)


def _choose_replica(job: Job, attempt: int | None) -> str | None:
    """Of several: the one that failed, or the first. Says which, and what else there is."""
    newest = job.attempts[-1] if job.attempts else None
    names = [r.replica for r in newest.replicas] if newest else []
    if len(names) < 2 or newest is None:
        return None
    failed = job.failed_replica if attempt in (None, newest.number) else None
    others = ", ".join(names[:MOST_NAMES]) + (", …" if len(names) > MOST_NAMES else "")
    phrase = "logs.failed_replica" if failed else "logs.replicas"
    note(say(phrase, id=job.id, count=len(names), shown=failed or names[0], names=others))
    return failed


def log_command(job: Job) -> str:
    """What to type to see why a job failed; empty when it did not, or never ran."""
    if job.state != "failed" or not job.attempt:
        return ""
    several = job.replicas > 1 and job.failed_replica
    return f"yard logs {job.id} --replica {job.failed_replica}" if several else f"yard logs {job.id}"


COMMANDS = (logs,)
