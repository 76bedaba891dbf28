"""The command itself: all subcommands in one group, and every error turned into words and an exit code."""

from __future__ import annotations

import contextlib
import os
import sys
from collections.abc import Sequence

import click

from gpuyard.cli import (
    account,
    cluster,
    doctor,
    envs,
    images,
    importing,
    jobs,
    keeping,
    keys,
    ledger,
    logs,
    people,
    policy,
    replaying,
    run,
    server,
)
from gpuyard.cli import shell as shells
from gpuyard.cli import toolbox as tools
from gpuyard.cli.failures import INTERRUPTED, InFile, Refused, tell_api_error, tell_bug, tell_file_error, tell_refused
from gpuyard.cli.help_frame import frame, show_mistake
from gpuyard.cli.phrases import say
from gpuyard.cli.shared import InOrder
from gpuyard.sdk.errors import YardApiError
from gpuyard.sdk.version import VERSION

PIPE_CLOSED = 141  # as a shell tells SIGPIPE
SETTINGS = {"help_option_names": ["-h", "--help"], "max_content_width": 110, "auto_envvar_prefix": None}


@click.group(cls=InOrder, help=say("yard"), epilog=say("environment"), context_settings=SETTINGS)
@click.version_option(VERSION, "-V", "--version", prog_name="yard", message="%(prog)s %(version)s")
def yard() -> None:
    """Text is in the phrases."""


for room in (
    run,
    jobs,
    importing,
    logs,
    shells,
    envs,
    images,
    cluster,
    ledger,
    account,
    keys,
    people,
    policy,
    replaying,
    server,
    tools,
    keeping,
    doctor,
):
    for command in room.COMMANDS:
        yard.add_command(command)
frame(yard)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line and return the exit code."""
    for stream in (sys.stdout, sys.stderr):
        with contextlib.suppress(AttributeError):
            stream.reconfigure(errors="replace")  # type: ignore[union-attr]
    try:
        return _run(list(sys.argv[1:] if arguments is None else arguments))
    except BrokenPipeError:
        # Whoever read the output has left. Python must not complain about it a second time while it ends.
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
        return PIPE_CLOSED


def _run(arguments: list[str]) -> int:
    try:
        answer = yard.main(arguments, prog_name="yard", standalone_mode=False)
        sys.stdout.flush()
        return answer if isinstance(answer, int) else 0
    except click.exceptions.Exit as done:
        return done.exit_code
    except click.ClickException as error:  # bad usage: click shows the usage line and the mistake
        show_mistake(error)
        return error.exit_code
    except (click.Abort, KeyboardInterrupt):
        return INTERRUPTED
    except SystemExit:  # click's only use of it here: whoever read the output has left
        return PIPE_CLOSED
    except BrokenPipeError:
        raise
    except Exception as error:
        if os.environ.get("YARD_DEBUG"):
            raise
        return _tell(error)


def _tell(error: Exception) -> int:
    if isinstance(error, YardApiError):
        return tell_api_error(error)
    if isinstance(error, InFile):
        return tell_api_error(error.refusal, about=error.file)
    if isinstance(error, Refused):
        return tell_refused(error)
    if isinstance(error, OSError):
        return tell_file_error(error)
    return tell_bug(error)


if __name__ == "__main__":
    sys.exit(main())
