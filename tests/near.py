"""`python -m tests.near [--since COMMIT] [--only-say] [-- WORDS]`: the tests nearest to a change, within three minutes.

Changed is what differs from the commit (by default the last one), untracked files included. Closest first: the changed
tests themselves, a few whole platforms if some tests feel the change only there, the tests of its own room, those that
stand on it by an import or two, and further ones while there is time. What is left out is said at the end; CI runs all.
When in doubt, all: a file that nothing is known about may matter to everything.
"""

from __future__ import annotations

import argparse
import json
import signal
import subprocess
import sys
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from tests.links import Links, is_test, read

PROJECT = Path(__file__).parents[1]
SECONDS = PROJECT / "tests" / "seconds.json"
RUNNER = (sys.executable, "-m", "tests.runner", "-m", "not soak")
WEB_CHECK = ("make", "--no-print-directory", "web-check")

# As the record has it for the files one after another; the rest of three minutes is for reading and setting up.
BUDGET_SECONDS = 150.0
UNKNOWN_SECONDS = 2.0
NEAR_STEPS = 2
ALWAYS = ("tests/test_architecture.py", "tests/test_project.py")
# Quick, and each goes through a whole platform another way: the command, the client, jobs of several groups.
SHORT_WHOLES = ("tests/cli/test_cli_jobs.py", "tests/sdk/test_sdk_real.py", "tests/end_to_end/test_merged_groups.py")
# What everything else is behind: a test that gets to the change only through one of these starts a whole platform.
WIRING, COMMAND = "src/gpuyard/wiring.py", "src/gpuyard/cli/main.py"
MATTERS_TO_ALL = (
    *("Makefile", "pyproject.toml", ".ci/", "src/gpuyard/__init__.py"),
    *("tests/conftest.py", "tests/runner/"),
)
PAGES = ("docs/", "README", "CONTRIBUTING", "CHANGELOG", "LICENSE")
CODE = ("src/gpuyard/", "tests/", "lab/")
WEB, CONSOLE = "web/", "tests/console/"

# Why a file of tests is chosen, in the order in which there is time for it.
CHANGED, SHORT, ROOM, NEAR, FAR, WHOLE = range(6)
WHY = {
    CHANGED: "changed",
    SHORT: "whole platforms, in short",
    ROOM: "of the same room",
    NEAR: "an import or two away",
    FAR: "further away",
    WHOLE: "reaching the change only through a whole platform",
}


@dataclass(frozen=True)
class Reach:
    """How far a file is from the change."""

    steps: int
    whole: bool = False  # only through a whole platform


@dataclass(frozen=True, order=True)
class Rank:
    why: int
    whole: bool = False
    strange: bool = False  # not named after it
    steps: int = 0


@dataclass
class Choice:
    """Files of tests by why they are chosen, or that all are."""

    all_because: str = ""
    chosen: dict[int, list[str]] = field(default_factory=dict)
    left: dict[int, list[str]] = field(default_factory=dict)
    unreached: list[str] = field(default_factory=list)  # what was changed and no test reaches

    @property
    def files(self) -> list[str]:
        return sorted({*ALWAYS, *(file for files in self.chosen.values() for file in files)})


# --- choosing ---------------------------------------------------------------------------------------------------------


def choose(
    changed: Collection[str],
    links: Mapping[str, Links],
    seconds: Mapping[str, float],
    *,
    gone: Collection[str] = (),
    budget: float = BUDGET_SECONDS,
) -> Choice:
    """`gone`: of the changed ones, those that are no longer there."""
    if why := why_all(changed):
        return Choice(why)
    ranks: dict[str, Rank] = {}
    unreached = []
    tests = {file for file in links if is_test(file)} - {*ALWAYS, *gone}
    for path, reached in reaches(changed, links).items():
        felt = {file: rank(file, path, reach) for file, reach in reached.items() if file in tests}
        found = {**of_the_room(path, tests), **felt}
        ranks |= {file: min(found[file], ranks.get(file, found[file])) for file in found}
        if not found and not path.startswith(PAGES) and path not in {*ALWAYS, *gone}:
            unreached.append(path)
    if any(rank.whole for rank in ranks.values()):
        ranks |= {file: min(Rank(SHORT), ranks.get(file, Rank(SHORT))) for file in tests & {*SHORT_WHOLES}}
    choice = fill(ranks, seconds, budget)
    choice.unreached = sorted(unreached)
    return choice


