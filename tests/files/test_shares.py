"""One group's shared folder becomes part of another's, and running work goes on in it."""

from __future__ import annotations

import contextlib
import os
import subprocess
import sys
from pathlib import Path

import pytest
from tests.files.sharing import ANN, BOB, CAT, GOES_ON, NEW, OLD, can, shared

from gpuyard.files import acl
from gpuyard.files.shares import ShareNotMoved, Shares

OTHER = 71003
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


# --- who may use them ---------------------------------------------------------------------------------------------


@pytest.fixture
def lists(root: Path) -> Path:
    if Shares(root).without_lists():
        pytest.skip("this file system keeps no access lists")
    return root


WRITE, READ, APPEND = "open('f', 'w').write('x')", "open('f').read()", "open('f', 'a').write('y')"


@as_root
def test_members_write_each_others_files_whatever_their_umask_and_strangers_see_nothing(lists: Path) -> None:
    assert shared(lists, [ANN, BOB])
    share = lists / "vision"
    assert can(ANN, "os.makedirs('d/e'); os.chdir('d/e'); " + WRITE, share)
    assert can(BOB, APPEND + "; os.mkdir('b'); os.remove('f')", share / "d" / "e")
    assert can(ANN, "os.rmdir('b')", share / "d" / "e")
    assert not can(CAT, "os.listdir('.')", share)


@as_root
def test_whoever_joins_gets_in_and_whoever_leaves_gets_out(lists: Path) -> None:
    shared(lists, [ANN])
    share = lists / "vision"
    assert can(ANN, "os.mkdir('d'); os.chdir('d'); " + WRITE, share)
    assert shared(lists, [ANN, BOB])
    assert can(BOB, APPEND, share / "d")
    assert shared(lists, [BOB])
    assert not can(ANN, READ, share)
    os.chmod(lists, 0o755)
    Path(share).chmod(0o2777)  # even past the first door
    assert not can(CAT, "os.listdir('d')", share)
    assert can(BOB, APPEND, share / "d")


@as_root
def test_the_same_again_changes_nothing_and_is_not_gone_through(lists: Path) -> None:
    assert shared(lists, [ANN, BOB])
    assert not shared(lists, [BOB, ANN])
    assert shared(lists, [BOB])


@as_root
def test_a_share_brought_back_without_its_lists_gets_them_again(lists: Path) -> None:
    shared(lists, [ANN, BOB])
    share = lists / "vision"
    assert can(ANN, WRITE, share)
    for path in (share, share / "f"):
        for name in os.listxattr(path):
            os.removexattr(path, name)
    os.chown(share / "f", ANN, OLD)
    (share / "f").chmod(0o660)
    assert not can(BOB, READ, share)
    assert shared(lists, [ANN, BOB])
    assert can(BOB, APPEND, share)


@as_root
def test_an_interrupted_walk_is_done_again(lists: Path) -> None:
    shared(lists, [ANN])
    assert can(ANN, WRITE, lists / "vision")
    shares = Shares(lists)
    assert shares.open_to("vision", OLD, [ANN, BOB])
    shares.go_through("vision", OLD, [ANN, BOB], is_over=lambda: True)
    assert not can(BOB, APPEND, lists / "vision")
    assert shared(lists, [ANN, BOB])
    assert can(BOB, APPEND, lists / "vision")


@as_root
def test_a_share_from_before_there_were_lists_is_opened_as_far_as_it_was_to_the_group(lists: Path) -> None:
    share = made(lists, "vision", OLD)
    for name, mode in (("open", 0o660), ("readable", 0o640), ("private", 0o600)):
        (share / name).write_text("x")
        os.chown(share / name, ANN, OLD)
        (share / name).chmod(mode)
    shared(lists, [ANN, BOB])
    assert can(BOB, "open('open', 'a').write('y'); open('readable').read()", share)
    assert not can(BOB, "open('readable', 'a')", share)
    assert not can(BOB, "open('private')", share)


@as_root
def test_what_was_moved_in_from_elsewhere_keeps_its_own_rights(lists: Path) -> None:
    shared(lists, [ANN])
    diary = lists / "vision" / "diary"
    diary.write_text("x")
    os.removexattr(diary, "system.posix_acl_access")
    os.chown(diary, ANN, ANN)
    diary.chmod(0o640)
    shared(lists, [ANN, BOB])
    assert not can(BOB, "open('diary')", lists / "vision")


@as_root
@pytest.mark.parametrize("kind", ["link to a file", "link to a folder", "hard link", "pipe", "socket", "loop"])
def test_no_walk_leaves_the_share_or_hangs(lists: Path, tmp_path: Path, kind: str) -> None:
    shared(lists, [ANN])
    share, outside = lists / "vision", tmp_path / "outside"
    outside.mkdir()
    (outside / "secret").write_text("x")
    (outside / "secret").chmod(0o600)
    odd = share / "odd"
    if kind == "link to a file":
        odd.symlink_to(outside / "secret")
    elif kind == "link to a folder":
        odd.symlink_to(outside)
    elif kind == "hard link":
        os.link(outside / "secret", odd)
    elif kind == "pipe":
        os.mkfifo(odd)
    elif kind == "socket":
        os.mknod(odd, 0o140600)
    else:
        odd.symlink_to(".")
    before = (outside / "secret").stat()
    shared(lists, [ANN, BOB])
    Shares(lists).fold_in("vision", "speech", (OLD, NEW), in_use=False)
    after = (outside / "secret").stat()
    assert (after.st_mode, after.st_uid, after.st_gid) == (before.st_mode, before.st_uid, before.st_gid)
    assert not os.listxattr(outside / "secret")
    assert not os.listxattr(outside)


