"""Takes pytest's list of tests, has a crew run them, and tells what became of each.

A test that fails is kept back and run once more by itself at the end, when the machine is quiet. If it passes then, it
is unsteady: it is listed, and the run is good while there are no more than a few. Otherwise both failures are shown.
"""

from __future__ import annotations

import gc
import json
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from tests import cache
from tests.runner import telling, worker
from tests.runner.bundles import Bundle, Piece, bundles_of
from tests.runner.crew import Begun, Busy, Crew, Done, Heard, Lost, Reported
from tests.runner.runs import Run

PROJECT = Path(__file__).parents[2]
KEPT = Path("build") / "tests"  # of the project; what the last run tells: seconds by file, and who is unsteady
RECORDS = (Path("tests") / "seconds.json", KEPT / "seconds.json")  # what is known at first, and since the last run
WORKERS_PER_CORE = 3  # a test waits for two thirds of its time
MOST_TRIED_AGAIN = 30  # of more than that, trying again tells nothing
TOLD_EVERY_SECONDS = 15.0


@dataclass
class Result:
    """What is known of one test."""

    reports: list[pytest.TestReport] = field(default_factory=list)

    @property
    def failed(self) -> bool:
        return any(report.failed for report in self.reports)

    @property
    def seconds(self) -> float:
        return sum(report.duration for report in self.reports)

    def why(self) -> str:
        return "\n".join(f"[{report.when}]\n{report.longreprtext}" for report in self.reports if report.failed)