def why_all(changed: Iterable[str]) -> str:
    for path in sorted(changed):
        if path.startswith(MATTERS_TO_ALL):
            return f"{path} matters to all"
        if not path.startswith((*PAGES, *CODE, WEB)):
            return f"nothing tells who stands on {path}"
    return ""


def reaches(changed: Iterable[str], links: Mapping[str, Links]) -> dict[str, dict[str, Reach]]:
    """For each changed file, whom it can be felt by."""
    on = {path: (found.imports, found.starts) for path, found in links.items()}
    every = _backwards({path: imports | starts for path, (imports, starts) in on.items()})
    direct = _backwards({path: (imports - {WIRING}) | (starts - {COMMAND}) for path, (imports, starts) in on.items()})
    reached = {}
    for path in changed:
        begin = {path, *beside(path, links)}
        near, far = _steps(begin, direct), _steps(begin, every)
        reached[path] = {file: Reach(near[file]) if file in near else Reach(far[file], whole=True) for file in far}
    return reached


def beside(path: str, links: Mapping[str, Links]) -> set[str]:
    """What counts as changed with it: a whole package with its beginning; the tests that look at the console, with its
    source; and what is nearest to a file that no source speaks of by its name."""
    folder = path.rpartition("/")[0]
    if path.startswith(WEB):
        return {file for file in links if file.startswith(CONSOLE)}
    if path.endswith("/__init__.py"):
        return {file for file in links if file.startswith(f"{folder}/")}
    if path.endswith(".py") or path.startswith(PAGES) or any(path in found.imports for found in links.values()):
        return set()
    while folder:
        if near := {file for file in links if file.endswith(".py") and file.rpartition("/")[0] == folder}:
            return near
        folder = folder.rpartition("/")[0]
    return set()


def _backwards(links: Mapping[str, Iterable[str]]) -> dict[str, set[str]]:
    behind: dict[str, set[str]] = {}
    for path, others in links.items():
        for other in others:
            behind.setdefault(other, set()).add(path)
    return behind


def _steps(begin: Collection[str], behind: Mapping[str, Collection[str]]) -> dict[str, int]:
    found, edge, steps = dict.fromkeys(begin, 0), set(begin), 0
    while edge:
        steps += 1
        edge = {path for one in edge for path in behind.get(one, ())} - found.keys()
        found |= dict.fromkeys(edge, steps)
    return found


def rank(file: str, changed: str, reach: Reach) -> Rank:
    """What to run first of all that feels it."""
    named_after = is_named_after(file, changed)
    if file == changed:
        why = CHANGED
    elif room_of(file) == (room_of(changed) or file) or (named_after and not room_of(file)):
        why = ROOM
    else:
        why = WHOLE if reach.whole else NEAR if reach.steps <= NEAR_STEPS else FAR
    return Rank(why, reach.whole, not named_after, reach.steps)


def of_the_room(changed: str, tests: Iterable[str]) -> dict[str, Rank]:
    """All that are about the room of a changed source: what is meant to be felt there may not show in imports."""
    if changed.startswith("tests/") or not room_of(changed):
        return {}
    last = Reach(sys.maxsize)
    return {file: rank(file, changed, last) for file in tests if room_of(file) == room_of(changed)}


def room_of(path: str) -> str:
    """Tests have the folders of the rooms that they are about; the console is made from web."""
    if path.startswith(WEB):
        return "console"
    folders = path.removeprefix("src/gpuyard/").removeprefix("tests/").split("/")[:-1]
    return folders[0] if folders else ""


def is_named_after(file: str, changed: str) -> bool:
    """`test_cli_jobs` is about `jobs`."""
    about, name = (path.rpartition("/")[2].removesuffix(".py") for path in (file, changed))
    return f"_{name}_" in f"{about}_"


