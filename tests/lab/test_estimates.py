"""Starts that were told are held against those that came, on a small trace that is made up here."""

from __future__ import annotations

import random
from pathlib import Path

import pytest
from lab.estimates import arrivals, replay
from lab.replay import Options


@pytest.fixture
def traces(tmp_path: Path) -> Path:
    """They come in crowds: most have to wait."""
    chance = random.Random(3)
    (tmp_path / "itp").mkdir()
    runs = [(int(chance.lognormvariate(7.5, 1.0)), chance.choice([1, 2, 4, 8])) for _ in range(260)]
    rows = [f"id{n},{n // 65 * 13_000},{seconds},{cards}" for n, (seconds, cards) in enumerate(runs)]
    for name in ("cluster02", "cluster05"):
        text = "\n".join(["job_id,submission_time,duration,num_gpu", *rows])
        (tmp_path / "itp" / f"{name}.csv").write_text(text + "\n")
    return tmp_path


def test_a_second_part_begins_where_the_first_ends(traces: Path) -> None:
    both, first = (arrivals(traces, "cluster02", most) for most in (200, 100))
    assert [*first, *arrivals(traces, "cluster02/2", 100)] == both


def test_all_who_asked_are_told_something_and_processes_change_nothing(traces: Path) -> None:
    only = ("cluster02", "cluster05", "cluster02/2")
    alone, shared = (replay(traces, Options(only=only, most=130, processes=number)) for number in (1, 2))
    assert [row[0] for row in alone.tables[0].rows] == ["cluster02", "cluster05", "cluster02/2"]
    for one, other in zip(alone.tables[0].rows, shared.tables[0].rows, strict=True):
        assert one[:-1] == other[:-1]  # the last tells how long a look took
    asked = sum(int(f"{row[4]}") - int(f"{row[5]}") for row in alone.tables[0].rows)
    assert {line.what.split(":")[0] for line in alone.lines} == {f"all {asked} of 3 traces", *only}
