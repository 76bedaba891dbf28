"""NVIDIA cards through NVML. Where there are none, a stand-in with NVML's functions and NVML's own errors answers."""

from __future__ import annotations

import inspect
import re
from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any

import pynvml

from gpuyard.devices import nvidia
from gpuyard.devices.nvidia import NvidiaProbe, load_nvml

GIB = 1 << 30


@dataclass
class Driver:
    """What NVML would say. `broken` names functions that fail, for all cards or for one."""

    count: int = 2
    broken: dict[str, Exception] = field(default_factory=dict)
    lost: set[int] = field(default_factory=set)
    NVMLError = pynvml.NVMLError

    def nvmlInit(self) -> None:
        self._may("nvmlInit")

    def nvmlShutdown(self) -> None:
        self._may("nvmlShutdown")

    def nvmlDeviceGetCount(self) -> int:
        self._may("nvmlDeviceGetCount")
        return self.count

    def nvmlDeviceGetHandleByIndex(self, index: int) -> int:
        if index in self.lost:
            raise pynvml.NVMLError(pynvml.NVML_ERROR_GPU_IS_LOST)
        return index

    def nvmlDeviceGetName(self, handle: int) -> bytes:
        return b"NVIDIA A100-SXM4-80GB"

    def nvmlDeviceGetMinorNumber(self, handle: int) -> int:
        self._may("nvmlDeviceGetMinorNumber")
        return handle + 4

    def nvmlDeviceGetMemoryInfo(self, handle: int) -> Any:
        return SimpleNamespace(total=80 * GIB, used=3 * GIB)

    def nvmlDeviceGetUtilizationRates(self, handle: int) -> Any:
        self._may("nvmlDeviceGetUtilizationRates")
        return SimpleNamespace(gpu=37, memory=5)

    def nvmlDeviceGetRemappedRows(self, handle: int) -> tuple[int, int, int, int]:
        self._may("nvmlDeviceGetRemappedRows")
        return (0, 0, 0, 0)

    def nvmlDeviceGetRetiredPagesPendingStatus(self, handle: int) -> int:
        self._may("nvmlDeviceGetRetiredPagesPendingStatus")
        return 0

    def _may(self, name: str) -> None:
        if name in self.broken:
            raise self.broken[name]


def not_supported() -> Exception:
    error: Exception = pynvml.NVMLError(pynvml.NVML_ERROR_NOT_SUPPORTED)
    return error


def test_cards_have_their_model_memory_and_node() -> None:
    cards = NvidiaProbe(lambda: Driver()).look()
    assert [(card.index, card.path) for card in cards] == [(0, "/dev/nvidia4"), (1, "/dev/nvidia5")]
    assert cards[0].model == "NVIDIA A100-SXM4-80GB"
    assert cards[0].memory == 80 * GIB
    assert not cards[0].trouble


def test_a_machine_without_driver_has_no_cards_and_is_not_asked_all_the_time() -> None:
    now = [0.0]
    driver = Driver(broken={"nvmlInit": pynvml.NVMLError(pynvml.NVML_ERROR_DRIVER_NOT_LOADED)})
    loads: list[float] = []
    probe = NvidiaProbe(lambda: loads.append(now[0]) or driver, lambda: now[0])  # type: ignore[func-returns-value]
    assert probe.look() == []
    assert probe.read() == ()
    driver.broken.clear()
    assert probe.look() == []
    now[0] = 60.0
    assert len(probe.look()) == 2
    probe.close()


def test_a_card_that_fell_off_the_bus_is_named_and_in_trouble() -> None:
    driver = Driver()
    probe = NvidiaProbe(lambda: driver)
    probe.look()
    driver.lost = {1}
    well, lost = probe.look()
    assert not well.trouble
    assert lost.trouble == "the driver says: GPU is lost"
    assert lost.model == "NVIDIA A100-SXM4-80GB"
    assert [reading.index for reading in probe.read()] == [0]


def test_a_card_the_driver_no_longer_counts_is_in_trouble_not_gone() -> None:
    driver = Driver()
    probe = NvidiaProbe(lambda: driver)
    probe.look()
    driver.count = 1
    assert [card.trouble for card in probe.look()] == ["", "it is no longer there"]


def test_memory_that_cannot_be_repaired_is_trouble() -> None:
    class Failing(Driver):
        def nvmlDeviceGetRemappedRows(self, handle: int) -> tuple[int, int, int, int]:
            return (0, 1, 0, handle)

    assert [bool(card.trouble) for card in NvidiaProbe(lambda: Failing()).look()] == [False, True]


def test_what_a_card_does_not_tell_is_not_a_fault() -> None:
    names = ("nvmlDeviceGetMinorNumber", "nvmlDeviceGetUtilizationRates", "nvmlDeviceGetRemappedRows")
    driver = Driver(broken={name: not_supported() for name in (*names, "nvmlDeviceGetRetiredPagesPendingStatus")})
    probe = NvidiaProbe(lambda: driver)
    assert [(card.path, card.trouble) for card in probe.look()] == [("/dev/nvidia0", ""), ("/dev/nvidia1", "")]
    assert [(r.percent, r.memory) for r in probe.read()] == [(None, 3 * GIB)] * 2


def test_every_function_used_is_in_the_real_binding() -> None:
    names = set(re.findall(r"\.(nvml\w+|NVML\w+)", inspect.getsource(nvidia)))
    assert "nvmlDeviceGetCount" in names
    assert not [name for name in names if not hasattr(pynvml, name) or not hasattr(Driver, name)]


def test_the_binding_is_only_loaded_where_the_driver_is() -> None:
    assert load_nvml() in (None, pynvml)
