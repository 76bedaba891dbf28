"""What every answer about a workload needs to know of the machines: which device types are stand-ins, so that work on
them is always labelled, and which kinds of machines there are."""

from __future__ import annotations

from gpuyard.domain.cluster import Node
from gpuyard.scheduling.strands import kinds
from gpuyard.store import nodes
from gpuyard.store.database import Connection, Database

LOOK_EVERY_SECONDS = 2.0


class SimulatedDevices:
    """Asked for with every workload that is shown, so looked up every few seconds only."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._devices: frozenset[str] = frozenset()
        self._kinds: tuple[Node, ...] = ()
        self._looked_at = float("-inf")

    def known(self, now: float, conn: Connection | None = None) -> frozenset[str]:
        """`conn`: a transaction the caller already has, so that it need not hold two."""
        known = self.remembered(now)
        if known is None:
            self._devices = known = self._look(conn)
            self._looked_at = now
        return known

    @property
    def kinds(self) -> tuple[Node, ...]:
        """One node of every kind with cards, as of the last look."""
        return self._kinds

    def remembered(self, now: float) -> frozenset[str] | None:
        """Without waiting for anything. None: it is time to look again."""
        return self._devices if 0 <= now - self._looked_at < LOOK_EVERY_SECONDS else None

    def _look(self, conn: Connection | None) -> frozenset[str]:
        if conn is None:
            with self._database.read() as own:
                return self._look(own)
        found = nodes.all(conn)
        self._kinds = kinds(found)
        return frozenset(card.device for node in found for card in node.cards if card.simulated)
