"""Looking back: decide once more what was decided, and the platform's own history under another policy."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import click

from gpuyard.cli.failures import FAILED, Refused, naming
from gpuyard.cli.output import cut, local_time, note, print_json, print_table, printable, short_time
from gpuyard.cli.phrases import knows, say
from gpuyard.cli.policy import print_changed
from gpuyard.cli.shared import open_client, output_option
from gpuyard.domain.resources import parse_duration

SHOWN = 20  # differences
LONGEST = 60  # of what is shown of one
# What is told of each: the heading, and where it is found.
_OF_GROUPS = {"GROUP": "name", "JOBS": "jobs"}
_OF_PERSONS = {"USER": "name", "GROUP": "group", "JOBS": "jobs"}
_OF_JOBS = {"ID": "id", "NAME": "name", "OWNER": "owner", "GROUP": "group"}

_since = click.option("--since", metavar="TIME", help=say("opt.replay_since"))
_until = click.option("--until", metavar="TIME", help=say("opt.replay_until"))


@click.command(help=say("replay"), epilog=say("replay.examples"))
@click.option("--last", type=click.IntRange(1), metavar="N", help=say("opt.replay_last"))
@_since
@_until
@click.option("--job", metavar="JOB", help=say("opt.replay_job"))
@output_option
def replay(last: int | None, since: str | None, until: str | None, job: str | None, output: str) -> int:
    run = open_client().replay(last=last, job=job, progress=_progress(), **span(since, until))
    found = _found(run, "replay")
    if output == "json":
        print_json(found)
    elif found is not None:
        _print_replay(found, job)
    return 0 if found is None or found["same"] else FAILED


@click.command("what-if", help=say("what_if"), epilog=say("what_if.examples"))
@click.option("--policy", "file", metavar="FILE", required=True, help=say("opt.whatif_policy"))
@_since
@_until
@output_option
def what_if(file: str, since: str | None, until: str | None, output: str) -> None:
    document = sys.stdin.buffer.read() if file == "-" else Path(file).read_bytes()
    with naming(file):
        run = open_client().what_if(document, progress=_progress(), **span(since, until))
    found = _found(run, "what_if")
    if output == "json":
        print_json(found)
    elif found is None or not found["jobs"]:
        note(say("whatif.nothing"))
        _print_unreadable((found or {}).get("unreadable", ()))
    else:
        _print_what_if(found)


def span(since: str | None, until: str | None) -> dict[str, str | None]:
    """From when to when, as the server takes it."""
    begin, end = _moment(since), _moment(until)
    if begin is not None and end is not None and begin >= end:
        raise click.UsageError(say("usage.span", since=since, until=until))
    return {"since": _written(begin), "until": _written(end)}


def _moment(text: str | None) -> datetime | None:
    """`2h` is two hours ago; a date or a time without a zone is one of this machine."""
    if text is None:
        return None
    try:
        return datetime.now(UTC) - timedelta(seconds=parse_duration(text))
    except ValueError:
        pass
    try:
        return datetime.fromisoformat(text).astimezone(UTC)
    except (ValueError, OverflowError):
        raise click.UsageError(say("usage.when", text=text)) from None


def _written(at: datetime | None) -> str | None:
    return None if at is None else at.isoformat().replace("+00:00", "Z")


def _progress() -> Callable[[int, int], None] | None:
    if not sys.stderr.isatty():
        return None

    def tell(done: int, of: int) -> None:
        click.echo(f"\r\x1b[K{say('replay.progress', done=done, of=of)}", err=True, nl=done >= of)

    return tell


def _found(run: Mapping[str, Any], what: str) -> dict[str, Any] | None:
    if run["state"] == "failed":
        raise Refused(say("replay.failed", problem=printable(str(run["problem"]))), FAILED)
    found: dict[str, Any] | None = run[what]
    return found


# --- how it looks -------------------------------------------------------------------------------------------------


def _print_replay(found: Mapping[str, Any], job: str | None) -> None:
    of_job = "" if job is None else "_of_job"
    if not found["cycles"]:
        note(say(f"replay.nothing{of_job}", job=job))
    else:
        numbers = {name: found[name] for name in ("cycles", "placements", "evictions", "reasons")}
        times = {name: local_time(found[name]) for name in ("first", "last")}
        click.echo(say(f"replay.period{of_job}", job=job, **numbers, **times))
    if found["moments"]:
        rows = [[local_time(one["at"]), _word("moment", one["what"]), one["text"]] for one in found["moments"]]
        print_table(["TIME", "WHAT", "REASON"], rows, wrap=True)
    _print_doubts(found)
    if found["differing"]:
        click.echo(say("replay.differs", count=found["differing"], shown=min(SHOWN, len(found["differences"]))))
        rows = [_difference_row(one) for one in found["differences"][:SHOWN]]
        print_table(["TIME", "WHAT", "ID", "THEN", "NOW"], rows)
        note(say("replay.versions", versions=", ".join(found["versions"])))
    elif found["cycles"]:
        click.echo(say("replay.same" if found["same"] else "replay.same_as_far"))


def _print_doubts(found: Mapping[str, Any]) -> None:
    if found["lost_cycles"]:
        note(say("replay.lost", count=found["lost_cycles"]))
    _print_unreadable(found["unreadable"])


def _print_unreadable(unreadable: Sequence[Mapping[str, Any]]) -> None:
    for one in unreadable:
        key = "replay.torn" if one["torn"] else "replay.damaged"
        problem = one["problem"] and say("replay.problem", problem=printable(one["problem"]))
        note(say(key, segment=one["segment"], at=one["at"], problem=problem))


def _difference_row(one: Mapping[str, Any]) -> list[str]:
    return [local_time(one["at"]), _word("what", one["what"]), one["workload"], _short(one["then"]), _short(one["now"])]


def _word(kind: str, what: str) -> str:
    key = f"replay.{kind}.{what}"
    return say(key) if knows(key) else what


def _short(value: Any) -> str:
    return "-" if value is None else cut(json.dumps(value, ensure_ascii=False, separators=(",", ":")), LONGEST)


def _print_what_if(found: Mapping[str, Any]) -> None:
    print_changed(found)
    click.echo(
        say("whatif.period", jobs=found["jobs"], begin=local_time(found["begin"]), until=local_time(found["until"]))
    )
    if found["guessed"]:
        note(say("whatif.guessed", count=found["guessed"]))
    _print_doubts(found)
    if any(not one["torn"] for one in found["unreadable"]):
        note(say("whatif.damaged"))
    rows = [[say("whatif.row.really"), *_waits(found["really"]), *_rest(found["really"])]]
    rows += [
        [say(f"whatif.row.{name}"), *_waits(found[name]["waits"]), *_rest(found[name])] for name in ("present", "other")
    ]
    print_table(["", "MEAN WAIT", "MEDIAN", "P90", "NEVER STARTED", "CARDS USED", "PREEMPTIONS", "LOST"], rows)
    if any(waits["never_started"] for waits in (found["present"]["waits"], found["other"]["waits"])):
        note(say("whatif.so_far"))
    _print_who(found)


def _print_who(found: Mapping[str, Any]) -> None:
    """Whoever waits longer or shorter: groups, persons, and some jobs."""
    if not found["gain_count"] and not found["lose_count"]:
        click.echo(say("whatif.same"))
        return
    for name, columns in (("groups", _OF_GROUPS), ("users", _OF_PERSONS)):
        parties = [one for one in found[name] if one["before"] != one["after"]]
        _print_parties(say(f"whatif.{name}"), columns, parties)
    for name, count in (("gaining", "gain_count"), ("losing", "lose_count")):
        _print_parties(say(f"whatif.{name}", count=found[count]), _OF_JOBS, found[name])


def _waits(waits: Mapping[str, Any]) -> list[str]:
    return [*(short_time(waits[name]) for name in ("mean", "median", "p90")), str(waits["never_started"])]


def _rest(numbers: Mapping[str, Any]) -> list[str]:
    used = f"{numbers['utilisation'] * 100:.1f}%" if numbers["utilisation"] is not None else "-"
    return [used, str(numbers["preemptions"]), short_time(numbers["lost_seconds"])]


def _print_parties(title: str, columns: Mapping[str, str], parties: Sequence[Mapping[str, Any]]) -> None:
    if not parties:
        return
    click.echo(title)
    rows = [
        [
            *(str(one[name]) for name in columns.values()),
            short_time(one["before"]),
            short_time(one["after"]),
            _preempted(one),
        ]
        for one in parties
    ]
    print_table([*columns, "BEFORE", "AFTER", "PREEMPTIONS"], rows)


def _preempted(one: Mapping[str, Any]) -> str:
    before, after = one["preempted_before"], one["preempted_after"]
    return str(before) if before == after else f"{before} -> {after}"


COMMANDS = (replay, what_if)
