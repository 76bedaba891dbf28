"""Which device types are stand-ins, so that work on them is always labelled."""

from __future__ import annotations

from gpuyard.store import nodes
from gpuyard.store.database import Connection, Database

LOOK_EVERY_SECONDS = 2.0


class SimulatedDevices:
    """Asked for with every workload that is shown, so looked up every few seconds only."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._devices: frozenset[str] = frozenset()
        self._looked_at = float("-inf")

    def known(self, now: float, conn: Connection | None = None) -> frozenset[str]:
        """`conn`: a transaction the caller already has, so that it need not hold two."""
        known = self.remembered(now)
        if known is None:
            self._devices = known = self._look(conn)
            self._looked_at = now
        return known

    def remembered(self, now: float) -> frozenset[str] | None:
        """Without waiting for anything. None: it is time to look again."""
        return self._devices if 0 <= now - self._looked_at < LOOK_EVERY_SECONDS else None

    def _look(self, conn: Connection | None) -> frozenset[str]:
        if conn is None:
            with self._database.read() as own:
                return self._look(own)
        return frozenset(card.device for node in nodes.all(conn) for card in node.cards if card.simulated)
