"""Where the server is and as whom to speak to it.

In this order: what the caller gave; YARD_URL (with YARD_TOKEN); the data folder YARD_DATA; the saved login; the default
data folder. A data folder proves ownership by its secret file, never by address.

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
    from pathlib import Path

SERVER_FILE, OWNER_FILE = "server.json", "owner.token"


class Door(NamedTuple):
    """One way to one server."""

    url: str
    token: str | None = None
    data: Path | None = None  # set when found through a data folder on this machine

    @property
    def on_this_machine(self) -> bool:
        return is_loopback(self.url)


class SavedLogin(NamedTuple):
    url: str
    token: str
    token_id: str = ""


def find_server(url: str | None, token: str | None, data: Path | None, env: Mapping[str, str]) -> Door:
    """The server to talk to. Raises ServerUnreachable when there is none to be found."""
    token = token or env.get("YARD_TOKEN") or None
    url = url or (env.get("YARD_URL") if data is None else None) or None
    if url:
        return Door(clean_url(url), token or _token_saved_for(url, env))
    data = data or _data_named(env)
    if data is not None:
        return _door_of(data.expanduser(), token)
    login = read_login(env)
    if login is not None:
        return Door(login.url, token or login.token)
    return _door_of(default_data_folder(env), token)


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
        return SavedLogin(str(saved["url"]), str(saved["token"]), str(saved.get("token_id", "")))
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
        json.dump({"url": login.url, "token": login.token, "token_id": login.token_id}, out)
    part.replace(file)
    return file


def forget_login(env: Mapping[str, str]) -> bool:
    try:
        login_file(env).unlink()
    except FileNotFoundError:
        return False
    return True


def _token_saved_for(url: str, env: Mapping[str, str]) -> str | None:
    login = read_login(env)
    return login.token if login is not None and login.url == clean_url(url) else None


def choose_language(env: Mapping[str, str]) -> str:
    """`zh` or `en`, from YARD_LANG, else from the locale."""
    for name in ("YARD_LANG", "LC_ALL", "LC_MESSAGES", "LANG"):
        value = env.get(name, "")
        if value:
            return "zh" if value.lower().startswith("zh") else "en"
    return "en"
