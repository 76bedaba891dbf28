"""`python -m tests.prepare [--torch VERSION] [NAME ...]`: make what the tests need and is not in the cache yet.

What does not need the other is made side by side. As root it is done in namespaces of its own, so that nothing it has
started or mounted outlives it. What cannot be made is said, with what brings it, and is no failure: tests that need it
are skipped.
"""

from __future__ import annotations

import argparse
import concurrent.futures
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Sequence
from dataclasses import dataclass

from tests import cache
from tests.cache import Entry
from tests.provisions import IMAGES, PROBLEM, PROJECT, TOOLBOX, Provision, Unavailable, in_words, torch

from gpuyard.images.toolbox.build import size_of

UNSHARE = ("unshare", "--pid", "--fork", "--mount", "--mount-proc", "--kill-child")
CONTAINED = "--contained"
INTERRUPTED = 130
TELL_SECONDS = 15.0


@dataclass
class Step:
    wanted: Provision
    entry: Entry | None = None  # none where it cannot be had
    state: str = ""  # nothing while it is still to be made
    seconds: float = 0.0
    size: int = 0
    begun: float | None = None
    last: str = ""

    def look(self) -> None:
        try:
            self.entry = self.wanted.entry()
            self.state = "there already" if self.entry.taken() else ""
        except Unavailable as problem:
            self.state = f"{PROBLEM}{problem}"

    def make(self) -> None:
        if self.entry is None or self.state:
            return
        self.begun = time.monotonic()
        self.tell("begins")
        try:
            self.size = size_of(self.entry.made(lambda folder: self.wanted.fill(folder, self.tell)))
            self.state = "made"
        except (Unavailable, AssertionError, OSError, subprocess.SubprocessError) as problem:
            self.state = f"{PROBLEM}{problem}"
        self.seconds = time.monotonic() - self.begun
        self.tell(f"made, {in_words(self.size)}" if self.size else self.state.splitlines()[0])

    def tell(self, text: str) -> None:
        self.last = text
        print(self.line(text), end="", flush=True)

    def line(self, text: str) -> str:
        since = time.monotonic() - (self.begun or time.monotonic())
        return f"  {self.wanted.name:<8}{since:5.0f} s  {text}\n"

    def tell_how_far(self) -> None:
        if self.entry is not None and self.begun is not None and not self.state:
            print(self.line(f"{self.last}  ({in_words(self.entry.bytes_so_far())} so far)"), end="", flush=True)


def main(words: Sequence[str]) -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.prepare")
    parser.add_argument("names", nargs="*", metavar="NAME", help="of these only: toolbox, empty, busybox, ssh, debian")
    parser.add_argument("--torch", metavar="VERSION", help="a framework to train with, too")
    parser.add_argument(CONTAINED, action="store_true", help=argparse.SUPPRESS)
    asked = parser.parse_args(words)
    lanes = chosen(asked.names, asked.torch)
    begun, steps = time.monotonic(), [step for lane in lanes for step in lane]
    for step in steps:
        step.look()
    if not all(step.state for step in steps) and not asked.contained and can_be_contained():
        os.execvp(UNSHARE[0], [*UNSHARE, sys.executable, "-m", "tests.prepare", CONTAINED, *words])
    make_all(lanes)
    report(steps, time.monotonic() - begun)
    return 0


def chosen(names: Sequence[str], version: str | None) -> list[list[Step]]:
    """In lanes that have nothing to do with each other."""
    lanes = [[TOOLBOX], list(IMAGES), [torch(version)] if version else []]
    known = [wanted.name for lane in lanes for wanted in lane]
    if unknown := set(names) - set(known):
        raise SystemExit(f"there is no {', '.join(sorted(unknown))}, only {', '.join(known)}")
    return [[Step(wanted) for wanted in lane if not names or wanted.name in names] for lane in lanes]


def can_be_contained() -> bool:
    try:
        return os.geteuid() == 0 and subprocess.run([*UNSHARE, "true"], capture_output=True, timeout=60).returncode == 0
    except (OSError, subprocess.TimeoutExpired):
        return False


def make_all(lanes: list[list[Step]]) -> None:
    os.umask(0o022)  # other users read it, too
    threading.Thread(target=tell_now_and_then, args=(lanes,), daemon=True).start()
    with concurrent.futures.ThreadPoolExecutor() as pool:
        for done in [pool.submit(make_in_turn, lane) for lane in lanes]:
            done.result()
    for step in (step for lane in lanes for step in lane):
        if step.entry is not None:
            cache.sweep(step.entry.kind)


def make_in_turn(lane: list[Step]) -> None:
    for step in lane:
        step.make()


def tell_now_and_then(lanes: list[list[Step]]) -> None:
    while True:
        time.sleep(TELL_SECONDS)
        for lane in lanes:
            for step in lane:
                step.tell_how_far()


def report(steps: list[Step], seconds: float) -> None:
    print(f"prepared in {cache.HOME}:")
    for step in steps:
        size = in_words(step.size) if step.size else ""
        print(f"{step.wanted.name:>10}{step.seconds:9.1f} s {size:>9}  {step.state.splitlines()[0]}")
    print(f"{'total':>10}{seconds:9.1f} s", flush=True)
    for step in steps:
        if step.state.startswith(PROBLEM):
            told = " ".join(step.state.removeprefix(PROBLEM).split())
            print(
                f"{PROBLEM}{step.wanted.name}: {told}: what needs it is skipped until `{step.wanted.again}` can make it"
            )


def stop(number: int, frame: object) -> None:
    """At once, without waiting for what runs: it ends with this process, and the next one clears up."""
    os._exit(INTERRUPTED)


if __name__ == "__main__":
    os.chdir(PROJECT)
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, stop)
    sys.exit(main(sys.argv[1:]))
