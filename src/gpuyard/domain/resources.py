"""Amounts of things a workload asks for and a node has. Integers in small units, so that sums are exact.

CPU in thousandths of a core, memory in bytes, cards in thousandths of a card.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import lru_cache

KIB, MIB, GIB, TIB = 1 << 10, 1 << 20, 1 << 30, 1 << 40
WHOLE_CARD = 1000
DEVICE_TYPES = ("nvidia", "ascend")

MAX_CPU_MILLI = 10_000_000  # 10,000 cores: anything above is a typing mistake
MAX_MEMORY = 1 << 50  # 1 PiB
MAX_CARDS_MILLI = 100_000 * WHOLE_CARD


@dataclass(frozen=True, slots=True)
class Cards:
    """Cards of one device type. Below one whole card it is a share of a single card; otherwise whole cards.

    `models` names the models that will do, any of them; empty: every model. All cards of a replica are of one model.
    """

    device: str
    milli: int
    models: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        if self.milli <= 0 or (self.milli > WHOLE_CARD and self.milli % WHOLE_CARD):
            raise ValueError("cards are whole, or a share of one card below 1")

    @property
    def whole(self) -> int:
        return self.milli // WHOLE_CARD

    @property
    def is_share(self) -> bool:
        return self.milli < WHOLE_CARD


@dataclass(frozen=True, slots=True)
class Resources:
    """What one replica asks for. None means: left open, give it the fair share of the node it lands on."""

    cpu_milli: int | None = None
    memory: int | None = None
    shm: int | None = None
    cards: Cards | None = None


_MODEL_WORDS = re.compile(r"[a-z0-9]+")


@lru_cache(maxsize=4096)
def is_model(asked: str, model: str) -> bool:
    """`a100` and `A100-80GB` both name `NVIDIA A100-SXM4-80GB`: every word asked for is a word of the model."""
    words = set(_MODEL_WORDS.findall(model.lower()))
    wanted = _MODEL_WORDS.findall(asked.lower())
    return bool(wanted) and all(word in words for word in wanted)


LONGEST_AMOUNT = 32  # checked before matching: whitespace without end would keep the patterns below busy

_BYTES = re.compile(r"\s*(\d+(?:\.\d+)?)\s*([kmgt]?)(i?)b?\s*", re.IGNORECASE | re.ASCII)
_SCALE = {"": 1, "k": KIB, "m": MIB, "g": GIB, "t": TIB}


def _match(pattern: re.Pattern[str], text: str) -> re.Match[str] | None:
    return pattern.fullmatch(text) if len(text) <= LONGEST_AMOUNT else None


def parse_bytes(text: str) -> int:
    """`16G`, `16Gi`, `512MB`, `1.5g`, `1048576`. G and Gi are both 2^30: people mean the same by them."""
    match = _match(_BYTES, text)
    if not match:
        raise ValueError("expected an amount like 512M, 16G or 1.5T")
    number, unit, _ = match.groups()
    value = round(float(number) * _SCALE[unit.lower()])
    if not 0 < value <= MAX_MEMORY:
        raise ValueError("expected more than 0 and at most 1024T")
    return value


_CPU = re.compile(r"\s*(?:(\d+)m|(\d+(?:\.\d{1,3})?))\s*", re.ASCII)


def parse_cpu(text: str) -> int:
    """`4`, `0.5`, `500m` -> thousandths of a core."""
    match = _match(_CPU, text)
    if not match:
        raise ValueError("expected cores like 4, 0.5 or 500m")
    milli = int(match.group(1)) if match.group(1) else round(float(match.group(2)) * 1000)
    if not 0 < milli <= MAX_CPU_MILLI:
        raise ValueError("expected more than 0 and at most 10000 cores")
    return milli


_CARDS = re.compile(r"\s*(\d+(?:\.\d{1,3})?)\s*", re.ASCII)


def parse_cards(text: str) -> int:
    """`2`, `0.5` -> thousandths of a card; 0 means none."""
    match = _match(_CARDS, text)
    if not match:
        raise ValueError("expected a number of cards like 1, 8 or 0.5")
    milli = round(float(match.group(1)) * WHOLE_CARD)
    if milli > MAX_CARDS_MILLI:
        raise ValueError("expected at most 100000 cards")
    if milli > WHOLE_CARD and milli % WHOLE_CARD:
        raise ValueError("cards are whole (1, 2, 8) or a share of one card (0.5)")
    return milli


_DURATION = re.compile(
    r"\s*(?:(\d+)d)?\s*(?:(\d+)h)?\s*(?:(\d+)m)?\s*(?:(\d+(?:\.\d+)?)s)?\s*", re.IGNORECASE | re.ASCII
)
_SECONDS = re.compile(r"\s*\d+(?:\.\d+)?\s*", re.ASCII)
MAX_SECONDS = 366 * 86400


def parse_duration(text: str) -> float:
    """`90`, `90s`, `30m`, `2h30m`, `1d` -> seconds. In `2h30` nobody knows what 30 means, so it is refused."""
    match = _match(_DURATION, f"{text.strip()}s" if _match(_SECONDS, text) else text)
    if not match or not any(match.groups()):
        raise ValueError("expected a time like 90s, 30m, 2h30m or 1d")
    days, hours, minutes, seconds = (float(part or 0) for part in match.groups())
    total = days * 86400 + hours * 3600 + minutes * 60 + seconds
    if not 0 < total <= MAX_SECONDS:
        raise ValueError("expected more than 0 and at most 366 days")
    return total


def show_bytes(amount: int) -> str:
    for unit, scale in (("T", TIB), ("G", GIB), ("M", MIB), ("K", KIB)):
        if amount >= scale:
            return f"{amount / scale:.1f}".rstrip("0").rstrip(".") + unit
    return f"{amount}B"


def show_milli(milli: int) -> str:
    """Cores or cards as people write them: 1500 -> `1.5`."""
    return f"{milli / 1000:.3f}".rstrip("0").rstrip(".")
