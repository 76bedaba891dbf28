"""How fast gpuyard is, measured as a user would meet it. `make bench` prints one line per promise.

python -m lab.bench [NAME ...]     only the named ones: benches, groups, or what these begin with; --list shows both
"""

from __future__ import annotations

import compileall
import importlib
import os
import signal
import sys
import time
import traceback
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path

from lab.bench_names import REFUSED, SUFFIX, Bench, Unknown, chosen, known_benches, listed
from lab.lines import Line
from lab.needs import ROOT, LeftOut
from lab.outcome import Outcome, is_good, summary
from lab.own_folder import an_own_folder, empty
from lab.report import machine

Measure = Callable[[], list[Line]]
ENDING = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
INTERRUPTED = 130


def main(words: list[str]) -> int:
    known = known_benches()
    if words == ["--list"]:
        print(listed(known))
        return 0
    try:
        benches = chosen(words, known)
    except Unknown as unknown:
        print(unknown, file=sys.stderr)
        return REFUSED
    compileall.compile_dir(ROOT / "src", quiet=1)  # as an installation does, also where Python itself keeps no bytecode
    return measure_all({bench.name: partial(_measure, bench) for bench in benches})


def measure_all(measures: Mapping[str, Measure]) -> int:
    """One after the other. Returns the exit code."""
    for number in ENDING:
        signal.signal(number, _end_in_order)
    _forget_settings()
    outcomes: list[Outcome] = []
    try:
        with an_own_folder() as folder:
            for name, measure in measures.items():
                outcomes.append(_outcome(name, measure, folder))
    except KeyboardInterrupt:
        print("\n!!   interrupted", flush=True)
    print("\n".join([*summary(outcomes), f"measured on: {machine()}"]), flush=True)
    if len(outcomes) < len(measures):
        return INTERRUPTED
    return 0 if is_good(outcomes) else 1


def _measure(bench: Bench) -> list[Line]:
    """Loaded only now: those that were not asked for may need what is not installed."""
    measure: Measure = getattr(importlib.import_module(f"lab.{bench.group}{SUFFIX}"), bench.name)
    return measure()


def _end_in_order(number: int, frame: object) -> None:
    """Once: whoever is impatient must not interrupt the clearing away. Not SIG_IGN, which programs would inherit."""
    for one in ENDING:
        signal.signal(one, lambda *_: None)
    raise KeyboardInterrupt


def _forget_settings() -> None:
    """Somebody's YARD_GATEWAY_PORT or YARD_URL would lead elsewhere than to the platforms that are measured."""
    for name in [name for name in os.environ if name.startswith("YARD_")]:
        del os.environ[name]


def _outcome(name: str, measure: Measure, folder: Path) -> Outcome:
    """One that breaks does not keep the others from being measured."""
    begun = time.monotonic()
    lines: list[Line] = []
    left_out = broke = ""
    try:
        try:
            lines = measure()
        finally:
            empty(folder)
    except LeftOut as missing:
        left_out = str(missing)
        print(f"!!   {name} is left out: {left_out}", flush=True)
    except Exception as problem:
        broke = f"{type(problem).__name__}: {problem}".partition("\n")[0]
        traceback.print_exc()
    for line in lines:
        print(line, flush=True)
    return Outcome(name, time.monotonic() - begun, all(line.kept for line in lines), left_out, broke)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
