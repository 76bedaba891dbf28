"""A small memory of what has been done: lost or damaged, it is an empty one."""

from __future__ import annotations

from pathlib import Path

import pytest

from gpuyard.files.marks import Marks


def test_what_is_put_is_there_for_whoever_comes_next(tmp_path: Path) -> None:
    marks = Marks(tmp_path / "marks")
    marks.put("a", "1")
    marks.put("b", "2")
    marks.forget("a")
    marks.forget("never there")
    assert (Marks(tmp_path / "marks").get("a"), Marks(tmp_path / "marks").get("b")) == (None, "2")
    assert (tmp_path / "marks").stat().st_mode & 0o777 == 0o600


@pytest.mark.parametrize("content", [b"", b"{", b"[]", b"\xff", b'{"a": 1}'])
def test_a_damaged_file_is_an_empty_one(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "marks").write_bytes(content)
    marks = Marks(tmp_path / "marks")
    assert marks.get("a") is None
    marks.put("a", "1")
    assert Marks(tmp_path / "marks").get("a") == "1"
