"""What a task asks for. Cards have many names there; here they are cards of a device type."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from gpuyard.dialects.native.writing import exact_bytes
from gpuyard.dialects.volcano import quantities
from gpuyard.dialects.volcano.notes import NEGATIVE, Notes, Path
from gpuyard.domain.problems import Problem
from gpuyard.domain.resources import MAX_CARDS_MILLI, MAX_CPU_MILLI, MAX_MEMORY, MIB, WHOLE_CARD

NVIDIA_CARD, ASCEND_CARD = "nvidia.com/gpu", "huawei.com/Ascend910"
_CARDS = {
    "gpu": None,  # the customised file's: whatever type the platform has
    "npu": "ascend",
    NVIDIA_CARD: "nvidia",
    "volcano.sh/gpu-number": "nvidia",
    "volcano.sh/vgpu-number": "nvidia",
}
_USUAL_NAMES = ("cpu", "memory", NVIDIA_CARD, ASCEND_CARD)
_ASCEND = re.compile(r"(?:huawei\.com|npu\.huawei\.com)/[A-Za-z0-9_-]+")
_WITHOUT_MEANING = re.compile(r"ephemeral-storage|hugepages-.*|rdma/.*|volcano\.sh/(?:v?gpu-memory|vgpu-cores).*|pods")


def is_ascend(name: str) -> bool:
    return bool(_ASCEND.fullmatch(name))


def read_amounts(data: Mapping[str, Any], path: Path, notes: Notes) -> dict[str, Any]:
    """`{cpu: "500m", memory: "1024Mi", nvidia.com/gpu: "1"}` as keys of our job file. Empty is nothing."""
    asked: dict[str, Any] = {}
    for name, value in data.items():
        where = (*path, name)
        written = notes.text(value, where).strip()
        if not written:
            continue
        if name == "cpu":
            asked |= _some(cpu=_within(_milli(written, where, notes), MAX_CPU_MILLI, where, notes) / 1000)
        elif name == "memory":
            asked |= _bytes_of("memory", _memory(written, where, notes))
        elif name in _CARDS or is_ascend(name):
            asked |= _cards(name, written, where, notes)
        elif _WITHOUT_MEANING.fullmatch(name):
            notes.leave_out(where, "door.unused.decided")
        elif _milli(written, where, notes):
            words = f"0 nodes are available: Insufficient {name} (nothing here is called so)"
            raise notes.refuse(where, words, "door.problem.resource", allowed=list(_USUAL_NAMES))
    return asked


def merged(limits: Mapping[str, Any], requests: Mapping[str, Any]) -> dict[str, Any]:
    """What one may have at most is what one gets; where only the least is said, that."""
    return {**requests, **limits}


def _cards(name: str, written: str, path: Path, notes: Notes) -> dict[str, Any]:
    milli = _within(_milli(written, path, notes), MAX_CARDS_MILLI, path, notes)
    if milli > WHOLE_CARD and milli % WHOLE_CARD:
        words = f"{path[-1]}: Invalid value: {written!r}: must be an integer, or a share of one card"
        raise notes.refuse(path, words, Problem.CARDS)
    if not milli:
        return {}
    if is_ascend(name):
        notes.read_as(path, "door.read.any_ascend")
    device = "ascend" if is_ascend(name) else _CARDS.get(name)
    cards: dict[str, Any] = {"cards": _plain(milli / 1000)}
    return cards | ({"device": device} if device else {})


def _memory(written: str, path: Path, notes: Notes) -> int:
    amount = _amount(quantities.whole, written, path, notes)
    if 0 < amount < MIB:
        words = f"memory: Invalid value: {written!r}: is {amount} bytes; write 1024Mi or 16Gi"
        raise notes.refuse(path, words, "door.problem.too_few_bytes", count=amount)
    return _within(amount, MAX_MEMORY, path, notes)


def _milli(written: str, path: Path, notes: Notes) -> int:
    return _amount(quantities.milli, written, path, notes)


def _amount(parse: Any, written: str, path: Path, notes: Notes) -> int:
    try:
        amount = int(parse(written))
    except quantities.WrongQuantity as error:
        words = f"{path[-1]}: Invalid value: {written[:80]!r}: {error}"
        raise notes.refuse(path, words, "door.problem.quantity") from error
    if amount < 0:
        words = f"{path[-1]}: Invalid value: {written!r}: must be greater than or equal to 0"
        raise notes.refuse(path, words, NEGATIVE)
    return amount


def _within(amount: int, most: int, path: Path, notes: Notes) -> int:
    if amount > most:
        raise notes.refuse(path, f"{path[-1]}: Invalid value: more than any machine has", "door.problem.too_much")
    return amount


def _bytes_of(key: str, amount: int) -> dict[str, Any]:
    return {key: exact_bytes(amount)} if amount else {}


def _some(**amounts: float) -> dict[str, Any]:
    return {name: _plain(amount) for name, amount in amounts.items() if amount}


def _plain(amount: float) -> int | float:
    return int(amount) if amount == int(amount) else amount
