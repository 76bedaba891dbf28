"""One measured number beside what was promised."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Line:
    """`at_most` tells which side is good."""

    what: str
    value: float
    promised: float
    unit: str
    at_most: bool = True

    @property
    def kept(self) -> bool:
        return self.value <= self.promised if self.at_most else self.value >= self.promised

    def __str__(self) -> str:
        sign = "<=" if self.at_most else ">="
        mark = "ok  " if self.kept else "MISS"
        return f"{mark} {self.what:<66} {self.value:>10.3f} {self.unit:<7} {sign} {self.promised:g}"


def percentile(values: list[float], share: float) -> float:
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, int(len(ordered) * share))]
