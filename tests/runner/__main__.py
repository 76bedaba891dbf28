"""`python -m tests.runner [what pytest is told]`: a run of the tests, with its name, and cleared after."""

from __future__ import annotations

import os
import signal
import sys
import time

import pytest
from tests.runner import apart, runs
from tests.runner.plugin import Plugin

WANTS_ONE_PROCESS = ("--pdb", "--trace", "--collect-only", "--co", "-h", "--help", "--version", "--fixtures")


BEFORE = "GPUYARD_TEST_BEFORE"  # what was done before, and how long it took


def main(words: list[str]) -> int:
    if any(word in WANTS_ONE_PROCESS for word in words):
        return int(pytest.main(words))
    apart.die_with_parent(os.getppid())  # killed with `make`, it does not go on by itself
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.default_int_handler)
    for name in runs.clear_gone():
        print(f"cleared after {name}, a run that is gone", flush=True)
    run, began = runs.begin(), time.monotonic()
    try:
        return int(pytest.main(words, plugins=[Beginning(run)]))
    finally:
        clearing = time.monotonic()
        run.end()
        print(f"cleared after {run.name} in {time.monotonic() - clearing:.0f} s")
        before = os.environ.get(BEFORE)
        print(f"{before}, " if before else "", f"tested in {time.monotonic() - began:.0f} s", sep="", flush=True)


class Beginning:
    """Knows the run before there is a configuration."""

    def __init__(self, run: runs.Run) -> None:
        self._run = run

    def pytest_addoption(self, parser: pytest.Parser) -> None:
        parser.addoption("--workers", type=int, help="how many processes run tests (three per core)")

    def pytest_configure(self, config: pytest.Config) -> None:
        cores = len(os.sched_getaffinity(0))
        config.pluginmanager.register(Plugin(config, self._run, config.getoption("workers"), cores), "crew")


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
