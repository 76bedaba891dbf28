"""Where the server is and as whom to speak to it.

In this order: what the caller gave; YARD_URL (with YARD_TOKEN); the data folder YARD_DATA; the saved login; the default
data folder. A data folder proves ownership by its secret file, never by address. And the server proves itself before it
is told any secret: by its certificate, or on this machine by the user it runs as.

Programs that are started by the hundred come through here, so that what not all of them need is loaded when it is.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from typing import TYPE_CHECKING, NamedTuple

from gpuyard.sdk.address import split_address
from gpuyard.sdk.errors import BadInput, NotAllowed, ServerUnreachable

if TYPE_CHECKING:
    import socket
    from pathlib import Path

SERVER_FILE, OWNER_FILE = "server.json", "owner.token"


class Door(NamedTuple):
    """One way to one server."""

    url: str
    token: str | None = None
    data: Path | None = None  # set when found through a data folder on this machine
    server_uid: int | None = None  # as whom it runs on this machine, when that is neither root nor we

    @property
    def on_this_machine(self) -> bool:
        return is_loopback(self.url)

    @property
    def believes_certificates(self) -> bool:
        """For a server found through its data folder none is needed: one made for the machine's public name cannot
        match 127.0.0.1, and between two processes of one machine TLS protects nothing."""
        return self.url.startswith("https:") and not (self.data is not None and self.on_this_machine)

    def require_server(self, sock: socket.socket) -> None:
        """Before anything is sent. Raises an OSError when on this machine somebody else took the connection."""
        if self.believes_certificates:
            return
        from gpuyard.sdk.peers import require_user

        require_user(sock, {os.geteuid() if self.data is None else self.data.stat().st_uid, self.server_uid})


class SavedLogin(NamedTuple):
    url: str
    token: str
    token_id: str = ""
    server_uid: int | None = None


def find_server(url: str | None, token: str | None, data: Path | None, env: Mapping[str, str]) -> Door:
    """The server to talk to. Raises ServerUnreachable when there is none to be found."""
    token = token or env.get("YARD_TOKEN") or None
    url = url or (env.get("YARD_URL") if data is None else None) or None
    if url:
        url = clean_url(url)
        saved = read_login(env) if token is None else None
        return _door_at(saved if saved is not None and saved.url == url else SavedLogin(url, ""), token, env)
    data = data or _data_named(env)
    if data is not None:
        return _door_of(data.expanduser(), token)
    login = read_login(env)
    if login is not None:
        return _door_at(login, token, env)
    return _door_of(default_data_folder(env), token)


def _door_at(login: SavedLogin, token: str | None, env: Mapping[str, str]) -> Door:
    named = server_uid_named(env)
    return Door(login.url, token or login.token or None, None, login.server_uid if named is None else named)


def server_uid_named(env: Mapping[str, str]) -> int | None:
    return uid_of(env["YARD_SERVER_USER"]) if env.get("YARD_SERVER_USER") else None


def uid_of(user: str) -> int:
    """A name, or a number."""
    import pwd

    try:
        return int(user) if user.isdecimal() else pwd.getpwnam(user).pw_uid
    except (KeyError, ValueError) as error:
        raise BadInput("client.no_such_user", f"no user {user} on this machine", {"user": user}, status=400) from error


def _data_named(env: Mapping[str, str]) -> Path | None:
    from pathlib import Path

    return Path(env["YARD_DATA"]) if env.get("YARD_DATA") else None


def clean_url(url: str) -> str:
    """`host:8080` -> `http://host:8080`; no slash at the end."""
    text = url.strip()
    if "://" not in text:
        text = "http://" + text
    try:
        parts = split_address(text)
        good = parts.scheme in ("http", "https") and parts.host and parts.port != 0
    except ValueError:  # a port that is no number, a bracket left open
        good = False
    if not good:
        raise BadInput("client.bad_url", f"not an address of a server: {url}", {"url": url}, status=400)
    return text.rstrip("/")


def safe_url(written: str) -> str:
    """The same for an address as people have it in their notes: without a scheme it is https, unless it is this very
    machine. Nothing secret is sent unprotected because something was left out."""
    url = clean_url(written)
    return url if "://" in written or is_loopback(url) else "https" + url.removeprefix("http")


def is_loopback(url: str) -> bool:
    host = split_address(url).host
    return host in ("localhost", "::1") or _is_in_127(host)


def _is_in_127(host: str) -> bool:
    parts = host.split(".")
    return len(parts) == 4 and parts[0] == "127" and all(p.isascii() and p.isdigit() and len(p) <= 3 for p in parts)


def default_data_folder(env: Mapping[str, str]) -> Path:
    from pathlib import Path

    if os.geteuid() == 0:
        return Path("/var/lib/gpuyard")
    return Path(env.get("HOME") or Path.home()) / ".local/share/gpuyard"


def _door_of(data: Path, token: str | None) -> Door:
    try:
        url = _address_in(data)
    except PermissionError as error:
        raise _not_owner(data) from error
    except (OSError, ValueError, KeyError, TypeError) as error:
        words = f"no server runs on the data folder {data}; start one with `yard up`, or log in with `yard login URL`"
        raise ServerUnreachable("client.no_server", words, {"data": str(data)}) from error
    return Door(clean_url(url), token or _owner_secret(data), data)


def found_again(door: Door) -> Door:
    """The same server's way now: one that was restarted may listen on another port. As it was when nothing is told."""
    if door.data is None:
        return door
    try:
        return door._replace(url=clean_url(_address_in(door.data)))
    except (OSError, ValueError, KeyError, TypeError, BadInput):
        return door


