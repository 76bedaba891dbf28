"""How an error is told: what, where, what to do next, and the exit code. The one place for it.

0 ok · 1 it was understood and could not be done: it failed, or the present state of things stands against it (a name
is taken, it does not run) · 2 bad usage or input: it cannot be meant like this (also a file here that cannot be read)
· 3 the server knows nothing of that name · 4 not allowed or not logged in · 5 server unreachable · 130 interrupted
"""

from __future__ import annotations

import errno
import os
from collections.abc import Iterator
from contextlib import contextmanager

from gpuyard.cli.output import note, printable
from gpuyard.cli.phrases import knows, say
from gpuyard.sdk.errors import BadInput, ServerUnreachable, WorkdirRefused, YardApiError

FAILED, BAD_INPUT, NOT_FOUND, NOT_ALLOWED, UNREACHABLE, INTERRUPTED = 1, 2, 3, 4, 5, 130
_BY_STATUS = {
    400: BAD_INPUT,
    413: BAD_INPUT,
    415: BAD_INPUT,
    422: BAD_INPUT,
    404: NOT_FOUND,
    401: NOT_ALLOWED,
    403: NOT_ALLOWED,
}
_BY_CODE = {"refused.ambiguous": BAD_INPUT}
_NEXT = {
    "refused.login_needed": "error.next.login",
    "client.not_owner": "error.next.login",
    "client.no_server": "error.next.up",
    "client.unreachable": "error.next.up",
    "client.stranger": "error.next.stranger",
    "client.untrusted": "error.next.trust",
    "client.odd_answer": "error.next.doctor",
    "client.insecure_http": "error.next.insecure",
}


class Refused(Exception):
    """The command itself refuses, with its words and exit code."""

    def __init__(self, message: str, exit_code: int = FAILED) -> None:
        super().__init__(message)
        self.message = message
        self.exit_code = exit_code


class InFile(Exception):
    """The server refuses what stands in a file."""

    def __init__(self, file: str, refusal: BadInput) -> None:
        super().__init__(file)
        self.file = file
        self.refusal = refusal


@contextmanager
def naming(file: str | None) -> Iterator[None]:
    """Where the server names a line of what was read from a file, the file is named before it."""
    try:
        yield
    except BadInput as error:
        if file is None or file == "-" or not any("line" in problem.facts for problem in error.problems):
            raise
        raise InFile(file, error) from error


def exit_code_for(error: YardApiError) -> int:
    if isinstance(error, ServerUnreachable):
        return UNREACHABLE
    if isinstance(error, WorkdirRefused):
        return BAD_INPUT
    return _BY_CODE.get(error.code) or _BY_STATUS.get(error.status, FAILED)


def words_of(error: YardApiError) -> str:
    """The server's words are in the right language already; those of the way to it are put into it here."""
    return printable(say(error.code, **error.facts) if knows(error.code) else error.message)


def words_of_file_error(error: OSError) -> str:
    """The system speaks the language that it was set up with, which need not be the reader's."""
    key = f"errno.{errno.errorcode.get(error.errno or 0)}"
    return say(key) if knows(key) else error.strerror or str(error)


def tell_api_error(error: YardApiError, about: str = "") -> int:
    """Say what the server (or the way to it) refused, and about which of several; returns the exit code."""
    words = words_of(error)
    note(say("error.line", message=say("error.file", file=printable(about), problem=words) if about else words))
    for problem in error.problems:
        if problem.message != error.message:
            note(f"  - {printable(problem.message)}")
    step = _NEXT.get(error.code)
    unknown_job = error.code == "refused.not_found" and error.facts.get("what") in ("workload", "job")
    if step is None and unknown_job and not error.facts.get("there"):
        step = "error.next.ls"
    if step is not None:
        note(f"  {say(step)}")
    return exit_code_for(error)


def tell_refused(error: Refused) -> int:
    note(say("error.line", message=error.message))
    return error.exit_code


def tell_file_error(error: OSError) -> int:
    """A file of the user's could not be read or written."""
    name = os.fsdecode(error.filename) if isinstance(error.filename, str | bytes) else ""
    words = words_of_file_error(error)
    note(say("error.line", message=say("error.file", file=name, problem=words) if name else words))
    return BAD_INPUT


def tell_bug(error: Exception) -> int:
    note(say("error.line", message=say("error.bug", problem=f"{type(error).__name__}: {error}")))
    return FAILED
