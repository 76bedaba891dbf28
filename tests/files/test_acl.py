"""Access lists written here are the ones the kernel and `getfacl` read."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from gpuyard.files import acl
from gpuyard.files.acl import ALL, AccessList

RIGHTS, NUMBERS = st.integers(0, 7), st.integers(1, 2**31 - 1)
PEOPLE = st.dictionaries(NUMBERS, RIGHTS, max_size=8)
LISTS = st.builds(AccessList, RIGHTS, RIGHTS, RIGHTS, PEOPLE, PEOPLE, RIGHTS)
as_root = pytest.mark.skipif(os.geteuid() != 0, reason="naming others needs root")


@settings(deadline=None)
@given(LISTS)
def test_what_is_written_is_read_back(rights: AccessList) -> None:
    assert acl.decode(acl.encode(rights)) == rights


@settings(deadline=None)
@given(st.binary(max_size=80))
def test_anything_else_is_refused_and_nothing_worse(written: bytes) -> None:
    try:
        rights = acl.decode(written)
    except ValueError:
        return
    assert isinstance(rights, AccessList)


@as_root
@pytest.mark.skipif(shutil.which("getfacl") is None, reason="getfacl is not installed")
@settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(LISTS)
def test_getfacl_reads_the_same(tmp_path: Path, rights: AccessList) -> None:
    file = tmp_path / "file"
    file.touch()
    try:
        os.setxattr(file, acl.ACCESS, acl.encode(rights))
    except OSError as problem:
        pytest.skip(f"no access lists here: {problem}")
    command = ["getfacl", "--numeric", "--absolute-names", "--omit-header", "--no-effective", str(file)]
    shown = subprocess.run(command, check=True, capture_output=True, text=True).stdout.split()
    expected = [f"user::{letters(rights.owner)}", f"group::{letters(rights.group)}", f"other::{letters(rights.other)}"]
    expected += [f"user:{who}:{letters(right)}" for who, right in rights.users.items()]
    expected += [f"group:{who}:{letters(right)}" for who, right in rights.groups.items()]
    expected += [f"mask::{letters(rights.mask or 0)}"]
    assert sorted(shown) == sorted(expected)
    assert acl.decode(os.getxattr(file, acl.ACCESS)) == rights


def letters(right: int) -> str:
    return "".join(letter if right & bit else "-" for letter, bit in (("r", 4), ("w", 2), ("x", 1)))


@settings(deadline=None)
@given(LISTS, NUMBERS, st.sets(NUMBERS, max_size=6))
def test_shared_with_names_exactly_the_members_and_is_at_rest_then(
    rights: AccessList, gid: int, members: set[int]
) -> None:
    shared = acl.shared_with(rights, gid, members)
    assert set(shared.users) == members
    assert gid in shared.groups
    assert (shared.owner, shared.other, shared.mask) == (rights.owner, 0, rights.mask)
    assert acl.shared_with(shared, gid, members) == shared


@pytest.mark.parametrize("mode", [0o640, 0o600, 0o755, 0o2770])
def test_members_get_what_the_mode_gave_the_group_and_no_more(mode: int) -> None:
    shared = acl.shared_with(acl.of_mode(mode), 5, [7])
    assert shared.mask == mode >> 3 & ALL
    assert shared.users == {7: ALL}


def test_another_group_gets_the_first_ones_rights_and_it_keeps_them_where_asked() -> None:
    mine = acl.open_to(5, [7])
    assert acl.given(mine, 5, 6, keeps=True).groups == {5: ALL, 6: ALL}
    assert acl.given(mine, 5, 6, keeps=False).groups == {6: ALL}
    assert acl.given(acl.of_mode(0o640), 5, 6, keeps=True) == AccessList(6, 4, 0, {}, {5: 4, 6: 4}, 4)
