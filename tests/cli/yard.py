"""The real `yard` command against real servers it started itself, each in a data folder of its own."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tests.cli.forge import forge

from gpuyard import Client

PROJECT = Path(__file__).parents[2]
ENDED = ("succeeded", "failed", "stopped")


@dataclass
class Yard:
    """The command, as a person with this home and this data folder would use it."""

    home: Path
    data: Path
    env: dict[str, str] = field(default_factory=dict)

    @classmethod
    def fresh(cls, folder: Path) -> Yard:
        """With an empty home, and no server running yet."""
        (folder / "home").mkdir(parents=True)
        return cls(folder / "home", folder / "data")

    def environment(self, **more: str) -> dict[str, str]:
        kept = {key: value for key, value in os.environ.items() if not key.startswith(("YARD_", "LC_", "LANG"))}
        ours = {"HOME": str(self.home), "YARD_DATA": str(self.data), "PYTHONPATH": str(PROJECT / "src")}
        return {**kept, **ours, "YARD_LANG": "en", **self.env, **more}

    def command(self, *arguments: str) -> list[str]:
        return [sys.executable, "-W", "error", "-m", "gpuyard.cli.main", *arguments]

    def run(self, *arguments: str, stdin: str = "", timeout: float = 120, **env: str) -> Ran:
        done = forge(os.getpid()).run(arguments, stdin, self.environment(**env), timeout)
        assert "Traceback" not in done.stderr, done.stderr
        return Ran(done.returncode, done.stdout, done.stderr)

    def start(self, *arguments: str, **env: str) -> subprocess.Popen[bytes]:
        """Left running; the caller ends it."""
        return subprocess.Popen(
            self.command(*arguments),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            env=self.environment(**env),
        )

    def good(self, *arguments: str, stdin: str = "", **env: str) -> str:
        """Must end well; returns what it printed."""
        done = self.run(*arguments, stdin=stdin, timeout=120, **env)
        assert done.code == 0, done
        return done.out.strip()

    def json(self, *arguments: str, **env: str) -> Any:
        return json.loads(self.good(*arguments, "-o", "json", **env))

    def up(self, *arguments: str) -> str:
        return self.good("up", "--detach", "--port", "0", *arguments)

    def down(self) -> None:
        self.run("down")

    def as_user(self, token: str) -> Yard:
        return Yard(self.home, self.data, {**self.env, "YARD_TOKEN": token})

    def wait_for(self, job: str, *states: str, seconds: float = 60) -> dict[str, Any]:
        """Until the job is in one of these states (by default: has ended)."""
        wanted = states or ENDED
        found: dict[str, Any] = {}
        with Client(data=self.data) as client:

            def there() -> bool:
                found.update(client.job(job).raw)
                return found["state"] in wanted

            wait_until(there, seconds, lambda: f"{job} is {found.get('state')}: {found.get('reason')}")
        return found

    def number_of_jobs(self) -> int:
        with Client(data=self.data) as client:
            return sum(1 for _ in client.jobs())

    @property
    def url(self) -> str:
        return str(json.loads((self.data / "server.json").read_text())["url"])

    @property
    def pid(self) -> int:
        return int(json.loads((self.data / "server.json").read_text())["pid"])


@dataclass(frozen=True)
class Ran:
    code: int
    out: str
    err: str


def wait_until(condition: Callable[[], bool], seconds: float = 60, what: Callable[[], str] = str) -> None:
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, what()
        time.sleep(0.05)
