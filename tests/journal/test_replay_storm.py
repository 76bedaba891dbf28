"""Whatever happens to a yard, its journal decides everything once more as it was decided."""

from __future__ import annotations

import tempfile
from pathlib import Path

from hypothesis import HealthCheck, settings
from hypothesis.stateful import initialize, rule
from tests.control.test_storm import CARDS, QUOTA, Storm
from tests.draw import a_node
from tests.journal.yard import JournalYard

from gpuyard.domain.people import Quota
from gpuyard.domain.workload import ENDED, Wanted
from gpuyard.store.database import Database
from gpuyard.world.picture import Picture


class Replayed(Storm):
    """The same storm, with a journal kept; at its end it is read and compared."""

    @initialize()
    def begin(self) -> None:
        self.folder = tempfile.TemporaryDirectory()
        self.database = Database.open(f"sqlite:///{Path(self.folder.name) / 'yard.db'}")
        nodes = [a_node(name, cards) for name, cards in CARDS.items()]
        self.journal = Path(self.folder.name) / "journal"
        self.yard: JournalYard = JournalYard(self.database, nodes, self.journal)
        self.yard.set_quota(Quota("vision", "nvidia", QUOTA * 1000))
        self.jobs = []
        self.ended = {}

    @rule()
    def control_acts_on_an_old_picture(self) -> None:
        """The picture that takes the place of the old one tells the journal all it knows."""
        control = self.yard.control
        old = Picture(self.database, self.yard.writing.recorder)
        old.follow()
        for id in self.jobs[-2:]:
            if self.yard.state(id) not in ENDED:
                self.yard.want(id, Wanted.RUN)
        control.picture = old
        self.yard.pass_time(0.0, steps=1)

    def teardown(self) -> None:
        if not hasattr(self, "yard"):
            return
        self._calm_down()
        self.yard.close()
        report = self.yard.replayed()
        decided = self.yard.story(self.jobs[0]) if self.jobs else []
        self.database.close()
        self.folder.cleanup()
        assert report.differences == []
        assert report.is_same
        assert report.lost_cycles == 0
        assert report.placements > 0 or not any(line.attempt for line in decided)


Replayed.TestCase.settings = settings(
    max_examples=15, stateful_step_count=30, deadline=None, suppress_health_check=list(HealthCheck)
)
TestReplayed = Replayed.TestCase
