"""Stand-ins for cards on a machine that has none. Always labelled simulated. A job may open their files as it would a
device, so that holding and releasing a card can be tried out."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from gpuyard.devices.probe import CardReading
from gpuyard.domain.cluster import Card
from gpuyard.domain.resources import DEVICE_TYPES, GIB

MAX_CARDS = 1024


class SimulatedProbe:
    def __init__(self, data: Path, count: int, device: str = "nvidia") -> None:
        folder = data.resolve() / "simulated"
        folder.mkdir(mode=0o711, parents=True, exist_ok=True)
        self._cards = tuple(
            Card(
                index=number,
                device=device,
                model=f"Simulated {device}",
                memory=80 * GIB,
                simulated=True,
                path=str(_stand_in(folder, f"{device}{number}")),
            )
            for number in range(count)
        )

    def look(self) -> Sequence[Card]:
        return self._cards

    def read(self) -> Sequence[CardReading]:
        return ()

    def close(self) -> None:
        return


def parse_simulated(text: str) -> tuple[int, str]:
    """`8` or `8:ascend` -> how many, of which type."""
    number, _, device = text.partition(":")
    device = device or "nvidia"
    if not (number.isascii() and number.isdecimal()) or not 0 < int(number) <= MAX_CARDS or device not in DEVICE_TYPES:
        raise ValueError(f"expected a number of cards, and perhaps a type, like 8 or 8:ascend (got {text!r})")
    return int(number), device


def _stand_in(folder: Path, name: str) -> Path:
    path = folder / name
    path.touch(exist_ok=True)
    path.chmod(0o666)  # a device anyone may open; only those it was given to can see it
    return path
