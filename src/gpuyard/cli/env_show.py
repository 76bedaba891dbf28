"""How a dev environment is shown: as a line of a list, in full, and with the commands that lead into it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from gpuyard.cli.job_table import short_reason
from gpuyard.cli.labels import label, state_label
from gpuyard.cli.output import age, by_local_clock, local_time, number, short_time
from gpuyard.cli.phrases import knows, say
from gpuyard.domain.reasons import Code
from gpuyard.domain.resources import show_bytes

if TYPE_CHECKING:
    from gpuyard.sdk.workplaces import Env

TOOLS = ("lab", "ide", "terminal")
HEADINGS = ("NAME", "STATE", "IMAGE", "CARDS", "CPU", "MEMORY", "AGE", "REASON")


def headings(everyone: bool) -> list[str]:
    name, state, *rest = HEADINGS
    return [name, state, *(["OWNER"] if everyone else []), *rest]


def row(env: Env, everyone: bool) -> list[str]:
    asked = [
        env.image or "-",
        _cards(env) or "-",
        "-" if env.cpu is None else number(env.cpu),
        "-" if env.memory is None else show_bytes(env.memory),
        age(env.submitted_at),
        _short_reason(env),
    ]
    return [env.name, state_label(env.shown_state), *([env.owner] if everyone else []), *asked]


def _short_reason(env: Env) -> str:
    """In a list what is the same for all is left out: `yard env show` has the whole sentence."""
    if env.reason_code == Code.RUNNING.value:
        return ""
    key = f"env.short.{env.reason_code}"
    by = env.reason_facts.get("by") or "-"
    return say(key, by=by) if knows(key) else short_reason(env.reason_code, by_local_clock(env.reason))


def _cards(env: Env) -> str:
    return f"{number(env.cards)} {env.device or ''}{'*' if env.simulated_cards else ''}".strip() if env.cards else ""


def fields(env: Env) -> Iterator[tuple[str, str]]:
    yield "name", env.name
    yield "id", env.id
    yield "state", state_label(env.shown_state)
    yield "reason", by_local_clock(env.reason)
    yield "owner", env.owner
    yield "group", env.group
    yield "image", env.image or say("env.no_image")
    yield "cards", _cards(env) or "0"
    yield "cpu", "" if env.cpu is None else number(env.cpu)
    yield "memory", "" if env.memory is None else show_bytes(env.memory)
    yield "shm", "" if env.shm is None else show_bytes(env.shm)
    yield "node", env.node or ""
    yield "running since", local_time(env.started_at)
    yield "timer", local_time(env.stop_at if env.state != "paused" else None) or say("env.never")
    yield "idle", say("env.never") if env.idle_seconds is None else short_time(env.idle_seconds)
    yield "last used", local_time(env.used_at)
    yield from _ways_in(env)


def _ways_in(env: Env) -> Iterator[tuple[str, str]]:
    """The addresses ask for a login; `yard env open` leads there without one."""
    for what, url in env.addresses.items():
        yield what if what in TOOLS else f"{label('port')} {what.removeprefix('p')}", url
    if env.state == "running" and env.ssh is not None:
        yield "shell", f"yard shell {env.name}"
    yield "ssh", env.ssh or ""


def ready(env: Env) -> str:
    """What to do with one that runs. Of what the browser could open, only what is there."""
    there = [tool for tool in TOOLS if tool in env.addresses]
    opens = [say("env.ready.open", name=env.name, tools=" | ".join(there))] if there else []
    return "   ".join([say("env.ready", name=env.name), *opens, say("env.ready.enter", name=env.name)])
