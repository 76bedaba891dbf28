"""The environment variables that every replica gets, whatever engine runs it."""

from __future__ import annotations

from collections.abc import Sequence

from gpuyard.domain.cluster import Card
from gpuyard.domain.workload import ReplicaId

# Nodes that every job with a card of this type opens besides the card itself.
CONTROL_NODES = {
    "nvidia": ("/dev/nvidiactl", "/dev/nvidia-uvm", "/dev/nvidia-uvm-tools", "/dev/nvidia-modeset"),
    "ascend": ("/dev/davinci_manager", "/dev/devmm_svm", "/dev/hisi_hdc"),
}


def person_variables(owner: str, home: str) -> dict[str, str]:
    """Who one is, and where at home. The job's own file may say otherwise."""
    return {
        "HOME": home,
        "USER": owner,
        "LOGNAME": owner,
        "LANG": "C.UTF-8",
        "PYTHONUNBUFFERED": "1",  # or a training's prints would reach the log only in large pieces, long after
    }


def replica_variables(id: ReplicaId, cards: Sequence[Card], beacon: str, checkpoint: str | None) -> dict[str, str]:
    """What the platform says of a replica; nobody can say otherwise."""
    told = {
        "YARD_WORKLOAD": id.workload,
        "YARD_ATTEMPT": str(id.attempt),
        "YARD_ROLE": id.role,
        "YARD_INDEX": str(id.index),
        "YARD_REPLICA": str(id),
        "YARD_CARD_PATHS": ":".join(card.path for card in cards if card.path),
        "YARD_BEACON": beacon,
    }
    return told if checkpoint is None else told | {"YARD_CHECKPOINT": checkpoint}


def card_variables(device: str, cards: Sequence[Card], *, hidden: bool) -> dict[str, str]:
    """Which cards the frameworks take. Where only the given device nodes exist (`hidden`), drivers count from 0."""
    if not cards:
        return {"CUDA_VISIBLE_DEVICES": "", "NVIDIA_VISIBLE_DEVICES": "void"}
    numbers = range(len(cards)) if hidden else [card.index for card in cards]
    visible = ",".join(str(number) for number in numbers)
    physical = ",".join(str(card.index) for card in cards)
    if device == "ascend":
        return {"ASCEND_VISIBLE_DEVICES": physical, "ASCEND_RT_VISIBLE_DEVICES": visible, "CUDA_VISIBLE_DEVICES": ""}
    return {
        "CUDA_DEVICE_ORDER": "PCI_BUS_ID",
        "CUDA_VISIBLE_DEVICES": visible,
        "NVIDIA_VISIBLE_DEVICES": physical,
    }
