"""A journal decides everything once more as it was decided; and where something differs, that is found."""

from __future__ import annotations

import tempfile
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.journal.keeper import keep
from tests.scheduling.worlds import Rough, worlds

from gpuyard.domain.policy import Ordering, Placing, Policy
from gpuyard.domain.reasons import Code, because
from gpuyard.journal.folder import Bounds, segments
from gpuyard.journal.frames import SegmentWriter, read_frames
from gpuyard.journal.replay import Asked, replay
from gpuyard.scheduling.snapshot import Snapshot

ONE_SEGMENT = Bounds(bytes=1 << 30, days=0, segment_bytes=1 << 30, segment_seconds=1e12)
BUSY = Rough(11, nodes=4, queue=9, runs=9)


@settings(max_examples=60, deadline=None, suppress_health_check=list(HealthCheck))
@given(worlds(), st.integers(0, 2**32))
def test_whatever_happens_is_decided_once_more_to_the_last_bit(world: Snapshot, seed: int) -> None:
    with tempfile.TemporaryDirectory() as folder:
        keeper = keep(world, seed, Path(folder), cycles=25)
        report = replay(Path(folder), Asked())
    assert report.differences == []
    assert report.unreadable == []
    assert report.cycles == len(keeper.plans)
    assert report.placements == sum(len(plan.placements) for plan in keeper.plans)
    assert report.evictions == sum(len(plan.evictions) for plan in keeper.plans)
    assert report.reasons == sum(len(plan.waiting) for plan in keeper.plans)


@pytest.mark.soak
@pytest.mark.timeout(3600)
@settings(max_examples=400, deadline=None, suppress_health_check=list(HealthCheck))
@given(worlds(), st.integers(0, 2**32))
def test_over_hundreds_of_thousands_of_events_nothing_differs(world: Snapshot, seed: int) -> None:
    with tempfile.TemporaryDirectory() as folder:
        keep(world, seed, Path(folder), cycles=200)
        assert replay(Path(folder), Asked()).differences == []


def test_many_small_segments_lose_nothing(tmp_path: Path) -> None:
    keeper = keep(BUSY.world(), 3, tmp_path, cycles=150)
    assert len(segments(tmp_path)) > 5
    report = replay(tmp_path, Asked())
    assert (report.cycles, report.differences, report.lost_cycles) == (len(keeper.plans), [], 0)


def test_only_the_cycles_asked_for_are_told(tmp_path: Path) -> None:
    keep(BUSY.world(), 3, tmp_path, cycles=60)
    whole = replay(tmp_path, Asked())
    assert whole.first is not None
    assert whole.last is not None
    last = replay(tmp_path, Asked(last=7))
    assert (last.cycles, last.last) == (7, whole.last)
    middle = (whole.first + whole.last) / 2
    before, after = replay(tmp_path, Asked(until=middle)), replay(tmp_path, Asked(since=middle))
    assert before.cycles + after.cycles == whole.cycles
    assert before.last is not None
    assert before.last <= middle


# --- planted faults -----------------------------------------------------------------------------------------------


def test_another_policy_decides_otherwise_and_that_is_found(tmp_path: Path) -> None:
    keep(Rough(7, nodes=4, queue=9, runs=9, plain_policy=True).world(), 3, tmp_path, cycles=40)
    assert replay(tmp_path, Asked()).is_same
    report = replay(tmp_path, Asked(policy=Policy(placing=Placing.SPREAD, order=Ordering(fair_share=False))))
    assert not report.is_same
    assert report.differing >= len(report.differences) > 0
    assert {one.what for one in report.differences} & {"placement", "waiting"}


def rewrite(source: Path, target: Path, change: str) -> None:
    """The same journal with one decision altered."""
    target.mkdir()
    altered = False
    for segment in segments(source):
        writer = SegmentWriter(target / segment.path.name)
        for frame in read_frames(segment.path):
            if isinstance(frame, list) and not altered:
                altered = any(alter(said, change) for said in frame[1] if said[0] == "d")
            writer.append(frame)
        writer.end()
    assert altered


