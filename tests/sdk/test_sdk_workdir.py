"""Shipping a folder: the same bytes for the same content, and nothing that is not meant to go."""

from __future__ import annotations

import io
import os
import socket
import tarfile
from pathlib import Path

import pytest

from gpuyard.sdk.errors import WorkdirRefused
from gpuyard.sdk.ignore import IgnoreRules
from gpuyard.sdk.workdir import Packed, pack


def packed(folder: Path, limit: int = 1 << 20) -> tuple[Packed, dict[str, tarfile.TarInfo]]:
    out = io.BytesIO()
    result = pack(folder, out, limit)
    out.seek(0)
    with tarfile.open(fileobj=out) as tar:
        return result, {member.name: member for member in tar.getmembers()}


def write(folder: Path, path: str, text: str = "x") -> Path:
    file = folder / path
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(text)
    return file


def test_the_same_content_is_the_same_bytes_whenever_and_wherever_it_was_written(tmp_path: Path) -> None:
    for name, order in (("one", ("b.py", "a/z.py", "run.sh")), ("two", ("run.sh", "a/z.py", "b.py"))):
        for path in order:
            write(tmp_path / name, path, path)
        (tmp_path / name / "run.sh").chmod(0o755)
    (tmp_path / "two" / "b.py").chmod(0o600)
    os.utime(tmp_path / "two" / "b.py", (1, 1))
    first, members = packed(tmp_path / "one")
    second, _ = packed(tmp_path / "two")
    assert first == second
    assert first.size > 0
    assert list(members) == sorted(members)
    assert members["run.sh"].mode == 0o755
    assert members["b.py"].mode == 0o644
    assert {(m.uid, m.gid, m.mtime) for m in members.values()} == {(0, 0, 0)}


def test_one_changed_byte_is_another_digest(tmp_path: Path) -> None:
    file = write(tmp_path, "a.py", "1")
    before, _ = packed(tmp_path)
    file.write_text("2")
    after, _ = packed(tmp_path)
    assert before.digest != after.digest


def test_repositories_environments_and_caches_stay_at_home(tmp_path: Path) -> None:
    for path in (".git/HEAD", "pkg/__pycache__/a.pyc", ".venv/bin/python", "web/node_modules/x.js", "train.py"):
        write(tmp_path, path)
    write(tmp_path, ".ipynb_checkpoints/n.ipynb")
    _, members = packed(tmp_path)
    assert set(members) == {"pkg", "web", "train.py"}


def test_the_ignore_file_is_respected(tmp_path: Path) -> None:
    write(tmp_path, ".yardignore", "# big things\n*.ckpt\n!keep.ckpt\n/data/\nlogs/**/old\n\n")
    for path in ("a.ckpt", "deep/b.ckpt", "keep.ckpt", "data/x", "deep/data/y", "logs/a/b/old", "logs/new"):
        write(tmp_path, path)
    _, members = packed(tmp_path)
    files = {name for name, member in members.items() if member.isfile()}
    assert files == {".yardignore", "keep.ckpt", "deep/data/y", "logs/new"}


@pytest.mark.parametrize(
    ("line", "path", "is_folder", "ignored"),
    [
        ("build", "build", True, True),
        ("build/", "build", False, False),
        ("/build", "src/build", True, False),
        ("src/*.o", "src/a.o", False, True),
        ("src/*.o", "src/x/a.o", False, False),
        ("**/a/b", "x/y/a/b", False, True),
        ("a/**", "a/b/c", False, True),
        ("a/**", "a", True, False),
        ("a/**/b", "a/b", False, True),
        ("file[0-9].txt", "file7.txt", False, True),
        ("file[!0-9].txt", "file7.txt", False, False),
        ("[z-a]", "z", False, False),
        ("[abc", "[abc", False, True),
        (r"\#x", "#x", False, True),
        (r"\!x", "!x", False, True),
        ("?.py", "ab.py", False, False),
        ("a.py  ", "a.py", False, True),
        ("!.git/", ".git", True, False),
        ("(x+)", "(x+)", False, True),
        ("数据", "深/数据", True, True),
    ],
)
def test_patterns_mean_what_they_mean_in_git(line: str, path: str, is_folder: bool, ignored: bool) -> None:
    assert IgnoreRules([line]).ignores(path, is_folder) is ignored


def test_links_inside_are_kept_and_absolute_ones_made_relative(tmp_path: Path) -> None:
    write(tmp_path, "data/a.txt")
    (tmp_path / "near").symlink_to("data/a.txt")
    (tmp_path / "data/up").symlink_to("../near")
    (tmp_path / "full").symlink_to(tmp_path.resolve() / "data")
    (tmp_path / "dangling").symlink_to("not-there-yet")
    _, members = packed(tmp_path)
    links = {name: member.linkname for name, member in members.items() if member.issym()}
    assert links == {"near": "data/a.txt", "data/up": "../near", "full": "data", "dangling": "not-there-yet"}


@pytest.mark.parametrize("target", ["/etc/passwd", "../outside", "inside/../../outside"])
def test_a_link_that_leads_out_is_refused_by_name(tmp_path: Path, target: str) -> None:
    folder = tmp_path / "job"
    write(folder, "inside/a")
    write(tmp_path, "outside")
    (folder / "escape").symlink_to(target)
    with pytest.raises(WorkdirRefused, match="escape") as refusal:
        packed(folder)
    assert refusal.value.code == "client.workdir_link_outside"
    assert refusal.value.facts == {"path": "escape", "target": target}


def test_an_ignored_link_that_leads_out_is_no_matter(tmp_path: Path) -> None:
    write(tmp_path, ".yardignore", "dataset\n")
    (tmp_path / "dataset").symlink_to("/")
    _, members = packed(tmp_path)
    assert set(members) == {".yardignore"}


def test_too_large_a_folder_is_refused_with_the_biggest_entries_named(tmp_path: Path) -> None:
    write(tmp_path, "model/weights.bin", "w" * 3000)
    write(tmp_path, "notes.txt", "n" * 100)
    with pytest.raises(WorkdirRefused) as refusal:
        packed(tmp_path, limit=2000)
    assert "model (2.9K), notes.txt (100B)" in refusal.value.message
    assert ".yardignore" in refusal.value.message


def test_what_is_no_folder_is_refused(tmp_path: Path) -> None:
    for path in (tmp_path / "nothing", write(tmp_path, "file")):
        with pytest.raises(WorkdirRefused, match="not a folder"):
            packed(path)


def test_sockets_and_pipes_are_left_out_and_odd_names_survive(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(str(tmp_path / "sock"))
        odd = os.fsencode(tmp_path) + b"/\xff name\n\xe6\x95\xb0"
        with open(odd, "wb") as file:
            file.write(b"x")
        write(tmp_path, "x" * 200 + "/" + "y" * 200)
        _, members = packed(tmp_path)
    assert {os.fsencode(name) for name in members} == {
        b"\xff name\n\xe6\x95\xb0",
        b"x" * 200,
        b"x" * 200 + b"/" + b"y" * 200,
    }


def test_hard_links_are_shipped_as_files(tmp_path: Path) -> None:
    write(tmp_path, "a", "same")
    os.link(tmp_path / "a", tmp_path / "b")
    _, members = packed(tmp_path)
    assert all(member.isfile() and member.size == 4 for member in members.values())
