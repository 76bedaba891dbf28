"""One group's shared folder becomes part of another's, and running work goes on in it."""

from __future__ import annotations

import contextlib
import os
import subprocess
import sys
from pathlib import Path

import pytest

from gpuyard.files.shares import ShareNotMoved, Shares

OLD, NEW, OTHER = 71001, 71002, 71003
as_root = pytest.mark.skipif(os.geteuid() != 0, reason="giving files to groups needs root")


@pytest.fixture
def root(tmp_path: Path) -> Path:
    folder = tmp_path / "share"
    folder.mkdir(mode=0o711)
    for parent in [folder, *list(folder.parents)[:-1]]:
        if parent.stat().st_mode & 0o011 != 0o011 and os.geteuid() == 0:
            parent.chmod(parent.stat().st_mode | 0o011)
    return folder


def made(root: Path, name: str, gid: int) -> Path:
    folder = root / name
    folder.mkdir()
    if os.geteuid() == 0:
        os.chown(folder, 0, gid)
    folder.chmod(0o2770)
    return folder


def test_it_moves_with_everything_in_it(root: Path) -> None:
    (made(root, "vision", OLD) / "data").mkdir()
    (root / "vision" / "data" / "a.txt").write_text("kept")
    assert Shares(root).fold_in("vision", "speech", (OLD, NEW), in_use=False)
    assert not (root / "vision").exists()
    assert (root / "speech" / "vision" / "data" / "a.txt").read_text() == "kept"


def test_folders_nobody_has_used_yet_are_made(root: Path) -> None:
    Shares(root).fold_in("vision", "speech", (OLD, NEW), in_use=False)
    assert (root / "speech" / "vision").is_dir()
    assert (root / "speech").stat().st_mode & 0o7777 == 0o2770


def test_without_shared_folders_there_is_nothing_to_do(tmp_path: Path) -> None:
    assert not Shares(tmp_path / "none").fold_in("vision", "speech", (OLD, NEW), in_use=True)


@pytest.mark.parametrize("taken", ["file", "folder", "link"])
def test_what_has_the_name_already_is_left_alone(root: Path, taken: str) -> None:
    made(root, "vision", OLD)
    there = made(root, "speech", NEW) / "vision"
    if taken == "file":
        there.write_text("mine")
    elif taken == "folder":
        there.mkdir()
    else:
        there.symlink_to("/")
    with pytest.raises(ShareNotMoved):
        Shares(root).fold_in("vision", "speech", (OLD, NEW), in_use=False)
    assert (root / "vision").is_dir()
    assert os.path.lexists(there)


def test_a_name_that_leads_elsewhere_is_refused(root: Path) -> None:
    with pytest.raises(ShareNotMoved):
        Shares(root).fold_in("../vision", "speech", (OLD, NEW), in_use=False)


def test_a_share_that_is_a_link_is_not_followed(root: Path, tmp_path: Path) -> None:
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    (root / "speech").symlink_to(elsewhere)
    made(root, "vision", OLD)
    with pytest.raises(ShareNotMoved):
        Shares(root).fold_in("vision", "speech", (OLD, NEW), in_use=False)
    assert (root / "vision").is_dir()
    assert not list(elsewhere.iterdir())


@as_root
def test_only_what_was_the_groups_becomes_the_others_and_links_are_not_followed(root: Path, tmp_path: Path) -> None:
    share = made(root, "vision", OLD)
    outside = tmp_path / "secret"
    outside.write_text("not yours")
    os.chown(outside, 0, OLD)
    (share / "link").symlink_to(outside)
    (share / "deep" / "er").mkdir(parents=True)
    for path in (share / "deep", share / "deep" / "er"):
        os.chown(path, 70001, OLD)
        path.chmod(0o2775)
    theirs, strange = share / "deep" / "er" / "a", share / "deep" / "b"
    theirs.write_text("a")
    strange.write_text("b")
    os.chown(theirs, 70001, OLD)
    os.chown(strange, 70001, OTHER)
    Shares(root).fold_in("vision", "speech", (OLD, NEW), in_use=False)
    now = root / "speech" / "vision"
    assert now.stat().st_gid == NEW
    assert now.stat().st_mode & 0o7777 == 0o2770
    assert (now / "deep" / "er").stat().st_gid == NEW
    assert (now / "deep" / "er").stat().st_mode & 0o2000
    assert (now / "deep" / "er" / "a").stat().st_gid == NEW
    assert (now / "deep" / "er" / "a").stat().st_uid == 70001
    assert (now / "deep" / "b").stat().st_gid == OTHER
    assert outside.stat().st_gid == OLD


