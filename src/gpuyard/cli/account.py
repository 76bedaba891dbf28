"""Who one is: login, logout, whoami, version."""

from __future__ import annotations

import getpass
import os
import socket
import sys
import warnings
from typing import TYPE_CHECKING

import click

from gpuyard.cli.failures import BAD_INPUT, Refused, words_of
from gpuyard.cli.output import note, print_fields, print_json
from gpuyard.cli.phrases import LANGUAGE, knows, say
from gpuyard.cli.shared import open_client, output_option
from gpuyard.sdk.errors import YardApiError
from gpuyard.sdk.finding import SavedLogin, forget_login, read_login, save_login, uid_of
from gpuyard.sdk.version import VERSION

if TYPE_CHECKING:
    from gpuyard.sdk.login import PasswordSession


@click.command(help=say("login"))
@click.argument("url")
@click.option("--name", help=say("opt.login_name"))
@click.option("--password-stdin", is_flag=True, help=say("opt.password_stdin"))
@click.option("--scope", type=click.Choice(["read", "write", "admin"]), default="admin", help=say("opt.scope"))
@click.option("--insecure-http", is_flag=True, help=say("opt.insecure_http"))
@click.option("--server-user", metavar="USER", envvar="YARD_SERVER_USER", help=say("opt.server_user"))
def login(
    url: str, name: str | None, password_stdin: bool, scope: str, insecure_http: bool, server_user: str | None
) -> None:
    from gpuyard.sdk.login import PasswordSession

    server_uid = uid_of(server_user) if server_user else None
    with PasswordSession(url, LANGUAGE, insecure_http=insecure_http, server_uid=server_uid) as session:
        name = name or click.prompt(say("login.name"), err=True)
        # Lines: the password, and where it must be changed at once, the new one.
        lines = iter(sys.stdin.read().splitlines()) if password_stdin else None
        password = next(lines, "") if lines is not None else _asked("login.password")
        if session.log_in(name, password):
            _change_password(session, password, None if lines is None else next(lines, ""))
        token = session.make_token(f"yard on {socket.gethostname()}"[:64], scope)
        file = save_login(SavedLogin(session.url, token.token, token.id, server_uid), os.environ)
        session.log_out()
    note(say("login.done", url=session.url, name=name, file=file))


@click.command(help=say("password"))
@click.option("--password-stdin", is_flag=True, help=say("opt.passwords_stdin"))
def password(password_stdin: bool) -> None:
    """One's own: the old one, then the new one. Who owns the server's data folder need not know the old one."""
    client = open_client()
    is_owner = client.whoami().via == "owner"
    if password_stdin:
        old, new = _both_of(sys.stdin.read().splitlines(), is_owner)
    else:
        old, new = None if is_owner else _asked("login.old_password"), _asked_twice()
    client.change_password(old, new)
    note(say("done.own_password"))


def _both_of(lines: list[str], is_owner: bool) -> tuple[str | None, str]:
    if len(lines) == 1 and is_owner:
        return None, lines[0]
    if len(lines) < 2:
        raise Refused(say("login.two_lines"), BAD_INPUT)
    return lines[0], lines[1]


def _asked(phrase: str) -> str:
    """Typed unseen, or not at all: without a terminal it could be seen."""
    with warnings.catch_warnings():
        warnings.simplefilter("error", getpass.GetPassWarning)
        try:
            return getpass.getpass(f"{say(phrase)}: ")
        except (getpass.GetPassWarning, EOFError) as problem:
            raise Refused(say("login.no_terminal"), BAD_INPUT) from problem


def _asked_twice() -> str:
    new = _asked("login.new_password")
    if _asked("login.again") != new:
        raise Refused(say("login.differ"), BAD_INPUT)
    return new


def _change_password(session: PasswordSession, old: str, given: str | None) -> None:
    note(say("login.must_change"))
    session.change_password(old, _asked_twice() if given is None else given)


@click.command(help=say("logout"))
def logout() -> None:
    saved = read_login(os.environ)
    if saved is None:
        forget_login(os.environ)
        note(say("login.none"))
        return
    problem = _take_back(saved)
    forget_login(os.environ)
    note(say("logout.done", url=saved.url) if problem is None else say("logout.kept", problem=problem))


def _take_back(saved: SavedLogin) -> str | None:
    """Revoke the token on the server; returns what went wrong."""
    from gpuyard.sdk.client import Client

    try:
        with Client(saved.url, saved.token, language=LANGUAGE) as client:
            client.remove_token(saved.token_id)
    except YardApiError as error:
        return None if error.status == 401 else words_of(error)
    return None


@click.command(help=say("whoami"))
@output_option
def whoami(output: str) -> None:
    client = open_client()
    told = client.whoami()
    if output == "json":
        print_json(told.raw)
        return
    click.echo(say("whoami.line", name=told.user.name, role=told.role, url=client.door.url))
    groups = [m.group if m.role == "member" else f"{m.group} ({m.role})" for m in told.user.memberships]
    by, may = f"whoami.by.{told.via}", f"whoami.may.{told.scope}"
    print_fields(
        [
            ("groups", ", ".join(groups)),
            ("logged in by", say(by) if knows(by) else told.via),
            ("may", say(may, name=told.user.name, role=told.role) if knows(may) else told.scope),
        ]
    )


@click.command(help=say("version"))
@output_option
def version(output: str) -> None:
    found = {"client": VERSION, "server": _server_version()}
    if output == "json":
        print_json(found)
        return
    print_fields([("yard", VERSION), ("server", found["server"] or say("none"))])


def _server_version() -> str | None:
    try:
        return str(open_client().health()["version"])
    except YardApiError:
        return None


COMMANDS = (login, password, logout, whoami, version)