def fill(ranks: Mapping[str, Rank], seconds: Mapping[str, float], budget: float) -> Choice:
    """As many as there is time for. What was changed itself is run however long it takes."""
    choice, spent = Choice(), 0.0
    takes = {file: seconds.get(file, UNKNOWN_SECONDS) for file in ranks}
    for file in sorted(ranks, key=lambda file: (ranks[file], takes[file], file)):
        found = ranks[file]
        if found.why == CHANGED or spent + takes[file] <= budget:
            choice.chosen.setdefault(found.why, []).append(file)
            spent += takes[file]
        else:
            choice.left.setdefault(WHOLE if found.whole else found.why, []).append(file)
    return choice


# --- saying -----------------------------------------------------------------------------------------------------------


def told(choice: Choice, seconds: Mapping[str, float]) -> list[str]:
    if choice.all_because:
        return [f"all tests: {choice.all_because}"]
    lines = [f"always: {' '.join(ALWAYS)}"]
    for why, files in sorted(choice.chosen.items()):
        takes = sum(seconds.get(file, UNKNOWN_SECONDS) for file in files)
        lines.append(f"{_counted(files)} {WHY[why]}, {takes:.0f} s: {_some(files)}")
    return lines


def left_out(choice: Choice) -> list[str]:
    lines = [f"no test reaches {_some(choice.unreached)}"] if choice.unreached else []
    left = [f"{_counted(files)} {WHY[why]}" for why, files in sorted(choice.left.items())]
    return [*lines, f"left for CI: {', '.join(left)}"] if left else lines


def say(lines: Iterable[str]) -> None:
    """Before those who are started say theirs."""
    for line in lines:
        print(line, flush=True)


def _counted(files: Sequence[str]) -> str:
    return "1 file" if len(files) == 1 else f"{len(files)} files"


def _some(files: Sequence[str], most: int = 4) -> str:
    return " ".join(files[:most]) + (f" and {len(files) - most} more" if len(files) > most else "")


# --- doing ------------------------------------------------------------------------------------------------------------


def changed_since(commit: str, project: Path = PROJECT) -> list[str]:
    """What was done here since then, not what others have done there meanwhile. A file that was moved counts twice."""
    differs = _git(project, "diff", "--merge-base", "--name-only", "--no-renames", "-z", commit, "--")
    return sorted({*differs, *_git(project, "ls-files", "--others", "--exclude-standard", "-z")})


def _git(project: Path, *words: str) -> list[str]:
    done = subprocess.run(["git", *words], cwd=project, stdout=subprocess.PIPE, text=True)
    if done.returncode:
        sys.exit(2)  # it has said why
    return [path for path in done.stdout.split("\0") if path]


def recorded_seconds() -> dict[str, float]:
    found: dict[str, float] = json.loads(SECONDS.read_text(encoding="utf-8")) if SECONDS.is_file() else {}
    return found


def run(command: Sequence[str]) -> int:
    """Whoever interrupts at a terminal interrupts the tests as well, and they end by themselves."""
    running = subprocess.Popen(command, cwd=PROJECT)
    signal.signal(signal.SIGINT, lambda number, frame: None)
    for number in (signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, lambda number, frame: running.send_signal(number))
    return abs(running.wait())


def main(words: list[str]) -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.near", description=(__doc__ or "").partition("\n\n")[2])
    parser.add_argument("--since", metavar="COMMIT", default="HEAD")
    parser.add_argument("--only-say", action="store_true", help="and run nothing")
    own, more = (words[: words.index("--")], words[words.index("--") + 1 :]) if "--" in words else (words, [])
    options = parser.parse_args(own)
    changed, seconds = changed_since(options.since), recorded_seconds()
    if not changed:
        print(f"nothing has changed since {options.since}. Further back: make test-near SINCE=HEAD~1")
        return 0
    print(f"{_counted(changed)} changed since {options.since}: {_some(changed)}")
    gone = [path for path in changed if not (PROJECT / path).exists()]
    choice = choose(changed, read(PROJECT, gone).links(), seconds, gone=gone)
    say(told(choice, seconds))
    if options.only_say:
        say(left_out(choice))
        return 0
    if any(path.startswith(WEB) for path in changed) and (code := subprocess.run(WEB_CHECK, cwd=PROJECT).returncode):
        return code
    code = run([*RUNNER, *([] if choice.all_because else choice.files), *more])
    say(left_out(choice))
    return code


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