@as_root
def test_a_folder_deeper_than_can_be_followed_stops_nothing(root: Path) -> None:
    folder = made(root, "vision", OLD)
    for _ in range(300):
        folder = folder / "d"
        folder.mkdir()
    Shares(root).fold_in("vision", "speech", (OLD, NEW), in_use=False)
    assert (root / "speech" / "vision" / "d" / "d").stat().st_gid == NEW


@as_root
def test_a_file_that_takes_no_more_rights_stops_nothing(root: Path) -> None:
    share = made(root, "vision", OLD)
    for name in ("a", "b", "c", "d"):
        (share / name).write_text(name)
    for number in range(200):  # until the file system has no more room for what is written beside a file
        with contextlib.suppress(OSError):
            os.setxattr(share / "b", f"user.{number}", b"x" * max(1, 4000 >> number // 10))
    with contextlib.suppress(ShareNotMoved):  # a file system without access lists: then nothing moves
        Shares(root).fold_in("vision", "speech", (OLD, NEW), in_use=True)
    now = root / "speech" / "vision"
    if now.exists():
        assert {(now / name).stat().st_gid for name in ("a", "b", "c", "d")} == {NEW}


@as_root
def test_folders_that_come_and_go_meanwhile_stop_nothing(root: Path) -> None:
    share = made(root, "vision", OLD)
    for number in range(300):
        (share / f"kept{number}").mkdir()
    busy = "import os, sys\nprint('ready', flush=True)\nwhile True:\n os.mkdir('t'); os.rmdir('t')"
    command = [sys.executable, "-c", busy]
    with subprocess.Popen(command, cwd=share, stdout=subprocess.PIPE, text=True) as work:
        assert work.stdout is not None
        assert work.stdout.readline() == "ready\n"
        Shares(root).fold_in("vision", "speech", (OLD, NEW), in_use=False)
        work.kill()
    assert {(root / "speech" / "vision" / f"kept{n}").stat().st_gid for n in range(300)} == {NEW}


WORK = """
import os, sys
os.setgroups([]); os.setgid(int(sys.argv[1])); os.setuid(int(sys.argv[2]))
folder = os.open(sys.argv[3], os.O_RDONLY | os.O_DIRECTORY)
print("ready", flush=True)
sys.stdin.readline()
os.close(os.open("new", os.O_WRONLY | os.O_CREAT, 0o660, dir_fd=folder))
os.close(os.open("sub/new", os.O_WRONLY | os.O_CREAT, 0o660, dir_fd=folder))
with open(os.open("old", os.O_RDWR, dir_fd=folder), "r+") as file:
    print(file.read(), flush=True)
"""


@as_root
def test_work_that_runs_can_go_on_writing_and_the_others_read_it(root: Path) -> None:
    share = made(root, "vision", OLD)
    (share / "sub").mkdir()
    (share / "sub").chmod(0o2770)
    (share / "old").write_text("still readable")
    (share / "old").chmod(0o660)
    command = [sys.executable, "-c", WORK, str(OLD), "70001", str(share)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as work:
        assert work.stdin is not None
        assert work.stdout is not None
        assert work.stdout.readline() == "ready\n"
        with contextlib.suppress(ShareNotMoved):  # a file system without access lists: then nothing moves
            Shares(root).fold_in("vision", "speech", (OLD, NEW), in_use=True)
        work.stdin.write("\n")
        work.stdin.flush()
        assert work.stdout.readline() == "still readable\n"
        assert work.wait() == 0
    now = root / "speech" / "vision"
    assert now.exists() != share.exists()
    if now.exists():
        assert (now / "new").stat().st_gid == NEW
        assert (now / "sub" / "new").stat().st_gid == NEW
