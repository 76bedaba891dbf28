"""Folders of users are taken away whole, whatever is in them and whoever still has a hand in them."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from tests.engines.places import GID, IS_ROOT, UID, wait_for

from gpuyard.engines.process.supervision.removal import remove_tree

_BECOME_THE_USER = f"os.setgroups([]); os.setresgid({GID}, {GID}, {GID}); os.setresuid({UID}, {UID}, {UID})"


def test_what_links_lead_to_stays_as_it_is(tmp_path: Path) -> None:
    victim = tmp_path / "victim"
    victim.mkdir(mode=0o755)
    (victim / "file").write_text("kept")
    tree = tmp_path / "tree"
    (tree / "inner").mkdir(parents=True)
    (tree / "link").symlink_to(victim)
    (tree / "inner" / "link").symlink_to(victim)
    remove_tree(str(tree))
    assert not tree.exists()
    assert (victim / "file").read_text() == "kept"
    assert victim.stat().st_mode & 0o777 == 0o755


def test_a_deep_tree_with_closed_folders_is_taken_away(tmp_path: Path) -> None:
    tree = tmp_path / "tree"
    tree.mkdir()
    here = os.open(tree, os.O_RDONLY)
    for _ in range(3000):
        os.mkdir("d", dir_fd=here)
        inner = os.open("d", os.O_RDONLY, dir_fd=here)
        os.close(here)
        here = inner
    os.mkdir("closed", 0o000, dir_fd=here)
    os.close(here)
    remove_tree(str(tree))
    assert not tree.exists()


@pytest.mark.skipif(not IS_ROOT, reason="needs another user")
def test_folders_closed_to_their_own_owner_are_taken_away_by_the_owner(tmp_path: Path) -> None:
    yard = tmp_path / "yard"
    (yard / "tree" / "a" / "b").mkdir(parents=True)
    for folder in (yard / "tree" / "a" / "b", yard / "tree" / "a", yard / "tree", yard):
        os.chown(folder, UID, GID)
        folder.chmod(0o000 if folder.name in "ab" else 0o700)
    load = "import os; from gpuyard.engines.process.supervision.removal import remove_tree"
    program = f"{load}; os.chdir({str(yard)!r}); {_BECOME_THE_USER}; remove_tree('tree')"
    subprocess.run([sys.executable, "-c", program], check=True)
    assert not (yard / "tree").exists()


class _Meddler:
    """Somebody who kept a folder open and goes on changing it, as the user."""

    def __init__(self, folder: Path, program: str) -> None:
        fd = os.open(folder, os.O_RDONLY)
        begin = f"import ctypes, os\nos.fchdir({fd})\n{_BECOME_THE_USER}\n"
        self._process = subprocess.Popen([sys.executable, "-c", begin + program], pass_fds=[fd], stdout=subprocess.PIPE)
        os.close(fd)
        assert self._process.stdout is not None
        assert self._process.stdout.readline() == b"ready\n"

    def end(self) -> None:
        self._process.kill()
        self._process.wait()
        assert self._process.stdout is not None
        self._process.stdout.close()


@pytest.fixture
def meddle() -> Iterator[Callable[[Path, str], _Meddler]]:
    made: list[_Meddler] = []

    def make(folder: Path, program: str) -> _Meddler:
        made.append(_Meddler(folder, program))
        return made[-1]

    yield make
    for meddler in made:
        meddler.end()


_SWAP = """
swap = ctypes.CDLL(None).renameat2
os.mkdir("d", 0o300); os.mkdir("z"); os.symlink("VICTIM", "z/l")
print("ready", flush=True)
while True: swap(-100, b"d", -100, b"z/l", 2)
"""

_REFILL = """
print("ready", flush=True)
n = 0
while True:
    n += 1
    try: os.mkdir(f"d{n % 50}")
    except OSError: pass
"""


@pytest.mark.skipif(not IS_ROOT, reason="needs another user")
@pytest.mark.parametrize("program", [_SWAP, _REFILL])
def test_somebody_who_goes_on_changing_the_folder_neither_saves_it_nor_harms_others(
    tmp_path: Path, program: str, meddle: Callable[[Path, str], _Meddler]
) -> None:
    victim = tmp_path / "victim"
    victim.mkdir()
    victim.chmod(0o755)
    for number in range(5):
        tree = tmp_path / f"tree{number}"
        tree.mkdir()
        os.chown(tree, UID, GID)
        meddler = meddle(tree, program.replace("VICTIM", str(victim)))
        remove_tree(str(tree))
        assert not tree.exists()
        assert victim.stat().st_mode & 0o777 == 0o755
        meddler.end()


def test_what_somebody_else_takes_away_at_the_same_time_is_no_fault(tmp_path: Path) -> None:
    tree = tmp_path / "tree"
    for number in range(300):
        (tree / f"d{number}" / "inner").mkdir(parents=True)
        (tree / f"d{number}" / "file").touch()
    problems: list[OSError] = []

    def remove() -> None:
        try:
            remove_tree(str(tree))
        except FileNotFoundError:  # the other one took the last step
            return
        except OSError as problem:
            problems.append(problem)

    threads = [threading.Thread(target=remove) for _ in range(3)]
    for thread in threads:
        thread.start()
    wait_for(lambda: not any(thread.is_alive() for thread in threads))
    assert not problems
    assert not tree.exists()
