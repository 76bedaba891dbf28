"""What the doctor looks at. Each check returns its findings; none of them changes anything."""

from __future__ import annotations

import ctypes
import json
import os
import shutil
import sys
import tempfile
import time
from collections.abc import Iterator
from email.utils import parsedate_to_datetime
from pathlib import Path

from gpuyard.cli.container_checks import container_findings
from gpuyard.cli.failures import words_of, words_of_file_error
from gpuyard.cli.findings import BROKEN, DOUBTFUL, GOOD, Finding
from gpuyard.cli.labels import label
from gpuyard.cli.phrases import LANGUAGE, knows, say
from gpuyard.domain.resources import GIB, show_bytes
from gpuyard.sdk.client import Client
from gpuyard.sdk.errors import YardApiError
from gpuyard.sdk.finding import OWNER_FILE, SERVER_FILE, default_data_folder
from gpuyard.sdk.version import VERSION

LITTLE_DISK, NO_DISK = 10 * GIB, GIB
MOST_SKEW_SECONDS = 5.0
_KEEP_SIZE, _PUNCH_HOLE = 0x01, 0x02
_SEES_ALL = 19  # CAP_SYS_PTRACE


def examine() -> list[Finding]:
    """The server first, then this machine's part of it when the data folder is here."""
    try:
        client = Client(language=LANGUAGE)
    except YardApiError as error:
        return [Finding("server", BROKEN, words_of(error)), *_local(_likely_folder(), "")]
    with client:
        return [*_server(client), *_local(client.door.data, _engine_of(client))]


def _engine_of(client: Client) -> str:
    """What runs the work; empty when the server does not say."""
    try:
        return client.whoami().engine
    except YardApiError:  # told already, where the login is looked at
        return ""


def _likely_folder() -> Path | None:
    folder = Path(os.environ.get("YARD_DATA") or default_data_folder(os.environ))
    return folder if folder.is_dir() else None


# --- the server ---------------------------------------------------------------------------------------------------


def _server(client: Client) -> Iterator[Finding]:
    begin = time.time()
    try:
        answer = client.wire.ask("GET", "/healthz")
    except YardApiError as error:
        yield Finding("server", BROKEN, words_of(error))
        return
    end = time.time()
    yield Finding("server", GOOD, say("doctor.server", url=client.door.url, took=round((end - begin) * 1000)))
    yield _version(str(answer.json().get("version")))
    yield from _clock(answer.headers.get("Date"), (begin + end) / 2)
    yield from _login_and_cards(client)


def _version(server: str) -> Finding:
    if server == VERSION:
        return Finding("version", GOOD, say("doctor.version", server=server))
    return Finding("version", DOUBTFUL, say("doctor.version_differs", client=VERSION, server=server))


def _clock(date: str | None, here: float) -> Iterator[Finding]:
    if date is None:
        return
    skew = abs(parsedate_to_datetime(date).timestamp() + 0.5 - here)  # the header counts whole seconds
    if skew <= MOST_SKEW_SECONDS:
        yield Finding("clock", GOOD, say("doctor.clock"))
    else:
        yield Finding("clock", DOUBTFUL, say("doctor.clock_off", seconds=round(skew)))


def _login_and_cards(client: Client) -> Iterator[Finding]:
    try:
        who = client.whoami()
        yield Finding("login", GOOD, say("doctor.login", name=who.user.name))
        if knows(f"doctor.engine.{who.engine}"):
            yield Finding("engine", GOOD, say(f"doctor.engine.{who.engine}"))
        yield from _cards(client)
        if who.scope == "admin" and who.user.admin:
            yield _database(client)
            yield _journal(client)
    except YardApiError as error:
        yield Finding("login", BROKEN, words_of(error))


def _cards(client: Client) -> Iterator[Finding]:
    cards = [(node, card) for node in client.nodes() for card in node.cards]
    if not cards:
        yield Finding("cards", DOUBTFUL, say("doctor.no_cards"))
        return
    simulated = f" ({label('simulated')})"
    kinds = sorted({f"{c.device}{simulated if c.simulated else ''}" for _, c in cards})
    yield Finding("cards", GOOD, say("doctor.cards", count=len(cards), kinds=", ".join(kinds)))
    for node, card in cards:
        if card.trouble:
            yield Finding("cards", DOUBTFUL, f"{node.name} {card.device} {card.index}: {card.trouble}")