class Plugin:
    def __init__(self, config: pytest.Config, run: Run, workers: int | None, cores: int) -> None:
        self._config, self._run, self._wanted, self._cores = config, run, workers, cores
        self._first: dict[str, Result] = {}
        self._again: dict[str, Result] = {}
        self._account = telling.Account()
        self._unsteady: list[telling.Unsteady] = []
        self._is_telling = False
        self._began = self._told = time.monotonic()

    # --- the run --------------------------------------------------------------------------------------------------

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtestloop(self, session: pytest.Session) -> bool | None:
        if session.config.option.collectonly or session.testsfailed:
            return None
        gc.collect()
        gc.freeze()  # workers share this memory as long as nobody writes to it
        tests = [_test_of(item) for item in session.items]
        crew = Crew(self._run, partial(worker.work, session), _kept_visible(session.config))
        count = self._wanted or (WORKERS_PER_CORE * self._cores if crew.is_apart else 1)
        self._write(f"{len(tests)} tests, {count} workers{'' if crew.is_apart else ', where they are (not root)'}")
        known = _seconds_by_file(session.config.rootpath)
        for heard in crew.do(bundles_of(tests, known, count), count):
            self._hear(heard, session, self._first)
            if session.shouldfail or session.shouldstop:
                raise session.Failed(session.shouldfail or session.shouldstop)
        self._try_again(session, tests, crew)
        return True

    def pytest_keyboard_interrupt(self) -> None:
        """What was kept back is told now."""
        for result in self._first.values():
            if result.failed:
                self._tell(result)

    def _hear(self, heard: Heard, session: pytest.Session, results: dict[str, Result]) -> None:
        match heard:
            case Reported(told):
                report = self._config.hook.pytest_report_from_serializable(config=self._config, data=told)
                self._take(report, results)
            case Lost(number, why):
                item = session.items[number]
                lost = pytest.TestReport(item.nodeid, item.location, {}, "failed", why, "call")
                self._take(lost, results)
            case Done(seconds, cpu, bundle) if bundle and results is self._first:
                self._account.add(bundle.file, len(bundle.tests), seconds, cpu)
            case Busy(bundles) if time.monotonic() - self._told > TOLD_EVERY_SECONDS:
                self._told = time.monotonic()
                share = 100 * len(self._first) // max(1, len(session.items))
                self._write(f"{share:3d} %  {', '.join(bundle.file.removeprefix('tests/') for bundle in bundles)}")
            case Begun() | Done() | Busy():
                pass

    def _take(self, report: pytest.TestReport, results: dict[str, Result]) -> None:
        """What is good is told at once; what failed when it was tried again."""
        result = results.setdefault(report.nodeid, Result())
        result.reports.append(report)
        if report.failed:
            lines = report.longreprtext.splitlines() or [""]
            self._write(f"failed, for now: {report.nodeid} ({report.when})  {lines[-1].strip()}")
        if results is self._first and report.when == "teardown" and not result.failed:
            self._tell(result)

    # --- once more ------------------------------------------------------------------------------------------------

    def _try_again(self, session: pytest.Session, tests: Sequence[Piece], crew: Crew) -> None:
        failed = [number for number, test in enumerate(tests) if (r := self._first.get(test.id)) and r.failed]
        if failed:
            self._write(f"once more, one by one: {min(len(failed), MOST_TRIED_AGAIN)} of {len(failed)} that failed")
        for number in failed[:MOST_TRIED_AGAIN]:
            bundle = Bundle(tests[number].file, (number,), 0.0, tests[number].outside)
            for heard in crew.do([bundle], 1):
                self._hear(heard, session, self._again)
        for number in failed:
            self._judge(tests[number].id)

    def _judge(self, test: str) -> None:
        first, again = self._first[test], self._again.get(test)
        if again is None:
            self._tell(first)
        elif again.failed:
            for report in again.reports:
                report.sections.append(("the first time, among others", first.why()))
            self._tell(again)
        else:
            self._unsteady.append(telling.Unsteady(test, first.why()))
            self._tell(again)

    def _tell(self, result: Result) -> None:
        self._is_telling = True
        try:
            for report in result.reports:
                self._config.hook.pytest_runtest_logreport(report=report)
        finally:
            self._is_telling = False

    @pytest.hookimpl(tryfirst=True)
    def pytest_report_teststatus(self, report: pytest.TestReport) -> tuple[str, str, str] | None:
        """No letter for each of thousands: lines of ours tell how far it is."""
        if not self._is_telling:
            return None
        if report.failed:
            return "failed" if report.when == "call" else "error", "", ""
        return report.outcome if report.skipped or report.when == "call" else "", "", ""

    # --- what is said ---------------------------------------------------------------------------------------------

    def _write(self, text: str) -> None:
        reporter: Any = self._config.pluginmanager.getplugin("terminalreporter")
        reporter.write_line(f"{time.monotonic() - self._began:5.0f} s  {text}")

    def pytest_sessionfinish(self, session: pytest.Session) -> None:
        if len(self._unsteady) > telling.MOST_UNSTEADY and session.exitstatus == 0:
            session.exitstatus = pytest.ExitCode.TESTS_FAILED

    def pytest_terminal_summary(self, terminalreporter: Any) -> None:
        if not self._first:
            return
        terminalreporter.section("the slowest twenty")
        for line in telling.slowest({test: result.seconds for test, result in self._first.items()}):
            terminalreporter.write_line(line)
        terminalreporter.section("seconds by folder")
        for line in self._account.table(_budgets(self._config.rootpath)):
            terminalreporter.write_line(line, red=telling.OVER in line)
        seconds = telling.by_file({test: result.seconds for test, result in self._first.items()})
        self._keep("seconds.json", json.dumps(seconds, indent=0, sort_keys=True))

    @pytest.hookimpl(trylast=True)
    def pytest_unconfigure(self) -> None:
        """Last of all, and kept."""
        lines = telling.told_of(self._unsteady)
        self._keep("unsteady.txt", "\n".join(lines))
        print(*lines, sep="\n", flush=True)

    def _keep(self, name: str, text: str) -> None:
        folder = self._config.rootpath / KEPT
        folder.mkdir(parents=True, exist_ok=True)
        folder.joinpath(name).write_text(f"{text}\n", encoding="utf-8")


def _budgets(root: Path) -> dict[str, int]:
    page = root / "CONTRIBUTING.md"
    return telling.budgets_in(page.read_text(encoding="utf-8")) if page.is_file() else {}


def _seconds_by_file(root: Path) -> dict[str, float]:
    records = [root / record for record in RECORDS if (root / record).is_file()]
    return {file: spent for record in records for file, spent in _read(record).items()}


def _read(record: Path) -> dict[str, float]:
    return dict(json.loads(record.read_text(encoding="utf-8")))


def _test_of(item: pytest.Item) -> Piece:
    shares = ""
    if callspec := getattr(item, "callspec", None):
        shared = [name for name, scope in callspec._arg2scope.items() if scope.value != "function"]
        shares = "-".join(str(callspec.indices[name]) for name in sorted(shared))
    return Piece(item.nodeid, item.nodeid.partition("::")[0], shares, item.get_closest_marker("outside") is not None)


def _kept_visible(config: pytest.Config) -> tuple[Path, ...]:
    """What must be there inside: the project, Python, and what was prepared."""
    told = [config.rootpath, PROJECT, Path(sys.prefix), Path(sys.base_prefix), cache.HOME]
    return tuple(dict.fromkeys(path.resolve() for path in told if path.is_dir()))
