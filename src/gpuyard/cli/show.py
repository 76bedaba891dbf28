"""`yard show`: everything about one job, for a person."""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

import click

from gpuyard.cli.expected import in_words
from gpuyard.cli.labels import label, state_label, workload_state_label
from gpuyard.cli.logs import log_command
from gpuyard.cli.output import (
    by_local_clock,
    local_time,
    number,
    print_fields,
    print_json,
    print_table,
    ran_seconds,
    short_time,
    spent,
)
from gpuyard.cli.phrases import say
from gpuyard.cli.shared import open_client, output_option
from gpuyard.domain.resources import show_bytes
from gpuyard.domain.workload import DEFAULT_RETRIES, Together

if TYPE_CHECKING:
    from gpuyard.sdk.job import Job
    from gpuyard.sdk.results import Attempt, Replica

DIGEST_SHOWN = 12
Field = tuple[str, str]


@click.command(help=say("show"))
@click.argument("ref", metavar="ID")
@output_option
def show(ref: str, output: str) -> None:
    job = open_client().job(ref)
    if output == "json":
        print_json(job.raw)
        return
    print_fields([*_what_it_is(job), *_what_it_asks(job), *_how_it_went(job), *_commands(job)])
    for attempt in job.attempts:
        click.echo()
        _print_attempt(attempt)
    if command := log_command(job):
        click.echo()
        click.echo(say("run.see_log", command=command))


def _what_it_is(job: Job) -> Iterator[Field]:
    yield "id", job.id
    yield "name", job.name
    yield "state", workload_state_label(job.kind, job.state)
    yield "reason", by_local_clock(job.reason)
    yield "owner", job.owner
    yield "group", job.group
    yield "priority", str(job.priority)


def _how_it_went(job: Job) -> Iterator[Field]:
    yield "submitted", local_time(job.submitted_at)
    yield "starts", in_words(job.expected_start, "start")
    yield "started", local_time(job.started_at)
    yield "ends", in_words(job.expected_end, "end")
    yield "ended", local_time(job.ended_at)
    yield "ran for", _ran(job)
    yield "work saved", _saved(job)
    yield "exit code", "" if job.exit_code is None else str(job.exit_code)
    yield "files", _home_here(job)


def _ran(job: Job) -> str:
    """All attempts together: in the queue it does not run."""
    runs = [ran_seconds(attempt.started_at, attempt.ended_at) for attempt in job.attempts if attempt.started_at]
    return short_time(sum(runs)) if runs else ""


def _saved(job: Job) -> str:
    """When the newest attempt last saved its work, and how far it was."""
    newest = job.attempts[-1] if job.attempts else None
    if newest is None or newest.saved_at is None:
        return ""
    step = "" if newest.saved_step is None else " " + say("show.step", step=newest.saved_step)
    return f"{local_time(newest.saved_at)}{step}"


def _home_here(job: Job) -> str:
    """The folder its `$HOME` is, when it is on this machine and ours to look into."""
    data = job.client.door.data
    home = data / "files" / "user" / job.owner if data is not None else None
    return str(home) if home is not None and home.is_dir() else ""


def _commands(job: Job) -> Iterator[Field]:
    for role in job.raw.get("roles") or []:
        yield f"{role['name']} x{role['replicas']}", shlex.join(role.get("command") or [])


# --- what it asks for ---------------------------------------------------------------------------------------------


def _what_it_asks(job: Job) -> Iterator[Field]:
    file = job.file()
    if job.cards:
        simulated = f" ({label('simulated')})" if job.simulated_cards else ""
        yield "cards", f"{number(job.cards)} {job.device or ''}{simulated}"
    roles = job.raw.get("roles") or []
    for role in roles:
        prefix = f"{role['name']} " if len(roles) > 1 else ""
        yield from _amounts(job, role, prefix)
        yield from _places(role, prefix)
    if job.together != Together.ANY:
        yield "together", job.together
    yield "image", job.image or ""
    yield "max time", "" if job.max_seconds is None else short_time(job.max_seconds)
    yield "preemptible", label("yes") if job.preemptible else ""
    yield "checkpoint", job.checkpoint or ""
    yield "retries used", _retries(job, file)
    yield "env", _environment(job, file)
    yield "ports", ", ".join(_port(port) for part in _parts(file) for port in part.get("ports") or [])
    yield "shipped folder", str(job.raw.get("workdir") or "")[:DIGEST_SHOWN]


