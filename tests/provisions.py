"""What tests need that takes long to get: the toolbox, images, and a framework to train with. Each is made once, by a
process of its own (`tests.prepare`), and kept in the cache."""

from __future__ import annotations

import functools
import hashlib
import io
import os
import shutil
import subprocess
import sys
import sysconfig
import tarfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from tempfile import mkdtemp

from tests import cache
from tests.cache import Entry
from tests.images.store import Store

from gpuyard.images.toolbox.build import PARTS, BuildFailed, Missing, build, version_of

PROJECT = Path(__file__).parents[1]
PROBLEM = "!! "  # so begins the line of `tests.prepare` that says what could not be made
PACKAGES = {"busybox": "busybox-static", "ssh": "openssh-client"}  # of Debian, where not called as their program is
Tell = Callable[[str], None]


class Unavailable(Exception):
    """It cannot be had here: why, and what brings it."""


@dataclass(frozen=True)
class Provision:
    name: str
    entry: Callable[[], Entry]
    fill: Callable[[Path, Tell], None]
    again: str = "make prepare"  # once what was in the way is gone


def ready(wanted: Provision) -> Path:
    """Its folder. What `make prepare` has not made is made now."""
    place = wanted.entry().taken()
    if place is None:
        command = [sys.executable, "-m", "tests.prepare", wanted.name]
        done = subprocess.run(command, cwd=PROJECT, stdin=subprocess.DEVNULL, capture_output=True, text=True)
        place = wanted.entry().taken()
        if place is None:
            problems = [line for line in done.stdout.splitlines() if line.startswith(PROBLEM)]
            raise Unavailable("\n".join(problems) or f"{wanted.name} could not be made: {done.stderr[-2000:]}")
    return place


def missing(*programs: str) -> str:
    """Why there can be no containers here; empty when there can."""
    if os.geteuid() != 0:
        return "containers are tested as root"
    absent = [name for name in ("podman", "busybox", *programs) if shutil.which(name) is None]
    return f"not installed: {', '.join(absent)}" if absent else ""


def _need(*programs: str) -> None:
    if problem := missing(*programs):
        absent = [name for name in ("podman", "busybox", *programs) if shutil.which(name) is None]
        packages = " ".join(PACKAGES.get(name, name) for name in absent)
        raise Unavailable(f"{problem} (apt-get install {packages})" if os.geteuid() == 0 else problem)


# --- the toolbox --------------------------------------------------------------------------------------------------


def _toolbox_entry() -> Entry:
    _need()
    try:
        return Entry("toolbox", (version_of(),))
    except Missing as problem:
        raise Unavailable(f"no toolbox on this machine: {problem}") from problem


def _make_toolbox(folder: Path, tell: Tell) -> None:
    """Every version has a data folder of its own; what was fetched and compiled for one is there for the next."""
    home, parts = folder / "toolbox", cache.HOME / "parts"
    home.mkdir()
    parts.mkdir(exist_ok=True)
    (home / "parts").symlink_to(parts)
    _keep_only_needed_parts(parts)
    try:
        build(folder, lambda what, facts: _tell_step(tell, what, facts))
    except Missing as problem:
        raise Unavailable(f"missing: {problem} (apt-get install brings it)") from problem
    except BuildFailed as problem:
        raise Unavailable(f"{problem} (pip, npm and apt-get must be able to fetch packages)") from problem
    (home / "parts").unlink()


def _keep_only_needed_parts(parts: Path) -> None:
    needed = {part.folder() for part in PARTS}
    for part in parts.glob("*-*"):
        if part.name in needed:
            os.utime(part)
        elif time.time() - part.stat().st_mtime > cache.UNUSED_SECONDS:  # nobody takes so long to build
            shutil.rmtree(part, ignore_errors=True)


