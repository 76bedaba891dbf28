"""Amounts as Kubernetes writes them: `500m`, `1024Mi`, `16G`, `1e3`. There G is 10^9 and Gi is 2^30."""

from __future__ import annotations

import re
from decimal import ROUND_CEILING, Decimal

_QUANTITY = re.compile(
    r"([+-]?(?:\d{1,18}(?:\.\d{0,9})?|\.\d{1,9}))([eE][+-]?\d{1,2}|[KMGTPE]i|[numkMGTPE])?", re.ASCII
)
_DECIMAL = {"n": -9, "u": -6, "m": -3, "k": 3, "M": 6, "G": 9, "T": 12, "P": 15, "E": 18}
_SCALE = {unit: Decimal(10) ** power for unit, power in _DECIMAL.items()} | {
    f"{unit}i": Decimal(1 << (10 * power)) for power, unit in enumerate("KMGTPE", 1)
}

WRONG_WORDS = "quantities must match the regular expression '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'"


class WrongQuantity(ValueError):
    """Not an amount."""


def parse(text: str) -> Decimal:
    match = _QUANTITY.fullmatch(text.strip()) if len(text) <= 64 else None
    if match is None:
        raise WrongQuantity(WRONG_WORDS)
    number, suffix = Decimal(match.group(1)), match.group(2) or ""
    if suffix[:1] in ("e", "E") and len(suffix) > 1 and suffix != "Ei":
        return number * Decimal(10) ** int(suffix[1:])
    return number * _SCALE.get(suffix, Decimal(1))


def milli(text: str) -> int:
    """Thousandths, rounded up as Kubernetes does."""
    return int((parse(text) * 1000).to_integral_value(ROUND_CEILING))


def whole(text: str) -> int:
    """Bytes or pieces, rounded up."""
    return int(parse(text).to_integral_value(ROUND_CEILING))


def show_milli(amount: int) -> str:
    return str(amount // 1000) if amount % 1000 == 0 else f"{amount}m"


def show_bytes(amount: int) -> str:
    """In the largest binary unit that leaves no rest."""
    for power, unit in reversed(list(enumerate("KMGTPE", 1))):
        if amount and amount % (1 << (10 * power)) == 0:
            return f"{amount >> (10 * power)}{unit}i"
    return str(amount)
