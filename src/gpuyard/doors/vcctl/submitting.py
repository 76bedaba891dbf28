"""`job create` and `job run`. Scripts call them by the hundred, so nothing is loaded here that they do not need."""

from __future__ import annotations

import os

from gpuyard.doors.asking import Server
from gpuyard.doors.cobra import Given
from gpuyard.doors.vcctl.failing import JOBS, Failure, already_exists, note
from gpuyard.doors.vcctl.files import job_of_flags, read_file
from gpuyard.doors.vcctl.master import server_of
from gpuyard.sdk import documents

DIALECT = "volcano"


def create(given: Given) -> None:
    if not given.text("filename"):
        raise Failure("yaml file (specified by --filename or -f) is mandatory to create a job")
    _submit_file(given, "submit")


def run(given: Given) -> None:
    if given.text("filename"):
        _submit_file(given, "run")
        return
    if not given.text("name"):
        raise Failure("job name cannot be left blank")
    text = job_of_flags(given)
    with server_of(given) as server:
        _submit(server, text, "run")


def _submit_file(given: Given, verb: str) -> None:
    """Of several documents none is submitted before all could be read."""
    several = documents.split(read_file(given.text("filename")))
    with server_of(given) as server:
        if len(several) > 1:
            _require_all_good(server, several)
        for text in several:
            _submit(server, text, verb)


def _require_all_good(server: Server, several: list[str]) -> None:
    names = [server.post_text("/read", text, dialect=DIALECT)["job"]["name"] for text in several]
    twice = next((name for name in names if names.count(name) > 1), None)
    if twice is not None:
        raise already_exists(JOBS, twice)


def _submit(server: Server, text: str, verb: str) -> None:
    answer = server.post_text("/workloads", text, key=os.urandom(16).hex(), dialect=DIALECT)
    print(f"{verb} job {answer['name']} successfully")
    note([*answer["notes"], *answer["warnings"]])
