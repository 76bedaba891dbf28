"""`yard up` and `yard down`: the server on this machine, in front or in the background."""

from __future__ import annotations

import contextlib
import gc
import json
import os
import signal
import subprocess
import sys
import time
import traceback
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import click

from gpuyard.cli.failures import FAILED, Refused
from gpuyard.cli.output import note
from gpuyard.cli.phrases import LANGUAGE, say
from gpuyard.cli.processes import gateway_pids, is_gone, is_our_server
from gpuyard.sdk.errors import YardApiError
from gpuyard.sdk.finding import SERVER_FILE, Door, default_data_folder

READY_SECONDS = 60.0  # a large database may have to be brought to a new schema first
END_SECONDS = 30.0
TAIL_LINES = 15
LOG_FILE, PID_FILE, PASSWORD_FILE = "server.log", "server.pid", "first-password"


_PORT = click.IntRange(0, 65535)


def data_option(command: Any) -> Any:
    return click.option(
        "--data", type=click.Path(file_okay=False, path_type=Path), envvar="YARD_DATA", help=say("opt.data")
    )(command)


def data_folder(data: Path | None) -> Path:
    return (data or default_data_folder(os.environ)).expanduser().absolute()


@click.command(help=say("up"))
@data_option
@click.option("--host", envvar="YARD_HOST", metavar="H", help=say("opt.host"))
@click.option("--port", envvar="YARD_PORT", metavar="P", type=click.IntRange(0, 65535), help=say("opt.port"))
@click.option(
    "--engine",
    envvar="YARD_ENGINE",
    type=click.Choice(["auto", "process", "container", "simulated"]),
    help=say("opt.engine"),
)
@click.option("--simulate-cards", envvar="YARD_SIMULATE_CARDS", metavar="N[:type]", help=say("opt.simulate_cards"))
@click.option("--nodes", envvar="YARD_NODES", metavar="20x8", help=say("opt.nodes"))
@click.option("--database", envvar="YARD_DATABASE", metavar="URL", help=say("opt.database"))
@click.option("--tls-cert", envvar="YARD_TLS_CERT", type=click.Path(path_type=Path), help=say("opt.tls_cert"))
@click.option("--tls-key", envvar="YARD_TLS_KEY", type=click.Path(path_type=Path), help=say("opt.tls_key"))
@click.option("--insecure-http", envvar="YARD_INSECURE_HTTP", is_flag=True, default=None, help=say("opt.insecure_http"))
@click.option("--gateway-port", envvar="YARD_GATEWAY_PORT", type=_PORT, metavar="P", help=say("opt.gateway_port"))
@click.option("--ssh-port", envvar="YARD_SSH_PORT", type=_PORT, metavar="P", help=say("opt.ssh_port"))
@click.option("--apps-domain", envvar="YARD_APPS_DOMAIN", metavar="NAME", help=say("opt.apps_domain"))
@click.option("--gateway-paths", envvar="YARD_GATEWAY_PATHS", is_flag=True, default=None, help=say("opt.gateway_paths"))
@click.option("--detach", is_flag=True, help=say("opt.up_detach"))
def up(data: Path | None, detach: bool, **options: Any) -> int:
    given = {name: value for name, value in options.items() if value is not None}
    _check_tls(given)
    folder = data_folder(data)
    if detach:
        start_in_background(folder, given)
        return 0
    if sys.stderr.isatty():
        note(say("up.foreground"))
    try:
        return _serve(folder, given)
    except Refused:
        raise
    except Exception:
        traceback.print_exc()  # whoever runs a server needs to see where it broke
        raise


def _check_tls(given: dict[str, Any]) -> None:
    if ("tls_cert" in given) != ("tls_key" in given):
        raise click.UsageError(say("up.tls_pair"))
    for name in ("tls_cert", "tls_key"):
        if name in given:
            given[name] = given[name].expanduser().absolute()
            given[name].open("rb").close()  # said now and by name, not later by the TLS library


def _serve(folder: Path, given: Mapping[str, Any]) -> int:
    gc.disable()  # loading makes no garbage, looking for it costs a tenth of the start; `serve` turns it on again
    try:
        from gpuyard.settings import Settings
        from gpuyard.wiring import serve
    except ModuleNotFoundError as missing:
        if missing.name is not None and missing.name.partition(".")[0] == "gpuyard":
            raise
        raise Refused(say("up.no_server_part", detail=missing)) from missing
    from gpuyard.cli.local_words import domain_errors_in_words

    with domain_errors_in_words():
        return serve(Settings(data=folder, **given))


# --- in the background --------------------------------------------------------------------------------------------


def start_in_background(folder: Path, given: Mapping[str, Any]) -> None:
    _refuse_a_second(folder)
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    log = folder / LOG_FILE
    with open(os.open(log, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600), "ab") as out:
        log_start = out.tell()
        server = subprocess.Popen(
            [sys.executable, "-m", "gpuyard.cli.main", "up", "--data", str(folder)],
            env={**os.environ, **_as_environment(given)},  # not as arguments: a database URL may hold a password
            stdin=subprocess.DEVNULL,
            stdout=out,
            stderr=out,
            start_new_session=True,
            cwd=folder,
        )
    url = _wait_until_ready(server, folder, log, log_start)
    server.returncode = 0  # it goes on without us, and Popen need not warn of that
    _write_pid(folder, server.pid)
    click.echo(say("up.ready", url=url))
    password = _take_first_password(folder)
    if password:
        click.echo(say("up.first", password=password))
    note(say("up.stop_with"))


