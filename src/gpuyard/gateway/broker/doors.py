"""Where a replica's door is, and the ways through it: its porter, its socket files, its network."""

from __future__ import annotations

import contextlib
import ctypes
import os
import re
import signal
import socket
import stat
import struct
import sys

from gpuyard.engines.inside import wire
from gpuyard.engines.process.supervision import processes, record
from gpuyard.gateway.broker import relays

TYPE_CHECKING = False  # loading typing costs the broker memory
if TYPE_CHECKING:
    from typing import Any

FOLDER, SOCKET = "door", "porter.sock"
_REPLICA = re.compile(r"([A-Za-z0-9_]{1,64})-(\d{1,9})-([A-Za-z0-9_.@]{1,64})-(\d{1,9})\Z")
_FILE = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.-]{0,63}\Z")
_CREDENTIALS = struct.Struct("3i")
_CLONE_NEWNET = 0x40000000
_SO_PASSRIGHTS = 83
_SEQPACKET = socket.SOCK_SEQPACKET | socket.SOCK_NONBLOCK | socket.SOCK_CLOEXEC
_STREAM = socket.SOCK_STREAM | socket.SOCK_NONBLOCK | socket.SOCK_CLOEXEC
_libc = ctypes.CDLL(None, use_errno=True)


class Closed(Exception):
    """There is no way in: it does not run, or what is there is not its porter."""


class NotYet(Exception):
    """Nobody opens just now; it may be different in a moment."""


class Door:
    """The door of one replica."""

    def __init__(self, data: str, replica: str) -> None:
        match = _REPLICA.match(replica)
        if match is None:
            raise Closed("there is no such replica")
        workload, attempt, role, index = match.groups()
        self._folder = os.path.join(data, "replicas", workload, str(int(attempt)), f"{role}-{int(index)}")
        note = record.read(self._folder, record.DOOR)
        if not note or type(note.get("uid")) is not int:
            raise Closed("there is no such replica, or it has no door")
        first = note["uid"] or os.geteuid()  # 0: as whoever runs the server
        self._people = range(first, first + int(note.get("uids", 1)))

    def knock(self) -> socket.socket:
        """A connection to the porter. Raises NotYet when nobody opens, Closed when it is not for us."""
        return self._connect(SOCKET, _SEQPACKET)

    def open_file(self, name: str) -> socket.socket:
        """A connection to a socket file that lies in the door folder. Whoever listens there can send bytes through it
        and nothing else, so that reading from it is safe: see `wire.close_all`."""
        if not _FILE.match(name):
            raise Closed("not the name of a socket in the door folder")
        sock = self._connect(name, _STREAM)
        return sock if _takes_no_descriptors(sock) else relays.relayed(sock)

    def _connect(self, name: str, kind: int) -> socket.socket:
        place = self._find(name)
        sock = socket.socket(socket.AF_UNIX, kind)
        if kind == _STREAM:
            _refuse_descriptors(sock)
        try:
            sock.connect(f"/proc/self/fd/{place}")  # the very thing that was looked at
            _, uid, _ = _CREDENTIALS.unpack(sock.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, _CREDENTIALS.size))
            if uid not in self._people:
                raise Closed("somebody else listens there")
            return sock
        except (BlockingIOError, ConnectionRefusedError) as problem:
            sock.close()
            raise NotYet(str(problem.strerror)) from problem
        except (OSError, Closed) as problem:
            wire.hang_up(sock)
            raise Closed(str(problem)) from problem
        finally:
            os.close(place)

    def _find(self, name: str) -> int:
        """In the door folder itself: neither the folder nor the socket may be a link to elsewhere."""
        look = os.O_PATH | os.O_NOFOLLOW | os.O_CLOEXEC
        try:
            folder = os.open(os.path.join(self._folder, FOLDER), look | os.O_DIRECTORY)
            try:
                found = os.open(name, look, dir_fd=folder)
            finally:
                os.close(folder)
        except FileNotFoundError as problem:
            raise NotYet("it is not there") from problem
        except OSError as problem:
            raise Closed(str(problem)) from problem
        if not stat.S_ISSOCK(os.fstat(found).st_mode):
            os.close(found)
            raise Closed("it is no socket")
        return found

    def may_open_soon(self) -> bool:
        """A container's porter may just be coming. On the process engine a job gets one when somebody wants in: then
        its supervisor is asked for it."""
        status = record.read(self._folder, record.STATUS)
        if status is None:
            return True
        supervisor = status.get("supervisor")
        if status.get("life") == record.ENDED or not supervisor:
            return status.get("life") != record.ENDED
        try:
            fd = os.pidfd_open(supervisor["pid"])
        except OSError:
            return False
        try:
            if not processes.is_alive(supervisor["pid"], supervisor["start"]):
                return False
            record.write(self._folder, record.WANTED, {}, durable=False)
            signal.pidfd_send_signal(fd, signal.SIGUSR1)
            return True
        except OSError:
            return False
        finally:
            os.close(fd)


