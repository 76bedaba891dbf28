"""Programs and libraries as files: what loads them, which libraries they need, and how they are told to look beside.

A program made to run anywhere names its own loader and looks for libraries relative to itself. Both are written into
the file by patchelf, the search path first: in the other order, or both at once, some files no longer start.
"""

from __future__ import annotations

import os
import re
import shutil
import struct
import subprocess
from collections.abc import Iterable, Sequence
from pathlib import Path

_MAGIC = b"\x7fELF"
_PT_INTERP = 3
_LISTED = re.compile(r"^\s+(\S+) => (/.+?) \(0x[0-9a-f]+\)$", re.MULTILINE)
_SHARED, _PROGRAM = 3, 2  # e_type


class Missing(Exception):
    """This machine lacks something that is needed; the message says what."""


def is_elf(path: Path) -> bool:
    if path.is_symlink() or not path.is_file():
        return False
    with path.open("rb") as file:
        return file.read(4) == _MAGIC


def loader_of(path: Path) -> str | None:
    """The loader a program names; None for a static program, a library, or something else altogether."""
    with path.open("rb") as file:
        head = file.read(64)
        if head[:4] != _MAGIC or head[4] != 2:  # 64 bit only
            return None
        start, size, count = struct.unpack_from("<Q", head, 32)[0], *struct.unpack_from("<HH", head, 54)
        file.seek(start)
        table = file.read(size * count)
        for number in range(count):
            kind, _, offset, _, _, length = struct.unpack_from("<IIQQQQ", table, number * size)
            if kind == _PT_INTERP:
                file.seek(offset)
                return file.read(length).rstrip(b"\0").decode()
    return None


def is_static(path: Path) -> bool:
    """A program that needs no loader and no library."""
    with path.open("rb") as file:
        head = file.read(18)
    kind = struct.unpack_from("<H", head, 16)[0] if head[:4] == _MAGIC else 0
    return kind in (_PROGRAM, _SHARED) and loader_of(path) is None


def libraries_of(loader: str, file: Path, *folders: Path) -> dict[str, Path] | None:
    """Name and place of every library this file needs, as this machine finds them, in these folders first; None where
    one is missing."""
    path = ["--library-path", ":".join(map(str, folders))] if folders else []
    asked = subprocess.run([loader, *path, "--list", str(file)], capture_output=True, text=True, check=False)
    if asked.returncode != 0 or "not found" in asked.stdout:
        return None
    return {name: Path(place) for name, place in _LISTED.findall(asked.stdout)}


def machine_of(path: Path) -> int | None:
    """The kind of processor a program or library is for; None for anything else."""
    if path.is_symlink() or not path.is_file():
        return None
    with path.open("rb") as file:
        head = file.read(20)
    return int(struct.unpack_from("<H", head, 18)[0]) if head[:4] == _MAGIC and len(head) == 20 else None


def run(argv: Sequence[str]) -> None:
    done = subprocess.run(argv, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise Missing(f"{' '.join(argv[:4])} ...: {done.stderr.strip() or done.stdout.strip()}")


def patchelf() -> str | None:
    return shutil.which("patchelf")


def make_portable(tool: str, root: Path, loader: str) -> None:
    """Every program below this folder looks for its libraries in root/lib and is loaded by the toolbox's own loader.
    Libraries need nothing: what a program loads later is looked for where the program looks."""
    for folder, _, names in os.walk(root):
        for name in names:
            program = Path(folder, name)
            if is_elf(program) and loader_of(program) is not None:
                up = "/".join([".."] * len(program.parent.relative_to(root).parts))
                look_beside(tool, [program], f"$ORIGIN/{up}/lib" if up else "$ORIGIN/lib")
                load_by(tool, program, loader)


def look_beside(tool: str, files: Sequence[Path], *folders: str) -> None:
    """Let the files look for libraries in these folders ($ORIGIN is a file's own), also for what they load later."""
    if files:
        path = ":".join(folders)
        run([tool, "--force-rpath", "--set-rpath", path, *map(str, files)])


def load_by(tool: str, program: Path, loader: str) -> None:
    run([tool, "--set-interpreter", loader, str(program)])


def strip(files: Iterable[Path]) -> None:
    """Leave out what only debuggers read, where this machine can."""
    tool = shutil.which("strip")
    present = [str(file) for file in files]
    if tool and present:
        subprocess.run([tool, "--strip-unneeded", *present], check=False, capture_output=True)


def make_read_only(root: Path) -> None:
    """Files that nobody changes and everybody reads, none of them with rights of its own; folders stay removable."""
    for folder, _, names in os.walk(root):
        os.chmod(folder, 0o755)  # noqa: S103  everybody reads it
        for name in names:
            path = os.path.join(folder, name)
            if not os.path.islink(path):
                os.chmod(path, 0o555 if os.stat(path).st_mode & 0o111 else 0o444)
