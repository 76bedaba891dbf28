"""`yard env`: dev environments from creation to removal."""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Callable
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

import click

from gpuyard.cli import env_show
from gpuyard.cli.failures import BAD_INPUT, FAILED, NOT_ALLOWED, NOT_FOUND, Refused, words_of
from gpuyard.cli.known_hosts import trust
from gpuyard.cli.labels import state_label
from gpuyard.cli.output import by_local_clock, local_time, note, print_fields, print_json, printable, short_time
from gpuyard.cli.phrases import say
from gpuyard.cli.run import environment_of, number_or_text
from gpuyard.cli.shared import InOrder, open_client, output_option, print_listing
from gpuyard.cli.taken import never_in_words
from gpuyard.domain.reasons import NEVER_STARTS
from gpuyard.sdk.errors import YardApiError

if TYPE_CHECKING:
    from gpuyard.sdk.client import Client
    from gpuyard.sdk.workplaces import Env

_name = click.argument("name", metavar="NAME")
_names = click.argument("names", metavar="NAME...", nargs=-1, required=True)
_TEXTS = frozenset({"group", "device", "image", "idle", "timer"})
_NEVER = frozenset(code.value for code in NEVER_STARTS)


class _WaitingIsVain(Exception):
    """It can never start as it is."""


def _find(client: Client, name: str) -> Env:
    """The server knows it as one workload among others; here it is an environment."""
    try:
        return client.env(name)
    except YardApiError as error:
        if error.code == "refused.not_found":
            raise Refused(say("env.unknown", name=printable(name)), NOT_FOUND) from error
        raise


def _resources(command: Any) -> Any:
    for option in (
        click.option("--shm", metavar="S", help=say("opt.env_shm")),
        click.option("--memory", metavar="M", help=say("opt.env_memory")),
        click.option("--cpu", metavar="C", help=say("opt.env_cpu")),
        click.option("--model", "models", multiple=True, metavar="MODEL", help=say("opt.model")),
        click.option("--device", metavar="T", help=say("opt.device")),
        click.option("--cards", metavar="N", help=say("opt.env_cards")),
    ):
        command = option(command)
    return command


def _starting(command: Any) -> Any:
    """What `start` and `restart` have in common."""
    for option in (
        output_option,
        click.option("--detach", is_flag=True, help=say("opt.env_detach")),
        click.option("--force", is_flag=True, help=say("opt.env_force")),
        click.option("--yes", is_flag=True, help=say("opt.env_yes")),
        click.option("--timer", metavar="T", help=say("opt.timer")),
        _resources,
        click.option("--image", metavar="I", help=say("opt.env_other_image")),
        _name,
    ):
        command = option(command)
    return command


@click.group(cls=InOrder, help=say("env"))
def env() -> None:
    """Text is in the phrases."""


@env.command(help=say("env.create"), epilog=say("env.create.examples"))
@_name
@click.option("--image", metavar="I", help=say("opt.image"))
@_resources
@click.option("--env", "variables", multiple=True, metavar="K=V", help=say("opt.env"))
@click.option("--port", "ports", multiple=True, metavar="P", type=click.IntRange(1, 65535), help=say("opt.env_port"))
@click.option("--group", metavar="G", help=say("opt.group"))
@click.option("--priority", metavar="P", help=say("opt.priority"))
@click.option("--idle", metavar="T", help=say("opt.idle"))
@click.option("--timer", metavar="T", help=say("opt.timer"))
@click.option("--detach", is_flag=True, help=say("opt.env_detach"))
@output_option
def create(name: str, variables: tuple[str, ...], detach: bool, output: str, **asked: Any) -> int:
    wanted = _wanted(asked)
    if variables:
        wanted["env"] = environment_of(variables)
    made = open_client().create_env(name, **wanted)
    return _tell_start(made, detach, output)


def _wanted(asked: dict[str, Any]) -> dict[str, Any]:
    """What was given, with numbers as numbers: what they mean is the server's to say."""
    given = {key: list(value) if isinstance(value, tuple) else value for key, value in asked.items()}
    return {
        key: value if key in _TEXTS or isinstance(value, list) else number_or_text(value)
        for key, value in given.items()
        if value not in (None, [])
    }


