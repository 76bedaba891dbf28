"""The socket in the door folder, and those who come to it. Each has one wish, a bounded time and a bounded voice."""

from __future__ import annotations

import _socket
import os
import time

from . import wire
from .connecting import Connecting
from .house import BadRequest
from .spawning import CannotStart

TYPE_CHECKING = False  # loading typing would cost every workload a part of its start
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from typing import Any

    from .house import House
    from .services import Services
    from .sessions import Session, Sessions

SOCKET = "porter.sock"
_MOST_VISITS = 64
_ASKING_SECONDS = 10.0
_LOOK_SECONDS = 2.0  # between looks whether the socket is still where it belongs


class Door:
    def __init__(self, house: House, sessions: Sessions, services: Services) -> None:
        self._house, self.sessions, self.services = house, sessions, services
        self._visits: set[Visit] = set()
        self._sock: _socket.socket | None = None
        self._place: tuple[int, int] | None = None
        self._look_at = 0.0

    def sweep(self, now: float) -> None:
        if now >= self._look_at:
            self._look_at = now + _LOOK_SECONDS
            self._keep_open()
        for visit in list(self._visits):
            self._house.loop.guard(lambda visit=visit: visit.sweep(now))  # type: ignore[misc]

    def is_waited_for(self) -> bool:
        return any(visit.is_under_way() for visit in self._visits)

    def _keep_open(self) -> None:
        """Its owner may have removed the socket, or the whole folder and made it again."""
        path = os.path.join(self._house.door, SOCKET)
        try:
            found = os.lstat(path)
            if self._place == (found.st_dev, found.st_ino):
                return
        except OSError:
            pass
        try:
            self._open_anew()
        except OSError:  # the folder is closed or gone; perhaps it comes back
            return

    def _open_anew(self) -> None:
        """Under another name first: whoever finds the socket finds somebody listening."""
        folder = os.open(self._house.door, os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC)
        sock = _socket.socket(_socket.AF_UNIX, _socket.SOCK_SEQPACKET | _socket.SOCK_CLOEXEC | _socket.SOCK_NONBLOCK)
        part = f".{SOCKET}.{os.getpid()}"
        try:
            _remove(part, folder)
            sock.bind(f"/proc/self/fd/{folder}/{part}")  # through the descriptor, the address is short
            sock.listen(_MOST_VISITS)
            os.rename(part, SOCKET, src_dir_fd=folder, dst_dir_fd=folder)
            found = os.stat(SOCKET, dir_fd=folder, follow_symlinks=False)
        except OSError:
            sock.close()
            raise
        finally:
            os.close(folder)
        self._close_socket()
        self._sock, self._place = sock, (found.st_dev, found.st_ino)
        self._house.loop.watch(sock.fileno(), self._let_in)

    def _close_socket(self) -> None:
        if self._sock is not None:
            self._house.loop.forget(self._sock.fileno())
            self._sock.close()
            self._sock = None

    def _let_in(self) -> None:
        assert self._sock is not None
        try:
            fd, _ = self._sock._accept()  # type: ignore[attr-defined]
        except OSError:  # it has gone again, or there is no number left for it
            return
        if len(self._visits) >= _MOST_VISITS:
            os.close(fd)
            return
        sock = _socket.socket(_socket.AF_UNIX, _socket.SOCK_SEQPACKET, 0, fd)
        sock.setblocking(False)
        self._visits.add(Visit(self._house, self, sock))

    def forget(self, visit: Visit) -> None:
        self._visits.discard(visit)


def _remove(name: str, folder: int) -> None:
    try:
        os.unlink(name, dir_fd=folder)
    except FileNotFoundError:
        return


class Visit:
    """One who came to the door."""

    def __init__(self, house: House, door: Door, sock: _socket.socket) -> None:
        self._house, self._door, self._sock = house, door, sock
        self._has_asked = self._is_closed = False
        self._until = time.monotonic() + _ASKING_SECONDS
        self._wish: Session | Connecting | None = None
        house.loop.watch(sock.fileno(), self._listen)

    def is_under_way(self) -> bool:
        return isinstance(self._wish, Connecting)

    def sweep(self, now: float) -> None:
        if not self._has_asked and now > self._until:
            self.close()
        elif isinstance(self._wish, Connecting):
            self._wish.sweep(now)

    def close(self) -> None:
        if not self._is_closed:
            self._is_closed = True
            self._house.loop.forget(self._sock.fileno())
            self._sock.close()
            self._door.forget(self)

    def _listen(self) -> None:
        try:
            message, fds = wire.receive(self._sock)
        except BlockingIOError:
            return
        except wire.Malformed as problem:
            self._refuse(BadRequest(str(problem)))
            return
        except (wire.Gone, OSError):
            self._leave()
            return
        try:
            self._heed(message, fds)
        except CannotStart as problem:
            self._refuse(problem)
        except OSError as problem:
            self._refuse(CannotStart("failed", str(problem.strerror)))
        except Exception:
            self._leave()  # whatever it was, nobody stays at the door for ever
            raise
        finally:
            wire.close_all(fds)

    def _heed(self, message: Mapping[str, Any], fds: Sequence[int]) -> None:
        if self._has_asked:
            if self._wish is not None:
                self._wish.hear(message)
            return
        self._has_asked = True
        wishes: dict[str, Callable[[], object]] = {
            "ping": lambda: self._answer({"ok": True, "pid": os.getpid()}),
            "shell": lambda: self._wait_for(self._door.sessions.open_shell(message, self._tell)),
            "run": lambda: self._wait_for(self._door.sessions.run(message, fds, self._tell)),
            "connect": lambda: self._wait_for(Connecting(self._house, message, self._tell)),
            "net": self._give_network,
            "serve": lambda: self._door.services.begin(message, self._answer),
            "services": lambda: self._answer({"ok": True, "services": self._door.services.told()}),
        }
        wish = message.get("do")
        if not isinstance(wish, str) or wish not in wishes:
            raise BadRequest("do is none of " + ", ".join(wishes))
        wishes[wish]()

    def _give_network(self) -> None:
        """For an asker who makes its connections itself, so that nobody inside shares them."""
        network = os.open("/proc/self/ns/net", os.O_RDONLY | os.O_CLOEXEC)
        try:
            self._tell({"ok": True}, [network])
        finally:
            os.close(network)

    def _wait_for(self, wish: Session | Connecting) -> None:
        if self._is_closed:  # it was decided at once, and the asker has gone
            wish.leave()
        else:
            self._wish = wish

    def _tell(self, message: dict[str, Any], fds: Sequence[int]) -> None:
        """A first word that is not the last keeps the visit open: the session's end is to be told."""
        try:
            wire.send(self._sock, message, fds)
        except (wire.Gone, OSError):  # gone, or it does not listen: as good as gone
            self._leave()
            return
        if "pid" not in message or "started" in message:
            self.close()

    def _answer(self, message: dict[str, Any]) -> None:
        if not self._is_closed:
            self._tell(message, ())
            self.close()

    def _refuse(self, problem: CannotStart) -> None:
        if self._wish is None:
            self._answer({"ok": False, "error": problem.kind, "detail": problem.detail[:500]})

    def _leave(self) -> None:
        self.close()
        wish, self._wish = self._wish, None
        if wish is not None:
            wish.leave()
