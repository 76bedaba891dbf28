"""How fast the front doors answer, as programs that scripts start by the hundred."""

from __future__ import annotations

import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from lab.lines import Line
from lab.platform import Platform, a_platform

DLC = [sys.executable, "-m", "gpuyard.doors.dlc.main"]
VCCTL = [sys.executable, "-m", "gpuyard.doors.vcctl.main"]
JOBS, CREATED = 1000, 200
JOB = """\
jobname: bench-{number}
tasks:
  - name: task-0
    amount: 1
    image: debian:12
    command: sleep 3600
    resources:
      cpu: "500m"
      memory: "1024Mi"
"""


def help_of_doors() -> list[Line]:
    lines = []
    for name, program in (("dlc", DLC), ("vcctl", VCCTL)):
        times = [_seconds([*program, "--help"], {}) for _ in range(20)]
        lines.append(Line(f"`{name} --help` (median of 20)", statistics.median(times), 0.3, "s"))
    return lines


def lists_of_doors() -> list[Line]:
    """All jobs wait or run for long; each list holds every one of them."""
    with a_platform("--engine", "simulated", "--nodes", "4x8") as platform:
        connection = platform.connect()
        for number in range(JOBS):
            connection.submit(command="train", name=f"job-{number}", env={"YARD_SIM_SECONDS": "3600"}, cards=1)
        environ = _environ(platform)
        asked = {
            "dlc get job": [*DLC, "get", "job", "--page_size", str(JOBS)],
            "vcctl job list": [*VCCTL, "job", "list"],
        }
        lines = []
        for name, command in asked.items():
            shown = subprocess.run(command, env=os.environ | environ, capture_output=True, text=True, check=True).stdout
            assert shown.count("job-") == JOBS, f"{name} showed {shown.count('job-')} jobs"
            times = [_seconds(command, environ) for _ in range(9)]
            lines.append(Line(f"`{name}` of {JOBS} jobs (median of 9)", statistics.median(times), 0.6, "s"))
        return lines


def creating_by_vcctl() -> list[Line]:
    """Beside the same number of starts of the program that ask for nothing but its version."""
    with (
        tempfile.TemporaryDirectory(prefix="yard-doors-") as folder,
        a_platform("--engine", "simulated", "--nodes", "4x8") as platform,
    ):
        environ, files = _environ(platform), _files(Path(folder))
        versions = sum(_seconds([*VCCTL, "version"], environ) for _ in range(CREATED))
        created = sum(_seconds([*VCCTL, "job", "create", "-f", str(file)], environ) for file in files)
        there = platform.connect().call("GET", "/workloads?search=bench-&limit=500")["items"]
        assert len(there) == CREATED, f"{CREATED - len(there)} jobs were lost"
        what = f"{CREATED} `vcctl job create` as times of {CREATED} `vcctl version`"
        return [Line(what, created / versions, 1.5, "times")]


def _files(folder: Path) -> list[Path]:
    files = [folder / f"{number}.yaml" for number in range(CREATED)]
    for number, file in enumerate(files):
        file.write_text(JOB.format(number=number), encoding="utf-8")
    return files


def _environ(platform: Platform) -> dict[str, str]:
    return {"YARD_URL": f"http://127.0.0.1:{platform.port}", "YARD_TOKEN": platform.token}


def _seconds(command: list[str], environ: dict[str, str]) -> float:
    begun = time.perf_counter()
    subprocess.run(command, env=os.environ | environ, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, check=True)
    return time.perf_counter() - begun


MEASURES = (help_of_doors, lists_of_doors, creating_by_vcctl)
