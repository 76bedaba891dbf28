"""`python -m tests.fast [WORDS]`: the tests that need nothing but `.venv`, within 90 seconds.

No root, nothing installed beside Python, no PostgreSQL, no containers, no browser. What is fast is not listed anywhere:
it is what neither starts a program nor uses anything in `tests/` that does, as the imports tell, as many files as there
is time for, quickest first. How much is left to `make test` is said at the end.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Mapping

from tests.links import Links, Tree, is_test, read
from tests.near import PROJECT, RUNNER, UNKNOWN_SECONDS, recorded_seconds, run

BUDGET_SECONDS = 70.0  # by the record, one after another; the rest is for reading and collecting
STARTS_PROGRAMS = frozenset({"multiprocessing", "playwright", "pty", "subprocess"})
# For every test that asks for a database; those that get this one have its name in theirs, and are left out by it.
POSTGRESQL, NOT_ON_IT = "tests/postgres.py", ("-k", "not postgresql")


def in_process(links: Mapping[str, Links]) -> list[str]:
    return [file for file in sorted(links) if is_test(file) and not _starts_programs(file, links)]


def _starts_programs(file: str, links: Mapping[str, Links]) -> bool:
    if POSTGRESQL in links[file].imports:  # a server of its own
        return True
    return any(links[used].libraries & STARTS_PROGRAMS for used in _support(file, links))


def _support(file: str, links: Mapping[str, Links]) -> set[str]:
    """The file, and all in `tests/` that it uses."""
    found, edge = {file}, {file}
    while edge:
        used = {other for one in edge for other in links[one].imports | links[one].starts}
        edge = {other for other in used if other.startswith("tests/") and not _is_for_all(other)} - found
        found |= edge
    return found


def _is_for_all(path: str) -> bool:
    return path in ("tests/conftest.py", POSTGRESQL)


def in_time(files: Iterable[str], seconds: Mapping[str, float], budget: float = BUDGET_SECONDS) -> list[str]:
    chosen, spent = [], 0.0
    for file in sorted(files, key=lambda file: (seconds.get(file, UNKNOWN_SECONDS), file)):
        spent += seconds.get(file, UNKNOWN_SECONDS)
        if spent <= budget:
            chosen.append(file)
    return sorted(chosen)


def left_out(chosen: Iterable[str], tree: Tree) -> str:
    tests = {file: source.tests for file, source in tree.sources.items() if is_test(file)}
    left = tests.keys() - chosen
    functions = f"{sum(tests[file] for file in left)} of {sum(tests.values())} test functions"
    return f"left to make test: {functions} in {len(left)} of {len(tests)} files, and whatever else runs on PostgreSQL"


def main(words: list[str]) -> int:
    tree = read(PROJECT)
    files = in_time(in_process(tree.links()), recorded_seconds())
    code = run([*RUNNER, *NOT_ON_IT, *words, *files])
    print(left_out(files, tree))
    return code


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
