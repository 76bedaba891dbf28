"""Everyone finds the same folders under the same names, and nothing can be put over them."""

from __future__ import annotations

import pytest

from gpuyard.domain.places import Place, Root, folders_of, outside_of, root_problem, shadows, variables

FIRST, SECOND = Root("/mnt", "/data/files"), Root("/mnt2", "/nas2")


def test_everyone_finds_their_own_and_their_groups_folder_below_each_root() -> None:
    assert folders_of("ann", "vision", [FIRST, SECOND]) == [
        Place("/mnt/user/ann", "/data/files/user/ann"),
        Place("/mnt/share/vision", "/data/files/share/vision"),
        Place("/mnt2/user/ann", "/nas2/user/ann"),
        Place("/mnt2/share/vision", "/nas2/share/vision"),
    ]


def test_the_variables_name_the_first_roots_folders_as_they_can_be_reached() -> None:
    roots = [FIRST, SECOND]
    assert variables("ann", "vision", roots)["YARD_USER_DIR"] == "/mnt/user/ann"
    assert variables("ann", "vision", roots, shown=False)["YARD_SHARE_DIR"] == "/data/files/share/vision"


def test_a_path_inside_is_found_on_the_machine() -> None:
    places = folders_of("ann", "vision", [FIRST, SECOND])
    assert outside_of("/mnt2/share/vision/sets/../a", places) == "/nas2/share/vision/a"
    assert outside_of("/mnt/user/ann", places) == "/data/files/user/ann"
    assert outside_of("/mnt/user/anna", places) is None
    assert outside_of("/mnt/user/ann/../bob", places) is None


@pytest.mark.parametrize("at", ["/mnt", "/mnt/user", "/mnt/user/ann/x", "/mnt/share/vision", "/mnt2", "/mnt2/share/"])
def test_a_mount_cannot_hide_them(at: str) -> None:
    assert shadows(at, [FIRST, SECOND])


@pytest.mark.parametrize("at", ["/mnt/data", "/mnt3", "/mnt/users", "/workspace"])
def test_a_mount_beside_them_is_fine(at: str) -> None:
    assert not shadows(at, [FIRST, SECOND])


@pytest.mark.parametrize(
    ("inside", "outside"),
    [
        ("mnt2", "/nas2"),
        ("/mnt2", "nas2"),
        ("/mnt2/..", "/nas2"),
        ("/mnt2:ro", "/nas2"),
        ("/etc", "/nas2"),
        ("/", "/nas2"),
        ("/usr/share/nas", "/nas2"),
        ("/mnt2", "/etc"),
        ("/mnt2", "/etc/nas"),
        ("/mnt2", "/var"),
        ("/mnt2", "/"),
        ("/mnt", "/nas2"),
        ("/mnt/user", "/nas2"),
        ("/mnt/share/x", "/nas2"),
        ("/mnt2", "/data/files/user"),
        ("/mnt2", "/data"),
    ],
)
def test_a_root_that_cannot_be_is_told_why(inside: str, outside: str) -> None:
    assert root_problem(inside, outside, [FIRST])


@pytest.mark.parametrize(("inside", "outside"), [("/mnt2", "/nas2"), ("/mnt/nas", "/srv/nas"), ("/data", "/var/nas")])
def test_a_root_beside_the_others_is_fine(inside: str, outside: str) -> None:
    assert root_problem(inside, outside, [FIRST]) == ""
