"""The least a container needs to be run by us: a Python that starts in any image, and a shell where there is none.

Copied from this machine in a few seconds, nothing is downloaded. The full toolbox is built on the same ground plan:
`lib/` holds the C library, its loader (`ld.so`) and all that programs need, and `bin/python3` starts from there.
"""

from __future__ import annotations

import compileall
import fcntl
import hashlib
import os
import shutil
import subprocess
import sys
import sysconfig
from collections.abc import Iterator
from contextlib import contextmanager
from importlib import resources
from pathlib import Path

from gpuyard.images.toolbox import elf

AT = "/opt/yard"
"""Where the toolbox is shown inside. Programs that are started by name are made for this place."""
LOADER = f"{AT}/lib/ld.so"
RECIPE = 4
"""Raised whenever a base is made differently from before, so that old ones are not taken for it."""

_LEFT_OUT = frozenset(
    (
        *("test", "tests", "idlelib", "tkinter", "turtledemo", "turtle.py", "ensurepip", "lib2to3", "pydoc_data"),
        *("site-packages", "dist-packages", "__phello__"),
    )
)
_LEFT_OUT_MODULES = ("_test", "_ctypes_test", "_xxtest", "xxlimited", "_tkinter", "ossaudiodev", "nis.")
# The C library opens these by name when they are needed: for looking up names, and when a thread ends.
_OPENED_LATER = (
    *("libnss_files.so.2", "libnss_dns.so.2", "libresolv.so.2", "libgcc_s.so.1"),
    *("libpthread.so.0", "libdl.so.2", "librt.so.1", "libutil.so.1", "libm.so.6"),
)


def is_shown_elsewhere() -> bool:
    """Root shows the toolbox at `AT`, in containers and in rooms, and its programs are made for that place. Without
    root nothing can be shown: it is used where it lies, with this machine's own loader."""
    return os.geteuid() == 0


def python_command(base: str) -> list[str]:
    """What starts the Python of a base or toolbox shown at `base`, in any image: a program's arguments go behind it."""
    return [f"{base}/lib/ld.so", "--inhibit-cache", "--library-path", f"{base}/lib", f"{base}/bin/python3"]


def ensure_base(data: Path) -> Path:
    """The base of this machine in DATA/toolbox, made now if it is not there yet."""
    home = data / "toolbox"
    place = home / f"base-{base_version()}"
    if place.is_dir():
        return place
    with being_built(home, place.name) as part:
        if part is not None:
            build_base(part)
    return place


def base_version() -> str:
    """Changes with the interpreter, the C library and the recipe."""
    program = python_program()
    loader = _loader(program)
    found = [str(program), loader, os.__file__, _libpython(), elf.patchelf(), find_busybox()]
    looked_at = [(path, os.stat(path)) for path in found if path is not None]
    marks = [f"{path}:{seen.st_size}:{seen.st_mtime_ns}" for path, seen in looked_at]
    own = [f"{name}:{text}" for name, text in _small_files().items()]
    place = AT if is_shown_elsewhere() else "in place"
    digest = hashlib.sha256("\n".join([str(RECIPE), sys.version, place, *marks, *own]).encode()).hexdigest()
    return f"{sys.version_info[0]}.{sys.version_info[1]}.{sys.version_info[2]}-{digest[:8]}"