def _tell_start(made: Env, detach: bool, output: str) -> int:
    for warning in made.warnings:
        note(say("run.warning", text=printable(warning)))
    if not detach:
        # One just asked to start still says why it was stopped, and one that restarts why it ran or waited.
        if made.state not in ("paused", "running") and not made.restarting:
            _tell(made)
        try:
            made = made.wait(told=_tell_and_weigh)
        except _WaitingIsVain:
            note(say("env.never_starts", name=made.name))
        except KeyboardInterrupt:
            note("")
            note(say("env.waits", name=made.name, id=made.id))
            return 0
        made = made.refresh()
    if output == "json":
        print_json(dict(made.refresh().raw))
    elif detach:
        click.echo(made.id)
    elif made.state == "running":
        note(env_show.ready(made))
    return 0 if detach or made.state == "running" else FAILED


def _tell(env: Env) -> None:
    reason = by_local_clock(printable(env.reason))
    note(say("env.state", name=env.name, state=state_label(env.shown_state), reason=reason))


def _tell_state(env: Env) -> None:
    note(say("run.state", id=env.name, state=state_label(env.shown_state)))


def _tell_and_weigh(env: Env) -> None:
    if env.restarting or (env.state == "paused" and env.wanted == "run"):  # that it stops is no news worth a reason
        _tell_state(env)
    elif env.state != "running":  # of that more is said in the end
        _tell(env)
    if env.state == "queued" and env.reason_code in _NEVER:
        raise _WaitingIsVain


@env.command(help=say("env.ls"))
@click.option("--all", "everyone", is_flag=True, help=say("opt.env_all"))
@output_option
def ls(everyone: bool, output: str) -> None:
    found = open_client().envs(everyone=everyone)
    headings = env_show.headings(everyone)
    print_listing(found, output, headings, lambda env: env_show.row(env, everyone), say("env.none"))


@env.command(help=say("env.show"))
@_name
@output_option
def show(name: str, output: str) -> None:
    found = _find(open_client(), name)
    if output == "json":
        print_json(dict(found.raw))
    else:
        print_fields(list(env_show.fields(found)))


@env.command("open", help=say("env.open"))
@_name
@click.argument("what", default="lab", metavar="[lab|ide|terminal|PORT]")
@click.option("--print", "only_print", is_flag=True, help=say("opt.print_url"))
def open_env(name: str, what: str, only_print: bool) -> None:
    way, client = _way(what), open_client()
    url = client.open(_find(client, name).id, way)
    if only_print or not _show_in_browser(url):
        if not only_print:
            note(say("env.opened"))
        click.echo(url)


def _way(what: str) -> str:
    if what in env_show.TOOLS:
        return what
    if what.isdecimal() and 1 <= int(what) <= 65535:
        return f"p{what}"
    raise click.UsageError(say("env.unknown_way", what=printable(what)))


def _show_in_browser(url: str) -> bool:
    """Only where a person sits before a screen."""
    if not sys.stdout.isatty() or not (os.environ.get("DISPLAY") or sys.platform == "darwin"):
        return False
    import webbrowser

    return webbrowser.open(url)


@env.command(help=say("env.ssh"), context_settings={"ignore_unknown_options": True, "allow_interspersed_args": False})
@_name
@click.argument("command", nargs=-1, type=click.UNPROCESSED)
def ssh(name: str, command: tuple[str, ...]) -> None:
    """The machine's own ssh takes over, with the user's own keys and settings."""
    client = open_client()
    found = _find(client, name)
    _require_enterable(client, found)
    way = client.gateway()
    program = shutil.which("ssh")
    if way.ssh_port is None or program is None:
        raise Refused(say("env.no_ssh" if program else "env.no_ssh_here"))
    host = way.ssh_host or urlsplit(client.door.url).hostname or "localhost"
    target = f"{found.owner}+{found.name}@{host}"
    options = trust(way.host_public_key, host, way.ssh_port)
    os.execv(program, ["ssh", "-p", str(way.ssh_port), *options, target, *command])  # noqa: S606  a list, no shell


def _require_enterable(client: Client, found: Env) -> None:
    """Said before anybody is asked for a password."""
    if found.shown_state == "stopped":
        raise Refused(say("env.is_stopped", name=found.name))
    if found.state in ("queued", "placed"):
        reason = by_local_clock(printable(found.reason))
        raise Refused(say("env.state", name=found.name, state=state_label(found.state), reason=reason))
    me = client.whoami().user
    if me.name == found.owner and me.must_change_password:
        raise Refused(say("env.password_first"), NOT_ALLOWED)


