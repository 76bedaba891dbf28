"""`yard toolbox`, and what a toolbox is like as a folder."""

from __future__ import annotations

import json
import os
import stat
import subprocess
import sys
from pathlib import Path

import pytest

from gpuyard.images.toolbox import build as building
from gpuyard.images.toolbox import elf

pytestmark = pytest.mark.timeout(1500)  # the first test of a run may have to build the toolbox


def yard(*words: str, data: Path) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "gpuyard.cli.main", "toolbox", *words, "--data", str(data)]
    return subprocess.run(command, capture_output=True, text=True, env={**os.environ, "YARD_LANG": "en"})


def test_a_second_build_does_nothing_and_says_so(toolbox: Path) -> None:
    before = toolbox.stat().st_ino
    done = yard("build", data=toolbox.parent.parent)
    assert done.returncode == 0, done.stderr
    assert f"the toolbox {toolbox.name} is there already" in done.stderr
    assert toolbox.stat().st_ino == before


def test_it_can_be_shown_as_json(toolbox: Path) -> None:
    done = yard("show", "-o", "json", data=toolbox.parent.parent)
    (current,) = [box for box in json.loads(done.stdout) if box["current"]]
    assert current["version"] == toolbox.name
    assert set(current["parts"]) == {"base", "lab", "node", "tools", "ide"}
    assert current["bytes"] < 1_000_000_000


def test_it_holds_nothing_that_could_be_changed_or_gives_rights(toolbox: Path) -> None:
    files = [path for path in toolbox.rglob("*") if path.is_file() and not path.is_symlink()]
    assert [path for path in files if path.stat().st_mode & (0o222 | stat.S_ISUID | stat.S_ISGID)] == []
    assert {path.stat().st_uid for path in files} == {0}


def test_its_python_is_started_by_name_with_or_without_patchelf_on_this_machine(toolbox: Path) -> None:
    """As kernels of notebooks are, in images that have no C library, or another one."""
    assert elf.loader_of((toolbox / "bin" / "python3").resolve()) == "/opt/yard/lib/ld.so"


def test_before_the_first_build_there_is_none(tmp_path: Path) -> None:
    assert json.loads(yard("show", "-o", "json", data=tmp_path).stdout) == []
    assert "yard toolbox build" in yard("show", data=tmp_path).stderr
    assert building.current(tmp_path) is None


def make_toolbox(data: Path, version: str, built_at: float) -> Path:
    place = data / "toolbox" / version
    place.mkdir(parents=True)
    told = {"version": version, "built_at": built_at, "parts": ["base"]}
    (place / "toolbox.json").write_text(json.dumps(told))
    return place


def test_what_is_noted_of_its_size_is_not_counted_again(tmp_path: Path) -> None:
    place = make_toolbox(tmp_path, "noted", 1.0)
    (place / "program").write_bytes(b"x" * 5000)
    (counted,) = building.show(tmp_path)
    assert counted.bytes == 5000 + (place / "toolbox.json").stat().st_size
    told = json.loads((place / "toolbox.json").read_text())
    (place / "toolbox.json").write_text(json.dumps(told | {"bytes": 123}))
    (noted,) = building.show(tmp_path)
    assert noted.bytes == 123


def test_old_ones_are_removed_and_the_current_one_stays(tmp_path: Path) -> None:
    old, new = make_toolbox(tmp_path, "old", 1.0), make_toolbox(tmp_path, "new", 2.0)
    (tmp_path / "toolbox" / "current").symlink_to("new")
    assert yard("rm", data=tmp_path).returncode == 0
    assert (old.exists(), new.exists()) == (False, True)
    assert yard("rm", "--all", data=tmp_path).returncode == 0
    assert building.current(tmp_path) is None
    assert not new.exists()


def test_one_that_a_container_uses_is_not_removed(tmp_path: Path) -> None:
    place = make_toolbox(tmp_path, "used", 1.0)
    process = tmp_path / "proc" / "1"
    process.mkdir(parents=True)
    line = f"36 35 98:0 {place} /opt/yard ro,nosuid shared:1 - ext4 /dev/vda rw\n"
    (process / "mountinfo").write_text(line)
    assert building.in_use(place, tmp_path / "proc")
    assert not building.in_use(place.with_name("other"), tmp_path / "proc")


@pytest.mark.skipif(os.geteuid() != 0, reason="needs to become somebody else")
def test_a_build_that_lacks_compilers_says_what_is_missing() -> None:
    script = (
        "import os\n"
        "from pathlib import Path\n"
        "from gpuyard.images.toolbox import elf, parts\n"
        "os.setuid(65534)\n"  # root would install them
        "shop = parts.Workshop(Path('/tmp'), Path('/dev/null'), print)\n"
        "try:\n"
        "    parts.get_compilers(shop)\n"
        "except elf.Missing as problem:\n"
        "    print(problem)\n"
    )
    asked = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, env={"PATH": "/nowhere"})
    assert asked.stdout.strip() == "g++, make, libkrb5-dev", asked.stderr
