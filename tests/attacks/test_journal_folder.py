"""What may lie in the journal's folder that no writer of ours put there, or that a dying disk made of it."""

from __future__ import annotations

import json
import os
import struct
import tracemalloc
import zlib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.cli.yard import wait_until
from tests.journal.keeper import Keeper, keep
from tests.journal.yard import SMALL, Writing
from tests.scheduling.worlds import Rough

from gpuyard.journal.folder import Bounds, segments
from gpuyard.journal.frames import MAGIC, MOST_BYTES, Damaged, read_frames
from gpuyard.journal.replay import Asked, replay
from gpuyard.journal.running import Runs

WORLD = Rough(11, nodes=4, queue=9, runs=9)


@pytest.fixture
def runs() -> Iterator[Runs]:
    made = Runs()
    yield made
    made.close()


def forged(path: Path, *pieces: bytes) -> None:
    """Frames with the right sums, whatever is in them."""
    data, check = MAGIC, zlib.crc32(MAGIC)
    for piece in pieces:
        check = zlib.crc32(piece, check)
        data += struct.pack(">II", len(piece), check) + piece
    path.write_bytes(data)


def packed(data: Any) -> bytes:
    packer = zlib.compressobj(4, zlib.DEFLATED, -15)
    return packer.compress(json.dumps(data).encode()) + packer.flush(zlib.Z_SYNC_FLUSH)


def header_of(folder: Path) -> dict[str, Any]:
    data = segments(folder)[0].path.read_bytes()[len(MAGIC) :]
    (length, _), begins = struct.unpack(">II", data[:8]), 8
    found: dict[str, Any] = json.loads(zlib.decompressobj(-15).decompress(data[begins : begins + length]))
    return found


def a_bomb() -> bytes:
    """Half a gigabyte in some megabytes."""
    packer = zlib.compressobj(1, zlib.DEFLATED, -15)
    zeros = b"0" * (1 << 20)
    return b"".join([packer.compress(b"["), *(packer.compress(zeros) for _ in range(512)), packer.flush()])


FORGERIES: dict[str, Callable[[Path], None]] = {
    "not compressed": lambda path: forged(path, b"\xff\xff\xff\xff garbage"),
    "not JSON": lambda path: forged(path, packed({})[:-1] + b"\x00"),
    "no header": lambda path: forged(path, packed([1, 2, 3])),
    "a header of text": lambda path: forged(path, packed("header")),
    "nested without end": lambda path: forged(path, zlib.compress(b"[" * 200_000, 9, -15)),
    "a folder": lambda path: path.mkdir(),
    "a link to what never ends": lambda path: path.symlink_to("/dev/zero"),
    "a link to itself": lambda path: path.symlink_to(path.name),
    "a link to nothing": lambda path: path.symlink_to("gone"),
}


@pytest.mark.parametrize("forge", FORGERIES.values(), ids=FORGERIES.keys())
def test_whatever_lies_among_the_segments_the_others_are_replayed(
    forge: Callable[[Path], None], tmp_path: Path
) -> None:
    folder = tmp_path / "journal"
    keep(WORLD.world(), 3, folder, cycles=20)
    forge(folder / "00000000-1.journal")

    report = replay(folder, Asked())

    assert report.cycles == 20
    assert report.differing == 0


def test_nobody_waits_at_a_pipe_that_lies_among_the_segments(tmp_path: Path, runs: Runs) -> None:
    folder = tmp_path / "journal"
    keep(WORLD.world(), 3, folder, cycles=20)
    os.mkfifo(folder / "00000000-1.journal")

    run = runs.start("ann", "replay", {"folder": str(folder)})
    wait_until(lambda: run.over, 60)

    assert (run.problem, run.result["cycles"]) == ("", 20)


def test_what_unpacks_to_more_than_anybody_writes_is_damage_and_fills_no_memory(tmp_path: Path) -> None:
    path = tmp_path / "00000001-1.journal"
    forged(path, a_bomb())
    tracemalloc.start()
    try:
        with pytest.raises(Damaged):
            list(read_frames(path))
        assert tracemalloc.get_traced_memory()[1] < 2.5 * MOST_BYTES  # in pieces, and put together
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize("forge", FORGERIES.values(), ids=FORGERIES.keys())
def test_it_is_written_on_and_kept_in_bounds_whatever_lies_there(forge: Callable[[Path], None], tmp_path: Path) -> None:
    folder = tmp_path / "journal"
    keep(WORLD.world(), 3, folder, cycles=5)
    forge(folder / "00000000-1.journal")
    bounds = Bounds(bytes=1, days=0, segment_bytes=3_000, segment_seconds=1e12)
    writing = Writing(folder, bounds, try_again=0.05)
    keeper = Keeper(WORLD.world(), 4, writing.recorder)
    for _ in range(60):
        keeper.go_on()
        writing.catch_up()
    writing.end()
    assert writing.recorder.problem == ""
    assert len(segments(folder)) == 1


@pytest.mark.parametrize(
    "events",
    [[["d"]], [["b"], ["d", {}]], [[7]], ["x"], 5, [["u", 99]], [["x", -1]], [["n"]], [["m", "nodes"]], [["p", 1]]],
    ids=str,
)
def test_events_that_say_nothing_are_damage_and_no_more(events: Any, tmp_path: Path) -> None:
    keep(WORLD.world(), 3, tmp_path, cycles=20)
    head = packed_stream([header_of(tmp_path), [1.0, events]])
    forged(tmp_path / "00000000-1.journal", *head)

    report = replay(tmp_path, Asked())

    assert report.cycles == 20
    assert [one.segment for one in report.unreadable] == ["00000000-1.journal"]
    assert not report.is_same


def packed_stream(frames: list[Any]) -> list[bytes]:
    packer = zlib.compressobj(4, zlib.DEFLATED, -15)
    return [packer.compress(json.dumps(one).encode()) + packer.flush(zlib.Z_SYNC_FLUSH) for one in frames]


def test_a_number_too_large_for_its_name_does_not_end_the_journal(tmp_path: Path) -> None:
    keep(WORLD.world(), 3, tmp_path, cycles=5)
    newest = segments(tmp_path)[-1].path
    newest.rename(tmp_path / f"99999999-{newest.name.partition('-')[2]}")
    keep(WORLD.world(), 4, tmp_path, cycles=40, bounds=SMALL)
    found = segments(tmp_path)
    assert [one.number for one in found[-2:]] == [found[-2].number, found[-2].number + 1]
    assert replay(tmp_path, Asked()).is_same
