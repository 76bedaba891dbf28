"""Which probes this machine needs."""

from __future__ import annotations

from pathlib import Path

from gpuyard.devices.ascend import AscendProbe
from gpuyard.devices.nvidia import NvidiaProbe
from gpuyard.devices.probe import DeviceProbe
from gpuyard.devices.simulated import SimulatedProbe, parse_simulated


def find_probes(data: Path, simulate_cards: str = "") -> tuple[DeviceProbe, ...]:
    """Every kind is asked each time, so that a driver loaded later is noticed. Simulated cards take the place of the
    real ones of their type. Raises ValueError when `simulate_cards` cannot be meant."""
    probes: dict[str, DeviceProbe] = {"nvidia": NvidiaProbe(), "ascend": AscendProbe()}
    if simulate_cards:
        count, device = parse_simulated(simulate_cards)
        probes[device] = SimulatedProbe(data, count, device)
    return tuple(probes.values())
