"""What the card ledger costs: it must cost what changed, not what lives.

Real control and a real store on disk, 1,000 virtual machines of eight cards, a clock moved by hand. Seconds are those
of the thread that decides, so that a busy machine changes little. Full garbage collections look through everything
that lives, and fall on whoever makes an object at that moment: they are measured apart, of the ledger and of control.
"""

from __future__ import annotations

import gc
import tempfile
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, contextmanager
from pathlib import Path

from gpuyard.control.job_keys import JobKeys
from gpuyard.control.ledgering import CardLedger
from gpuyard.control.loop import Control
from gpuyard.control.metering import CardMeter
from gpuyard.domain.ledger import Amounts
from gpuyard.domain.people import Group, Membership, Quota, Role, User
from gpuyard.domain.reasons import Code, because
from gpuyard.domain.workload import State, StoryEvent, Workload
from gpuyard.engines.simulated import SimulatedEngine, virtual_nodes
from gpuyard.ledger.reporting import By, open_lines, period, report
from gpuyard.scheduling.plan import Pass
from gpuyard.settings import ControlSettings
from gpuyard.store import ledger as ledger_rows
from gpuyard.store import people as people_rows
from gpuyard.store import workloads as workload_rows
from gpuyard.store.control_lock import ControlLock
from gpuyard.store.database import Database
from gpuyard.world.picture import Picture
from lab.lines import Line, percentile
from lab.stage import a_job

MILLI = 1e3
PASSES = 300
LONG = 999_999  # seconds: none ends while it is measured


class Watch:
    """Seconds of this thread, full garbage collections left out."""

    def __init__(self) -> None:
        self.collecting = 0.0
        self._thread = threading.get_ident()
        self._begun = 0.0

    def now(self) -> float:
        return time.thread_time() - self.collecting

    def on_collection(self, phase: str, info: Mapping[str, int]) -> None:
        if info["generation"] < 2 or threading.get_ident() != self._thread:
            return
        if phase == "start":
            self._begun = time.thread_time()
        else:
            self.collecting += time.thread_time() - self._begun


class Measured(CardLedger):
    """The same ledger, with a watch in its hand."""

    def __init__(
        self, database: Database, lock: ControlLock, meter: CardMeter, every_seconds: float, watch: Watch
    ) -> None:
        super().__init__(database, lock, meter, every_seconds)
        self._watch = watch
        self.seconds: list[float] = []
        self._seeing = 0.0

    def see(self, one: Pass) -> None:
        begun = self._watch.now()
        super().see(one)
        self._seeing += self._watch.now() - begun

    def look(self, picture: Picture, now: float) -> None:
        begun = self._watch.now()
        super().look(picture, now)
        self.seconds.append(self._watch.now() - begun + self._seeing)
        self._seeing = 0.0


class Yard:
    def __init__(self, database: Database, nodes: int, cards: int) -> None:
        self.now = 1_000_000.0
        self.watch = Watch()
        self.database = database
        self.lock = ControlLock.acquire(database, "lab")
        self.engine = SimulatedEngine(virtual_nodes(nodes, cards), lambda: self.now)
        self.executor = ThreadPoolExecutor(1)
        settings = ControlSettings(full_pass_seconds=3.0)
        self.control = Control(
            database, self.lock, self.engine, self.executor, lambda: self.now, settings, _no_folder, JobKeys(b"lab")
        )
        self.ledger = Measured(database, self.lock, self.control.cards, settings.ledger_seconds, self.watch)
        self.control.ledger = self.ledger
        self.steps: list[float] = []

    def submit(self, jobs: Sequence[Workload]) -> None:
        lines = [(job, [StoryEvent(self.now, because(Code.SUBMITTED, by=job.owner), State.QUEUED)]) for job in jobs]
        with self.database.write() as conn:
            workload_rows.insert_many(conn, lines)

    def step(self, seconds: float = 0.1) -> None:
        self.now += seconds
        begun = self.watch.now()
        self.control.step()
        self.steps.append(self.watch.now() - begun)

    def run_until(self, state: State, number: int) -> None:
        while len(self.control.picture.in_state(state)) < number:
            self.step()
            time.sleep(0.002)  # launches are answered by another thread

    def total(self) -> Amounts:
        now = int(self.now * 1000)
        asked = period(0, now)
        with self.database.read() as conn:
            lines = [*ledger_rows.lines(conn, *asked, by_day=False, by="model")]
            lines += open_lines(ledger_rows.accounts(conn), asked, now)
        return report(lines, By.MODEL, now).total


