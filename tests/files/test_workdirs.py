"""Shipped working folders: whole and checked, or not there at all."""

from __future__ import annotations

import hashlib
import os
import stat
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gpuyard.domain.errors import BadInput, Unavailable
from gpuyard.domain.reasons import Code
from gpuyard.domain.resources import GIB, MIB
from gpuyard.files.workdirs import DiskSpace, Workdirs

LIMIT = 1 * MIB


def digest_of(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


def pieces(data: bytes, size: int = 1000) -> Iterator[bytes]:
    return (data[start : start + size] for start in range(0, len(data), size))


def files_under(folder: Path) -> list[Path]:
    return [path for path in folder.rglob("*") if path.is_file()]


@pytest.fixture
def workdirs(tmp_path: Path) -> Workdirs:
    return Workdirs(tmp_path / "workdirs", LIMIT)


def test_what_is_received_is_there_whole_and_private(workdirs: Workdirs) -> None:
    data = b"folder" * 5000
    assert not workdirs.has("ann", digest_of(data))
    workdirs.receive("ann", digest_of(data), pieces(data))
    assert workdirs.has("ann", digest_of(data))
    path = workdirs.path("ann", digest_of(data))
    assert path.read_bytes() == data
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert stat.S_IMODE(path.parent.stat().st_mode) == 0o700
    assert stat.S_IMODE(path.parent.parent.stat().st_mode) == 0o700


def test_one_owners_folder_is_not_there_for_another(workdirs: Workdirs) -> None:
    data = b"mine"
    workdirs.receive("ann", digest_of(data), [data])
    assert not workdirs.has("bob", digest_of(data))


def test_the_same_folder_twice_is_kept_once(workdirs: Workdirs, tmp_path: Path) -> None:
    data = b"again"
    for _ in range(2):
        workdirs.receive("ann", digest_of(data), [data])
    assert len(files_under(tmp_path)) == 1


def test_a_wrong_digest_is_refused_and_nothing_is_left(workdirs: Workdirs, tmp_path: Path) -> None:
    with pytest.raises(BadInput) as caught:
        workdirs.receive("ann", digest_of(b"what was promised"), [b"what came"])
    assert caught.value.reason.code is Code.BAD_VALUE
    assert files_under(tmp_path) == []


def test_exactly_the_limit_is_taken_and_one_byte_more_is_refused(workdirs: Workdirs, tmp_path: Path) -> None:
    fits, too_much = b"x" * LIMIT, b"x" * (LIMIT + 1)
    with pytest.raises(BadInput) as caught:
        workdirs.receive("ann", digest_of(too_much), pieces(too_much))
    assert caught.value.reason.code is Code.TOO_LARGE
    assert caught.value.reason.facts["limit"] == LIMIT
    assert files_under(tmp_path) == []
    workdirs.receive("ann", digest_of(fits), pieces(fits))
    assert workdirs.has("ann", digest_of(fits))


def test_an_endless_upload_is_cut_off_at_the_limit(workdirs: Workdirs) -> None:
    given_out = 0

    def endless() -> Iterator[bytes]:
        nonlocal given_out
        while True:
            given_out += 1
            yield b"x" * 1000

    with pytest.raises(BadInput):
        workdirs.receive("ann", "0" * 64, endless())
    assert given_out <= LIMIT // 1000 + 1


def test_a_connection_that_breaks_leaves_nothing(workdirs: Workdirs, tmp_path: Path) -> None:
    def breaks() -> Iterator[bytes]:
        yield b"first part"
        raise ConnectionResetError("the sender is gone")

    with pytest.raises(ConnectionResetError):
        workdirs.receive("ann", digest_of(b"first part"), breaks())
    assert files_under(tmp_path) == []


@pytest.mark.parametrize(
    ("space", "fits"),
    [
        (DiskSpace(total=10 * GIB, free=2 * GIB), True),
        (DiskSpace(total=10 * GIB, free=GIB - 1), False),
        (DiskSpace(total=100 * GIB, free=6 * GIB), True),
        (DiskSpace(total=100 * GIB, free=4 * GIB), False),
    ],
)
def test_a_nearly_full_disk_takes_no_folder(tmp_path: Path, space: DiskSpace, fits: bool) -> None:
    workdirs = Workdirs(tmp_path / "workdirs", LIMIT, lambda _: space)
    if fits:
        workdirs.receive("ann", digest_of(b"a"), [b"a"])
        return
    with pytest.raises(Unavailable) as caught:
        workdirs.receive("ann", digest_of(b"a"), [b"a"])
    assert caught.value.reason.code is Code.STORE_FULL
    assert files_under(tmp_path) == []


def test_a_disk_that_fills_during_the_upload_stops_it(tmp_path: Path) -> None:
    left = [10 * GIB, 10 * GIB, GIB // 2]
    workdirs = Workdirs(tmp_path / "workdirs", GIB, lambda _: DiskSpace(20 * GIB, left.pop(0)))
    with pytest.raises(Unavailable):
        workdirs.receive("ann", "0" * 64, (b"x" * MIB for _ in range(1000)))
    assert files_under(tmp_path) == []


@pytest.mark.parametrize(
    "owner", ["", ".", "..", "../ann", "ann/..", "/etc", "ann\n", "Ann", "a" * 33, "an\0n", "安", ".receiving-x"]
)
def test_an_owner_that_is_no_user_name_never_becomes_a_path(workdirs: Workdirs, tmp_path: Path, owner: str) -> None:
    with pytest.raises(BadInput) as caught:
        workdirs.receive(owner, digest_of(b""), [])
    assert caught.value.reason.facts["at"] == "owner"
    assert files_under(tmp_path) == []


@pytest.mark.parametrize(
    "digest", ["", "..", "a" * 63, "a" * 65, "A" * 64, "g" * 64, "a" * 64 + "\n", "../" + "a" * 61]
)
def test_a_digest_that_is_none_never_becomes_a_path(workdirs: Workdirs, digest: str) -> None:
    for ask in (workdirs.has, workdirs.path):
        with pytest.raises(BadInput) as caught:
            ask("ann", digest)
        assert caught.value.reason.facts["at"] == "digest"


@settings(deadline=None, max_examples=200)
@given(owner=st.text(max_size=40), digest=st.text(max_size=70))
def test_whatever_is_asked_for_stays_inside_the_root(owner: str, digest: str) -> None:
    root = Path("/root-of-workdirs")
    try:
        path = Workdirs(root, LIMIT).path(owner, digest)
    except BadInput:
        return
    assert path.resolve().is_relative_to(root)


def test_prune_removes_what_is_old_and_unneeded_only(workdirs: Workdirs) -> None:
    for data in (b"needed", b"old", b"fresh"):
        workdirs.receive("ann", digest_of(data), [data])
    workdirs.receive("bob", digest_of(b"needed"), [b"needed"])
    for owner, data in (("ann", b"needed"), ("ann", b"old"), ("bob", b"needed")):
        os.utime(workdirs.path(owner, digest_of(data)), (1000, 1000))
    removed = workdirs.prune({("ann", digest_of(b"needed"))}, older_than=2000)
    assert removed == 2
    assert workdirs.has("ann", digest_of(b"needed"))
    assert workdirs.has("ann", digest_of(b"fresh"))
    assert not workdirs.has("ann", digest_of(b"old"))
    assert not workdirs.has("bob", digest_of(b"needed"))


def test_asking_for_a_folder_keeps_it_from_being_pruned(workdirs: Workdirs) -> None:
    workdirs.receive("ann", digest_of(b"a"), [b"a"])
    os.utime(workdirs.path("ann", digest_of(b"a")), (1000, 1000))
    assert workdirs.has("ann", digest_of(b"a"))
    assert workdirs.prune(set(), older_than=2000) == 0


def test_what_a_crash_left_half_written_is_pruned(workdirs: Workdirs, tmp_path: Path) -> None:
    workdirs.receive("ann", digest_of(b"a"), [b"a"])
    left_over = tmp_path / "workdirs" / "ann" / ".receiving-abc"
    left_over.write_bytes(b"half")
    os.utime(left_over, (1000, 1000))
    assert workdirs.prune({("ann", digest_of(b"a"))}, older_than=2000) == 1
    assert not left_over.exists()


def test_pruning_before_anything_was_shipped_is_no_trouble(workdirs: Workdirs) -> None:
    assert workdirs.prune(set(), older_than=1e12) == 0


def test_many_senders_of_one_folder_leave_one_whole_file(workdirs: Workdirs, tmp_path: Path) -> None:
    data = os.urandom(300_000)
    senders = [
        threading.Thread(target=workdirs.receive, args=("ann", digest_of(data), pieces(data, 777))) for _ in range(8)
    ]
    for sender in senders:
        sender.start()
    for sender in senders:
        sender.join()
    assert workdirs.path("ann", digest_of(data)).read_bytes() == data
    assert len(files_under(tmp_path)) == 1
