"""The gateway's certificate: read at the start, and again whenever its files change. Certificates are renewed every few
weeks, and the gateway runs for longer than that."""

from __future__ import annotations

import asyncio
import logging
import os
import ssl

LOOK_SECONDS = 5.0
_log = logging.getLogger(__name__)


class Certificate:
    def __init__(self, cert: str, key: str | None) -> None:
        """Raises OSError when the files cannot be read or do not belong together."""
        self._cert, self._key = cert, key
        self._seen = self._look()
        self.context = _context(cert, key)

    async def keep_current(self) -> None:
        while True:
            await asyncio.sleep(LOOK_SECONDS)
            await asyncio.to_thread(self.look_again)

    def look_again(self) -> None:
        """New visitors get the new one; who is here stays."""
        seen = self._look()
        if seen == self._seen:
            return
        try:
            _context(self._cert, self._key)  # as a whole, or not at all: the two files are written one after the other
            self.context.load_cert_chain(self._cert, self._key)
        except OSError as error:
            _log.warning("the certificate has changed and cannot be used, so the one before stays: %s", error)
            return
        self._seen = seen
        _log.info("the certificate was renewed")

    def _look(self) -> list[tuple[int, int, int] | None]:
        return [_state_of(path) for path in (self._cert, self._key or self._cert)]


def _state_of(path: str) -> tuple[int, int, int] | None:
    try:
        there = os.stat(path)
    except OSError:
        return None
    return there.st_ino, there.st_size, there.st_mtime_ns


def _context(cert: str, key: str | None) -> ssl.SSLContext:
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    context.load_cert_chain(cert, key)
    context.set_alpn_protocols(["http/1.1"])
    return context
