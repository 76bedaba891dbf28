"""What the doctor looks at on a machine that is to run containers. Nothing is changed, and nothing here must be there:
without it work runs as processes."""

from __future__ import annotations

import errno
import os
import re
import shutil
import subprocess
import tomllib
from collections.abc import Iterator
from pathlib import Path

from gpuyard.cli.findings import BROKEN, DOUBTFUL, GOOD, Finding
from gpuyard.cli.phrases import say

SOCKETS = ("/run/podman/podman.sock", "/var/run/docker.sock")
PODMAN_PROGRAMS = ("/usr/lib/podman", "/usr/libexec/podman", "/usr/local/lib/podman", "/usr/local/libexec/podman")
# The first ones without CVE-2025-31133, CVE-2025-52565 and CVE-2025-52881, by which a container can reach the machine.
MENDED_RUNC = {(1, 2): 8, (1, 3): 3}
FIRST_WELL_RUNC = (1, 4)
# The first one whose hooks, which run as root, do not heed an image's variables: CVE-2025-23266, CVE-2025-23267.
MENDED_TOOLKIT = (1, 17, 8)
_ACCESS_LIST = "system.posix_acl_access"


def container_findings(data: Path, engine: str) -> Iterator[Finding]:
    """`engine` is what runs the work now."""
    yield from _engine(engine)
    yield from (_access_lists(folder) for folder in (data, *_further_roots(data)) if folder.is_dir())
    yield _toolbox(data)


def _engine(running: str) -> Iterator[Finding]:
    named = os.environ.get("DOCKER_HOST", "")
    podman = shutil.which("podman")
    usual = SOCKETS[:1] if podman else SOCKETS  # docker's only where there is no podman: decision 0016
    places = [*([named.removeprefix("unix://")] if named.startswith("unix://") else []), *usual]
    socket = next((place for place in places if os.path.exists(place)), None)
    if socket is None and podman is None:
        yield Finding("containers", DOUBTFUL, say("doctor.no_containers"))
        return
    if running == "container":
        yield Finding("containers", GOOD, say("doctor.socket", socket=socket) if socket else say("doctor.podman"))
    else:
        yield Finding("containers", GOOD, say("doctor.could_run", what=socket or podman))
    yield from _runc()
    yield from _nvidia_toolkit()
    if podman and (socket is None or "podman" in socket):
        yield _netavark()
    yield _user_namespaces()


def _nvidia_toolkit() -> Iterator[Finding]:
    program = _program("nvidia-ctk")
    version = toolkit_version(_said_by(program, "--version")) if program else None
    if version is None:
        return
    shown = ".".join(map(str, version))
    if version >= MENDED_TOOLKIT:
        yield Finding("nvidia toolkit", GOOD, say("doctor.nvidia_toolkit", version=shown))
    else:
        yield Finding("nvidia toolkit", BROKEN, say("doctor.old_nvidia_toolkit", version=shown))


def toolkit_version(said: str) -> tuple[int, int, int] | None:
    found = re.search(r"Container Toolkit CLI version (\d+)\.(\d+)\.(\d+)", said)
    return (int(found[1]), int(found[2]), int(found[3])) if found else None


def _program(name: str) -> str | None:
    return shutil.which(name, path=f"{os.environ.get('PATH', '')}:/usr/sbin:/sbin")


def _runc() -> Iterator[Finding]:
    program = _program("runc")
    version = runc_version(_said_by(program, "--version")) if program else None
    if version is None:  # another runtime, such as crun
        return
    shown = ".".join(map(str, version))
    if is_mended(version):
        yield Finding("runc", GOOD, say("doctor.runc", version=shown))
    else:
        yield Finding("runc", DOUBTFUL, say("doctor.old_runc", version=shown))


def runc_version(said: str) -> tuple[int, int, int] | None:
    found = re.match(r"runc version (\d+)\.(\d+)\.(\d+)", said)
    return (int(found[1]), int(found[2]), int(found[3])) if found else None


def is_mended(version: tuple[int, int, int]) -> bool:
    line, number = version[:2], version[2]
    return line >= FIRST_WELL_RUNC or number >= MENDED_RUNC.get(line, number + 1)


def _said_by(program: str, *arguments: str) -> str:
    try:
        return subprocess.run([program, *arguments], capture_output=True, text=True, timeout=10, check=False).stdout
    except (OSError, subprocess.TimeoutExpired, UnicodeDecodeError):
        return ""


def _netavark() -> Finding:
    if any(os.path.exists(os.path.join(folder, "netavark")) for folder in PODMAN_PROGRAMS):
        return Finding("netavark", GOOD, say("doctor.netavark"))
    return Finding("netavark", DOUBTFUL, say("doctor.no_netavark"))


def _user_namespaces() -> Finding:
    """Each user is root of their own numbers only."""
    try:
        most = int(Path("/proc/sys/user/max_user_namespaces").read_text(encoding="ascii"))
    except (OSError, ValueError):
        most = 0
    if most and os.path.exists("/proc/self/ns/user"):
        return Finding("user namespaces", GOOD, say("doctor.user_namespaces"))
    return Finding("user namespaces", DOUBTFUL, say("doctor.no_user_namespaces"))


def _further_roots(data: Path) -> list[Path]:
    try:
        told = tomllib.loads((data / "settings.toml").read_text(encoding="utf-8")).get("roots")
    except (OSError, ValueError):
        return []
    return [Path(folder) for folder in told.values() if isinstance(folder, str)] if isinstance(told, dict) else []


def _access_lists(folder: Path) -> Finding:
    try:
        os.getxattr(folder, _ACCESS_LIST)
    except OSError as problem:
        if problem.errno in (errno.ENOTSUP, errno.ENOSYS):
            return Finding("access lists", DOUBTFUL, say("doctor.no_access_lists", folder=folder))
    return Finding("access lists", GOOD, say("doctor.access_lists", folder=folder))


def _toolbox(data: Path) -> Finding:
    if (data / "toolbox" / "current").exists():
        return Finding("toolbox", GOOD, say("doctor.toolbox"))
    return Finding("toolbox", DOUBTFUL, say("doctor.no_toolbox"))