def _tell_step(tell: Tell, what: str, facts: Mapping[str, object]) -> None:
    step, version = facts.get("step", ""), facts.get("what", "")
    if what == "begin":
        tell(f"{step} {version} ...")
    elif what == "done":
        tell(f"{step} took {facts['seconds']:.0f} s, {in_words(int(str(facts['bytes'])))}")
    elif what == "installing":
        tell(f"installing {', '.join(str(value) for value in facts.values())}")


TOOLBOX = Provision("toolbox", _toolbox_entry, _make_toolbox)


# --- images -------------------------------------------------------------------------------------------------------

RECIPE = "1"  # raised whenever images are kept differently from before
DEBOOTSTRAP = ("debootstrap", "--variant=minbase", "--include=python3,ca-certificates", "bookworm")


@dataclass(frozen=True)
class Image:
    """Kept as `image.tar`, to be loaded, and as `store`, to be shown in other stores."""

    name: str

    @property
    def reference(self) -> str:
        return f"localhost/yard-{self.name}:1"

    def keep(self, folder: Path, files: Path) -> None:
        making = Store(folder / "making")
        making.podman("import", "--quiet", str(files), self.reference)
        files.unlink()
        making.podman("save", "--quiet", "--output", str(folder / "image.tar"), self.reference)
        shutil.rmtree(making.graph / "libpod")  # of this place; only the images are shown
        making.graph.rename(folder / "store")
        shutil.rmtree(making.folder)


def _image(name: str, pack: Callable[[], bytes], *programs: str) -> Provision:
    def entry() -> Entry:
        _need(*programs)
        return Entry(f"image-{name}", (RECIPE, _podman_version(), hashlib.sha256(pack()).hexdigest()))

    def fill(folder: Path, tell: Tell) -> None:
        files = folder / "files.tar"
        files.write_bytes(pack())
        Image(name).keep(folder, files)

    return Provision(name, entry, fill)


@functools.cache
def _podman_version() -> str:
    return subprocess.run(["podman", "--version"], capture_output=True, text=True, check=True).stdout.strip()


def _empty() -> bytes:
    return _packed({})


def _busybox() -> bytes:
    """One program, and the names people call it by."""
    return _packed(*_busybox_files())


def _ssh() -> bytes:
    """The same, with this machine's ssh."""
    files, links = _busybox_files()
    programs = [Path(found) for name in ("ssh", "ssh-keygen") if (found := shutil.which(name))]
    files["etc/passwd"] += b"sshd:x:100:65534::/run/sshd:/bin/false\n"
    needed = [path for program in programs for path in (program, *_libraries(program))]
    return _packed(files | {str(path).lstrip("/"): path.read_bytes() for path in needed}, links)


def _busybox_files() -> tuple[dict[str, bytes], dict[str, str]]:
    found = shutil.which("busybox")
    assert found is not None
    names = subprocess.run([found, "--list"], capture_output=True, text=True, check=True).stdout.split()
    links = {f"bin/{name}": "busybox" for name in names if name != "busybox"}
    return {"bin/busybox": Path(found).read_bytes(), "etc/passwd": b"root:x:0:0:root:/root:/bin/sh\n"}, links


def _libraries(program: Path) -> list[Path]:
    """What it is linked with, its loader included."""
    told = subprocess.run(["ldd", str(program)], capture_output=True, text=True, check=True).stdout
    return [Path(word) for word in told.split() if word.startswith("/")]


def _packed(files: Mapping[str, bytes], links: Mapping[str, str] | None = None) -> bytes:
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w") as archive:
        for folder in ("bin", "etc", "root", "tmp", "mnt"):
            entry = tarfile.TarInfo(folder)
            entry.type, entry.mode = tarfile.DIRTYPE, 0o1777 if folder == "tmp" else 0o755
            archive.addfile(entry)
        for path, content in files.items():
            entry = tarfile.TarInfo(path)
            entry.size, entry.mode = len(content), 0o755
            archive.addfile(entry, io.BytesIO(content))
        for path, target in (links or {}).items():
            entry = tarfile.TarInfo(path)
            entry.type, entry.linkname = tarfile.SYMTYPE, target
            archive.addfile(entry)
    return packed.getvalue()


