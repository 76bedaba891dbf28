"""The replay of Muri's traces, on a trace small enough to be worked out by hand."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from lab.muri import EXPERIMENTS, Experiment, Heads, arrivals, free_by, measure, nodes, placed_anew, policy
from lab.replay import Options

from gpuyard.domain.workload import Workload
from gpuyard.rehearsal import rehearse
from gpuyard.scheduling.books import Books
from gpuyard.scheduling.snapshot import Placement, Plan
from lab import muri

COLUMNS = "job_id,num_gpu,submit_time,duration"
# The whole cluster for 100 s; a gang of four nodes for 50 s; one card for 10 s.
ROWS = ("0,64,0,100000", "1,32,1000,50000", "2,1,2000,10000")


@pytest.fixture
def trace(tmp_path: Path) -> Path:
    path = tmp_path / "trace1.csv"
    path.write_text("\n".join([COLUMNS, *ROWS]))
    return path


def experiment(name: str) -> Experiment:
    return next(one for one in EXPERIMENTS if one.name == name)


def test_jobs_are_read_as_gangs_of_whole_nodes_with_times_in_seconds(trace: Path) -> None:
    large, gang, small = arrivals(trace, declares=True)
    assert [one.workload.submitted_at for one in (large, gang, small)] == [0.0, 1.0, 2.0]
    assert [one.workload.spec.roles[0].replicas for one in (large, gang, small)] == [8, 4, 1]
    assert (gang.seconds, gang.workload.spec.max_seconds) == (50.0, 50.0)
    assert arrivals(trace, declares=False)[0].workload.spec.max_seconds is None


def test_strict_fifo_lets_nobody_pass_and_the_shortest_first_ends_the_short_ones_first(trace: Path) -> None:
    # In order of arrival: 100, then both beside each other: 100 + 99 + 50 and 98 + 10.
    assert measure(experiment("strict FIFO"), trace).completion == pytest.approx((100 + 149 + 108) / 3)
    # The gang from 1 to 51, the small one from 2 to 12, and the large one needs 99 s more after 51.
    shortest = measure(experiment("shortest first"), trace)
    assert shortest.completion == pytest.approx((150 + 50 + 10) / 3)
    assert shortest.preemptions == 1


def test_placed_anew_at_every_event_the_result_is_the_same_where_nothing_is_in_fragments(trace: Path) -> None:
    anew = placed_anew(policy("muri_srtf"), arrivals(trace, declares=True))
    assert anew.completion == pytest.approx((150 + 50 + 10) / 3)


def test_where_starts_take_a_minute_everybody_takes_longer(trace: Path) -> None:
    free, costly = (measure(experiment(f"shortest first{more}"), trace) for more in ("", ", interruptions cost"))
    assert costly.completion >= free.completion + 60


def test_heads_are_watched_and_backfill_delays_none(trace: Path) -> None:
    heads = measure(experiment("FIFO + backfill, shortest first"), trace).heads
    assert heads is not None
    assert (heads.promises > 0, heads.delayed) == (True, 0)


def test_a_head_that_starts_later_than_what_ran_would_have_let_it_is_counted(trace: Path) -> None:
    """A planted fault: the first in line is left waiting although the cluster is free."""
    found = Heads({})
    gang = arrivals(trace, declares=True)[1].workload
    for books in _standing(gang):
        found.watch(books, 10.0, Plan())
        found.watch(books, 400.0, Plan((Placement(gang.id, {}),)))
    assert (found.promises, found.delayed) == (1, 1)


def _standing(waiting: Workload) -> Iterator[Books]:
    books = Books(nodes(), {}, policy("muri_backfill"))
    books.put(waiting)
    yield books


def test_there_is_room_when_the_cards_of_enough_nodes_have_come_free(trace: Path) -> None:
    jobs = arrivals(trace, declares=True)
    seen: list[float] = []

    def watch(books: Books, now: float, _: Plan) -> None:
        if now == 1.0:
            seen.append(free_by(jobs[1].workload, books.holding.values(), now))

    rules = replace(policy("muri_backfill"), backfill=False)
    rehearse(nodes(), {}, rules, jobs, watch=watch)
    assert seen == [100.0]


# --- told and drawn -------------------------------------------------------------------------------------------------


@pytest.fixture
def traces(trace: Path) -> Path:
    (trace.parent / "muri").mkdir()
    trace.rename(trace.parent / "muri" / trace.name)
    return trace.parent


def test_every_order_is_told_and_drawn_beside_what_was_published(traces: Path) -> None:
    report = muri.replay(traces, Options(only=("trace1",)))

    told = {row[1]: row for row in report.tables[0].rows}
    assert set(told) == {muri.ANEW, *(one.name for one in EXPERIMENTS)}
    assert told["strict FIFO"][2:5] == (119, "strict FIFO", 11_001_201)
    assert set(report.plots) == {"muri-trace1-means.svg", "muri-trace1-completions.svg"}
    assert "least served first (Tiresias)" in report.plots["muri-trace1-means.svg"]
    assert report.plots["muri-trace1-means.svg"].count('height="13"') == 2 * len(told)
    assert report.plots["muri-trace1-completions.svg"].count('class="line') == len(muri.DISTRIBUTIONS)
    assert not any("geometric" in line.what for line in report.lines)  # of both traces only


def test_of_a_part_of_a_trace_nothing_was_published_and_nothing_is_promised(traces: Path) -> None:
    report = muri.replay(traces, Options(only=("trace1",), most=2))

    assert report.lines == []
    assert {row[4:6] for row in report.tables[0].rows} == {(None, None)}
    assert "published" not in report.plots["muri-trace1-means.svg"]


def test_two_processes_find_the_same_completions(traces: Path) -> None:
    one, two = (muri.replay(traces, Options(only=("trace1",), processes=count)) for count in (1, 2))

    assert [row[:-1] for row in one.tables[0].rows] == [row[:-1] for row in two.tables[0].rows]
    assert one.plots == two.plots
