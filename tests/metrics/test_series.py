"""Usage series: means that add up, kept for six hours, in a file whose loss does no harm."""

from __future__ import annotations

import math
import sqlite3
import tempfile
import threading
from contextlib import closing
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gpuyard.domain.errors import Unavailable
from gpuyard.domain.reasons import Code
from gpuyard.domain.resources import GIB
from gpuyard.domain.usage import CardUse, Usage
from gpuyard.domain.workload import ReplicaId
from gpuyard.metrics.file import SCHEMA_VERSION
from gpuyard.metrics.series import KEEP_RAW_SECONDS, KEEP_SECONDS, CardPoint, Point, Series

ONE = ReplicaId("j123456789", 1, "worker", 0)
TWO = ReplicaId("j123456789", 2, "ps", 11)
START = 1_700_000_040.0  # a whole minute
FOR_EVER = 1e9  # a step that holds everything


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "metrics" / "metrics.db"


@pytest.fixture
def series(path: Path) -> Series:
    return Series(path)


def use(cpu_seconds: float, memory: int = GIB, *cards: CardUse) -> Usage:
    return Usage(cpu_seconds, memory, 1, cards)


def rows_in(path: Path, table: str) -> int:
    with closing(sqlite3.connect(path)) as connection:
        count: int = connection.execute(f"SELECT count(*) FROM {table}").fetchone()[0]
        return count


def test_cores_come_from_the_difference_of_two_looks(series: Series) -> None:
    series.add(START, {ONE: use(10.0, 1000)})
    series.add(START + 10, {ONE: use(25.0, 3000)})
    assert series.recent([ONE], START, 5)[ONE] == (
        Point(START, None, 1000),
        Point(START + 10, 1.5, 3000),
    )


def test_card_use_is_kept_for_each_card_and_an_untold_percentage_stays_untold(series: Series) -> None:
    series.add(START, {ONE: use(0, 1, CardUse(3, 50.0, 100), CardUse(10, None, 7))})
    series.add(START + 1, {ONE: use(0, 1, CardUse(3, 100.0, 200), CardUse(10, None, 7))})
    (point,) = series.recent([ONE], START, 60)[ONE]
    assert point.cards == (CardPoint(3, 75.0, 150.0), CardPoint(10, None, 7.0))


def test_a_percentage_that_is_no_number_is_left_out(series: Series) -> None:
    series.add(START, {ONE: use(0, 1, CardUse(0, math.nan, 100))})
    (point,) = series.recent([ONE], START, 60)[ONE]
    assert point.cards == (CardPoint(0, None, 100.0),)


def test_each_replica_has_its_own_series_and_an_unknown_one_is_empty(series: Series) -> None:
    series.add(START, {ONE: use(0, 1), TWO: use(0, 2)})
    unknown = ReplicaId("j000000000", 1, "worker", 0)
    answer = series.recent([ONE, TWO, unknown], START, 60)
    assert [point.memory for point in answer[ONE]] == [1]
    assert [point.memory for point in answer[TWO]] == [2]
    assert answer[unknown] == ()


def test_a_counter_that_begins_anew_never_shows_as_negative_cores(series: Series) -> None:
    for second, cpu in enumerate((100.0, 110.0, 5.0, 6.0)):
        series.add(START + second, {ONE: use(cpu)})
    assert [point.cores for point in series.recent([ONE], START, 1)[ONE]] == [None, 10.0, None, 1.0]


def test_a_clock_set_back_does_not_silence_the_series(series: Series) -> None:
    series.add(START + 3600, {ONE: use(10, 1)})
    series.add(START, {ONE: use(20, 2)})
    series.add(START + 10, {ONE: use(30, 3)})
    assert series.latest()[ONE].cores == 1.0
    assert [point.memory for point in series.recent([ONE], START, 10)[ONE]] == [2, 3, 1]


def test_a_look_told_twice_or_late_changes_nothing(series: Series) -> None:
    series.add(START + 10, {ONE: use(10, 1)})
    series.add(START + 10, {ONE: use(99, 9)})
    series.add(START, {ONE: use(99, 9)})
    assert series.recent([ONE], 0, FOR_EVER)[ONE][0].memory == 1
    assert series.latest()[ONE].usage == use(10, 1)