def alter(said: list, change: str) -> bool:  # type: ignore[type-arg]
    _, _, _, _, placements, waiting, rest = said
    if change == "a card" and placements:
        placements[-1][1][0][2] = (placements[-1][1][0][2] + 1) % 2
    elif change == "nobody starts" and placements:
        placements.pop()
    elif change == "a number" and waiting:
        waiting[0][0]["facts"]["extra"] = 1
    elif change == "the order" and len(waiting) > 1:
        waiting.reverse()
    elif change == "the last bit of a use" and rest.get("uses"):
        rest["uses"] = {who: use + 1e-9 for who, use in rest["uses"].items()}
    elif change == "a victim less" and rest.get("evictions"):
        rest["evictions"].pop()
    else:
        return False
    return True


@pytest.mark.parametrize(
    "change", ["a card", "nobody starts", "a number", "the order", "the last bit of a use", "a victim less"]
)
def test_an_altered_decision_is_found(tmp_path: Path, change: str) -> None:
    keep(BUSY.world(), 11, tmp_path / "journal", cycles=120, bounds=ONE_SEGMENT)
    assert replay(tmp_path / "journal", Asked()).is_same
    rewrite(tmp_path / "journal", tmp_path / "altered", change)
    report = replay(tmp_path / "altered", Asked())
    assert not report.is_same


def test_what_was_said_of_one_job_is_told_as_it_was(tmp_path: Path) -> None:
    keeper = keep(BUSY.world(), 3, tmp_path, cycles=80)
    job = next(p.workload for plan in keeper.plans[20:] for p in plan.placements)
    report = replay(tmp_path, Asked(job=job))
    waits = [plan.waiting[job].to_json() for plan in keeper.plans if job in plan.waiting]
    starts = [p for plan in keeper.plans for p in plan.placements if p.workload == job]
    assert [one.facts for one in report.moments if one.what == "waits"] == waits
    assert len([one for one in report.moments if one.what == "placed"]) == len(starts) > 0
    assert report.is_same


def test_of_one_job_only_its_own_decisions_are_counted(tmp_path: Path) -> None:
    keeper = keep(BUSY.world(), 3, tmp_path, cycles=80)
    crowded = (plan for plan in keeper.plans if plan.placements and len(plan.placements) + len(plan.waiting) > 1)
    job = next(crowded).placements[0].workload
    report = replay(tmp_path, Asked(job=job))
    assert report.placements == sum(one.workload == job for plan in keeper.plans for one in plan.placements)
    assert report.evictions == sum(one.workload == job for plan in keeper.plans for one in plan.evictions)
    assert report.reasons == sum(job in plan.waiting for plan in keeper.plans)


def test_the_last_cycles_of_a_job_are_the_last_that_tell_of_it(tmp_path: Path) -> None:
    keeper = keep(BUSY.world(), 3, tmp_path, cycles=150)
    assert len(segments(tmp_path)) > 5
    job = next(id for plan in keeper.plans[:20] for id in plan.waiting)
    whole = replay(tmp_path, Asked(job=job))
    assert whole.cycles >= 2
    last = replay(tmp_path, Asked(job=job, last=2))
    assert (last.cycles, last.last) == (2, whole.last)
    assert last.moments == whole.moments[-len(last.moments) :]


def test_a_spec_that_differs_only_in_what_is_left_out_is_another_one(tmp_path: Path) -> None:
    """Whoever waits with it is told anew, then as now."""
    world = BUSY.world()
    changed = replace(world.queue[0], reason=because(Code.SUBMITTED, by="ann"))
    keeper = keep(replace(world, queue=(changed, *world.queue[1:])), 5, tmp_path, cycles=100)
    assert keeper.count > 0
    assert replay(tmp_path, Asked()).is_same
