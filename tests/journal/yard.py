"""A yard whose control keeps a journal, and a recorder with its thread."""

from __future__ import annotations

import threading
import time
from collections.abc import Sequence
from pathlib import Path

from tests.control.yard import Yard

from gpuyard.domain.cluster import Node
from gpuyard.journal.events import Notes
from gpuyard.journal.folder import Bounds, segments
from gpuyard.journal.recorder import Recorder
from gpuyard.journal.replay import Asked, Report, replay
from gpuyard.store.database import Database

SMALL = Bounds(bytes=1 << 30, days=0, segment_bytes=6000, segment_seconds=1e9)  # many segments in little time


class Writing:
    """A recorder that runs."""

    def __init__(self, folder: Path, bounds: Bounds = SMALL, *, try_again: float = 30.0) -> None:
        self.folder = folder
        self.recorder = Recorder(folder, "test", bounds, try_again=try_again)
        self._thread = threading.Thread(target=self.recorder.run, daemon=True)
        self._thread.start()

    def catch_up(self) -> None:
        """So that the same world makes the same journal, however fast the writer is."""
        while self.recorder.behind:
            time.sleep(0.0002)

    def end(self) -> None:
        self.recorder.end()
        self._thread.join(30)
        assert not self._thread.is_alive()


class JournalYard(Yard):
    def __init__(self, database: Database, nodes: Sequence[Node], folder: Path, bounds: Bounds = SMALL) -> None:
        self.folder = folder
        self.bounds = bounds
        self.writing = Writing(folder, bounds)
        super().__init__(database, nodes)

    def _notes(self) -> Notes:
        return self.writing.recorder

    def crash(self) -> None:
        """The last segment lacks its end, as after `kill -9`."""
        self.writing.end()
        newest = segments(self.folder)
        if newest:
            cut = newest[-1].path.read_bytes()[:-3]
            newest[-1].path.write_bytes(cut)
        self.writing = Writing(self.folder, self.bounds)
        super().crash()

    def close(self) -> None:
        self.writing.end()
        super().close()

    def replayed(self, asked: Asked = Asked()) -> Report:  # noqa: B008
        return replay(self.folder, asked)
