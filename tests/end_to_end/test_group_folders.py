"""On a real server: what one of a group makes is everybody's in it, below every root, also after an upgrade."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import pytest
from tests.cli.yard import Yard, wait_until

from gpuyard import Client
from gpuyard.domain.people import FIRST_BLOCK
from gpuyard.files import acl
from gpuyard.store import people
from gpuyard.store.database import Database

pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="users of their own need root")
PASSWORD = "correct horse battery"


@pytest.fixture
def yard(tmp_path: Path) -> Iterator[Yard]:
    for folder in ("home", "data", "nas"):
        (tmp_path / folder).mkdir()
    (tmp_path / "data" / "settings.toml").write_text(f'[roots]\n"/mnt2" = "{tmp_path}/nas"\n')
    yard = Yard(tmp_path / "home", tmp_path / "data")
    yard.up("--engine", "process", "--simulate-cards", "1")
    with Client(data=yard.data) as owner:
        owner.create_group("vision")
        for name, group in (("ann", "vision"), ("bob", "vision"), ("cat", "default")):
            owner.create_user(name, password=PASSWORD, group=group)
    yield yard
    yard.down()


def run(yard: Yard, who: str, command: str, group: str = "vision") -> tuple[str, str]:
    """How it ended, and what it said."""
    with Client(data=yard.data) as owner:
        url, token = owner.door.url, owner.create_token("t", user=who).token
    with Client(token=token, url=url) as client:
        job = client.submit(command=command, group=group).wait(timeout=60)
        return job.state, job.logs()


def named(path: Path) -> set[int]:
    try:
        return set(acl.decode(os.getxattr(path, acl.ACCESS)).users)
    except OSError:
        return set()


def numbers(yard: Yard) -> dict[str, int]:
    with Client(data=yard.data) as owner:
        return {user.name: user.uid for user in owner.users()}


def test_what_one_makes_is_everybodys_in_the_group_below_every_root(yard: Yard) -> None:
    share, uids = yard.data / "files" / "share" / "vision", numbers(yard)
    wait_until(lambda: named(share) == {uids["ann"], uids["bob"]})
    make = (
        "umask 077; mkdir $YARD_SHARE_DIR/d /mnt2/share/vision/d; echo ann | tee $YARD_SHARE_DIR/d/f > /mnt2/user/ann/f"
    )
    assert run(yard, "ann", f"{make}; echo nas > /mnt2/share/vision/d/f")[0] == "succeeded"
    add = "cd /mnt2/share/vision/d; echo bob >> /mnt/share/vision/d/f; cat /mnt/share/vision/d/f f; rm f"
    assert run(yard, "bob", add) == ("succeeded", "ann\nbob\nnas\n")
    assert run(yard, "bob", "cat /mnt2/user/ann/f")[0] == "failed"
    assert run(yard, "cat", f"cat /mnt/share/vision/d/f {share}/d/f", "default")[0] == "failed"


def test_whoever_joins_gets_in_and_whoever_leaves_gets_out(yard: Yard) -> None:
    share, uids = yard.data / "files" / "share" / "vision", numbers(yard)
    wait_until(lambda: named(share) == {uids["ann"], uids["bob"]})
    assert run(yard, "ann", "mkdir /mnt/share/vision/d; echo ann > /mnt/share/vision/d/f")[0] == "succeeded"
    with Client(data=yard.data) as owner:
        owner.set_member("vision", "cat", "member")
    wait_until(lambda: uids["cat"] in named(share / "d" / "f"))
    assert run(yard, "cat", "echo cat >> /mnt/share/vision/d/f")[0] == "succeeded"
    with Client(data=yard.data) as owner:
        owner.remove_member("vision", "bob")
    wait_until(lambda: named(share / "d" / "f") == {uids["ann"], uids["cat"]})


def test_people_of_an_older_version_find_their_files_after_the_upgrade(yard: Yard) -> None:
    assert run(yard, "ann", "echo home > f; echo share > $YARD_SHARE_DIR/f")[0] == "succeeded"
    yard.down()
    with closing(Database.open(f"sqlite:///{yard.data}/gpuyard.db")) as database, database.write() as conn:
        older: dict[int, int] = {0: 0}
        for number, user in enumerate(people.all_users(conn)):
            older[user.uid] = 310_000 + number
            people.set_user(conn, replace(user, uid=310_000 + number))
        for number, group in enumerate(people.all_groups(conn)):
            older[group.gid] = 320_000 + number
            people.set_group(conn, replace(group, gid=320_000 + number))
    for folder, folders, files in os.walk(yard.data / "files"):
        for path in (Path(folder) / name for name in (*folders, *files)):
            found = path.lstat()
            os.chown(path, older[found.st_uid], older[found.st_gid])
            for which in set(os.listxattr(path)):
                os.removexattr(path, which)
    (yard.data / "files" / ".shares.json").unlink()
    yard.up("--engine", "process", "--simulate-cards", "1")
    assert all(uid >= FIRST_BLOCK for uid in numbers(yard).values())
    wait_until(lambda: numbers(yard)["bob"] in named(yard.data / "files" / "share" / "vision" / "f"))
    assert run(yard, "ann", "cat f $YARD_SHARE_DIR/f; echo more >> f; stat -c %a $HOME") == (
        "succeeded",
        "home\nshare\n700\n",
    )


def test_a_root_that_is_not_there_keeps_the_server_from_starting(tmp_path: Path) -> None:
    for folder in ("home", "data"):
        (tmp_path / folder).mkdir()
    (tmp_path / "data" / "settings.toml").write_text(f'[roots]\n"/mnt2" = "{tmp_path}/nas"\n')
    done = Yard(tmp_path / "home", tmp_path / "data").run("up", "--port", "0", "--engine", "process")
    assert done.code == 1
    assert f"there is no folder {tmp_path}/nas" in done.err