def _no_folder(owner: str, digest: str) -> Path:
    return Path(digest)


@contextmanager
def a_yard(nodes: int, cards: int, quota: int | None = None) -> Iterator[Yard]:
    folder = tempfile.TemporaryDirectory(prefix="yard-ledger-")
    with folder as at, closing(Database.open(f"sqlite:///{at}/gpuyard.db")) as database:
        with database.write() as conn:
            quotas = (Quota("lab", "nvidia", quota),) if quota is not None else ()
            people_rows.create_group(conn, Group("lab", quotas), 0.0)
            member = (Membership("lab", Role.MEMBER),)
            people_rows.create_user(conn, User("u-lab", memberships=member), None, 0.0)
        yard = Yard(database, nodes, cards)
        gc.callbacks.append(yard.watch.on_collection)
        try:
            yield yard
        finally:
            gc.callbacks.remove(yard.watch.on_collection)
            yard.executor.shutdown()
            yard.engine.close()
            yard.lock.release()


def card_ledger() -> list[Line]:
    """8,000 cards, of which 7,000 run: passes in which nothing changes, one job starts, or a queue changes shape."""
    with a_yard(1000, 8) as yard:
        yard.submit([a_job(f"r{n:09d}", seconds=LONG, cards=1, replicas=20) for n in range(350)])
        yard.run_until(State.RUNNING, 350)
        yard.ledger.seconds.clear()
        for _ in range(PASSES):
            yard.step(0.01)
        quiet = percentile(yard.ledger.seconds, 0.5)
        yard.ledger.seconds.clear()
        for number in range(PASSES):
            yard.submit([a_job(f"s{number:09d}", seconds=LONG, cards=1)])
            yard.step(0.01)
        one = percentile(yard.ledger.seconds, 0.5)
        yard.ledger.seconds.clear()
        for number in range(20):  # each of another shape, so that every machine with free cards is seen otherwise
            yard.submit([a_job(f"w{number:09d}", seconds=LONG, cards=8, cores=90 - number)])
            yard.step(5.1)
        shape = max(yard.ledger.seconds)
        total = yard.total()
    lost = abs(total.capacity - sum(total.buckets))
    return [
        Line("card ledger, 1,000 nodes x 8: a pass in which nothing changed", quiet * MILLI, 0.1, "ms"),
        Line("  a pass in which one job took a card", one * MILLI, 1.0, "ms"),
        Line("  the dearest look at a queue that has changed (every 5 s)", shape * MILLI, 20.0, "ms"),
        Line("  thousandths of card-milliseconds that are in no bucket", lost, 0, ""),
    ]


def card_ledger_share() -> list[Line]:
    """Its part of all that control does while 10,000 replicas start, and while 10,000 wait for a quota."""
    lines = []
    for count, replicas in ((10_000, 1), (500, 20), (1, 10_000)):
        with a_yard(1000, 16) as yard:
            yard.step()
            yard.steps.clear()
            yard.ledger.seconds.clear()
            yard.submit([a_job(f"g{n:09d}", seconds=LONG, cards=1, replicas=replicas) for n in range(count)])
            yard.watch.collecting = 0.0
            yard.run_until(State.RUNNING, count)
            yard.step(5.1)  # what is known is written
            took = sum(yard.ledger.seconds)
            seconds, collecting = sum(yard.steps), yard.watch.collecting
        what = f"card ledger while 10,000 replicas start as {count}x{replicas}, for each"
        lines.append(Line(what, took / 10_000 * 1e6, 20.0, "µs"))
        lines.append(Line("  of the seconds of control itself, its write among them", 100 * took / seconds, 5.0, "%"))
        part = 100 * collecting / (seconds + collecting)
        lines.append(Line("  full garbage collections beside it (for information)", part, 100.0, "%"))
    with a_yard(1000, 8, quota=4_000_000) as yard:
        yard.submit([a_job(f"q{n:09d}", seconds=LONG, cards=1) for n in range(10_000)])
        yard.run_until(State.RUNNING, 4000)
        for _ in range(20):
            yard.step(3.0)
        yard.ledger.seconds.clear()
        for _ in range(40):
            yard.step(3.0)
        dear = max(yard.ledger.seconds)
    lines.append(Line("card ledger while 6,000 wait for a quota, the dearest of 40 passes", dear * MILLI, 30.0, "ms"))
    return lines


MEASURES = (card_ledger, card_ledger_share)
