"""Priorities: 1 to 9 there, 1 to 1000 here, larger first on both sides.

    dlc   1    2    3    4    5    6    7    8    9
    here  500  525  550  575  600  625  650  675  700

1 is what everybody gets who says nothing, as 500 is here; 9 is as far as any member may go.
"""

from __future__ import annotations

LOWEST, HIGHEST = 1, 9
_USUAL, _STEP = 500, 25


def to_ours(priority: int) -> int:
    return _USUAL + (priority - LOWEST) * _STEP


def to_theirs(priority: int) -> int:
    """The nearest; what is below the usual is 1, what is above 9 is 9."""
    return min(HIGHEST, max(LOWEST, LOWEST + round((priority - _USUAL) / _STEP)))
