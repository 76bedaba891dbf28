"""One's public keys for SSH."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import click

from gpuyard.cli.failures import BAD_INPUT, Refused
from gpuyard.cli.output import local_time, note, print_json
from gpuyard.cli.phrases import say
from gpuyard.cli.shared import open_client, output_option, print_listing

if TYPE_CHECKING:
    from gpuyard.sdk.client import Client
    from gpuyard.sdk.results import SshKey

USUAL = ("id_ed25519.pub", "id_ed25519_sk.pub", "id_ecdsa.pub", "id_ecdsa_sk.pub", "id_rsa.pub")
MOST_BYTES = 64 * 1024


@click.group(help=say("key"))
def key() -> None:
    """Text is in the phrases."""


@key.command("add", help=say("key.add"))
@click.argument("file", required=False, metavar="[FILE|-]")
@click.option("--name", help=say("opt.key_name"))
@output_option
def key_add(file: str | None, name: str | None, output: str) -> None:
    client = open_client()
    made = client.add_key(_read(file), name=name)
    if output == "json":
        print_json(made.raw)
        return
    note(say("done.key", name=made.name, fingerprint=made.fingerprint))
    if client.whoami().user.must_change_password:
        note(say("env.password_first"))


def _read(file: str | None) -> str:
    """The text to send. What is plainly a private key never leaves this machine."""
    if file == "-":
        text, shown = sys.stdin.read(MOST_BYTES), "-"
    else:
        path = Path(file) if file is not None else _usual_file()
        with path.open(encoding="utf-8", errors="replace") as opened:
            text, shown = opened.read(MOST_BYTES), str(path)
    if "PRIVATE KEY" in text:
        raise Refused(say("key.private", file=shown), BAD_INPUT)
    return text


def _usual_file() -> Path:
    folder = Path(os.path.expanduser("~/.ssh"))
    for name in USUAL:
        if (folder / name).is_file():
            return folder / name
    raise Refused(say("key.no_file", folder=folder), BAD_INPUT)


@key.command("ls", help=say("list"))
@click.option("--user", "person", metavar="U", help=say("opt.for_user"))
@output_option
def key_ls(person: str | None, output: str) -> None:
    headings = ["ID", "NAME", "USER", "KIND", "FINGERPRINT", "CREATED", "LAST USED"]
    print_listing(open_client().keys(person), output, headings, _row)


def _row(found: SshKey) -> list[str]:
    times = [local_time(at) or "-" for at in (found.created_at, found.last_used_at)]
    return [found.id, found.name, found.user, found.kind, found.fingerprint, *times]


@key.command("rm", help=say("rm"))
@click.argument("id", metavar="ID|NAME|FINGERPRINT")
def key_rm(id: str) -> None:
    client = open_client()
    client.remove_key(_meant(client, id))
    note(say("done.removed", name=id))


def _meant(client: Client, text: str) -> str:
    """The id of one's own key with this id, fingerprint or name; else the text, for an admin who means another's."""
    own = client.keys()
    found = [one for one in own if text in (one.id, one.fingerprint)] or [one for one in own if one.name == text]
    if len(found) > 1:
        raise Refused(say("key.several", name=text, ids=", ".join(one.id for one in found)), BAD_INPUT)
    return found[0].id if found else text


COMMANDS = (key,)
