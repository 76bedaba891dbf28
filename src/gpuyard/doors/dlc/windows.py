"""Logs asked for piece by piece, each piece from where the last one ended.

Lines have no times here. But who asks for one window of time after the other, and puts the answers together, wants each
line once: so the end of every window is noted with how far the log had come, and a later window begins there.
"""

from __future__ import annotations

import json
import os
import time
from datetime import datetime
from pathlib import Path

KEPT_SECONDS = 8 * 86400.0  # a day longer than logs are shown unasked
MOST_ENDS = 50


class Window:
    """What is noted of one pod in one attempt. Notes are a convenience: when they cannot be kept, nothing is said."""

    def __init__(self, pod: str, attempt: int) -> None:
        self._file = Path(os.environ.get("HOME") or Path.home()) / ".dlc" / "logs" / f"{pod}.json"
        self._attempt = attempt

    def begins_at(self, start: datetime) -> int:
        """The byte that a window from this time on begins with: after the last window that ended by then."""
        return max((offset for end, offset in self._ends().items() if end <= start.timestamp()), default=0)

    def ended(self, end: datetime, offset: int) -> None:
        """A window that ended at this time has been shown, up to this byte."""
        ends = self._ends()
        offset = max(offset, self.begins_at(end))
        newest = sorted((ends | {end.timestamp(): offset}).items())[-MOST_ENDS:]
        try:
            if not self._file.exists():
                self._make_room()
            part = self._file.with_suffix(f".{os.getpid()}.part")
            part.write_text(json.dumps({"attempt": self._attempt, "ends": newest}), encoding="ascii")
            part.replace(self._file)
        except OSError:
            return

    def _ends(self) -> dict[float, int]:
        try:
            noted = json.loads(self._file.read_text(encoding="ascii"))
            if noted["attempt"] != self._attempt:
                return {}
            return {float(end): int(offset) for end, offset in noted["ends"]}
        except (OSError, ValueError, KeyError, TypeError):
            return {}

    def _make_room(self) -> None:
        """Notes of pods that nobody has asked about for long are thrown away."""
        self._file.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        oldest = time.time() - KEPT_SECONDS
        for other in self._file.parent.iterdir():
            if other.stat().st_mtime < oldest:
                other.unlink(missing_ok=True)
