"""One folder for everything a run of benches writes, and an end for every process that has to do with it.

Work goes on without its server, that is what it is for; of a bench that was interrupted nobody would ever end it.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import subprocess
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

IN_ORDER_SECONDS = 5.0
PATIENCE_SECONDS = 20.0


@contextlib.contextmanager
def an_own_folder() -> Iterator[Path]:
    """Where temporary files go meanwhile, also those of the programs that are started. The name is short: sockets are
    in there, and their addresses have room for 107 letters."""
    before, before_here = os.environ.get("TMPDIR"), tempfile.tempdir
    folder = Path(tempfile.mkdtemp(prefix="yard-")).resolve()
    folder.chmod(0o1777)  # as /tmp itself: what is started runs as somebody else, too
    os.environ["TMPDIR"] = tempfile.tempdir = str(folder)
    try:
        yield folder
    finally:
        tempfile.tempdir = before_here
        os.environ.pop("TMPDIR")
        if before is not None:
            os.environ["TMPDIR"] = before
        empty(folder)
        shutil.rmtree(folder, ignore_errors=True)


def empty(folder: Path) -> None:
    """Ends what still runs in it, and removes what is still in it."""
    begun = time.monotonic()
    while (pids := _at_work_in(folder)) and (waited := time.monotonic() - begun) < PATIENCE_SECONDS:
        for pid in pids:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGTERM if waited < IN_ORDER_SECONDS else signal.SIGKILL)
        time.sleep(0.1)
    for place in _mounted_in(folder):
        subprocess.run(["umount", "--lazy", place], capture_output=True, check=False)
    for path in folder.iterdir():
        shutil.rmtree(path, ignore_errors=True) if path.is_dir() and not path.is_symlink() else path.unlink(
            missing_ok=True
        )


def _at_work_in(folder: Path) -> list[int]:
    """All that name it or have a file of it open. Not who merely stands in it, as a person's shell may; and not this
    process, nor those that started it."""
    ours = {os.getpid(), *_ancestors(os.getpid())}
    pids = [int(entry.name) for entry in Path("/proc").glob("[0-9]*")]
    return [pid for pid in pids if pid not in ours and _has_to_do_with(folder, Path(f"/proc/{pid}"))]


def _has_to_do_with(folder: Path, process: Path) -> bool:
    name = os.fsencode(folder)
    try:  # one that has ended and one of somebody else tell nothing
        if name in (process / "cmdline").read_bytes() or name in (process / "environ").read_bytes():
            return True
        return any(_leads_into(folder, link) for link in (process / "fd").iterdir())
    except OSError:
        return False


def _leads_into(folder: Path, link: Path) -> bool:
    with contextlib.suppress(OSError):  # it may be closed by now
        return os.readlink(link).startswith(f"{folder}/")
    return False


def _ancestors(pid: int) -> Iterator[int]:
    while pid > 1:
        try:
            pid = int(Path(f"/proc/{pid}/stat").read_text(errors="replace").rpartition(")")[2].split()[1])
        except OSError:
            return
        yield pid


def _mounted_in(folder: Path) -> list[str]:
    """The innermost first."""
    try:
        lines = Path("/proc/self/mounts").read_text().splitlines()
    except OSError:
        return []
    return [place for line in reversed(lines) for place in [line.split()[1]] if place.startswith(f"{folder}/")]
