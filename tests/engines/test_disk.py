"""A disk that is nearly full keeps new work out, says so, and lets it in again when there is room."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.engines.places import MakeYard

from gpuyard.domain.cluster import Node, NodeState
from gpuyard.domain.reasons import Code, because
from gpuyard.domain.resources import GIB, MIB
from gpuyard.engines.disk import Disk
from gpuyard.words import say


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    place = tmp_path / "disk"
    place.mkdir()
    made = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=64m", "none", str(place)], capture_output=True)
    if made.returncode != 0:
        pytest.skip("a small disk needs the right to mount")
    yield place
    subprocess.run(["umount", str(place)], check=True)


def fill(place: Path, size: int) -> None:
    (place / "ballast").write_bytes(b"\0" * size)


def test_a_disk_is_nearly_full_when_its_reserve_is_touched_and_well_again_with_some_to_spare(small_disk: Path) -> None:
    disk = Disk(small_disk, 2 * MIB)
    assert disk.state() is NodeState.READY
    fill(small_disk, 63 * MIB)
    assert disk.state() is NodeState.DISK_FULL
    fill(small_disk, 61 * MIB + 800 * 1024)
    assert disk.state() is NodeState.DISK_FULL  # so little more room would be gone at once
    fill(small_disk, 60 * MIB)
    assert disk.state() is NodeState.READY


def test_of_a_small_disk_only_a_part_is_kept_back(small_disk: Path) -> None:
    assert not Disk(small_disk, 5 * GIB).is_nearly_full()
    fill(small_disk, 62 * MIB)
    assert Disk(small_disk, 5 * GIB).is_nearly_full()


def test_a_machine_whose_disk_is_nearly_full_says_so(small_disk: Path, make_yard: MakeYard) -> None:
    engine = make_yard(small_disk / "data").engine
    assert [node.state for node in engine.nodes()] == [NodeState.READY]
    fill(small_disk, 62 * MIB)
    assert [node.state for node in engine.nodes()] == [NodeState.DISK_FULL]


def test_work_that_waits_for_room_on_a_disk_is_told_so() -> None:
    node = Node("gpu01", 1000, GIB, state=NodeState.DISK_FULL)
    waits = because(Code.NO_NODES, nodes=[f"{node.name} ({node.state.value})"])
    assert say(waits, "en").startswith("The disk of the machines that could take it is nearly full: gpu01")
    assert say(waits, "zh").startswith("能运行它的机器磁盘快满了：gpu01")