def _debian_entry() -> Entry:
    """At its smallest, with a Python that has neither pip nor ipykernel."""
    _need("debootstrap")
    return Entry("image-debian", (RECIPE, _podman_version(), os.uname().machine, *DEBOOTSTRAP))


def _make_debian(folder: Path, tell: Tell) -> None:
    root, files = folder / "debian", folder / "files.tar"
    _run(
        ["nice", "-n", "10", *DEBOOTSTRAP, str(root)],
        "debian's packages",
        tell,
        ("Packages", "packages...", "the base system..."),
    )
    shutil.rmtree(root / "var" / "cache" / "apt", ignore_errors=True)
    tell("packing it")
    subprocess.run(["tar", "-C", str(root), "-cf", str(files), "."], capture_output=True, check=True)
    shutil.rmtree(root)
    Image("debian").keep(folder, files)


IMAGES = (
    _image("empty", _empty),
    _image("busybox", _busybox),
    _image("ssh", _ssh, "ssh"),
    Provision("debian", _debian_entry, _make_debian),
)


# --- a framework --------------------------------------------------------------------------------------------------


def torch(version: str) -> Provision:
    """What pip finds for this machine; the folder is one for PYTHONPATH."""

    def entry() -> Entry:
        abi = str(sysconfig.get_config_var("SOABI"))
        return Entry("torch", (version, abi, sysconfig.get_platform()))

    again = f"make prepare TORCH={version}"
    return Provision("torch", entry, lambda folder, tell: _install_torch(folder, version, tell), again)


def _install_torch(folder: Path, version: str, tell: Tell) -> None:
    """Nothing of it is kept a second time, and it is unpacked on the disk where it will lie."""
    work = folder / ".work"
    work.mkdir()
    command = [sys.executable, "-m", "pip", "install", "--disable-pip-version-check", "--root-user-action=ignore"]
    command += ["--no-cache-dir", "--progress-bar=off", "--target", str(folder), f"torch=={version}"]
    env = {**os.environ, "TMPDIR": str(work)}
    _run(command, f"torch {version} from the package index", tell, ("Downloading", "Installing"), env)
    shutil.rmtree(work)


@contextmanager
def shown_to_jobs(folder: Path) -> Iterator[Path]:
    """A folder where other users find it, too: the cache may lie in a home that is closed to them, or below /tmp, where
    a job of root's platform sees files of its own only."""
    if os.geteuid() != 0:
        yield folder
        return
    try:
        place = Path(mkdtemp(prefix="yard-shown-", dir="/srv"))
    except OSError as problem:
        raise Unavailable(f"nothing can be shown to jobs: {problem}") from problem
    place.chmod(0o755)
    try:
        _run(["mount", "--bind", "-o", "ro", str(folder), str(place)], "showing it to jobs", lambda text: None)
        yield place
    finally:
        subprocess.run(["umount", "--lazy", str(place)], capture_output=True, check=False)
        with suppress(OSError):  # never what lies in it
            place.rmdir()


# --- commands -----------------------------------------------------------------------------------------------------


def _run(
    argv: Sequence[str], what: str, tell: Tell, told: tuple[str, ...] = (), env: Mapping[str, str] | None = None
) -> None:
    """Tells of the lines that have one of these words."""
    last: list[str] = []
    with subprocess.Popen(
        argv, env=env, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
    ) as process:
        assert process.stdout is not None
        for line in process.stdout:
            last = [*last[-11:], line.strip()]
            if any(word in line for word in told):
                tell(line.strip()[:150])
    if process.returncode != 0:
        raise Unavailable("\n".join([f"{what}: {argv[0]} ended with {process.returncode}", *last]))


def in_words(size: int) -> str:
    return f"{size / 1e9:.1f} GB" if size > 1e9 else f"{size / 1e6:.0f} MB"
