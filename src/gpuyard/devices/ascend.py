"""Ascend cards, read from the text of `npu-smi info`.

Two lines per chip: the card's number, model, health, power; then the chip's number, bus address, use and memory:

    | 0     910B3               | OK            | 95.6        45                0    / 0             |
    | 0                         | 0000:C1:00.0  | 0           0    / 0          3413 / 65536         |

Cards with two chips (910C) have a second pair of lines, and `Phy-ID` in the second line's first column.
"""

from __future__ import annotations

import re
import shutil
import subprocess
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from gpuyard.devices.probe import CardReading
from gpuyard.domain.cluster import Card
from gpuyard.domain.resources import MIB

_KEEP_SECONDS = 10.0  # npu-smi takes a second or more; asking it for every look would slow everything
_TIMEOUT_SECONDS = 20.0
_CARD_LINE = re.compile(r"^\|\s*(\d+)\s+(\S+)\s*\|\s*([A-Za-z]+)\s*\|")
_CHIP_LINE = re.compile(r"^\|\s*(\d+)(?:\s+(\d+))?\s*\|\s*[0-9A-Fa-f:.]+\s*\|(.*)\|\s*$")
_PAIR = re.compile(r"(\d+)\s*/\s*(\d+)")


@dataclass(frozen=True, slots=True)
class Chip:
    index: int
    model: str
    health: str
    percent: float | None
    memory_used: int
    memory_total: int


def parse_npu_smi(text: str) -> list[Chip]:
    """Every chip in the text; lines that are not understood are passed over."""
    chips: list[Chip] = []
    card: re.Match[str] | None = None
    for line in text.splitlines():
        chip = _CHIP_LINE.match(line)
        if chip and card:
            chips.append(_read_chip(card, chip, len(chips)))
            card = None
        elif found := _CARD_LINE.match(line):
            card = found
    return chips


def _read_chip(card: re.Match[str], chip: re.Match[str], number: int) -> Chip:
    """The device node's number is the physical id where it is told; otherwise a card has one chip: its own."""
    rest = chip.group(3)
    usage = re.match(r"\s*(\d+)", rest)
    pairs = [(int(used), int(total)) for used, total in _PAIR.findall(rest)]
    used, total = next((pair for pair in reversed(pairs) if pair[1]), (0, 0))
    if chip.group(2) is not None:
        index = int(chip.group(2))
    else:
        index = int(card.group(1)) if chip.group(1) == "0" else number
    percent = float(usage.group(1)) if usage else None
    return Chip(index, f"Ascend {card.group(2)}", card.group(3), percent, used * MIB, total * MIB)


def run_npu_smi() -> str | None:
    """Its text, or None when there is no such program or it does not answer."""
    program = shutil.which("npu-smi")
    if program is None:
        return None
    try:
        done = subprocess.run([program, "info"], capture_output=True, timeout=_TIMEOUT_SECONDS, check=True)
    except (OSError, subprocess.SubprocessError):
        return None
    return done.stdout.decode("utf-8", "replace")


class AscendProbe:
    def __init__(
        self, ask: Callable[[], str | None] = run_npu_smi, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._ask = ask
        self._clock = clock
        self._asked_at = float("-inf")
        self._chips: list[Chip] = []
        self._known: dict[int, Chip] = {}
        self._lock = threading.Lock()

    def look(self) -> Sequence[Card]:
        chips = {chip.index: chip for chip in self._look()}
        missing = [_card(chip, "npu-smi no longer names it") for i, chip in self._known.items() if i not in chips]
        return sorted([_card(chip) for chip in chips.values()] + missing, key=lambda card: card.index)

    def read(self) -> Sequence[CardReading]:
        return [CardReading("ascend", chip.index, chip.percent, chip.memory_used) for chip in self._look()]

    def close(self) -> None:
        return

    def _look(self) -> list[Chip]:
        with self._lock:
            if self._clock() - self._asked_at >= _KEEP_SECONDS:
                self._chips = parse_npu_smi(self._ask() or "")
                self._known |= {chip.index: chip for chip in self._chips}
                self._asked_at = self._clock()
            return self._chips


def _card(chip: Chip, trouble: str = "") -> Card:
    if not trouble and chip.health.upper() not in ("OK", "WARNING"):
        trouble = f"its health is {chip.health}"
    return Card(chip.index, "ascend", chip.model, chip.memory_total, path=f"/dev/davinci{chip.index}", trouble=trouble)
