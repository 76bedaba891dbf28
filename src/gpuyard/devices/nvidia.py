"""NVIDIA cards, as NVML shows them. A card that does not answer is in trouble; a machine without driver has none."""

from __future__ import annotations

import ctypes
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any, TypeVar

from gpuyard.devices.probe import CardReading
from gpuyard.domain.cluster import Card

_RETRY_SECONDS = 30.0  # how soon a missing driver is looked for again: loading a library that is not there costs time

T = TypeVar("T")


def load_nvml() -> Any | None:
    """NVML's binding, or None where the driver is not installed: then its many names need not be loaded either."""
    try:
        ctypes.CDLL("libnvidia-ml.so.1")
    except OSError:
        return None
    import pynvml

    return pynvml


class NvidiaProbe:
    """`load` gives NVML's binding; anything with the same functions will do."""

    def __init__(self, load: Callable[[], Any | None] = load_nvml, clock: Callable[[], float] = time.monotonic) -> None:
        self._load = load
        self._nvml: Any = None
        self._clock = clock
        self._is_open = False
        self._not_before = float("-inf")
        self._known: dict[int, Card] = {}  # a card that falls off the bus is still named
        self._lock = threading.Lock()

    def look(self) -> Sequence[Card]:
        with self._lock:
            if not self._open():
                return [replace(card, trouble="the NVIDIA driver does not answer") for card in self._known.values()]
            count = self._ask(self._nvml.nvmlDeviceGetCount, 0)
            seen = {index: self._card(index) for index in range(count)}
            missing = {
                i: replace(card, trouble="it is no longer there") for i, card in self._known.items() if i not in seen
            }
            self._known |= {index: card for index, card in seen.items() if not card.trouble}
            return [card for _, card in sorted((seen | missing).items())]

    def read(self) -> Sequence[CardReading]:
        with self._lock:
            if not self._known or not self._open():
                return ()
            readings = (self._reading(index) for index in self._known)
            return [reading for reading in readings if reading is not None]

    def close(self) -> None:
        with self._lock:
            if self._is_open:
                self._ask(self._nvml.nvmlShutdown, None)
                self._is_open = False

    def _open(self) -> bool:
        if self._is_open or self._clock() < self._not_before:
            return self._is_open
        self._nvml = self._nvml or self._load()
        self._is_open = self._nvml is not None and self._ask(lambda: self._nvml.nvmlInit() or True, False)
        self._not_before = self._clock() + _RETRY_SECONDS
        return self._is_open

    def _card(self, index: int) -> Card:
        known = self._known.get(index, Card(index, "nvidia", "NVIDIA", path=f"/dev/nvidia{index}"))
        try:
            handle = self._nvml.nvmlDeviceGetHandleByIndex(index)
            minor = self._ask(lambda: self._nvml.nvmlDeviceGetMinorNumber(handle), index)
            return Card(
                index=index,
                device="nvidia",
                model=_text(self._nvml.nvmlDeviceGetName(handle)),
                memory=int(self._nvml.nvmlDeviceGetMemoryInfo(handle).total),
                path=f"/dev/nvidia{minor}",
                trouble=self._fault(handle),
            )
        except self._nvml.NVMLError as problem:
            return replace(known, trouble=f"the driver says: {problem}")

    def _fault(self, handle: Any) -> str:
        """Memory that is broken beyond repair until the card is reset. Most cards without ECC do not tell."""
        pending = self._ask(lambda: self._nvml.nvmlDeviceGetRemappedRows(handle), None)
        if pending is not None and len(pending) >= 4 and pending[3]:
            return "its memory has failed rows that could not be replaced"
        retired = self._ask(lambda: self._nvml.nvmlDeviceGetRetiredPagesPendingStatus(handle), 0)
        return "its memory has pages waiting to be retired; it needs a reset" if retired else ""

    def _reading(self, index: int) -> CardReading | None:
        try:
            handle = self._nvml.nvmlDeviceGetHandleByIndex(index)
            memory = int(self._nvml.nvmlDeviceGetMemoryInfo(handle).used)
        except self._nvml.NVMLError:
            return None
        rates = self._ask(lambda: self._nvml.nvmlDeviceGetUtilizationRates(handle), None)
        return CardReading("nvidia", index, float(rates.gpu) if rates is not None else None, memory)

    def _ask(self, question: Callable[[], T], otherwise: T) -> T:
        """Cards differ in what they tell. What one does not tell is not a fault."""
        try:
            return question()
        except self._nvml.NVMLError:
            return otherwise


def _text(value: str | bytes) -> str:
    return value.decode("utf-8", "replace") if isinstance(value, bytes) else value
