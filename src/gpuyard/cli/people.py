"""Users, groups, tokens and the audit trail."""

from __future__ import annotations

import sys
from collections.abc import Iterable
from typing import TYPE_CHECKING

import click

from gpuyard.cli.cluster import QUOTA_HEADINGS, quota_row
from gpuyard.cli.failures import BAD_INPUT, NOT_FOUND, Refused
from gpuyard.cli.labels import label
from gpuyard.cli.output import local_time, note, number, print_fields, print_json, print_table, printable
from gpuyard.cli.phrases import say
from gpuyard.cli.shared import limits, open_client, output_option, print_listing

if TYPE_CHECKING:
    from gpuyard.sdk.client import Client
    from gpuyard.sdk.results import Group, Merge, QuotaLine, Token, User

ROLES = ["admin", "lead", "member"]
AUDIT_LIMIT = 100
_name = click.argument("name")
_password = click.option("--password", metavar="P", help=say("opt.password"))
_password_stdin = click.option("--password-stdin", is_flag=True, help=say("opt.password_stdin"))


def _given_password(password: str | None, from_stdin: bool) -> str | None:
    if from_stdin:
        return sys.stdin.readline().rstrip("\r\n")
    return password


# --- users --------------------------------------------------------------------------------------------------------


@click.group(help=say("user"))
def user() -> None:
    """Text is in the phrases."""


@user.command("create", help=say("create"))
@_name
@_password
@_password_stdin
@click.option("--group", metavar="G", help=say("opt.user_group"))
@click.option("--role", type=click.Choice(ROLES), default="member", help=say("opt.role"))
@output_option
def user_create(
    name: str, password: str | None, password_stdin: bool, group: str | None, role: str, output: str
) -> None:
    given = _given_password(password, password_stdin)
    made = open_client().create_user(name, password=given, group=group, role=role)
    if output == "json":
        print_json(made.raw)
        return
    note(say("done.created", name=made.name))
    if made.password:
        click.echo(say("done.password", password=made.password))


@user.command("ls", help=say("list"))
@output_option
def user_ls(output: str) -> None:
    print_listing(open_client().users(), output, ["NAME", "ROLE", "GROUPS", "ACTIVE"], _user_row)


def _user_row(person: User) -> list[str]:
    groups = ", ".join(m.group if m.role == "member" else f"{m.group} ({m.role})" for m in person.memberships)
    lead = any(m.role == "lead" for m in person.memberships)
    role = "admin" if person.admin else "lead" if lead else "member"
    return [person.name, role, groups or "-", label("yes" if person.active else "no")]


@user.command("show", help=say("show_one"))
@_name
@output_option
def user_show(name: str, output: str) -> None:
    person = open_client().user(name)
    if output == "json":
        print_json(person.raw)
        return
    print_fields(list(zip(["name", "role", "groups", "active"], _user_row(person), strict=True)))


@user.command("set", help=say("set"))
@_name
@click.option("--role", type=click.Choice(ROLES), help=say("opt.role"))
@click.option("--group", metavar="G", help=say("opt.user_group"))
@_password
@_password_stdin
@click.option("--quota", metavar="nvidia=2", help=say("opt.quota"))
@click.option("--active/--inactive", default=None, help=say("opt.active"))
def user_set(
    name: str,
    role: str | None,
    group: str | None,
    password: str | None,
    password_stdin: bool,
    quota: str | None,
    active: bool | None,
) -> None:
    client = open_client()
    given = _given_password(password, password_stdin)
    if all(value is None for value in (role, group, given, quota, active)):
        raise click.UsageError(say("usage.no_change", options="--role, --group, --password, --quota, --active"))
    _set_place(client, name, role, group)
    if active is not None:
        client.change_user(name, active=active)
    if quota is not None:
        client.set_quota(group or _only_group(client, name), limits(quota), user=name)
    if given is not None:
        client.set_password(name, given)
    note(say("done.changed", name=name))


def _set_place(client: Client, name: str, role: str | None, group: str | None) -> None:
    """Admin is a role on the whole platform; lead and member are roles in one group."""
    if role == "admin":
        client.change_user(name, admin=True)
    elif role is not None and client.user(name).admin:
        client.change_user(name, admin=False)
    if group is not None:
        client.set_member(group, name, role if role in ("lead", "member") else "member")
    elif role in ("lead", "member"):
        client.set_member(_only_group(client, name), name, role)


def _only_group(client: Client, name: str) -> str:
    groups = [m.group for m in client.user(name).memberships]
    if len(groups) != 1:
        raise click.UsageError(say("usage.which_group", name=name, groups=", ".join(groups) or say("none")))
    return groups[0]


