"""Hears the supervisors: each change in a replica's life arrives as one small datagram, the replica's id."""

from __future__ import annotations

import os
import select
import socket
import threading
from pathlib import Path

from gpuyard.engines.news import News
from gpuyard.engines.process.layout import read_id


class WakeBell(News):
    """One thread that calls everybody who wants to know. A lost ring does no harm: control also looks by itself."""

    def __init__(self, folder: Path) -> None:
        super().__init__()
        self._socket = _listen(folder)
        self._ears, self._mouth = os.pipe()
        self._thread = threading.Thread(target=self._listen, name="process-engine-wake", daemon=True)
        self._thread.start()

    def close(self) -> None:
        if not self._thread.is_alive():
            return
        os.write(self._mouth, b".")
        self._thread.join()
        self._socket.close()
        os.close(self._ears)
        os.close(self._mouth)

    def _listen(self) -> None:
        poll = select.poll()
        poll.register(self._socket, select.POLLIN)
        poll.register(self._ears, select.POLLIN)
        while self._ears not in dict(poll.poll()):
            self._drain()
            self.tell()

    def _drain(self) -> None:
        """Many rings at once are one piece of news."""
        try:
            while True:
                self.note(read_id(self._socket.recv(256).decode("ascii", "replace")))
        except BlockingIOError:
            return


def _listen(folder: Path) -> socket.socket:
    """Bind through the folder's descriptor: a socket's address has room for 107 bytes, a path may be longer."""
    bell = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM | socket.SOCK_NONBLOCK)
    fd = os.open(folder, os.O_PATH | os.O_CLOEXEC)
    try:
        (folder / "wake.sock").unlink(missing_ok=True)
        bell.bind(f"/proc/self/fd/{fd}/wake.sock")
    finally:
        os.close(fd)
    return bell
