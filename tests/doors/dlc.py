"""The real `dlc` program as a person uses it, against a real server; and what its users have in their notes."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tests.cli.yard import PROJECT, Ran, Yard, wait_until
from tests.dialects.dlc_params import USUAL

from gpuyard import Client

NAME, PASSWORD, WORKSPACE = "yourname", "yourpassword", "your-workspace-id"
JOB_ID = re.compile(r"\|\s+(dlc[0-9a-z]+)\s+\|")  # how a well-known caller finds it
ENDED = ("Succeeded", "Failed", "Stopped")

# As they stand in the guide of a cluster with dlc, but for the endpoint and the two values in angle brackets.
CONFIGURE = """\
./dlc config \\
       --username yourname \\
       --region cn-beijing \\
       --endpoint {endpoint} \\
       --password yourpassword
"""
LIST_WORKSPACES = "./dlc get workspace\n"
WRITE_PARAMS = f"cat << EOF > sample_job.params\n{USUAL}EOF\n"
CREATE = "./dlc create job --params_file ./sample_job.params\n"


@dataclass
class Dlc:
    """`dlc` in a folder of its own, with a home of its own."""

    folder: Path
    env: dict[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.folder.mkdir(parents=True, exist_ok=True)
        program = self.folder / "dlc"
        program.write_text(f'#!/bin/sh\nexec {sys.executable} -W error -m gpuyard.doors.dlc.main "$@"\n')
        program.chmod(0o755)

    def environment(self) -> dict[str, str]:
        kept = {key: value for key, value in os.environ.items() if not key.startswith(("YARD_", "LC_", "LANG", "XDG"))}
        return {**kept, "HOME": str(self.folder), "PYTHONPATH": str(PROJECT / "src"), **self.env}

    def run(self, *words: str, stdin: str = "") -> Ran:
        return self._run(["./dlc", *words], stdin)

    def shell(self, script: str) -> Ran:
        """What somebody pastes into a terminal."""
        return self._run(["sh", "-e"], script)

    def _run(self, command: list[str], stdin: str) -> Ran:
        done = subprocess.run(
            command, input=stdin, capture_output=True, text=True, timeout=120, cwd=self.folder, env=self.environment()
        )
        assert "Traceback" not in done.stderr, done.stderr
        return Ran(done.returncode, done.stdout, done.stderr)

    def good(self, *words: str, stdin: str = "") -> str:
        done = self.run(*words, stdin=stdin)
        assert done.code == 0, done
        return done.out

    def start(self, *words: str) -> subprocess.Popen[str]:
        """Left running; the caller ends it."""
        return subprocess.Popen(
            ["./dlc", *words],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            cwd=self.folder,
            env=self.environment(),
        )

    def create(self, **keys: str) -> str:
        """A small job by a params file; its id."""
        usual = {"name": "small", "kind": "BatchJob", "worker_count": "1", "worker_cpu": "0.1", "worker_memory": "64Mi"}
        text = "".join(f"{key}={value}\n" for key, value in {**usual, "command": "true", **keys}.items())
        (self.folder / "small.params").write_text(text)
        return job_id(self.good("create", "job", "--params_file", "small.params"))

    def job(self, id: str) -> dict[str, Any]:
        found: dict[str, Any] = json.loads(self.good("get", "job", id))
        return found

    def wait_for(self, id: str, *statuses: str) -> dict[str, Any]:
        found: dict[str, Any] = {}

        def there() -> bool:
            found.update(self.job(id))
            return found["Status"] in (statuses or ENDED)

        wait_until(there, 90, lambda: f"{id} is {found.get('Status')}: {found.get('ReasonMessage')}")
        return found


def job_id(output: str) -> str:
    match = JOB_ID.search(output)
    assert match, output
    return match.group(1)


def add_people(yard: Yard) -> None:
    """The person of the guide, in the workspace of the guide."""
    with Client(data=yard.data) as owner:
        owner.create_group(WORKSPACE)
        owner.create_user(NAME, password=PASSWORD, group=WORKSPACE)


def endpoint_of(yard: Yard) -> str:
    """As people are told it: a host, without a scheme."""
    return yard.url.removeprefix("http://")


def configured(yard: Yard, folder: Path) -> Dlc:
    dlc = Dlc(folder)
    done = dlc.shell(CONFIGURE.format(endpoint=endpoint_of(yard)))
    assert done.code == 0, done
    return dlc


def fitting(script: str) -> str:
    """The guide's job wants four cores. Where there are fewer, it asks for one, and nothing else is changed."""
    return script if len(os.sched_getaffinity(0)) >= 4 else script.replace("worker_cpu=4", "worker_cpu=1")