@user.command("rm", help=say("rm"))
@_name
def user_rm(name: str) -> None:
    open_client().remove_user(name)
    note(say("done.removed", name=name))


# --- groups -------------------------------------------------------------------------------------------------------


@click.group(help=say("group"))
def group() -> None:
    """Text is in the phrases."""


_quota = click.option("--quota", metavar="nvidia=8,cpu=64", help=say("opt.quota"))
_guarantee = click.option("--guarantee", metavar="nvidia=4", help=say("opt.guarantee"))
_weight = click.option("--weight", metavar="W", type=click.FloatRange(0, 1000, min_open=True), help=say("opt.weight"))
_fifo = click.option("--fifo/--no-fifo", default=None, help=say("opt.fifo"))


@group.command("create", help=say("create"))
@_name
@_quota
@_guarantee
@_weight
@_fifo
@output_option
def group_create(
    name: str, quota: str | None, guarantee: str | None, weight: float | None, fifo: bool | None, output: str
) -> None:
    amounts = {"quota": limits(quota or ""), "guarantees": limits(guarantee or "", "--guarantee")}
    made = open_client().create_group(name, **amounts, weight=weight, fifo=fifo)
    if output == "json":
        print_json(made.raw)
        return
    note(say("done.created", name=made.name))
    _tell_warnings(made.warnings)


def _tell_warnings(warnings: Iterable[str]) -> None:
    for text in warnings:
        note(say("run.warning", text=printable(text)))


@group.command("ls", help=say("list"))
@output_option
def group_ls(output: str) -> None:
    headings = ["NAME", "MEMBERS", "WEIGHT", "FIFO", "QUOTA", "GUARANTEED"]
    print_listing(open_client().groups(), output, headings, _group_row)


def _group_row(team: Group) -> list[str]:
    quotas = [f"{cells[2]}={cells[4]}" for cells in map(quota_row, team.quotas) if cells[1] == "-" != cells[4]]
    promised = [f"{cells[2]}={cells[5]}" for cells in map(quota_row, team.quotas) if cells[5] != "-"]
    order = [number(team.weight), label("yes" if team.fifo else "no")]
    return [team.name, str(len(team.members)), *order, ",".join(quotas) or "-", ",".join(promised) or "-"]


@group.command("show", help=say("show_one"))
@_name
@output_option
def group_show(name: str, output: str) -> None:
    team = open_client().group(name)
    if output == "json":
        print_json(team.raw)
        return
    order = [("weight", number(team.weight)), ("first in, first out", label("yes" if team.fifo else "no"))]
    print_fields([("name", team.name), *order])
    if team.members:
        print_table(["MEMBER", "ROLE"], [[member.user, member.role] for member in team.members])
    if team.quotas:
        print_table(QUOTA_HEADINGS, [quota_row(line) for line in team.quotas])


@group.command("set", help=say("set"))
@_name
@_quota
@_guarantee
@_weight
@_fifo
@click.option("--add", multiple=True, metavar="USER[:ROLE]", help=say("opt.add"))
@click.option("--remove", multiple=True, metavar="USER", help=say("opt.remove"))
def group_set(
    name: str,
    quota: str | None,
    guarantee: str | None,
    weight: float | None,
    fifo: bool | None,
    add: tuple[str, ...],
    remove: tuple[str, ...],
) -> None:
    if all(value is None for value in (quota, guarantee, weight, fifo)) and not add and not remove:
        options = "--quota, --guarantee, --weight, --fifo, --add, --remove"
        raise click.UsageError(say("usage.no_change", options=options))
    client = open_client()
    if weight is not None or fifo is not None:
        client.change_group(name, weight=weight, fifo=fifo)
    if quota is not None or guarantee is not None:
        changed = client.set_quota(name, limits(quota or ""), guarantees=limits(guarantee or "", "--guarantee"))
        _tell_warnings(changed.warnings)
    for member in add:
        person, _, role = member.partition(":")
        client.set_member(name, person, role or "member")
    for member in remove:
        client.remove_member(name, member)
    note(say("done.changed", name=name))


@group.command("merge", help=say("merge"))
@click.argument("source")
@click.argument("target")
@click.option("--yes", is_flag=True, help=say("opt.yes"))
@output_option
def group_merge(source: str, target: str, yes: bool, output: str) -> None:
    client = open_client()
    if not yes:
        _tell_merge(client.merge_group(source, target, preview=True))
        click.confirm(say("merge.ask", source=source, target=target), abort=True, err=True)
    done = client.merge_group(source, target)
    if output == "json":
        print_json(done.raw)
        return
    note(say("done.merged", source=source, target=target))
    if yes:  # whoever was asked has seen them
        _tell_quotas(done)
    _tell_warnings(done.warnings)


