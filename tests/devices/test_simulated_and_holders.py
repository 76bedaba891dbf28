"""Simulated cards, and who holds a file open."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from gpuyard.devices import find_probes
from gpuyard.devices.holders import find_holders
from gpuyard.devices.simulated import SimulatedProbe, parse_simulated


def test_simulated_cards_are_labelled_and_have_files_that_can_be_opened(tmp_path: Path) -> None:
    cards = SimulatedProbe(tmp_path, 2, "ascend").look()
    assert [(card.index, card.device, card.simulated) for card in cards] == [(0, "ascend", True), (1, "ascend", True)]
    assert "Simulated" in cards[0].model
    assert cards[1].path == str(tmp_path / "simulated" / "ascend1")
    Path(cards[1].path).write_text("x")


@pytest.mark.parametrize(
    ("text", "expected"), [("8", (8, "nvidia")), ("1:nvidia", (1, "nvidia")), ("4:ascend", (4, "ascend"))]
)
def test_the_number_and_type_of_simulated_cards_are_read(text: str, expected: tuple[int, str]) -> None:
    assert parse_simulated(text) == expected


@pytest.mark.parametrize("text", ["", "0", "-1", "x", "8:tpu", "1.5", "99999", "８"])
def test_numbers_of_cards_that_cannot_be_meant_are_refused(text: str) -> None:
    with pytest.raises(ValueError, match="8:ascend"):
        parse_simulated(text)


def test_simulated_cards_take_the_place_of_real_ones_of_their_type(tmp_path: Path) -> None:
    cards = [card for probe in find_probes(tmp_path, "3:ascend") for card in probe.look()]
    assert [card.index for card in cards if card.device == "ascend"] == [0, 1, 2]
    assert all(card.simulated for card in cards if card.device == "ascend")
    for probe in find_probes(tmp_path):
        probe.close()


def test_a_holder_is_found_by_the_file_and_described(tmp_path: Path) -> None:
    held, free = tmp_path / "held", tmp_path / "free"
    held.touch()
    free.touch()
    program = f"f = open({str(held)!r}); print('ready', flush=True); import time; time.sleep(1000)"
    with subprocess.Popen([sys.executable, "-c", program], stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        process.stdout.readline()
        found = find_holders([str(held), str(free), str(tmp_path / "missing")])
        process.kill()
    assert set(found) == {str(held)}
    (holder,) = found[str(held)]
    assert holder.pid == process.pid
    assert holder.uid == os.getuid()
    assert str(holder).startswith(f"pid {process.pid} (python")


def test_another_file_of_the_same_name_is_not_held(tmp_path: Path) -> None:
    (tmp_path / "other").mkdir()
    for path in (tmp_path / "card", tmp_path / "other" / "card"):
        path.touch()
    program = (
        f"f = open({str(tmp_path / 'other' / 'card')!r}); print('ready', flush=True); import time; time.sleep(1000)"
    )
    with subprocess.Popen([sys.executable, "-c", program], stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        process.stdout.readline()
        assert find_holders([str(tmp_path / "card")]) == {}
        process.kill()


def test_what_we_hold_ourselves_does_not_count(tmp_path: Path) -> None:
    (tmp_path / "card").touch()
    with open(tmp_path / "card"):
        assert find_holders([str(tmp_path / "card")]) == {}


@pytest.mark.skipif(os.geteuid() != 0, reason="needs root to make device nodes")
def test_a_device_is_known_by_its_number_wherever_its_node_lies(tmp_path: Path) -> None:
    (tmp_path / "a").mkdir()
    nodes = [tmp_path / "card", tmp_path / "a" / "card"]
    for node in nodes:
        os.mknod(node, 0o600 | 0o020000, os.makedev(1, 3))
    program = f"f = open({str(nodes[1])!r}); print('ready', flush=True); import time; time.sleep(1000)"
    with subprocess.Popen([sys.executable, "-c", program], stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        process.stdout.readline()
        found = find_holders([str(nodes[0])])
        process.kill()
    assert [holder.pid for holder in found[str(nodes[0])]] == [process.pid]