def test_the_latest_look_is_whole_and_may_be_asked_for_fresh_ones_only(series: Series) -> None:
    old, new = use(1, 5, CardUse(0, None, 3)), use(9, 6, CardUse(1, 12.5, 4))
    series.add(START, {ONE: old})
    series.add(START + 4, {TWO: new})
    series.add(START + 8, {TWO: use(11, 6)})
    assert series.latest()[ONE].usage == old
    assert series.latest()[ONE].cores is None
    assert set(series.latest(since=START + 5)) == {TWO}
    assert series.latest()[TWO].cores == 0.5


def test_a_new_process_goes_on_where_the_last_one_stopped(series: Series, path: Path) -> None:
    series.add(START, {ONE: use(10)})
    Series(path).add(START + 10, {ONE: use(20)})
    assert series.latest()[ONE].cores == 1.0


def test_after_a_quarter_of_an_hour_samples_become_minutes(series: Series, path: Path) -> None:
    for second in range(0, 30 * 60, 10):
        series.add(START + second, {ONE: use(second * 2.0, second)})
    points = series.recent([ONE], START, 1)[ONE]
    by_the_minute = [point for point in points if point.at < START + 14 * 60]
    assert [point.at - START for point in by_the_minute] == [60.0 * minute for minute in range(14)]
    assert by_the_minute[3].memory == pytest.approx(180 + 25)
    assert all(point.cores == pytest.approx(2.0) for point in points)
    assert rows_in(path, "raw") <= 2 * (KEEP_RAW_SECONDS + 60) / 10


def test_after_six_hours_it_is_forgotten(series: Series, path: Path) -> None:
    hours = 8
    for minute in range(hours * 60):
        series.add(START + minute * 60, {ONE: use(minute)})
    end = START + hours * 3600
    points = series.recent([ONE], 0, 60)[ONE]
    assert end - KEEP_SECONDS - 120 <= points[0].at <= end - KEEP_SECONDS + 120
    assert rows_in(path, "minutes") + rows_in(path, "raw") <= 2 * (KEEP_SECONDS / 60 + 3)
    assert rows_in(path, "latest") == 1


def test_a_replica_that_ended_is_forgotten_while_others_go_on(series: Series, path: Path) -> None:
    series.add(START, {ONE: use(1), TWO: use(1)})
    for quarter in range(1, 30):
        series.add(START + quarter * 900, {TWO: use(quarter)})
    assert series.recent([ONE], 0, 60)[ONE] == ()
    assert set(series.latest()) == {TWO}


def test_after_a_long_pause_the_old_is_tidied_bit_by_bit(series: Series, path: Path) -> None:
    for minute in range(15):
        series.add(START + minute * 60, {ONE: use(minute)})
    much_later = START + 7 * 86400
    series.add(much_later, {TWO: use(0)})
    assert rows_in(path, "raw") > 1  # not all at once
    for tick in range(1, 20):
        series.add(much_later + tick, {TWO: use(tick)})
    assert series.recent([ONE], 0, 60)[ONE] == ()


SAMPLES = st.lists(
    st.tuples(
        st.floats(min_value=0.5, max_value=900),  # seconds since the last look
        st.floats(min_value=0, max_value=64),  # cores in use
        st.integers(min_value=0, max_value=1 << 40),
        st.floats(min_value=0, max_value=100),
    ),
    min_size=1,
    max_size=40,
)


@settings(max_examples=40, deadline=None)
@given(samples=SAMPLES, step=st.sampled_from([1.0, 7.5, 60.0, 600.0, FOR_EVER]))
def test_whatever_was_rolled_up_the_means_are_those_of_the_samples(
    samples: list[tuple[float, float, int, float]], step: float
) -> None:
    with tempfile.TemporaryDirectory() as folder:
        series = Series(Path(folder) / "metrics.db")
        at, cpu, began = START, 0.0, START
        for gap, cores, memory, percent in samples:
            at, cpu = at + gap, cpu + cores * gap
            began = began if began > START else at
            series.add(at, {ONE: use(cpu, memory, CardUse(0, percent, memory))})
        if at - START > KEEP_SECONDS:
            return
        (all_of_it,) = series.recent([ONE], 0, FOR_EVER)[ONE]
        spent = sum(gap * cores for gap, cores, _, _ in samples[1:])
        if at > began:
            assert all_of_it.cores == pytest.approx(spent / (at - began), rel=1e-6, abs=1e-6)
        assert all_of_it.memory == pytest.approx(sum(s[2] for s in samples) / len(samples))
        assert all_of_it.cards[0].percent == pytest.approx(sum(s[3] for s in samples) / len(samples))
        points = series.recent([ONE], 0, step)[ONE]
        assert [p.at for p in points] == sorted({p.at for p in points})
        assert all(p.at % step == pytest.approx(0, abs=1e-3) or p.at % step == pytest.approx(step) for p in points)
        highest = max(s[1] for s in samples)
        assert all(p.cores is None or -1e-6 <= p.cores <= highest + 1e-3 for p in points)


