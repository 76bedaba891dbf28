"""`dlc config`: a password is shown to the server once, for a token that is kept."""

from __future__ import annotations

import getpass
import os
import socket
import sys
from collections.abc import Callable

from gpuyard.doors.asking import Server, in_path
from gpuyard.doors.cobra import Given
from gpuyard.doors.dlc import config
from gpuyard.doors.dlc.config import Config
from gpuyard.doors.dlc.endpoint import address
from gpuyard.doors.dlc.saying import Failed, failure_of, ok
from gpuyard.sdk.errors import YardApiError
from gpuyard.sdk.finding import Door, choose_language, server_uid_named

ASKED = ("username", "password", "region", "endpoint")
REQUIRED = ("username", "password", "endpoint")
KEYS_OF_THE_CLOUD = ("access_id", "access_key")
LONGEST_TOKEN_NAME = 64


def run(given: Given) -> int:
    if any(name in given.flags for name in KEYS_OF_THE_CLOUD):
        raise Failed("access keys are not used here: give --username and --password")
    file = config.file_of(given)
    if file.is_dir():  # known before a token is made for it
        raise Failed(f"write {file}: is a directory")
    before = _before(file_config=lambda: config.read(file))
    values = _values(given, before)
    new = _logged_in(values, given.text("protocol"))
    try:
        config.write(file, new)
    except Failed:
        _give_back(new)
        raise
    if before is not None:
        _give_back(before)
    ok(f"Configuration was saved to {file}")
    return 0


def _before(file_config: Callable[[], Config | None]) -> Config | None:
    """What is replaced. One that makes no sense is replaced too."""
    try:
        return file_config()
    except Failed:
        return None


def _values(given: Given, before: Config | None) -> dict[str, str]:
    """From flags; without any of them, everything is asked for; what must be there is asked for in any case."""
    is_asking = not any(name in given.flags for name in ASKED)
    values = {name: given.text(name) for name in ASKED}
    for name in ASKED:
        if not values[name] and (is_asking or name in REQUIRED):
            usual = "" if name == "password" or before is None else str(getattr(before, name))
            values[name] = _asked(name, usual)
    missing = [f'"{name}"' for name in REQUIRED if not values[name]]
    if missing:
        raise Failed(f"required flag(s) {', '.join(missing)} not set")
    return values


def _asked(name: str, usual: str) -> str:
    shown = f"{name} [{usual}]: " if usual else f"{name}: "
    if name == "password" and sys.stdin.isatty():
        return getpass.getpass(shown)
    print(shown, end="", file=sys.stderr, flush=True)
    return sys.stdin.readline().strip("\r\n") or usual


def _logged_in(values: dict[str, str], protocol: str) -> Config:
    from gpuyard.sdk.login import PasswordSession  # its library takes long to load, and is needed here alone

    url = address(values["endpoint"], protocol)
    try:
        with PasswordSession(
            url, choose_language(os.environ), insecure_http=True, server_uid=server_uid_named(os.environ)
        ) as session:
            if session.log_in(values["username"], values["password"]):
                words = "this is a one-time password and must be changed first: log in on the web page, or"
                raise Failed(f"{words} run 'yard login {url}'", 403)
            name = f"dlc on {socket.gethostname()}"[:LONGEST_TOKEN_NAME]
            token = session.make_token(name, "write")
            session.log_out()
    except YardApiError as refusal:
        raise _explained(refusal, url, values["endpoint"]) from refusal
    return Config(values["endpoint"], str(token.token), values["username"], values["region"], protocol, str(token.id))


def _explained(refusal: YardApiError, url: str, endpoint: str) -> Failed:
    failure = failure_of(refusal)
    if refusal.status == 0 and url.startswith("https:") and "://" not in endpoint:
        return Failed(f"{failure.text} If it speaks no https and the way to it is safe, add --protocol http.", 503)
    return Failed(refusal.message, failure.code) if refusal.status == 401 else failure


def _give_back(before: Config) -> None:
    """The token of a configuration that is not used, or no longer. A server that is gone keeps it until it expires."""
    if not before.token_id:
        return
    try:
        with Server(
            Door(address(before.endpoint, before.protocol), before.token, None, server_uid_named(os.environ))
        ) as server:
            server.delete(f"/tokens/{in_path(before.token_id)}")
    except (YardApiError, Failed):
        return