def _address_in(data: Path) -> str:
    return str(json.loads((data / SERVER_FILE).read_text(encoding="utf-8"))["url"])


def _owner_secret(data: Path) -> str | None:
    try:
        return (data / OWNER_FILE).read_text(encoding="ascii").strip() or None
    except PermissionError as error:
        raise _not_owner(data) from error
    except FileNotFoundError:
        return None


def _not_owner(data: Path) -> NotAllowed:
    words = f"the data folder {data} belongs to someone else; log in with `yard login URL`"
    return NotAllowed("client.not_owner", words, {"data": str(data)}, status=403)


# --- the saved login ----------------------------------------------------------------------------------------------


def login_file(env: Mapping[str, str]) -> Path:
    from pathlib import Path

    config = env.get("XDG_CONFIG_HOME") or Path(env.get("HOME") or Path.home()) / ".config"
    return Path(config) / "gpuyard" / "login.json"


def read_login(env: Mapping[str, str]) -> SavedLogin | None:
    """The saved login, or None. A file that cannot be understood counts as none: logging in again mends it."""
    try:
        saved = json.loads(login_file(env).read_text(encoding="utf-8"))
        uid = saved.get("server_uid")
        return SavedLogin(
            str(saved["url"]), str(saved["token"]), str(saved.get("token_id", "")), None if uid is None else int(uid)
        )
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        return None


def save_login(login: SavedLogin, env: Mapping[str, str]) -> Path:
    """Written aside and renamed, readable by its owner alone from the first byte on."""
    file = login_file(env)
    file.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    part = file.with_suffix(f".{os.getpid()}.part")
    part.unlink(missing_ok=True)
    descriptor = os.open(part, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    with open(descriptor, "w", encoding="utf-8") as out:
        json.dump(login._asdict(), out)
    part.replace(file)
    return file


def forget_login(env: Mapping[str, str]) -> bool:
    try:
        login_file(env).unlink()
    except FileNotFoundError:
        return False
    return True


def choose_language(env: Mapping[str, str]) -> str:
    """`zh` or `en`, from YARD_LANG, else from the locale."""
    for name in ("YARD_LANG", "LC_ALL", "LC_MESSAGES", "LANG"):
        value = env.get(name, "")
        if value:
            return "zh" if value.lower().startswith("zh") else "en"
    return "en"
