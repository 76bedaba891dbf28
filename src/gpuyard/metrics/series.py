"""Usage of replicas over the last six hours: every sample for a quarter of an hour, then means over one minute.

Each measurement is stored as a total and a weight (CPU seconds over seconds; bytes over one look), so that a mean over
any stretch is the sum of the totals over the sum of the weights. Rolling up adds rows together and loses nothing.
"""

from __future__ import annotations

import json
import logging
import math
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from sqlite3 import Connection, Error
from typing import TypeVar

from gpuyard.domain.errors import Unavailable
from gpuyard.domain.reasons import Code, because
from gpuyard.domain.usage import CardUse, Usage
from gpuyard.domain.workload import ReplicaId
from gpuyard.metrics.file import WAIT_SECONDS, MetricsFile

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
            for replica, usage in samples.items():
                _add_sample(connection, str(replica), at, usage)
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
        return self._read(lambda connection: {one: tuple(_points(connection, one, since, step)) for one in wanted})

    def latest(self, since: float = 0.0) -> dict[ReplicaId, Latest]:
        """The newest look at each replica that was looked at since then."""
        return self._read(lambda connection: dict(_latest(connection, since)))

    def _read(self, ask: Callable[[Connection], T]) -> T:
        try:
            return self._file.read(ask)
        except (Error, OSError) as error:
            raise Unavailable(because(Code.BUSY_STORE, seconds=WAIT_SECONDS)) from error


# --- writing ------------------------------------------------------------------------------------------------------


def _add_sample(connection: Connection, replica: str, at: float, usage: Usage) -> None:
    before = connection.execute("SELECT at, usage FROM latest WHERE replica = ?", (replica,)).fetchone()
    if before is not None and at <= before[0]:
        return  # told twice, or the clock was set back
    measures = dict(_gauges(usage))
    used = usage.cpu_seconds - _usage_from_json(before[1]).cpu_seconds if before is not None else -1.0
    cores = None
    if used >= 0:  # a counter that went back began anew: no rate for this stretch
        measures["cpu"] = (used, at - before[0])
        cores = used / (at - before[0])
    connection.executemany(
        "INSERT INTO raw VALUES (?, ?, ?, ?, ?)",
        [(replica, measure, at, total, weight) for measure, (total, weight) in measures.items()],
    )
    connection.execute("REPLACE INTO latest VALUES (?, ?, ?, ?)", (replica, at, cores, json.dumps(asdict(usage))))


def _gauges(usage: Usage) -> Iterator[tuple[str, tuple[float, float]]]:
    yield "memory", (usage.memory, 1)
    for card in usage.cards:
        yield f"card.{card.index}.memory", (card.memory, 1)
        if card.percent is not None and math.isfinite(card.percent):
            yield f"card.{card.index}.percent", (card.percent, 1)


def _tidy(connection: Connection, now: float) -> None:
    """Roll up what is older than a quarter of an hour, remove what is older than six."""
    until = _whole_minutes(min(now - KEEP_RAW_SECONDS, _oldest(connection, "raw") + TIDY_AT_ONCE_SECONDS))
    connection.execute(
        f"""
        INSERT INTO minutes
        SELECT replica, measure, CAST(at / {MINUTE} AS INTEGER) * {MINUTE}, sum(total), sum(weight)
        FROM raw WHERE at < ? GROUP BY 1, 2, 3
        ON CONFLICT DO UPDATE SET total = total + excluded.total, weight = weight + excluded.weight
        """,  # noqa: S608 - MINUTE is a number of ours
        (until,),
    )
    connection.execute("DELETE FROM raw WHERE at < ?", (until,))
    until = min(now - KEEP_SECONDS, _oldest(connection, "minutes") + TIDY_AT_ONCE_SECONDS)
    connection.execute("DELETE FROM minutes WHERE at < ?", (until,))
    connection.execute("DELETE FROM latest WHERE at < ?", (now - KEEP_SECONDS,))


def _oldest(connection: Connection, table: str) -> float:
    (oldest,) = connection.execute(f"SELECT min(at) FROM {table}").fetchone()  # noqa: S608 - a name of ours
    return math.inf if oldest is None else float(oldest)


def _whole_minutes(at: float) -> float:
    """Only finished minutes are rolled up, so that a minute is rolled up once."""
    return at // MINUTE * MINUTE


# --- reading ------------------------------------------------------------------------------------------------------


def _points(connection: Connection, replica: ReplicaId, since: float, step: float) -> Iterator[Point]:
    rows = connection.execute(
        """
        SELECT CAST(at / :step AS INTEGER), measure, sum(total), sum(weight) FROM (
            SELECT at, measure, total, weight FROM raw WHERE replica = :replica AND at >= :since
            UNION ALL
            SELECT at, measure, total, weight FROM minutes WHERE replica = :replica AND at >= :since
        ) GROUP BY 1, 2 ORDER BY 1
        """,
        {"replica": str(replica), "since": since, "step": step},
    )
    steps: dict[int, dict[str, float]] = defaultdict(dict)
    for number, measure, total, weight in rows:
        steps[number][measure] = total / weight
    for number, means in steps.items():
        yield Point(number * step, means.get("cpu"), means["memory"], _card_points(means))


def _card_points(means: Mapping[str, float]) -> tuple[CardPoint, ...]:
    indexes = sorted(int(measure.split(".")[1]) for measure in means if measure.endswith(".memory"))
    return tuple(CardPoint(i, means.get(f"card.{i}.percent"), means[f"card.{i}.memory"]) for i in indexes)


def _latest(connection: Connection, since: float) -> Iterator[tuple[ReplicaId, Latest]]:
    rows = connection.execute("SELECT replica, at, cores, usage FROM latest WHERE at >= ?", (since,))
    for replica, at, cores, usage in rows:
        yield _replica_id(replica), Latest(at, cores, _usage_from_json(usage))


def _replica_id(text: str) -> ReplicaId:
    workload, attempt, role, index = text.split("-")
    return ReplicaId(workload, int(attempt), role, int(index))


def _usage_from_json(text: str) -> Usage:
    data = json.loads(text)
    return Usage(**{**data, "cards": tuple(CardUse(**card) for card in data["cards"])})
