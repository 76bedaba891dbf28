"""A journal written while the clock was set back, or was ahead for a while."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.journal.keeper import Keeper
from tests.journal.yard import SMALL, Writing
from tests.scheduling.worlds import Rough

from gpuyard.domain.policy import Policy
from gpuyard.journal.folder import segments
from gpuyard.journal.replay import Asked, replay
from gpuyard.journal.whatif import what_if

WORLD = Rough(11, nodes=4, queue=9, runs=9)
DAY = 86400.0
YEARS = 1.7e9  # the worlds of these tests begin in 1970


def kept(folder: Path, *jumps: float, cycles: int = 40) -> Keeper:
    """So many cycles, then the clock is set, and again so many, for each jump."""
    writing = Writing(folder, SMALL)
    keeper = Keeper(WORLD.world(), 3, writing.recorder)
    for jump in (YEARS, *jumps):
        keeper.now += jump
        for _ in range(cycles):
            keeper.go_on()
            writing.catch_up()
    writing.end()
    return keeper


@pytest.mark.parametrize("jumps", [(-100.0,), (-30 * DAY,), (40 * DAY, -40 * DAY), (-1e6, -1e6)], ids=str)
def test_it_is_replayed_to_the_last_bit(jumps: tuple[float, ...], tmp_path: Path) -> None:
    keeper = kept(tmp_path, *jumps)
    assert len(segments(tmp_path)) > 2
    report = replay(tmp_path, Asked())
    assert report.is_same
    assert report.cycles == len(keeper.plans)


@pytest.mark.parametrize("jumps", [(-100.0,), (-30 * DAY,), (40 * DAY, -40 * DAY), (-1e6, -1e6)], ids=str)
def test_what_was_decided_in_a_stretch_of_time_is_found_wherever_it_is_written(
    jumps: tuple[float, ...], tmp_path: Path
) -> None:
    kept(tmp_path, *jumps)
    everything = replay(tmp_path, Asked())
    assert everything.first is not None
    middle = YEARS + everything.first % YEARS + 3600.0
    before, after = replay(tmp_path, Asked(until=middle)), replay(tmp_path, Asked(since=middle + 1e-9))
    assert before.cycles + after.cycles == everything.cycles


@pytest.mark.parametrize("jumps", [(-100.0,), (-30 * DAY,), (40 * DAY, -40 * DAY), (-1e6, -1e6)], ids=str)
def test_history_can_be_rehearsed_and_nobody_waited_for_less_than_nothing(
    jumps: tuple[float, ...], tmp_path: Path
) -> None:
    keeper = kept(tmp_path, *jumps)
    for since in (None, keeper.now - 1000.0, keeper.now - 20 * DAY):
        found = what_if(tmp_path, Policy(), Policy(), since=since, until=keeper.now)
        if not found.jobs:
            continue
        assert found.begin <= found.until
        assert found.gain_count == found.lose_count == 0
        for waits in (found.really, found.present.waits, found.other.waits):
            assert waits.mean >= 0.0
            assert waits.jobs > 0
        assert found.present.utilisation is None or 0.0 <= found.present.utilisation <= 1.0
