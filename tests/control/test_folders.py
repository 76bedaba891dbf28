"""Groups' folders follow who belongs to the group, and files follow the numbers of those they belong to."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from tests.draw import a_job, running
from tests.store.lines import submit

from gpuyard.control.folders import FolderKeeper
from gpuyard.control.numbers import give_blocks
from gpuyard.domain.people import BLOCK, FIRST_BLOCK, Group, Membership, Role, User
from gpuyard.domain.places import Root
from gpuyard.files import acl
from gpuyard.files.shares import Shares
from gpuyard.store import people, renumbering
from gpuyard.store.database import Database

pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="numbers of their own need root")
GID, ANN, BOB = FIRST_BLOCK, FIRST_BLOCK + BLOCK, FIRST_BLOCK + 2 * BLOCK


@pytest.fixture
def root(tmp_path: Path) -> Root:
    root = Root("/mnt", str(tmp_path / "files"))
    for name in ("user", "share"):
        (tmp_path / "files" / name).mkdir(parents=True)
    return root


@pytest.fixture
def keeper(database: Database, root: Root) -> FolderKeeper:
    shares = Shares(Path(root.outside) / "share")
    if shares.without_lists():
        pytest.skip("this file system keeps no access lists")
    with database.write() as conn:
        people.create_group(conn, Group("vision", gid=GID), 1.0)
        people.create_user(conn, User("ann", memberships=(Membership("vision", Role.LEAD),), uid=ANN), None, 1.0)
        people.create_user(conn, User("bob", uid=BOB), None, 1.0)
    return FolderKeeper(database, shares)


def named(path: Path) -> set[int]:
    return set(acl.decode(os.getxattr(path, acl.ACCESS)).users)


def test_a_folder_is_made_for_every_group_and_names_its_members(keeper: FolderKeeper, root: Root) -> None:
    keeper.look()
    assert named(Path(root.share("vision"))) == {ANN}


def test_joining_and_leaving_reach_everything_in_it(keeper: FolderKeeper, root: Root, database: Database) -> None:
    keeper.look()
    inner = Path(root.share("vision")) / "a" / "b"
    inner.mkdir(parents=True)
    with database.write() as conn:
        people.set_member(conn, "vision", "bob", Role.MEMBER)
    keeper.look()
    assert named(inner) == {ANN, BOB}
    with database.write() as conn:
        people.remove_member(conn, "vision", "ann")
    keeper.look()
    assert named(inner) == named(Path(root.share("vision"))) == {BOB}


def test_someone_removed_is_named_no_more(keeper: FolderKeeper, root: Root, database: Database) -> None:
    keeper.look()
    with database.write() as conn:
        people.remove_user(conn, "ann")
    keeper.look()
    assert named(Path(root.share("vision"))) == set()


@pytest.fixture
def going(keeper: FolderKeeper) -> Iterator[FolderKeeper]:
    thread = threading.Thread(target=keeper.run)
    thread.start()
    yield keeper
    keeper.end()
    thread.join(10)
    assert not thread.is_alive()


def soon(condition: Callable[[], bool]) -> None:
    until = time.monotonic() + 30
    while not condition():
        assert time.monotonic() < until
        time.sleep(0.02)


def test_it_hears_of_changes_by_itself(going: FolderKeeper, root: Root, database: Database) -> None:
    share = Path(root.share("vision"))
    soon(lambda: share.exists() and bool(os.listxattr(share)) and named(share) == {ANN})
    with database.write() as conn:
        people.set_member(conn, "vision", "bob", Role.MEMBER)
    soon(lambda: named(share) == {ANN, BOB})


def test_a_folder_out_of_reach_keeps_nobody_elses_from_being_looked_at(
    keeper: FolderKeeper, root: Root, database: Database, tmp_path: Path
) -> None:
    Path(root.share("vision")).symlink_to(tmp_path)
    with database.write() as conn:
        people.create_group(conn, Group("zebra", gid=FIRST_BLOCK + 5 * BLOCK), 1.0)
    keeper.look()
    assert Path(root.share("zebra")).is_dir()
    assert not os.listxattr(tmp_path)


# --- numbers of an older version ----------------------------------------------------------------------------------

OLD_GID, OLD_ANN, OLD_BOB = 310_000, 310_001, 310_002


@pytest.fixture
def old(database: Database, root: Root, tmp_path: Path) -> Path:
    """A yard as an older version left it."""
    with database.write() as conn:
        people.create_group(conn, Group("vision", gid=OLD_GID), 1.0)
        seat = (Membership("vision", Role.MEMBER),)
        people.create_user(conn, User("ann", memberships=seat, uid=OLD_ANN), None, 1.0)
        people.create_user(conn, User("bob", memberships=seat, uid=OLD_BOB), None, 1.0)
    for name, uid in (("ann", OLD_ANN), ("bob", OLD_BOB)):
        home = Path(root.home(name))
        home.mkdir(mode=0o700)
        (home / "notes").write_text("x")
        (home / "link").symlink_to("/etc/hostname")
        os.mkfifo(home / "pipe")
        for path in (home, *home.iterdir()):
            os.chown(path, uid, OLD_GID, follow_symlinks=False)
    share = Path(root.share("vision"))
    share.mkdir()
    os.chown(share, 0, OLD_GID)
    share.chmod(0o2770)
    (share / "set").write_text("x")
    os.chown(share / "set", OLD_ANN, OLD_GID)
    return tmp_path / "files"


def numbers(path: Path) -> tuple[int, int]:
    return path.lstat().st_uid, path.lstat().st_gid


def test_older_numbers_become_blocks_and_the_files_follow(database: Database, old: Path, root: Root) -> None:
    give_blocks(database, [root], FIRST_BLOCK)
    with database.read() as conn:
        ann, bob = people.all_users(conn)
        (vision,) = people.all_groups(conn)
    assert {ann.uid, bob.uid, vision.gid} == {FIRST_BLOCK + n * BLOCK for n in range(3)}
    assert numbers(old / "user" / "ann") == (ann.uid, ann.uid)
    for name in ("notes", "link", "pipe"):
        assert numbers(old / "user" / "bob" / name) == (bob.uid, vision.gid)
    assert numbers(old / "share" / "vision") == (0, vision.gid)
    assert numbers(old / "share" / "vision" / "set") == (ann.uid, vision.gid)
    assert (old / "share" / "vision").stat().st_mode & 0o7777 == 0o2770
    assert Path("/etc/hostname").stat().st_uid == 0
    with database.read() as conn:
        assert not renumbering.is_needed(conn, FIRST_BLOCK)


def test_what_has_the_users_own_group_follows_too(database: Database, old: Path, root: Root) -> None:
    os.chown(old / "user" / "ann" / "notes", OLD_ANN, OLD_ANN)
    give_blocks(database, [root], FIRST_BLOCK)
    uid, gid = numbers(old / "user" / "ann" / "notes")
    assert uid == gid >= FIRST_BLOCK


def test_cut_off_in_between_it_goes_on_at_the_next_start(database: Database, old: Path, root: Root) -> None:
    with database.write() as conn:
        given = renumbering.begin(conn, FIRST_BLOCK)
    os.chown(old / "user" / "ann" / "notes", given.uids[OLD_ANN], -1)
    give_blocks(database, [root], FIRST_BLOCK)
    assert numbers(old / "user" / "ann" / "notes") == (given.uids[OLD_ANN], given.gids[OLD_GID])
    assert numbers(old / "user" / "bob" / "notes")[0] == given.uids[OLD_BOB]


def test_whose_work_runs_keeps_the_old_number_until_it_does_not(database: Database, old: Path, root: Root) -> None:
    submit(database, running(a_job("job0000001", owner="ann", group="vision"), ("a", (0,))))
    give_blocks(database, [root], FIRST_BLOCK)
    assert numbers(old / "user" / "ann" / "notes") == (OLD_ANN, OLD_GID)
    assert numbers(old / "user" / "bob" / "notes")[0] >= FIRST_BLOCK
    with database.read() as conn:
        assert renumbering.is_needed(conn, FIRST_BLOCK)


def test_where_all_numbers_are_blocks_nothing_is_done(database: Database, root: Root, keeper: FolderKeeper) -> None:
    give_blocks(database, [root], FIRST_BLOCK)
    with database.read() as conn:
        assert [user.uid for user in people.all_users(conn)] == [ANN, BOB]