@contextmanager
def being_built(home: Path, name: str) -> Iterator[Path | None]:
    """A folder to build in, which gets its name only when all went well; None when it was finished by somebody else."""
    home.mkdir(mode=0o755, parents=True, exist_ok=True)
    part = home / f".{name}.part"
    with (home / ".lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if (home / name).is_dir():
            yield None
            return
        for left in (*home.glob(".*.part"), *home.glob(".work-*")):  # by a build that was interrupted
            shutil.rmtree(left, ignore_errors=True)
        part.mkdir(mode=0o755)
        try:
            yield part
            elf.make_read_only(part)
            part.rename(home / name)
        finally:
            shutil.rmtree(part, ignore_errors=True)


def build_base(place: Path) -> None:
    """Fill this folder with a base."""
    (place / "bin").mkdir()
    (place / "lib").mkdir()
    program = python_program()
    loader = _loader(program)
    modules = copy_standard_library(place)
    copy_libraries(loader, place / "lib", [program, *modules])
    copied = place / "bin" / program.name
    shutil.copyfile(program, copied)
    copied.chmod(0o755)
    (place / "bin" / "python3").symlink_to(program.name)
    elf.strip([copied, *place.glob("lib/*.so*"), *place.glob("lib/python*/lib-dynload/*.so")])
    tool = elf.patchelf()
    if tool is not None and is_shown_elsewhere():  # without it only `python_command` starts it
        make_startable(copied, place, tool)
    compile_modules(place)
    has_shell = copy_busybox(place)
    write_small_files(place, has_shell)


_SMALL = {"shims/sudo": "sudo", "rc/profile.sh": "profile.sh"}


def _small_files() -> dict[str, str]:
    """Scripts of ours, by where they go."""
    inside = resources.files("gpuyard.images.toolbox") / "inside"
    return {target: (inside / name).read_text(encoding="utf-8") for target, name in _SMALL.items()}


def write_small_files(place: Path, has_shell: bool) -> None:
    for target, text in _small_files().items():
        file = place / target
        file.parent.mkdir(exist_ok=True)
        first = f"#!{AT}/bin/busybox sh" if has_shell and is_shown_elsewhere() else "#!/bin/sh"
        file.write_text(text.replace("#!/bin/sh", first, 1), encoding="utf-8")
        file.chmod(0o755)


def python_program() -> Path:
    """The interpreter itself, outside any virtual environment."""
    name = f"python{sys.version_info[0]}.{sys.version_info[1]}"
    usual = Path(sys.base_prefix) / "bin" / name
    return usual.resolve() if usual.exists() else Path(getattr(sys, "_base_executable", sys.executable)).resolve()


def python_loader() -> str:
    return _loader(python_program())


def _loader(program: Path) -> str:
    loader = elf.loader_of(program)
    if loader is None:
        raise elf.Missing(f"{program} is not a program for this machine's C library")
    return loader


def _libpython() -> str | None:
    name = sysconfig.get_config_var("INSTSONAME") if sysconfig.get_config_var("Py_ENABLE_SHARED") else None
    place = Path(str(sysconfig.get_config_var("LIBDIR")), str(name))
    return str(place) if name and place.exists() else None


def copy_standard_library(place: Path) -> list[Path]:
    """Everything a program may import, with its compiled form; returns the compiled modules that came along."""
    source = Path(os.__file__).parent
    target = place / "lib" / source.name
    shutil.copytree(source, target, ignore=_leave_out, symlinks=False)
    kept: list[Path] = []
    loader = python_loader()
    found = Path(sysconfig.get_path("platstdlib", vars={"platbase": sys.base_exec_prefix})) / "lib-dynload"
    shutil.rmtree(target / "lib-dynload", ignore_errors=True)
    (target / "lib-dynload").mkdir()
    for module in sorted(found.glob("*.so")):
        if not module.name.startswith(_LEFT_OUT_MODULES) and elf.libraries_of(loader, module) is not None:
            shutil.copy2(module, target / "lib-dynload" / module.name)
            kept.append(module)
    return kept


def _leave_out(folder: str, names: list[str]) -> set[str]:
    compiled = {name for name in names if name.endswith((".opt-1.pyc", ".opt-2.pyc", ".a", ".exe"))}
    return compiled | {name for name in names if name in _LEFT_OUT or name.startswith("config-")}


def copy_libraries(loader: str, target: Path, files: list[Path], *folders: Path) -> None:
    """The loader as `ld.so`, and every library these files need, beside each other; found in these folders first."""
    shutil.copyfile(os.path.realpath(loader), target / os.path.basename(loader))
    (target / os.path.basename(loader)).chmod(0o755)
    if not (target / "ld.so").exists():
        (target / "ld.so").symlink_to(os.path.basename(loader))
    wanted: dict[str, Path] = {}
    for file in files:
        wanted |= elf.libraries_of(loader, file, *folders) or {}
    if "libc.so.6" in wanted:
        beside = wanted["libc.so.6"].parent
        wanted |= {name: beside / name for name in _OPENED_LATER if (beside / name).exists()}
    for name, path in wanted.items():
        if not (target / name).exists():
            shutil.copyfile(os.path.realpath(path), target / name)
            (target / name).chmod(0o755)


def make_startable(program: Path, place: Path, tool: str) -> None:
    """By name, too, where the base is shown at its usual place. Whoever has the same files keeps them as they were."""
    libraries, modules = list(place.glob("lib/libpython*.so*")), list(place.glob("lib/python*/lib-dynload/*.so"))
    for file in (program, *libraries, *modules):
        copy = file.with_name(f".{file.name}.own")
        shutil.copy2(file, copy)
        copy.chmod(0o755)
        copy.replace(file)
    elf.look_beside(tool, [program], "$ORIGIN/../lib")
    elf.load_by(tool, program, LOADER)
    elf.look_beside(tool, libraries, "$ORIGIN")
    elf.look_beside(tool, modules, "$ORIGIN/../..")


def compile_modules(place: Path, only: str = "") -> None:
    """Nobody can write beside them later. All below lib/python3.x, or one package that was installed there."""
    for library in place.glob(f"lib/python3*/site-packages/{only}" if only else "lib/python3*"):
        compileall.compile_dir(library, quiet=2, maxlevels=30)


def copy_busybox(place: Path) -> bool:
    """A shell and the small tools, for images that have none."""
    found = find_busybox()
    if found is None:
        return False
    shutil.copyfile(found, place / "bin" / "busybox")
    (place / "bin" / "busybox").chmod(0o755)
    (place / "bin" / "sh").symlink_to("busybox")
    (place / "applets").mkdir()
    listed = subprocess.run([found, "--list"], capture_output=True, text=True, check=True)
    for name in listed.stdout.split():
        (place / "applets" / name).symlink_to("../bin/busybox")
    return True


def find_busybox() -> str | None:
    """This machine's busybox, if it is one that needs no libraries."""
    found = shutil.which("busybox", path=os.environ.get("PATH", "") + ":/usr/bin:/bin")
    return found if found is not None and elf.is_static(Path(found)) else None
