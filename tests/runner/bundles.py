"""What is handed out, and in which order: files, the longest first, since what is begun last should be short.

Pure. A file whose tests take long is handed out in parts, cut only where a new parameter of fixtures that many tests
share begins: there a server is ended and another begun in any case.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

UNKNOWN_SECONDS = 5.0  # a new file: rather too early than last of all
LONGEST_SECONDS = 25.0  # longer ones are cut


@dataclass(frozen=True)
class Piece:
    """One test, as far as handing out is concerned."""

    id: str
    file: str
    shares: str = ""  # the parameters of fixtures that it shares with its neighbours
    outside: bool = False  # needs a way to the machine's network


@dataclass(frozen=True)
class Bundle:
    file: str
    tests: tuple[int, ...]  # where they are in the list of all
    seconds: float
    outside: bool = False


def bundles_of(tests: Sequence[Piece], seconds: Mapping[str, float], workers: int) -> list[Bundle]:
    """In the order in which they are handed out. One worker alone has them as they come."""
    by_file: dict[str, list[int]] = {}
    for number, test in enumerate(tests):
        by_file.setdefault(test.file, []).append(number)
    made = [bundle for file, numbers in by_file.items() for bundle in _cut(file, numbers, tests, seconds)]
    return made if workers == 1 else sorted(made, key=lambda bundle: -bundle.seconds)


def _cut(file: str, numbers: list[int], tests: Sequence[Piece], seconds: Mapping[str, float]) -> list[Bundle]:
    """In parts that take about equally long, as far as one may know."""
    each = seconds.get(file, UNKNOWN_SECONDS) / len(numbers)
    parts: list[list[int]] = []
    for number in numbers:
        may_cut = parts and tests[parts[-1][-1]].shares != tests[number].shares
        if not parts or (may_cut and len(parts[-1]) * each >= LONGEST_SECONDS):
            parts.append([])
        parts[-1].append(number)
    return [Bundle(file, tuple(part), len(part) * each, any(tests[n].outside for n in part)) for part in parts]


class Line:
    """Whose turn it is. The worker with a way outside takes first what needs one."""

    def __init__(self, bundles: Sequence[Bundle]) -> None:
        self._waiting = list(bundles)

    def __len__(self) -> int:
        return len(self._waiting)

    def next(self, *, outside: bool) -> Bundle | None:
        """None when there is nothing that this worker could do."""
        fitting = [bundle for bundle in self._waiting if outside or not bundle.outside]
        if not fitting:
            return None
        chosen = next((bundle for bundle in fitting if bundle.outside), fitting[0])
        self._waiting.remove(chosen)
        return chosen

    def back(self, bundle: Bundle) -> None:
        """Its worker is lost; what it had not begun is for another."""
        self._waiting.insert(0, bundle)
