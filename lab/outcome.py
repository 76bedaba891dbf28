"""What became of each bench, and what is said of all of them at the end."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

PROMISED_SECONDS = 12 * 60.0  # all benches, on two cores
WIDTH = 120


@dataclass(frozen=True)
class Outcome:
    name: str
    seconds: float
    kept: bool = True
    left_out: str = ""
    broke: str = ""

    @property
    def is_good(self) -> bool:
        """What was left out has broken no promise."""
        return self.kept and not self.broke


def summary(outcomes: Sequence[Outcome]) -> Iterator[str]:
    """Lines; the loud ones begin with !!"""
    if not outcomes:
        return
    each = ", ".join(f"{one.name} {one.seconds:.0f}" for one in outcomes)
    yield ""
    yield from textwrap.wrap(f"seconds: {each}; in all {in_all(outcomes):.0f}", WIDTH, subsequent_indent="  ")
    for one in outcomes:
        if one.left_out:
            yield f"!!   {one.name} was left out: {one.left_out}"
        if one.broke:
            yield f"!!   {one.name} broke: {one.broke}"
    if missed := [one.name for one in outcomes if not one.kept]:
        yield f"!!   missed in {', '.join(missed)}"
    if in_all(outcomes) > PROMISED_SECONDS:
        yield f"!!   {in_all(outcomes):.0f} s in all are more than the {PROMISED_SECONDS:g} promised"


def in_all(outcomes: Sequence[Outcome]) -> float:
    return sum(one.seconds for one in outcomes)


def is_good(outcomes: Sequence[Outcome]) -> bool:
    return all(one.is_good for one in outcomes) and in_all(outcomes) <= PROMISED_SECONDS
