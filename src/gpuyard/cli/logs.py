"""`yard logs`: the output of a job, kept or live, byte for byte as far as the terminal can show it."""

from __future__ import annotations

import click

from gpuyard.cli.output import note, printable
from gpuyard.cli.phrases import say
from gpuyard.cli.shared import open_client


@click.command(help=say("logs"))
@click.argument("ref", metavar="ID")
@click.option("-f", "--follow", is_flag=True, help=say("opt.follow"))
@click.option("--tail", type=click.IntRange(0), metavar="N", help=say("opt.tail"))
@click.option("--replica", metavar="R", help=say("opt.replica"))
@click.option("--attempt", type=click.IntRange(1), metavar="A", help=say("opt.attempt"))
def logs(ref: str, follow: bool, tail: int | None, replica: str | None, attempt: int | None) -> None:
    from gpuyard.cli.watch import Screen, write_piece

    job = open_client().job(ref)
    if not job.attempt and not follow:
        note(say("logs.not_started", id=job.id, reason=printable(job.reason)))
        return
    names = [r.replica for r in job.attempts[-1].replicas] if job.attempts else []
    if len(names) > 1 and replica is None:
        shown = ", ".join(names[:10]) + (", …" if len(names) > 10 else "")
        note(say("logs.replicas", id=job.id, count=len(names), shown=names[0], names=shown))
    screen = Screen()
    for piece in job.log_pieces(follow=follow, tail=tail, replica=replica, attempt=attempt):
        write_piece(piece, screen)


COMMANDS = (logs,)