def _amounts(job: Job, role: Mapping[str, Any], prefix: str) -> Iterator[Field]:
    """Per replica: what was asked for; what was left open is told as it was given."""
    given = _first_replica(job, role["name"])
    cpu, memory, shm = role.get("cpu"), role.get("memory"), role.get("shm")
    yield f"{prefix}{label('cpu')}", number(cpu) if cpu is not None else _shared(number(given.cpu) if given else "")
    memory_given = show_bytes(given.memory) if given and given.memory is not None else ""
    yield f"{prefix}{label('memory')}", show_bytes(memory) if memory is not None else _shared(memory_given)
    if shm is not None:
        yield f"{prefix}{label('shm')}", show_bytes(shm)


def _places(role: Mapping[str, Any], prefix: str) -> Iterator[Field]:
    """Which cards and which machines will do, where it says so."""
    where = role.get("where") or {}
    yield f"{prefix}{label('models')}", ", ".join(role.get("models") or ())
    yield f"{prefix}{label('nodes')}", ", ".join(where.get("nodes") or ())
    yield f"{prefix}{label('labels')}", ", ".join(f"{k}={v}" for k, v in (where.get("labels") or {}).items())


def _first_replica(job: Job, role: str) -> Replica | None:
    replicas = job.attempts[-1].replicas if job.attempts else ()
    return next((replica for replica in replicas if replica.replica.rpartition("-")[0] == role), None)


def _shared(given: str) -> str:
    return say("show.fair_share", amount=given) if given else say("show.will_share")


def _parts(file: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    """The roles of a job file, or the file itself when it has none."""
    roles: Mapping[str, Mapping[str, Any]] = file.get("roles") or {}
    return list(roles.values()) or [file]


def _retries(job: Job, file: Mapping[str, Any]) -> str:
    """`exit 1/2, lost 0/3`: used and allowed, by cause. A file that says nothing has the usual ones."""
    used: Mapping[str, int] = job.raw.get("retries_used") or {}
    allowed: Mapping[str, int] = file.get("retries") or {cause.value: n for cause, n in DEFAULT_RETRIES.items()}
    return ", ".join(f"{say(f'retry.{cause}')} {used.get(cause, 0)}/{most}" for cause, most in allowed.items() if most)


def _environment(job: Job, file: Mapping[str, Any]) -> str:
    """With their values for the owner; others who may look see the names, since values are often keys."""
    env: dict[str, Any] = {}
    for part in _parts(file):
        env |= part.get("env") or {}
    if not env:
        return ""
    if job.client.whoami().user.name != job.owner:
        return ", ".join(env)
    return " ".join(f"{name}={shlex.quote(str(value))}" for name, value in env.items())


def _port(port: Mapping[str, Any]) -> str:
    return f"{port['number']} ({port['name']})" if port.get("name") else str(port["number"])


# --- attempts -----------------------------------------------------------------------------------------------------


def _print_attempt(attempt: Attempt) -> None:
    ran = spent(attempt.started_at, attempt.ended_at)
    told = [f"#{attempt.number}", local_time(attempt.created_at), ran, by_local_clock(attempt.reason)]
    click.echo(" ".join(filter(None, told)))
    if attempt.replicas:
        headings = ["REPLICA", "NODE", "CARDS", "STATE", "EXIT", "REASON"]
        print_table(headings, [_replica_row(replica) for replica in attempt.replicas])


def _replica_row(replica: Replica) -> list[str]:
    return [
        replica.replica,
        replica.node,
        ",".join(map(str, replica.cards)) or "-",
        state_label(replica.state),
        "" if replica.exit_code is None else str(replica.exit_code),
        by_local_clock(replica.reason),
    ]