def _tell_merge(plan: Merge) -> None:
    """What will happen, before anybody says yes to it."""
    names = {"source": plan.source, "target": plan.into}
    joining = ", ".join(plan.joining) or say("none")
    note(say("merge.members", names=joining, **names))
    if plan.leads_no_more:
        note(say("merge.leads", names=", ".join(plan.leads_no_more), **names))
    note(say("merge.work", live=plan.live, running=plan.running, ended=plan.ended, **names))
    note(say("merge.rest", **names))
    _tell_quotas(plan)


def _tell_quotas(plan: Merge) -> None:
    if plan.quotas:
        note(say("merge.quotas", target=plan.into))
        print_table(QUOTA_HEADINGS[:3] + QUOTA_HEADINGS[4:6], [_merged_row(line) for line in plan.quotas], err=True)


def _merged_row(line: QuotaLine) -> list[str]:
    cells = quota_row(line)
    return cells[:3] + cells[4:6]


@group.command("rm", help=say("rm"))
@_name
def group_rm(name: str) -> None:
    open_client().remove_group(name)
    note(say("done.removed", name=name))


# --- tokens -------------------------------------------------------------------------------------------------------


@click.group(help=say("token"))
def token() -> None:
    """Text is in the phrases."""


@token.command("create", help=say("create"))
@click.argument("name", default="yard")
@click.option("--scope", type=click.Choice(["read", "write", "admin"]), default="write", help=say("opt.scope"))
@click.option("--days", metavar="N", type=float, help=say("opt.days"))
@click.option("--user", "person", metavar="U", help=say("opt.for_user"))
@output_option
def token_create(name: str, scope: str, days: float | None, person: str | None, output: str) -> None:
    made = open_client().create_token(name, scope=scope, days=days, user=person)
    if output == "json":
        print_json(made.raw)
        return
    click.echo(made.token)
    note(say("done.token", id=made.id))


@token.command("ls", help=say("list"))
@click.option("--user", "person", metavar="U", help=say("opt.for_user"))
@output_option
def token_ls(person: str | None, output: str) -> None:
    headings = ["ID", "NAME", "USER", "SCOPE", "CREATED", "EXPIRES", "LAST USED"]
    print_listing(open_client().tokens(person), output, headings, _token_row)


def _token_row(key: Token) -> list[str]:
    times = [local_time(at) or "-" for at in (key.created_at, key.expires_at, key.last_used_at)]
    return [key.id, key.name, key.user, key.scope, *times]


@token.command("show", help=say("show_one"))
@click.argument("id", metavar="ID|NAME")
@output_option
def token_show(id: str, output: str) -> None:
    found = _meant_token(open_client(), id)
    if found is None:
        raise Refused(say("token.none", id=id), NOT_FOUND)
    if output == "json":
        print_json(found.raw)
        return
    headings = ["id", "name", "user", "scope", "created", "expires", "last used"]
    print_fields(list(zip(headings, _token_row(found), strict=True)))


@token.command("rm", help=say("rm"))
@click.argument("id", metavar="ID|NAME")
def token_rm(id: str) -> None:
    client = open_client()
    found = _meant_token(client, id)
    client.remove_token(found.id if found is not None else id)  # an admin may name the id of another's
    note(say("done.removed", name=id))


def _meant_token(client: Client, text: str) -> Token | None:
    """One's own token with this id, or the only one with this name."""
    own = client.tokens()
    found = [key for key in own if key.id == text] or [key for key in own if key.name == text]
    if len(found) > 1:
        raise Refused(say("token.several", name=text, ids=", ".join(key.id for key in found)), BAD_INPUT)
    return found[0] if found else None


# --- audit --------------------------------------------------------------------------------------------------------


@click.command(help=say("audit"))
@click.option("--limit", metavar="N", type=click.IntRange(1), default=AUDIT_LIMIT, help=say("opt.limit"))
@output_option
def audit(limit: int, output: str) -> None:
    print_listing(
        open_client().audit(limit),
        output,
        ["TIME", "WHO", "ACTION", "OBJECT", "FROM", "OUTCOME"],
        lambda line: [local_time(line.at), line.who, line.action, line.object, line.address, line.outcome],
    )


COMMANDS = (user, group, token, audit)
