"""Usage of replicas over the last six hours: every sample for a quarter of an hour, then means over one minute.

What is stored adds up (see `measures`), so rolling up loses nothing but the moments inside a minute.
"""

from __future__ import annotations

import json
import logging
import math
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from sqlite3 import Connection, Error
from typing import TypeVar

from gpuyard.domain.errors import Unavailable
from gpuyard.domain.reasons import Code, because
from gpuyard.domain.usage import Usage
from gpuyard.domain.workload import ReplicaId
from gpuyard.metrics.file import WAIT_SECONDS, MetricsFile
from gpuyard.metrics.measures import Measures, added, measures_of, usage_from_json, usage_to_json

KEEP_RAW_SECONDS = 15 * 60
KEEP_SECONDS = 6 * 3600
MINUTE = 60
# At most this much history is rolled up or removed in one `add`, so that none is slow after a long pause.
TIDY_AT_ONCE_SECONDS = 5 * MINUTE

_log = logging.getLogger(__name__)
T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class CardPoint:
    """Mean use of one card. percent is None when the device does not tell."""

    index: int
    percent: float | None
    memory: float


@dataclass(frozen=True, slots=True)
class Point:
    """Means over the step that begins at `at`. cores is None where there was only one look: a rate needs two."""

    at: float
    cores: float | None
    memory: float
    cards: tuple[CardPoint, ...] = ()


@dataclass(frozen=True, slots=True)
class Latest:
    """The newest look at a replica, and the cores it used since the look before."""

    at: float
    cores: float | None
    usage: Usage


class Series:
    """The usage kept in one file. Safe to use from several threads and processes; no call waits for long."""

    def __init__(self, path: Path) -> None:
        self._file = MetricsFile(path)

    def add(self, at: float, samples: Mapping[ReplicaId, Usage]) -> None:
        """Keep one look at every running replica. A look that cannot be written is dropped: it is only a picture."""

        def write(connection: Connection) -> None:
            _add(connection, at, {str(replica): usage for replica, usage in samples.items()})
            _tidy(connection, at)

        try:
            self._file.write(write)
        except (Error, OSError) as error:
            _log.warning("the usage of %d replicas was not kept: %s", len(samples), error)

    def recent(self, replicas: Iterable[ReplicaId], since: float, step: float) -> dict[ReplicaId, tuple[Point, ...]]:
        """Means per `step` seconds since then, oldest first, for every replica asked for."""
        if not (math.isfinite(step) and step > 0):
            raise ValueError("step is a number of seconds above 0")
        wanted = tuple(replicas)
        return self._read(lambda connection: _recent(connection, wanted, since, step))

    def latest(self, since: float = 0.0) -> dict[ReplicaId, Latest]:
        """The newest look at each replica that was looked at since then."""
        found = self._read(lambda connection: dict(_latest(connection, since)))
        return {_replica_id(replica): look for replica, look in found.items()}

    def _read(self, ask: Callable[[Connection], T]) -> T:
        try:
            return self._file.read(ask)
        except (Error, OSError) as error:
            raise Unavailable(because(Code.BUSY_STORE, seconds=WAIT_SECONDS)) from error


# --- writing ------------------------------------------------------------------------------------------------------


def _add(connection: Connection, at: float, samples: Mapping[str, Usage]) -> None:
    looks_before = dict(_latest(connection, 0.0))
    raw, latest = [], []
    for replica, usage in samples.items():
        before = looks_before.get(replica)
        if before is not None and before.at - MINUTE > at:
            before = None  # the clock was set back: begin anew rather than wait until it has caught up
        if before is not None and at <= before.at:
            continue  # told twice, or late
        measures = measures_of(usage, at, *((before.usage, before.at) if before else (None, 0.0)))
        cpu = measures.get("cpu")
        raw.append((at, replica, json.dumps(measures)))
        latest.append((replica, at, cpu[0] / cpu[1] if cpu else None, usage_to_json(usage)))
    connection.executemany("REPLACE INTO raw VALUES (?, ?, ?)", raw)
    connection.executemany("REPLACE INTO latest VALUES (?, ?, ?, ?)", latest)


def _tidy(connection: Connection, now: float) -> None:
    """Roll up what is older than a quarter of an hour, remove what is older than six."""
    oldest = connection.execute("SELECT min(at) FROM raw").fetchone()[0]
    if oldest is not None:
        # Only finished minutes, so that a minute is rolled up once.
        until = min(now - KEEP_RAW_SECONDS, oldest + TIDY_AT_ONCE_SECONDS) // MINUTE * MINUTE
        _roll_up(connection, until)
    oldest = connection.execute("SELECT min(at) FROM minutes").fetchone()[0]
    if oldest is not None:
        until = min(now - KEEP_SECONDS, oldest + TIDY_AT_ONCE_SECONDS)
        connection.execute("DELETE FROM minutes WHERE at < ?", (until,))
    connection.execute("DELETE FROM latest WHERE at < ?", (now - KEEP_SECONDS,))


def _roll_up(connection: Connection, until: float) -> None:
    minutes: dict[tuple[str, float], Measures] = {}
    for replica, at, measures in connection.execute("SELECT replica, at, measures FROM raw WHERE at < ?", (until,)):
        key = (replica, at // MINUTE * MINUTE)
        minutes[key] = added(minutes.get(key, {}), json.loads(measures))
    rows = [(replica, minute, json.dumps(measures)) for (replica, minute), measures in minutes.items()]
    connection.executemany("REPLACE INTO minutes VALUES (?, ?, ?)", rows)
    connection.execute("DELETE FROM raw WHERE at < ?", (until,))


# --- reading ------------------------------------------------------------------------------------------------------


def _recent(
    connection: Connection, replicas: Iterable[ReplicaId], since: float, step: float
) -> dict[ReplicaId, tuple[Point, ...]]:
    ids = {str(replica): replica for replica in replicas}
    steps: dict[str, dict[int, Measures]] = {replica: {} for replica in ids}
    rows = connection.execute(
        """
        WITH wanted AS (SELECT value AS replica FROM json_each(:replicas))
        SELECT replica, at, measures FROM minutes JOIN wanted USING (replica) WHERE at >= :since
        UNION ALL
        SELECT replica, at, measures FROM raw WHERE at >= :since AND replica IN (SELECT replica FROM wanted)
        """,
        {"replicas": json.dumps(list(ids)), "since": since},
    )
    for replica, at, measures in rows:
        number = int(at // step)
        steps[replica][number] = added(steps[replica].get(number, {}), json.loads(measures))
    return {
        ids[replica]: tuple(_point(number * step, found[number]) for number in sorted(found))
        for replica, found in steps.items()
    }


def _point(at: float, measures: Measures) -> Point:
    means = {name: total / weight for name, (total, weight) in measures.items()}
    indexes = sorted(int(name.split(".")[1]) for name in means if name.startswith("card.") and name.endswith(".memory"))
    cards = tuple(CardPoint(i, means.get(f"card.{i}.percent"), means[f"card.{i}.memory"]) for i in indexes)
    return Point(at, means.get("cpu"), means["memory"], cards)


def _latest(connection: Connection, since: float) -> Iterator[tuple[str, Latest]]:
    rows = connection.execute("SELECT replica, at, cores, usage FROM latest WHERE at >= ?", (since,))
    for replica, at, cores, usage in rows:
        yield replica, Latest(at, cores, usage_from_json(usage))


def _replica_id(text: str) -> ReplicaId:
    workload, attempt, role, index = text.split("-")
    return ReplicaId(workload, int(attempt), role, int(index))
