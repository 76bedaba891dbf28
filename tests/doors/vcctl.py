"""The real `vcctl` program as a person uses it, against a real server; and what its users have in their notes."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from tests.cli.yard import PROJECT, Ran, Yard, wait_until

from gpuyard import Client

FILES = Path(__file__).parent / "volcano"
PERSON, GROUP = "lzj", "iie-lct"
SMALL = "cpu: 100m, memory: 64Mi"
OVER = ("Completed", "Failed", "Terminated")


@dataclass
class Vcctl:
    """`vcctl` in a folder of its own, found by its name, with a home of its own."""

    folder: Path
    env: dict[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.folder.mkdir(parents=True, exist_ok=True)
        program = self.folder / "bin" / "vcctl"
        program.parent.mkdir(exist_ok=True)
        program.write_text(f'#!/bin/sh\nexec {sys.executable} -W error -m gpuyard.doors.vcctl.main "$@"\n')
        program.chmod(0o755)

    def environment(self) -> dict[str, str]:
        kept = {key: value for key, value in os.environ.items() if not key.startswith(("YARD_", "LC_", "LANG", "XDG"))}
        path = f"{self.folder}/bin:{os.environ['PATH']}"
        return {**kept, "HOME": str(self.folder), "PYTHONPATH": str(PROJECT / "src"), "PATH": path, **self.env}

    def run(self, *words: str) -> Ran:
        return self._run(["vcctl", *words], "")

    def shell(self, script: str) -> Ran:
        """What somebody pastes into a terminal."""
        return self._run(["sh"], script)

    def _run(self, command: list[str], stdin: str) -> Ran:
        env = self.environment()
        done = subprocess.run(
            ["env", *command], input=stdin, capture_output=True, text=True, timeout=120, cwd=self.folder, env=env
        )
        assert "Traceback" not in done.stderr, done.stderr
        return Ran(done.returncode, done.stdout, done.stderr)

    def good(self, *words: str) -> str:
        done = self.run(*words)
        assert done.code == 0, done
        return done.out

    def write(self, name: str, text: str) -> str:
        (self.folder / name).write_text(text, encoding="utf-8")
        return name

    def create(self, name: str, command: str, image: str = "busybox", **keys: str) -> None:
        """A small job of one task."""
        task = {"command": command, "image": image, "resources": f"{{{SMALL}}}", **keys}
        lines = "".join(f"    {key}: {value}\n" for key, value in task.items())
        self.write(f"{name}.yaml", f"jobname: {name}\ntasks:\n  -\n{lines}")
        made = self.run("job", "create", "-f", f"{name}.yaml")
        assert made.out == f"submit job {name} successfully\n", made

    def rows(self) -> dict[str, dict[str, str]]:
        """The list, read by the places of its columns."""
        header, *lines = self.good("job", "list").splitlines()
        names = header.split()
        begins = [header.index(name) for name in names]
        ends = [*begins[1:], len(header)]
        rows = [
            {name: line[begin:end].strip() for name, begin, end in zip(names, begins, ends, strict=True)}
            for line in lines
        ]
        return {row["Name"]: row for row in rows}

    def wait_for(self, name: str, *phases: str) -> dict[str, str]:
        found: dict[str, str] = {}

        def there() -> bool:
            found.update(self.rows()[name])
            return found["Phase"] in (phases or OVER)

        wait_until(there, 90, lambda: f"{name} is {found}; {self.run('job', 'logs', '-N', name)}")
        return found


def newcomer(yard: Yard, folder: Path, name: str = PERSON, group: str = GROUP) -> Vcctl:
    """A person in a group, who has said once to `yard` where the server is."""
    with Client(data=yard.data) as owner:
        if group not in [there.name for there in owner.groups()]:
            owner.create_group(group)
        owner.create_user(name, password="mnist-2020-zjk", group=group)
        token = owner.create_token("vcctl", user=name).token or ""
    return Vcctl(folder, {"YARD_URL": yard.url, "YARD_TOKEN": token, "YARD_LANG": "en"})


def filled(file: str, values: Mapping[str, str]) -> str:
    """A file of the guide with its `xxxx` filled in, and nothing else changed."""
    lines = (FILES / file).read_text(encoding="utf-8").split("\n")
    for key, value in values.items():
        index = next(i for i, line in enumerate(lines) if line.strip(" -\t").startswith(f"{key}:") and "xxxx" in line)
        lines[index] = lines[index].replace("xxxx", value, 1)
    return "\n".join(lines)