def _refuse_descriptors(sock: socket.socket) -> None:
    """Before it is connected, so that none comes ever. Linux can since 6.16."""
    with contextlib.suppress(OSError):
        sock.setsockopt(socket.SOL_SOCKET, _SO_PASSRIGHTS, 0)


def _takes_no_descriptors(sock: socket.socket) -> bool:
    try:
        return sock.getsockopt(socket.SOL_SOCKET, _SO_PASSRIGHTS) == 0
    except OSError:
        return False


def loopback_socket(network: int, family: int) -> socket.socket:
    """A socket that lives in that network. It is made here, so nobody inside holds it too and can meddle with it.

    Raises PermissionError where we may not enter that network.
    """
    own = os.open("/proc/self/ns/net", os.O_RDONLY | os.O_CLOEXEC)
    try:
        if os.path.sameopenfile(own, network):
            return socket.socket(family, _STREAM)
        _enter(network)
        try:
            return socket.socket(family, _STREAM)
        finally:
            _enter_or_die(own)
    finally:
        os.close(own)


def _enter(network: int) -> None:
    if _libc.setns(network, _CLONE_NEWNET) < 0:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number))


def _enter_or_die(own: int) -> None:
    """A broker that stays in a workload's network would lead everybody there."""
    try:
        _enter(own)
    except OSError:
        sys.stderr.write("yard broker: cannot leave a workload's network\n")
        os._exit(1)


# --- what comes out of a door -------------------------------------------------------------------------------------

_ERRORS = {"not_found", "refused", "denied", "bad_request", "too_many", "failed"}


def cleaned(answer: dict[str, Any]) -> dict[str, Any]:
    """Only what an answer may hold, of the kind it may be."""
    if answer.get("ok") is not True:
        error, detail = answer.get("error"), answer.get("detail")
        return {
            "ok": False,
            "error": error if error in _ERRORS else "failed",
            "detail": detail[:500] if isinstance(detail, str) else "",
        }
    told: dict[str, Any] = {"ok": True}
    if type(answer.get("pid")) is int:
        told["pid"] = answer["pid"]
    if isinstance(answer.get("started"), bool):
        told["started"] = answer["started"]
    if isinstance(answer.get("services"), dict):
        told["services"] = _services(answer["services"])
    return told


def _services(services: dict[str, Any]) -> dict[str, Any]:
    found = {}
    for name, told in list(services.items())[:64]:
        if not isinstance(told, dict):
            continue
        pid, code = told.get("pid"), told.get("exit_code")
        found[name[:64]] = {
            "pid": pid if type(pid) is int else 0,
            "running": told.get("running") is True,
            "exit_code": code if type(code) is int else None,
        }
    return found


def is_terminal(fd: int) -> bool:
    """Whether it is the outer end of a terminal."""
    found = os.fstat(fd)
    return stat.S_ISCHR(found.st_mode) and found.st_rdev == os.makedev(5, 2)


def is_network(fd: int) -> bool:
    """Whether it is a namespace at all; of which kind, the kernel checks."""
    try:
        return os.readlink(f"/proc/self/fd/{fd}").startswith("net:[")
    except OSError:
        return False


def is_stream(fd: int) -> bool:
    if not stat.S_ISSOCK(os.fstat(fd).st_mode):
        return False
    with socket.socket(fileno=os.dup(fd)) as sock:
        return sock.type == socket.SOCK_STREAM