def _refuse_a_second(folder: Path) -> None:
    """Said here, in one language. The server's own lock is what keeps a second one out."""
    told = running_server(folder)
    if told is not None and not is_gone(told.pid) and is_our_server(told.pid, told.started_at):
        raise Refused(say("up.already", pid=told.pid, data=folder, url=told.url))


def _as_environment(given: Mapping[str, Any]) -> dict[str, str]:
    return {f"YARD_{name.upper()}": str(int(value) if value is True else value) for name, value in given.items()}


def _wait_until_ready(server: subprocess.Popen[bytes], folder: Path, log: Path, log_start: int) -> str:
    deadline = time.monotonic() + READY_SECONDS
    while time.monotonic() < deadline:
        if server.poll() is not None:
            raise Refused(f"{say('up.failed', log=log)}\n{_tail(log, log_start)}")
        told = running_server(folder)
        if told is not None and told.pid == server.pid and _answers(told.url, folder):
            return told.url
        time.sleep(0.05)
    raise Refused(say("up.slow", seconds=int(READY_SECONDS), log=log))


def _answers(url: str, folder: Path) -> bool:
    from gpuyard.sdk.wire import Wire

    wire = Wire(Door(url, data=folder), LANGUAGE)
    try:
        return bool(wire.get("/healthz"))
    except YardApiError:
        return False
    finally:
        wire.close()


def _tail(log: Path, start: int) -> str:
    with log.open("rb") as file:
        file.seek(start)
        lines = file.read().decode("utf-8", "replace").splitlines()
    return "\n".join(f"  {line}" for line in lines[-TAIL_LINES:])


def _write_pid(folder: Path, pid: int) -> None:
    with open(os.open(folder / PID_FILE, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "w") as file:
        file.write(f"{pid}\n")


def _take_first_password(folder: Path) -> str | None:
    """Shown here and nowhere else afterwards."""
    file = folder / PASSWORD_FILE
    try:
        password = file.read_text(encoding="utf-8").strip()
    except FileNotFoundError:
        return None
    file.unlink()
    return password


# --- down ---------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class RunningServer:
    """What a server wrote about itself."""

    url: str
    pid: int
    started_at: float


def running_server(folder: Path) -> RunningServer | None:
    """The server said to run on this folder, or None. Whether it still lives is another question."""
    try:
        told = json.loads((folder / SERVER_FILE).read_text(encoding="utf-8"))
        return RunningServer(str(told["url"]), int(told["pid"]), float(told["started_at"]))
    except (FileNotFoundError, ValueError, KeyError, TypeError):
        return None


@click.command(help=say("down"))
@data_option
@click.option("--all", "everything", is_flag=True, help=say("opt.down_all"))
def down(data: Path | None, everything: bool) -> int:
    folder = data_folder(data)
    told = running_server(folder)
    if told is None or is_gone(told.pid):
        _forget(folder, told)
        note(say("down.none", data=folder))
        _end_gateway(folder) if everything else _tell_of_gateway(folder)
        return 0
    if not is_our_server(told.pid, told.started_at):
        raise Refused(say("down.not_ours", pid=told.pid, data=folder))
    going_on, environments = _going_on(folder)
    os.kill(told.pid, signal.SIGTERM)
    if not _ended(told.pid):
        raise Refused(say("down.stuck", pid=told.pid, seconds=int(END_SECONDS)), FAILED)
    _forget(folder, told)
    note(say("down.done"))
    if environments and not everything and gateway_pids(folder):
        note(say("down.gateway_goes_on", count=environments))
    else:
        _end_gateway(folder)
    if going_on:
        note(say("down.goes_on", count=going_on))
    return 0


def _end_gateway(folder: Path) -> None:
    """The server is gone, so nobody starts them again."""
    pids = gateway_pids(folder)
    for pid in pids:
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGTERM)
    for pid in pids:
        if not _ended(pid):
            raise Refused(say("down.stuck", pid=pid, seconds=int(END_SECONDS)), FAILED)
    if pids:
        note(say("down.gateway_done"))


def _tell_of_gateway(folder: Path) -> None:
    if gateway_pids(folder):
        note(say("down.gateway_left"))


def _forget(folder: Path, gone: RunningServer | None) -> None:
    """What a server that ended, or was killed, left behind about itself. Another one's notes stay."""
    (folder / PID_FILE).unlink(missing_ok=True)
    if gone is not None and running_server(folder) == gone:
        (folder / SERVER_FILE).unlink(missing_ok=True)


def _going_on(folder: Path) -> tuple[int, int]:
    """How many go on without the server, and how many of these are dev environments. Not knowing is no reason not to
    stop it."""
    from gpuyard.sdk.client import Client

    with contextlib.suppress(YardApiError), Client(data=folder, token=_owner_token(folder)) as client:
        kinds = [job.raw.get("kind") for job in client.jobs(state="running")]
        return len(kinds), kinds.count("env")
    return 0, 0


def _owner_token(folder: Path) -> str | None:
    """The owner's secret before YARD_TOKEN: whoever may stop the server may count what runs on it."""
    from gpuyard.sdk.finding import OWNER_FILE

    with contextlib.suppress(OSError):
        return (folder / OWNER_FILE).read_text(encoding="ascii").strip()
    return None


def _ended(pid: int) -> bool:
    deadline = time.monotonic() + END_SECONDS
    while time.monotonic() < deadline:
        if is_gone(pid):
            return True
        time.sleep(0.05)
    return False


COMMANDS = (up, down)
