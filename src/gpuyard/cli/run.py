"""`yard run`: a command made into a job, watched until its end."""

from __future__ import annotations

import os
from typing import Any

import click

from gpuyard.cli.output import note
from gpuyard.cli.phrases import say
from gpuyard.cli.shared import open_client, shipping_progress
from gpuyard.cli.taken import tell_if_never, tell_warnings
from gpuyard.domain.workload import Together

_TEXTS = frozenset({"name", "group", "device", "image", "together", "checkpoint"})  # `123` is a name here, no number
_COMMAND_TO_THE_END = {"allow_interspersed_args": False}  # everything after the first word belongs to the command


@click.command(help=say("run"), epilog=say("run.examples"), context_settings=_COMMAND_TO_THE_END)
@click.option("--name", help=say("opt.name"))
@click.option("--cards", metavar="N", help=say("opt.cards"))
@click.option("--device", metavar="T", help=say("opt.device"))
@click.option("--model", multiple=True, metavar="MODEL", help=say("opt.model"))
@click.option("--node", multiple=True, metavar="NODE", help=say("opt.node"))
@click.option("--label", multiple=True, metavar="K=V", help=say("opt.label"))
@click.option("--together", type=click.Choice([choice.value for choice in Together]), help=say("opt.together"))
@click.option("--cpu", metavar="C", help=say("opt.cpu"))
@click.option("--memory", metavar="M", help=say("opt.memory"))
@click.option("--shm", metavar="S", help=say("opt.shm"))
@click.option("--image", metavar="I", help=say("opt.image"))
@click.option("--replicas", metavar="R", type=int, help=say("opt.replicas"))
@click.option("--env", multiple=True, metavar="K=V", help=say("opt.env"))
@click.option("--workdir", metavar="DIR", help=say("opt.workdir"))
@click.option("--group", metavar="G", help=say("opt.group"))
@click.option("--priority", metavar="P", help=say("opt.priority"))
@click.option("--max-time", metavar="T", help=say("opt.max_time"))
@click.option("--grace", metavar="T", help=say("opt.grace"))
@click.option("--retries", metavar="N", type=int, help=say("opt.retries"))
@click.option("--checkpoint", metavar="DIR", help=say("opt.checkpoint"))
@click.option("--preemptible", is_flag=True, default=None, help=say("opt.preemptible"))
@click.option("--detach", is_flag=True, help=say("opt.run_detach"))
@click.argument("command", nargs=-1, required=True, type=click.UNPROCESSED)
def run(command: tuple[str, ...], detach: bool, env: tuple[str, ...], workdir: str | None, **asked: Any) -> int:
    job_file = job_of(command, environment_of(env), asked)
    client = open_client()
    if workdir is not None:
        job_file["workdir"] = client.ship_workdir(workdir, progress=shipping_progress(workdir))
    job = client.submit(**job_file)
    tell_warnings(job)
    if detach:
        click.echo(job.id)
        tell_if_never(job)
        return 0
    note(say("run.submitted", id=job.id))
    from gpuyard.cli.watch import watch

    return watch(job)


def job_of(command: tuple[str, ...], env: dict[str, str], asked: dict[str, Any]) -> dict[str, Any]:
    """The job as a job file. One argument with blanks in it is a line for the shell, as with ssh."""
    models, where = list(asked.pop("model", ())), _where(asked.pop("node", ()), asked.pop("label", ()))
    job = {key: value if key in _TEXTS else number_or_text(value) for key, value in asked.items() if value is not None}
    job |= ({"models": models} if models else {}) | ({"where": where} if where else {})
    job["command"] = command[0] if len(command) == 1 and " " in command[0].strip() else list(command)
    if env:
        job["env"] = env
    return job


def _where(nodes: tuple[str, ...], labels: tuple[str, ...]) -> dict[str, Any]:
    pairs = {}
    for pair in labels:
        key, equals, value = pair.partition("=")
        if not key or not equals:
            raise click.BadParameter(say("usage.pair", pair=pair, form="K=V"), param_hint="--label")
        pairs[key] = value
    return ({"nodes": list(nodes)} if nodes else {}) | ({"labels": pairs} if pairs else {})


def environment_of(pairs: tuple[str, ...]) -> dict[str, str]:
    env = {}
    for pair in pairs:
        name, equals, value = pair.partition("=")
        if not name:
            raise click.BadParameter(say("usage.pair", pair=pair, form="K=V"), param_hint="--env")
        if not equals and name not in os.environ:
            raise click.BadParameter(say("usage.not_set", name=name), param_hint="--env")
        env[name] = value if equals else os.environ[name]
    return env


def number_or_text(value: Any) -> Any:
    """`2` and `0.5` as numbers, `16G` as it is: what it means is the server's to say."""
    if not isinstance(value, str):
        return value
    for kind in (int, float):
        try:
            found = kind(value)
        except ValueError:
            continue
        return found if found == found and abs(found) != float("inf") else value
    return value


COMMANDS = (run,)