@pytest.mark.parametrize("step", [0, -1, math.nan, math.inf])
def test_a_step_that_is_none_is_refused(series: Series, step: float) -> None:
    with pytest.raises(ValueError, match="step"):
        series.recent([ONE], 0, step)


def test_reading_before_anything_was_written_is_empty(series: Series) -> None:
    assert series.latest() == {}
    assert series.recent([ONE], 0, 60) == {ONE: ()}


def test_the_file_is_private(series: Series, path: Path) -> None:
    series.add(START, {ONE: use(1)})
    assert path.stat().st_mode & 0o777 == 0o600


def test_when_the_file_is_removed_it_goes_on_with_a_new_one(series: Series, path: Path) -> None:
    series.add(START, {ONE: use(1)})
    path.unlink()
    series.add(START + 1, {ONE: use(2)})
    assert set(series.latest()) == {ONE}


@pytest.mark.parametrize("junk", [b"this is no database, only words" * 100, b"SQLite format 3\0" + b"\xff" * 5000])
def test_when_the_file_is_broken_it_goes_on_with_a_new_one(series: Series, path: Path, junk: bytes) -> None:
    series.add(START, {ONE: use(1)})
    path.write_bytes(junk)
    assert series.latest() == {}
    path.write_bytes(junk)
    series.add(START + 1, {ONE: use(2)})
    assert set(series.latest()) == {ONE}


def test_when_the_file_is_of_another_version_it_goes_on_with_a_new_one(series: Series, path: Path) -> None:
    series.add(START, {ONE: use(1)})
    with closing(sqlite3.connect(path)) as connection:
        connection.execute(f"PRAGMA user_version = {SCHEMA_VERSION + 1}")
    series.add(START + 1, {TWO: use(2)})
    assert set(series.latest()) == {TWO}


def test_while_another_program_holds_the_file_a_look_is_dropped_not_waited_for(series: Series, path: Path) -> None:
    series.add(START, {ONE: use(1)})
    with closing(sqlite3.connect(path, isolation_level=None)) as holder:
        holder.execute("BEGIN EXCLUSIVE")
        series.add(START + 1, {ONE: use(2)})
        assert series.latest()[ONE].at == START  # reading goes on
    series.add(START + 2, {ONE: use(3)})
    assert series.latest()[ONE].at == START + 2


def test_a_place_that_cannot_be_written_costs_the_pictures_only(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("not a folder")
    series = Series(tmp_path / "file" / "metrics.db")
    series.add(START, {ONE: use(1)})
    with pytest.raises(Unavailable) as caught:
        series.latest()
    assert caught.value.reason.code is Code.BUSY_STORE


def test_readers_and_a_writer_at_the_same_time_do_not_hurt_each_other(series: Series) -> None:
    replicas = [ReplicaId("j123456789", 1, "worker", index) for index in range(20)]
    done = threading.Event()
    troubles: list[BaseException] = []

    def read() -> None:
        while not done.is_set():
            try:
                series.latest()
                series.recent(replicas, START, 10)
            except BaseException as error:
                troubles.append(error)

    readers = [threading.Thread(target=read) for _ in range(2)]
    for reader in readers:
        reader.start()
    for second in range(40):
        series.add(START + second, {replica: use(second) for replica in replicas})
    done.set()
    for reader in readers:
        reader.join()
    assert troubles == []
    assert all(look.at == START + 39 for look in series.latest().values())
