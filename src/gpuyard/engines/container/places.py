"""The folders and files of one replica, made before the engine is asked: what it misses it would make as root."""

from __future__ import annotations

import contextlib
import errno
import json
import os
import threading
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, TypeVar

from gpuyard.domain.cluster import Card
from gpuyard.domain.errors import EngineError
from gpuyard.domain.people import BLOCK
from gpuyard.domain.places import Root, folders_of
from gpuyard.domain.reasons import Code, because
from gpuyard.domain.workload import Mount
from gpuyard.engines.container import creating
from gpuyard.engines.container.creating import Source
from gpuyard.engines.folders import make_folder, make_places, small_file, write_small_file
from gpuyard.engines.process.layout import Layout
from gpuyard.engines.process.supervision import linux, record
from gpuyard.engines.seam import LaunchRequest

T = TypeVar("T")

INSIDE_REQUEST = "inside.json"


class Places:
    def __init__(self, layout: Layout, roots: Sequence[Root]) -> None:
        self._layout = layout
        self.roots = tuple(roots)

    def make(self, request: LaunchRequest, who: tuple[int, int]) -> Path:
        """The replica's folder with all that is shown inside, owned by whoever runs there."""
        folder = self._layout.replica(request.id)
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        make_places(request.owner, request.uid, request.group, request.gid, self.roots)
        for name in ("door", "beacon", "work"):
            make_folder(folder / name, 0o700, who)
        _make_file(folder / record.LOG, who)
        for file in request.files:
            write_small_file(small_file(folder.parent, file), file, who)
        if request.workdir is not None:
            request.workdir.chmod(0o444)  # it is the owner's, and nobody else can come near
        note = {"uid": who[0], "uids": 1, "owner": request.owner, "group": request.group, "kind": request.kind.value}
        if who == (request.uid, request.uid):
            note["uids"] = BLOCK
        record.write(str(folder), "door.json", note, durable=False)
        return folder

    def write_request(self, folder: Path, told: dict[str, Any], who: tuple[int, int]) -> None:
        part = folder / f".{INSIDE_REQUEST}.{os.urandom(6).hex()}"
        fd = os.open(part, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o400)
        with os.fdopen(fd, "wb") as file:
            os.fchown(fd, *who)
            file.write(json.dumps(told).encode("utf-8", "surrogateescape"))
        part.rename(folder / INSIDE_REQUEST)

    def base(self, request: LaunchRequest, folder: Path) -> Path:
        """Where the engine finds the replica's folder. A container that is kept for the next attempt finds that one's
        under the same name: the engine looks for it anew with every start."""
        if request.keeps is None:
            return folder
        kept = self.kept(request.keeps)
        kept.mkdir(mode=0o700, parents=True, exist_ok=True)
        return _point(kept / "now", folder)

    def link(self, name: str, target: Path) -> Path:
        """A name for something that is replaced now and then: kept containers find the newest with their next start."""
        return _point(self._layout.run / name, target)

    def kept(self, workload: str) -> Path:
        return self._layout.data / "kept" / self._layout.workload(workload).name

    def sources(
        self, request: LaunchRequest, base: Path, cards: Sequence[Card], toolbox: str, inside: str
    ) -> tuple[Source, ...]:
        """Everything that is shown inside, but for what the user's own mounts name."""
        own = [
            Source(toolbox, creating.TOOLBOX, read_only=True),
            Source(inside, creating.INSIDE, read_only=True),
            Source(str(base / INSIDE_REQUEST), creating.REQUEST, read_only=True),
            Source(str(base / record.LOG), creating.LOG),
            Source(str(base / "door"), creating.DOOR),
            Source(str(base / "beacon"), creating.BEACON),
        ]
        if request.workdir is not None:
            own += [
                Source(str(base / "work"), creating.WORK),
                Source(str(request.workdir), creating.SHIPPED, read_only=True),
            ]
        people = [
            Source(place.outside, place.inside, place.read_only)
            for place in folders_of(request.owner, request.group, self.roots)
        ]
        shared = self._layout.replica(request.id).parent
        told = [Source(str(small_file(shared, file)), file.path, read_only=True) for file in request.files]
        stand_ins = [Source(card.path, card.path) for card in cards if card.simulated and card.path]
        return (*own, *people, *told, *stand_ins)

    # --- the user's own mounts ------------------------------------------------------------------------------------

    def pin(self, request: LaunchRequest, who: tuple[int, int]) -> tuple[Source, ...]:
        """Each folder is opened once, with the user's own rights and inside their roots, and held at a place of ours
        until the container has it: whatever they swap meanwhile, it is the folder that was looked at."""
        folder = self._pins(request)
        sources = []
        for number, mount in enumerate(request.mounts):
            place = folder / str(number)
            place.mkdir(mode=0o700, parents=True, exist_ok=True)
            fd = self._open(request, mount, who)
            try:
                _unmount(place)
                linux.mount(f"/proc/self/fd/{fd}", str(place), flags=linux.MS_BIND)
            finally:
                os.close(fd)
            sources.append(Source(str(place), os.path.normpath(mount.at), mount.read_only))
        return tuple(sources)

    def unpin(self, request: LaunchRequest) -> None:
        folder = self._pins(request)
        if request.mounts and folder.is_dir():
            for place in list(folder.iterdir()):
                _unmount(place)
                if request.keeps is None:
                    place.rmdir()
            if request.keeps is None:
                folder.rmdir()

    def unpin_all(self) -> None:
        """What a server that died held for containers it was about to start."""
        for place in (self._layout.run / "pins").glob("*/*"):
            _unmount(place)

    def _pins(self, request: LaunchRequest) -> Path:
        return self._layout.run / "pins" / (request.keeps or str(request.id))

    def _open(self, request: LaunchRequest, mount: Mount, who: tuple[int, int]) -> int:
        home, share = self._layout.home(request.owner), self._layout.share(request.group)
        root = home if mount.volume == "home" else share
        root_fd = os.open(root, os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            flags = os.O_PATH | os.O_DIRECTORY
            return _with_rights_of(who, request.gid, lambda: linux.open_in_root(root_fd, mount.path or ".", flags))
        except OSError as problem:
            missing = problem.errno in (errno.ENOENT, errno.ENOTDIR, errno.ELOOP, errno.EXDEV)
            what = "there is no such folder" if missing else str(problem.strerror)
            detail = f"{mount.volume}/{mount.path} cannot be mounted at {mount.at}: {what}"
            raise EngineError(because(Code.LAUNCH_FAILED, detail=detail, replica=request.id.short)) from problem
        finally:
            os.close(root_fd)


def _point(link: Path, target: Path) -> Path:
    """In one stroke, so that nobody ever finds it missing."""
    if not link.is_symlink() or link.readlink() != target:
        part = link.with_name(f".{link.name}.{os.urandom(6).hex()}")
        part.symlink_to(target)
        part.rename(link)
    return link


def _make_file(path: Path, who: tuple[int, int]) -> None:
    fd = os.open(path, os.O_RDWR | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o600)
    try:
        os.fchown(fd, *who)
    finally:
        os.close(fd)


def _unmount(place: Path) -> None:
    with contextlib.suppress(OSError):  # nothing was mounted there
        linux.unmount(str(place))


def _with_rights_of(who: tuple[int, int], gid: int, call: Callable[[], T]) -> T:
    """In a thread of its own, which gives up the server's rights for good."""
    results: list[T] = []
    problems: list[OSError] = []

    def run() -> None:
        try:
            linux.use_rights_of(who[0], gid)
            results.append(call())
        except OSError as problem:
            problems.append(problem)

    thread = threading.Thread(target=run, name="open-mount", daemon=True)
    thread.start()
    thread.join()
    if problems:
        raise problems[0]
    return results[0]


def install_inside(source: Path, target: Path) -> Path:
    """A copy of the porter that any user may read, under a name that changes with it; and one that always leads to the
    newest, which the next container to start follows."""
    import compileall
    import hashlib
    import shutil

    files = sorted(source.glob("*.py"))
    name = hashlib.sha256(b"".join(path.read_bytes() for path in files)).hexdigest()[:16]
    place = target / name
    if not place.is_dir():
        part = target / f".{name}.{os.urandom(6).hex()}"
        part.mkdir(mode=0o755, parents=True)
        for path in files:
            shutil.copyfile(path, part / path.name)
        compileall.compile_dir(part, quiet=2, stripdir=str(part), prependdir=creating.INSIDE)
        _open_to_all(part)
        try:
            part.rename(place)
        except OSError:
            shutil.rmtree(part)
    return _point(target / "now", Path(name))


def _open_to_all(folder: Path) -> None:
    for path in (folder, *folder.rglob("*")):
        path.chmod(0o755 if path.is_dir() else 0o644)
