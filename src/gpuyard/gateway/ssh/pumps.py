"""Bytes between file descriptors and SSH channels, straight from the event loop, with back-pressure both ways.

A source reads only while its channel and the connection take more; a sink lets its channel send only while what is
inside takes more. Nothing is ever collected without bound, whatever either side does.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
from collections.abc import Callable
from typing import Protocol

READ_BYTES = 128 * 1024


class Channel(Protocol):
    def pause_reading(self) -> None: ...

    def resume_reading(self) -> None: ...


class Source:
    """From inside to the visitor. Owns its descriptor."""

    def __init__(self, fd: int, give: Callable[[bytes], None], at_end: Callable[[], None] | None = None) -> None:
        os.set_blocking(fd, False)
        self._fd = fd
        self._give = give
        self._at_end = at_end
        self._loop = asyncio.get_running_loop()
        self._holds: set[str] = set()  # the reasons to wait
        self._closed = False
        self.ended = asyncio.Event()
        self._loop.add_reader(fd, self._read)

    def hold(self, why: str) -> None:
        if not self._holds and not self._closed:
            self._loop.remove_reader(self._fd)
        self._holds.add(why)

    def release(self, why: str) -> None:
        self._holds.discard(why)
        if not self._holds and not self._closed:
            self._loop.add_reader(self._fd, self._read)

    def _read(self) -> None:
        try:
            data = os.read(self._fd, READ_BYTES)
        except BlockingIOError:
            return
        except OSError:  # a terminal that nobody has open any more, or a broken connection
            data = b""
        if data:
            self._give(data)
        else:
            self.close()

    def close(self) -> None:
        if self._closed:
            return
        self._closed = True
        self._loop.remove_reader(self._fd)
        os.close(self._fd)
        self.ended.set()
        if self._at_end is not None:
            self._at_end()


class Sink:
    """From the visitor to inside. Takes what comes before its descriptor is there, but then lets no more come."""

    def __init__(self, channel: Channel) -> None:
        self._channel = channel
        self._loop = asyncio.get_running_loop()
        self._fd: int | None = None
        self._waiting = bytearray()
        self._finishing: Callable[[], None] | None = None
        self._paused = False
        self._closed = False

    def attach(self, fd: int) -> None:
        """Owns the descriptor from here on."""
        if self._closed:
            os.close(fd)
            return
        os.set_blocking(fd, False)
        self._fd = fd
        self._flush()

    def take(self, data: bytes) -> None:
        if self._closed:
            return
        if self._fd is not None and not self._waiting:
            data = data[self._write(data) :]
        if data and not self._closed:
            self._waiting += data
            self._wait()

    def finish(self, at_end: Callable[[], None] | None = None) -> None:
        """No more will come: what has come is still passed on, then `at_end` is called, or the descriptor closed."""
        if self._closed or self._finishing is not None:
            return
        self._finishing = at_end or self.close
        if self._fd is not None and not self._waiting:
            self._finishing()

    def close(self) -> None:
        """What has not been taken by now never will be; whatever still comes is dropped."""
        if self._closed:
            return
        self._closed = True
        self._waiting.clear()
        if self._fd is not None:
            self._loop.remove_writer(self._fd)
            os.close(self._fd)
            self._fd = None
        self._resume()

    def _write(self, data: bytes | bytearray) -> int:
        assert self._fd is not None
        try:
            return os.write(self._fd, data)
        except BlockingIOError:
            return 0
        except OSError:  # nobody reads it any more
            self.close()
            return 0

    def _wait(self) -> None:
        if not self._paused:
            self._paused = True
            self._channel.pause_reading()
        if self._fd is not None:
            self._loop.add_writer(self._fd, self._flush)

    def _flush(self) -> None:
        if self._fd is None:
            return
        if self._waiting:
            written = self._write(self._waiting)
            del self._waiting[:written]
        if self._closed:
            return
        if self._waiting:
            self._wait()
            return
        self._loop.remove_writer(self._fd)
        if self._finishing is not None:
            self._finishing()
        self._resume()

    def _resume(self) -> None:
        if self._paused:
            self._paused = False
            with contextlib.suppress(OSError):  # the channel may be gone
                self._channel.resume_reading()
