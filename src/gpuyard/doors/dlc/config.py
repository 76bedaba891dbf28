"""`~/.dlc/config`: where the server is and as whom to speak to it. It holds a token, never a password."""

from __future__ import annotations

import contextlib
import os
from dataclasses import dataclass, fields
from pathlib import Path

from gpuyard.dialects.dlc import params
from gpuyard.doors.asking import Server
from gpuyard.doors.cobra import Given
from gpuyard.doors.dlc.endpoint import address
from gpuyard.doors.dlc.saying import UNAUTHORIZED, Failed
from gpuyard.sdk.errors import NotAllowed, ServerUnreachable
from gpuyard.sdk.finding import Door, choose_language, server_uid_named

ONLY_OWNER = 0o600
LOG_IN = "Run 'dlc config --username NAME --password PASSWORD --region REGION --endpoint HOST' first."


@dataclass(frozen=True, slots=True)
class Config:
    endpoint: str
    token: str
    username: str = ""
    region: str = ""
    protocol: str = ""
    token_id: str = ""


def file_of(given: Given) -> Path:
    named = given.text("config")
    return Path(named).expanduser() if named else Path(os.environ.get("HOME") or Path.home()) / ".dlc" / "config"


def read(file: Path) -> Config | None:
    """None when there is none. Raises Failed for one that cannot be read or understood."""
    try:
        with file.open("rb") as kept:
            text = kept.read(params.MAX_BYTES).decode("utf-8")
    except FileNotFoundError:
        return None
    except (OSError, UnicodeDecodeError) as problem:
        raise Failed(f"open {file}: {reason(problem)}") from problem
    entries, mistakes = params.split(text)
    values = {entry.key: entry.value for entry in entries}
    if mistakes or not values.get("endpoint") or not values.get("token"):
        raise Failed(f"{file} is not a configuration of this dlc. {LOG_IN}")
    return Config(**{field.name: values.get(field.name, "") for field in fields(Config)})


def write(file: Path, config: Config) -> None:
    """Written aside and renamed; nobody but its owner can read it, from the first byte on. Raises Failed."""
    text = params.join((field.name, getattr(config, field.name)) for field in fields(Config))
    part = file.with_name(f".{file.name}.{os.getpid()}.part")
    try:
        file.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        part.unlink(missing_ok=True)
        with open(os.open(part, os.O_WRONLY | os.O_CREAT | os.O_EXCL, ONLY_OWNER), "w", encoding="utf-8") as out:
            out.write(text)
        part.replace(file)
    except OSError as problem:
        with contextlib.suppress(OSError):
            part.unlink()
        raise Failed(f"write {file}: {reason(problem)}") from problem


def reason(problem: Exception) -> str:
    return (getattr(problem, "strerror", None) or str(problem)).lower()


def server(given: Given) -> Server:
    """The server of the configuration; without one, that which `yard` would ask. Raises Failed."""
    file, language = file_of(given), choose_language(os.environ)
    config = read(file)
    if config is not None:
        uid = server_uid_named(os.environ)
        return Server(Door(address(config.endpoint, config.protocol), config.token, None, uid), language)
    if given.text("config"):
        raise Failed(f"open {file}: no such file or directory. {LOG_IN}")
    try:
        return Server.found()
    except (ServerUnreachable, NotAllowed) as nobody:
        if os.environ.get("YARD_DATA"):  # who names a data folder wants to know what is the matter with it
            raise
        raise Failed(f"no configuration in {file}. {LOG_IN}", UNAUTHORIZED) from nobody