SWAPS = """
import os, sys
outside = sys.argv[1]
print("ready", flush=True)
while True:
    os.rename("d", "e"); os.symlink(outside, "d"); os.remove("d"); os.rename("e", "d")
"""


@as_root
def test_a_folder_swapped_for_a_link_all_the_time_leads_nobody_out(lists: Path, tmp_path: Path) -> None:
    shared(lists, [ANN])
    outside = tmp_path / "outside"
    outside.mkdir()
    for path in (outside, outside / "a", outside / "b"):
        path.touch()
        os.chown(path, ANN, OLD)
    (lists / "vision" / "d").mkdir()
    for number in range(50):
        (lists / "vision" / "d" / f"f{number}").touch()
    command = [sys.executable, "-c", SWAPS, str(outside)]
    with subprocess.Popen(command, cwd=lists / "vision", stdout=subprocess.PIPE, text=True) as swapping:
        assert swapping.stdout is not None
        assert swapping.stdout.readline() == "ready\n"
        for number in range(40):
            shared(lists, [ANN, BOB] if number % 2 else [ANN, CAT])
        Shares(lists).fold_in("vision", "speech", (OLD, NEW), in_use=True)
        swapping.kill()
    for path in (outside, outside / "a", outside / "b"):
        assert path.stat().st_gid == OLD
        assert not os.listxattr(path)


@as_root
def test_without_access_lists_a_share_is_its_groups_by_number(tmp_path: Path) -> None:
    folder = tmp_path / "ramfs"
    folder.mkdir()
    if subprocess.run(["mount", "-t", "ramfs", "none", str(folder)], capture_output=True).returncode:
        pytest.skip("nothing can be mounted here")
    try:
        root = folder / "share"
        root.mkdir(mode=0o711)
        assert Shares(root).without_lists() == [root]
        shared(root, [ANN])
        assert not shared(root, [ANN])
        assert ((root / "vision").stat().st_gid, (root / "vision").stat().st_mode & 0o7777) == (OLD, 0o2770)
    finally:
        subprocess.run(["umount", str(folder)], check=True)


@as_root
def test_a_merged_share_is_the_new_members_too(lists: Path) -> None:
    shared(lists, [ANN])
    shared(lists, [BOB], "speech", NEW)
    assert can(ANN, "os.mkdir('d'); os.chdir('d'); " + WRITE, lists / "vision")
    Shares(lists).fold_in("vision", "speech", (OLD, NEW), in_use=True)
    assert shared(lists, [ANN, BOB], "speech", NEW)
    assert can(BOB, APPEND, lists / "speech" / "vision" / "d")
    assert can(ANN, APPEND, lists / "speech" / "vision" / "d")
    assert groups_named(lists / "speech" / "vision" / "d") == {OLD, NEW}


@as_root
def test_a_group_larger_than_any_list_still_shares_behind_a_closed_door(lists: Path) -> None:
    many = list(range(80_000, 86_000))
    lists.chmod(0o700)
    assert shared(lists, many)
    assert not shared(lists, many)
    share = lists / "vision"
    assert not can(CAT, "os.listdir('.')", share)
    lists.chmod(0o711)
    made = "os.mkdir('d'); os.chdir('d'); " + WRITE
    if can(many[0], made, share):  # the lists of some file systems have room for them all
        assert can(many[-1], APPEND, share / "d")
    lists.chmod(0o700)
    assert shared(lists, many[:2])
    lists.chmod(0o711)
    assert not can(many[-1], "os.listdir('.')", share)
    assert can(many[1], APPEND, share / "d")


@as_root
def test_below_an_open_folder_a_group_larger_than_any_list_stays_closed(lists: Path, tmp_path: Path) -> None:
    many = list(range(80_000, 86_000))
    shares = Shares(lists)
    if all(folder.stat().st_mode & 0o001 for folder in (lists, *lists.parents)):
        shares.open_to("vision", OLD, many)
        assert not can(CAT, "os.listdir('.')", lists / "vision")


@as_root
def test_every_root_has_its_share(lists: Path, tmp_path: Path) -> None:
    nas = tmp_path / "nas"
    nas.mkdir(mode=0o711)
    shares = Shares(lists, nas)
    assert shares.open_to("vision", OLD, [ANN])
    shares.go_through("vision", OLD, [ANN], is_over=GOES_ON)
    assert can(ANN, WRITE, nas / "vision")
    assert can(ANN, WRITE, lists / "vision")
    shares.fold_in("vision", "speech", (OLD, NEW), in_use=False)
    assert groups_named(nas / "speech" / "vision" / "f") == {NEW}


def groups_named(path: Path) -> set[int]:
    return set(acl.decode(os.getxattr(path, acl.ACCESS)).groups)