@env.command(help=say("env.stop"))
@_names
@click.option("--detach", is_flag=True, help=say("opt.env_detach_stop"))
@output_option
def stop(names: tuple[str, ...], detach: bool, output: str) -> None:
    client = open_client()
    asked = [_find(client, name).stop() for name in names]
    for found in asked:
        if found.state != "paused":
            note(say("env.stopping", name=found.name))
    if not detach:
        try:
            asked = [found.wait() for found in asked]
        except KeyboardInterrupt:  # it goes on without us
            note("")
            return
        for found in asked:
            note(say("env.stopped", name=found.name))
    if output == "json":
        print_json([dict(found.raw) for found in asked])


@env.command(help=say("env.start"))
@_starting
def start(name: str, timer: str | None, yes: bool, force: bool, detach: bool, output: str, **asked: Any) -> int:
    found = _find(open_client(), name)
    wanted = _wanted(asked)
    if found.state == "running" and found.wanted == "run" and wanted:
        raise Refused(say("env.runs_already", name=found.name))
    _ask_about_image(found, asked.get("image"), yes)
    if found.state == "stopping" and found.wanted == "pause":  # just asked to stop, or idle for too long
        _tell(found)
        found = found.wait()
    return _tell_start(_unless_never(found, lambda: found.start(wanted, timer=timer, force=force)), detach, output)


@env.command(help=say("env.restart"))
@_starting
def restart(name: str, timer: str | None, yes: bool, force: bool, detach: bool, output: str, **asked: Any) -> int:
    found, wanted = _find(open_client(), name), _wanted(asked)
    _ask_about_image(found, asked.get("image"), yes)
    again = _unless_never(found, lambda: found.restart(wanted, timer=timer, force=force))
    return _tell_start(again, detach, output)


def _ask_about_image(found: Env, image: str | None, yes: bool) -> None:
    """Another image is a fresh start: it keeps nothing of what was installed."""
    if image in (None, found.image) or found.image is None:
        return
    _ask(say("env.ask_image", name=found.name, image=printable(str(image))), say("env.image_unasked"), yes)


def _ask(question: str, unasked: str, yes: bool) -> None:
    """Whether something may be thrown away. Where nobody can be asked, only `--yes` is a yes."""
    if yes:
        return
    if not sys.stdin.isatty():
        raise Refused(unasked, BAD_INPUT)
    click.confirm(question, abort=True, err=True)


def _unless_never(found: Env, begin: Callable[[], Env]) -> Env:
    """What can never start is refused by the server, with the reason; here it is said what that means."""
    try:
        return begin()
    except YardApiError as error:
        if error.code in _NEVER:
            raise Refused(say("env.never_as_asked", name=found.name, reason=never_in_words(words_of(error)))) from error
        raise


@env.command(help=say("env.rm"))
@_names
@click.option("--yes", is_flag=True, help=say("opt.env_yes"))
@click.option("--detach", is_flag=True, help=say("opt.env_detach_rm"))
def rm(names: tuple[str, ...], yes: bool, detach: bool) -> None:
    client = open_client()
    found = [_find(client, name) for name in names]
    unasked = say("env.rm_unasked", names=", ".join(one.name for one in found))
    for one in found:
        _ask(say("env.ask_rm", name=one.name), unasked, yes)
        one.remove()
        if not detach:
            one.wait_gone()
        note(say("env.removed", name=one.name))


@env.command(help=say("env.timer"))
@_name
@click.argument("when", required=False, metavar="[2h|+1h|off]")
@click.option("--idle", metavar="T", help=say("opt.idle"))
@output_option
def timer(name: str, when: str | None, idle: str | None, output: str) -> None:
    client: Client = open_client()
    if when is None and idle is None:
        raise click.UsageError(say("env.nothing_to_do"))
    found = _find(client, name).set_timer(when, idle=idle)
    if output == "json":
        print_json(dict(found.raw))
        return
    at = local_time(found.stop_at) if found.stop_at else say("env.never")
    rests = say("env.never") if found.idle_seconds is None else short_time(found.idle_seconds)
    note(say("env.timer_set", name=found.name, timer=at, idle=rests))


COMMANDS = (env,)
