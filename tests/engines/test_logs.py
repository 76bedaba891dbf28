"""Logs as readers meet them: growing, bounded, truncated, binary, without newlines."""

from __future__ import annotations

import json
import tracemalloc
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gpuyard.engines.logs import Chunk, Gap, LogFile


def written(folder: Path, data: bytes, gap: tuple[int, int] | None = None) -> LogFile:
    path = folder / "log"
    path.write_bytes(data)
    if gap:
        (folder / "log.gap").write_text(json.dumps({"from": gap[0], "to": gap[1]}))
    return LogFile(path)


def text(log: LogFile, offset: int = 0, limit: int = 1 << 30) -> bytes:
    return b"".join(piece.data for piece in log.read(offset, limit) if isinstance(piece, Chunk))


def test_a_log_that_is_not_there_yet_is_empty(tmp_path: Path) -> None:
    log = LogFile(tmp_path / "log")
    assert (log.size(), log.read(0, 100), log.tail(10)) == (0, [], [])


def test_reading_goes_on_where_it_was(tmp_path: Path) -> None:
    log = written(tmp_path, b"one\ntwo\n")
    (first,) = log.read(0, 5)
    assert first == Chunk(0, 5, b"one\nt")
    with open(tmp_path / "log", "ab") as file:
        file.write(b"three\n")
    assert text(log, first.end) == b"wo\nthree\n"
    assert log.read(log.size(), 100) == []


def test_no_more_than_asked_is_read(tmp_path: Path) -> None:
    log = written(tmp_path, b"x" * 1_000_000)
    assert sum(len(piece.data) for piece in log.read(10, 150_000) if isinstance(piece, Chunk)) == 150_000


def test_the_dropped_middle_is_told_and_its_zeros_are_not_shown(tmp_path: Path) -> None:
    log = written(tmp_path, b"head" + b"\0" * 96 + b"tail", gap=(4, 100))
    assert log.read(0, 1000) == [Chunk(0, 4, b"head"), Gap(4, 100), Chunk(100, 104, b"tail")]
    assert log.read(50, 1000) == [Gap(50, 100), Chunk(100, 104, b"tail")]


def test_a_reader_beyond_the_end_of_a_truncated_log_sees_that_it_shrank(tmp_path: Path) -> None:
    log = written(tmp_path, b"0123456789")
    offset = log.read(0, 100)[-1].end
    (tmp_path / "log").write_bytes(b"new")
    assert log.read(offset, 100) == []
    assert log.size() < offset


def test_a_damaged_note_about_the_gap_is_no_gap(tmp_path: Path) -> None:
    log = written(tmp_path, b"all of it")
    (tmp_path / "log.gap").write_text("{")
    assert text(log) == b"all of it"


@pytest.mark.parametrize(
    ("data", "lines", "expected"),
    [
        (b"a\nb\nc\n", 2, b"b\nc\n"),
        (b"a\nb\nc", 2, b"b\nc"),
        (b"a\nb\n", 10, b"a\nb\n"),
        (b"a\nb\n", 0, b""),
        (b"\n\n\n", 2, b"\n\n"),
        (b"one", 1, b"one"),
        (b"", 5, b""),
    ],
)
def test_the_tail_is_the_last_lines(tmp_path: Path, data: bytes, lines: int, expected: bytes) -> None:
    log = written(tmp_path, data)
    assert text(log, log.tail_start(lines)) == expected


@settings(deadline=None)
@given(
    st.lists(st.binary(max_size=40).filter(lambda line: b"\n" not in line), max_size=30),
    st.integers(1, 40),
    st.booleans(),
)
def test_the_tail_agrees_with_splitting_the_whole(lines: list[bytes], wanted: int, ends: bool) -> None:
    import tempfile

    data = b"\n".join(lines) + (b"\n" if ends and lines else b"")
    with tempfile.TemporaryDirectory() as folder:
        log = written(Path(folder), data)
        assert text(log, log.tail_start(wanted)) == b"".join(
            data.splitlines(keepends=True)[-wanted:] if b"\r" not in data else _split(data)[-wanted:]
        )


def _split(data: bytes) -> list[bytes]:
    parts = data.split(b"\n")
    return [part + b"\n" for part in parts[:-1]] + ([parts[-1]] if parts[-1] else [])


def test_the_tail_of_an_endless_line_is_bounded(tmp_path: Path) -> None:
    log = written(tmp_path, b"x" * 5_000_000)
    assert log.size() - log.tail_start(10) == 1024 * 1024
    assert sum(piece.end - piece.start for piece in log.tail(10)) == 1024 * 1024


def test_the_tail_stops_at_the_gap(tmp_path: Path) -> None:
    log = written(tmp_path, b"head\n" + b"\0" * 95 + b"end\n", gap=(5, 100))
    assert log.tail_start(10) == 100


def test_a_large_log_costs_little_memory(tmp_path: Path) -> None:
    path = tmp_path / "log"
    with open(path, "wb") as file:
        file.truncate(200 << 20)
        file.seek(0, 2)
        file.write(b"\nlast\n")
    log = LogFile(path)
    tracemalloc.start()
    offset = 0
    while pieces := log.read(offset, 256 * 1024):
        offset = pieces[-1].end
    log.tail(100)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert offset == log.size()
    assert peak < 8 << 20
