"""Files are given to new numbers, with everything that names the old ones, and nothing else is."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from gpuyard.files import acl
from gpuyard.files.renumbering import renumber
from gpuyard.files.shares import Shares

pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="giving files away needs root")
UIDS, GIDS = {310_001: 1_900_000_001}, {310_000: 1_900_000_000}


def numbers(path: Path) -> tuple[int, int]:
    return path.lstat().st_uid, path.lstat().st_gid


def test_owner_and_group_are_changed_each_where_it_is_known(tmp_path: Path) -> None:
    before = {"both": (310_001, 310_000), "owner": (310_001, 5), "group": (5, 310_000), "none": (5, 6)}
    for name, (uid, gid) in before.items():
        (tmp_path / name).touch()
        os.chown(tmp_path / name, uid, gid)
    for _ in range(2):
        assert renumber(tmp_path, UIDS, GIDS) == 0
        assert numbers(tmp_path / "both") == (1_900_000_001, 1_900_000_000)
        assert numbers(tmp_path / "owner") == (1_900_000_001, 5)
        assert numbers(tmp_path / "group") == (5, 1_900_000_000)
        assert numbers(tmp_path / "none") == (5, 6)


def test_access_lists_name_the_new_numbers(tmp_path: Path) -> None:
    if Shares(tmp_path).without_lists():
        pytest.skip("this file system keeps no access lists")
    (tmp_path / "d").mkdir()
    os.setxattr(tmp_path / "d", acl.ACCESS, acl.encode(acl.open_to(310_000, [310_001, 7])))
    os.setxattr(tmp_path / "d", acl.DEFAULT, acl.encode(acl.open_to(310_000, [310_001, 7])))
    renumber(tmp_path, UIDS, GIDS)
    for which in (acl.ACCESS, acl.DEFAULT):
        rights = acl.decode(os.getxattr(tmp_path / "d", which))
        assert (set(rights.users), set(rights.groups)) == ({1_900_000_001, 7}, {1_900_000_000})


def test_a_link_is_given_and_what_it_leads_to_is_not(tmp_path: Path) -> None:
    inside, outside = tmp_path / "inside", tmp_path / "outside"
    inside.mkdir()
    outside.mkdir()
    (outside / "file").touch()
    for name, target in (("folder", outside), ("file", outside / "file")):
        (inside / name).symlink_to(target)
        os.chown(inside / name, 310_001, 310_000, follow_symlinks=False)
        os.chown(target, 310_001, 310_000)
    renumber(inside, UIDS, GIDS)
    assert numbers(inside / "folder") == numbers(inside / "file") == (1_900_000_001, 1_900_000_000)
    assert numbers(outside) == numbers(outside / "file") == (310_001, 310_000)


def test_a_folder_that_is_a_link_is_not_gone_through(tmp_path: Path) -> None:
    (tmp_path / "real").mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "real")
    with pytest.raises(OSError, match="link"):
        renumber(tmp_path / "link", UIDS, GIDS)
