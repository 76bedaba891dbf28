"""The policy: read it, change it, and try a change first."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import click

from gpuyard.cli.failures import naming
from gpuyard.cli.labels import label
from gpuyard.cli.output import note, number, print_json, print_table, printable, short_time
from gpuyard.cli.phrases import knows, say
from gpuyard.cli.shared import key_values, open_client, output_option
from gpuyard.cli.yaml_lines import as_yaml

_pairs = click.argument("pairs", nargs=-1, metavar="[KEY=VALUE]...")
_file = click.option("-f", "--file", metavar="FILE", help=say("opt.policy_file"))


@click.group(help=say("policy"))
def policy() -> None:
    """Text is in the phrases."""


@policy.command("show", help=say("policy.show"))
@click.option(
    "-o", "--output", type=click.Choice(["table", "yaml", "json"]), default="table", help=say("opt.policy_out")
)
def policy_show(output: str) -> None:
    document = open_client().policy()
    if output == "json":
        print_json(document)
    elif output == "yaml":
        click.echo(as_yaml(document), nl=False)
    else:
        print_table(
            ["KEY", "VALUE", "MEANING"],
            [[key, _shown(value), _about(key)] for key, value in _leaves(document)],
            wrap=True,
        )


@policy.command("set", help=say("policy.set"), epilog=say("policy.examples"))
@_pairs
@_file
@output_option
def policy_set(pairs: tuple[str, ...], file: str | None, output: str) -> None:
    changes, document = _given(pairs, file)
    client = open_client()
    with naming(file):
        told = client.change_policy(changes) if document is None else client.set_policy(document)
    if output == "json":
        print_json(told)
        return
    print_changed(told)


@policy.command("try", help=say("policy.try"))
@_pairs
@_file
@output_option
def policy_try(pairs: tuple[str, ...], file: str | None, output: str) -> None:
    changes, document = _given(pairs, file)
    client = open_client()
    with naming(file):
        told = client.try_policy(changes=changes) if document is None else client.try_policy(document)
    if output == "json":
        print_json(told)
        return
    print_changed(told)
    _print_tried(told)


@policy.command("reset", help=say("policy.reset"))
@click.option("--yes", is_flag=True, help=say("opt.yes"))
@output_option
def policy_reset(yes: bool, output: str) -> None:
    if not yes:
        click.confirm(say("policy.reset_ask"), abort=True, err=True)
    told = open_client().set_policy({})
    if output == "json":
        print_json(told)
        return
    print_changed(told)


def _given(pairs: tuple[str, ...], file: str | None) -> tuple[dict[str, str], bytes | None]:
    """Some values, or a whole file."""
    if not pairs and file is None:
        raise click.UsageError(say("usage.policy_nothing"))
    if pairs and file is not None:
        raise click.UsageError(say("usage.policy"))
    if file is None:
        return key_values(pairs, "KEY=VALUE"), None
    return {}, sys.stdin.buffer.read() if file == "-" else Path(file).read_bytes()


# --- how it looks -------------------------------------------------------------------------------------------------


def _leaves(data: Mapping[str, Any], path: str = "") -> Iterator[tuple[str, Any]]:
    for key, value in data.items():
        here = f"{path}.{key}" if path else str(key)
        if isinstance(value, Mapping) and value:
            yield from _leaves(value, here)
        else:
            yield here, value


def _shown(value: Any) -> str:
    """As `yard policy set` takes it."""
    if value is None or value == [] or value == {}:
        return "-"
    if isinstance(value, list) and all(isinstance(item, str) for item in value):
        return ",".join(value)
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, separators=(",", ":"))


def _about(key: str) -> str:
    """What a key means; those inside a pool, a ring or the like mean what the whole does."""
    exact, whole = f"policy.about.{key}", f"policy.about.{key.split('.')[0]}"
    return say(exact) if knows(exact) else say(whole) if knows(whole) else ""


def print_changed(told: Mapping[str, Any]) -> None:
    changed = told.get("changed") or []
    if changed:
        print_table(
            ["KEY", "BEFORE", "AFTER"], [[one["key"], _shown(one["before"]), _shown(one["after"])] for one in changed]
        )
    else:
        note(say("policy.same"))
    for text in told.get("warnings") or ():
        note(say("run.warning", text=printable(text)))


def _print_tried(told: Mapping[str, Any]) -> None:
    counts = {name: told.get(f"{name}_count", 0) for name in ("starts", "stays", "evictions", "spared", "moves")}
    if not any(counts.values()):
        click.echo(say("try.nothing"))
        return
    for name in ("starts", "stays", "spared"):
        _print_works(say(f"try.{name}", count=counts[name]), told.get(name) or [])
    if counts["evictions"]:
        click.echo(say("try.evictions", count=counts["evictions"]))
        headings = ["ID", "NAME", "OWNER", "GROUP", "CARDS", "MAKES ROOM FOR", "RULE", "LOST"]
        evictions = told.get("evictions") or []
        print_table(headings, [_eviction_row(one) for one in evictions])
        click.echo(say("try.after", ids=", ".join(dict.fromkeys(one["by"] for one in evictions))))
    if counts["moves"]:
        click.echo(say("try.moves", count=counts["moves"], shown=len(told.get("moves") or [])))
        rows = [[*_work_row(one["work"]), _shown(one["before"]), _shown(one["after"])] for one in told["moves"]]
        print_table(["ID", "NAME", "OWNER", "GROUP", "CARDS", "BEFORE", "AFTER"], rows)
    _print_groups(told.get("groups") or [])


def _print_works(title: str, works: list[Mapping[str, Any]]) -> None:
    if works:
        click.echo(title)
        print_table(["ID", "NAME", "OWNER", "GROUP", "CARDS"], [_work_row(work) for work in works])


def _work_row(work: Mapping[str, Any]) -> list[str]:
    cards = f"{number(work['cards'])} {work['device']}" if work["cards"] else "-"
    return [work["id"], work["name"], work["owner"], work["group"], cards]


def _eviction_row(one: Mapping[str, Any]) -> list[str]:
    return [*_work_row(one["work"]), one["by"], label(one["rule"]), short_time(one["lost_seconds"])]


def _print_groups(groups: list[Mapping[str, Any]]) -> None:
    kinds = ("starting", "waiting", "evicted")
    rows = [
        [one["group"], *(f"{one['before'][kind]} -> {one['after'][kind]}" for kind in kinds)]
        for one in groups
        if one["before"] != one["after"]
    ]
    if rows:
        click.echo(say("try.groups"))
        print_table(["GROUP", "STARTING", "WAITING", "PREEMPTED"], rows)


COMMANDS = (policy,)