def _journal(client: Client) -> Finding:
    journal = client.journal()
    if journal["problem"]:
        return Finding("journal", DOUBTFUL, say("doctor.journal_broken", problem=journal["problem"]))
    if not journal["kept"]:
        return Finding("journal", GOOD, say("doctor.journal_off"))
    if journal["damaged"]:
        told = say("doctor.journal_damaged", segments=", ".join(journal["damaged"]))
        return Finding("journal", DOUBTFUL, told)
    return Finding("journal", GOOD, say("doctor.journal", size=show_bytes(journal["bytes"])))


def _database(client: Client) -> Finding:
    """Have a backup written and thrown away: the server reads everything for it, and refuses a damaged database."""
    try:
        with tempfile.TemporaryDirectory() as folder:
            size = client.backup(Path(folder) / "backup")
    except YardApiError as error:
        return Finding("database", BROKEN, say("doctor.database_broken", problem=words_of(error)))
    return Finding("database", GOOD, say("doctor.database", size=show_bytes(size)))


# --- this machine -------------------------------------------------------------------------------------------------


def _local(data: Path | None, engine: str) -> Iterator[Finding]:
    if data is None:
        return
    yield _permissions(data)
    yield _disk(data)
    if sys.platform == "linux":
        yield _hole_punching(data)
        yield _cgroups()
        yield from _open_devices(data, engine)
        yield from container_findings(data, engine)


def _permissions(data: Path) -> Finding:
    try:
        others = [path for path in (data, data / OWNER_FILE) if path.exists() and path.stat().st_mode & 0o066]
    except OSError as error:
        return Finding("data", BROKEN, say("error.file", file=data, problem=words_of_file_error(error)))
    if others:
        return Finding("data", BROKEN, say("doctor.data_open", path=others[0]))
    return Finding("data", GOOD, say("doctor.data", data=data))


def _disk(data: Path) -> Finding:
    free = shutil.disk_usage(data).free
    mark = BROKEN if free < NO_DISK else DOUBTFUL if free < LITTLE_DISK else GOOD
    return Finding("disk", mark, say("doctor.disk", free=show_bytes(free)))


def _hole_punching(data: Path) -> Finding:
    """Long logs give their middle back to the disk; file systems without it (NFS, some FUSE) cannot."""
    libc = ctypes.CDLL(None, use_errno=True)
    try:
        with tempfile.TemporaryFile(dir=data) as file:
            file.write(b"\1" * 16384)
            file.flush()
            offset, length = ctypes.c_int64(0), ctypes.c_int64(8192)
            refused = libc.fallocate(file.fileno(), _KEEP_SIZE | _PUNCH_HOLE, offset, length)
    except OSError as error:
        return Finding("holes", BROKEN, say("error.file", file=data, problem=words_of_file_error(error)))
    if refused:
        return Finding("holes", DOUBTFUL, say("doctor.no_holes"))
    return Finding("holes", GOOD, say("doctor.holes"))


def _cgroups() -> Finding:
    root = Path("/sys/fs/cgroup")
    v2 = (root / "cgroup.controllers").exists()
    if not v2 and not (root / "memory").exists():
        return Finding("cgroups", DOUBTFUL, say("doctor.no_cgroups"))
    kind = "v2" if v2 else "v1"
    if not os.access(root if v2 else root / "memory", os.W_OK):
        return Finding("cgroups", DOUBTFUL, say("doctor.foreign_cgroups", kind=kind))
    return Finding("cgroups", GOOD, say("doctor.cgroups", kind=kind))


def _open_devices(data: Path, engine: str) -> Iterator[Finding]:
    """Whether the server sees who holds a card, whoever's process it is. The simulated engine has none to hold."""
    try:
        pid = json.loads((data / SERVER_FILE).read_text(encoding="utf-8"))["pid"]
        status = Path(f"/proc/{pid}/status").read_text(encoding="utf-8", errors="replace")
    except (OSError, ValueError, LookupError, TypeError):
        return  # no server runs here
    if engine in ("process", "container"):
        yield open_devices(status)


def open_devices(status: str) -> Finding:
    """By the /proc/PID/status of the server."""
    line = next((line for line in status.splitlines() if line.startswith("CapEff:")), "CapEff: 0")
    if int(line.split()[1], 16) >> _SEES_ALL & 1:
        return Finding("open devices", GOOD, say("doctor.open_devices"))
    return Finding("open devices", DOUBTFUL, say("doctor.own_open_devices"))
