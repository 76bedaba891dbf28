"""The nightly backup, and what is removed so that disks do not fill."""

from __future__ import annotations

import hashlib
import os
import time
from collections.abc import Iterator
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import pytest
from tests.control.yard import Yard
from tests.draw import a_job, a_node

from gpuyard.control.housekeeping import DAY, Housekeeper
from gpuyard.domain.workload import State
from gpuyard.engines.simulated import SimulatedEngine
from gpuyard.files.workdirs import Workdirs
from gpuyard.settings import ControlSettings
from gpuyard.store import sharing
from gpuyard.store import workloads as workload_rows
from gpuyard.store.database import Database
from gpuyard.store.restore import restore

THREE_AT_NIGHT = time.mktime((2026, 11, 15, 3, 10, 0, 0, 0, -1))


@pytest.fixture
def yard(database: Database, tmp_path: Path) -> Iterator[Yard]:
    with closing(Yard(database, [a_node("a", 8)])) as yard:
        yard.time = THREE_AT_NIGHT
        yard.engine = SimulatedEngine([a_node("a", 8)], lambda: yard.time, logs=tmp_path / "logs")
        yard.crash()
        yield yard


@pytest.fixture
def keeper(yard: Yard, tmp_path: Path) -> Housekeeper:
    workdirs = Workdirs(tmp_path / "workdirs", 1 << 20)
    settings = ControlSettings(keep_days=10.0, backup_hour=3, backups_kept=2)
    return Housekeeper(yard.database, yard.engine, workdirs, tmp_path / "backups", lambda: yard.time, settings)


def test_a_backup_is_written_once_a_night_and_the_oldest_go(yard: Yard, keeper: Housekeeper, tmp_path: Path) -> None:
    id = yard.submit(a_job())
    for night in range(4):
        yard.time = THREE_AT_NIGHT + night * DAY
        keeper.look()
        keeper.look()
    yard.time += 3 * 3600
    keeper.look()
    backups = sorted((tmp_path / "backups").glob("*.backup"))
    assert [path.name for path in backups] == ["gpuyard-20261117.backup", "gpuyard-20261118.backup"]
    restore(f"sqlite:///{tmp_path / 'again.db'}", backups[-1])
    with closing(Database.open(f"sqlite:///{tmp_path / 'again.db'}")) as again, again.read() as conn:
        assert workload_rows.get(conn, id) is not None


def test_old_ended_work_goes_with_its_logs_and_live_work_stays(yard: Yard, keeper: Housekeeper) -> None:
    old = yard.submit(a_job("old0000001", env=(("YARD_SIM_SECONDS", "1"),)))
    live = yard.submit(a_job("live000001", env=(("YARD_SIM_SECONDS", "99999999"),)))
    yard.pass_time()
    yard.pass_time(2)
    attempt = yard.get(old).attempt
    assert attempt is not None
    log = yard.engine.log_path(attempt.replicas[0].id)
    assert (yard.state(old), log.exists()) == (State.SUCCEEDED, True)
    keeper.tidy(yard.time + 9 * DAY)
    assert yard.state(old) is State.SUCCEEDED
    keeper.tidy(yard.time + 11 * DAY)
    with yard.database.read() as conn:
        assert workload_rows.get(conn, old) is None
    assert not log.exists()
    assert yard.state(live) is State.RUNNING


def test_what_was_learned_of_a_name_goes_with_the_last_job_that_had_it(yard: Yard, keeper: Housekeeper) -> None:
    live = yard.get(yard.submit(a_job("live000001")))
    with yard.database.write() as conn:
        sharing.add_run_times(conn, {(live.owner, live.spec.name): (60.0,), (live.owner, "gone"): (1.0,)})
    keeper.tidy(yard.time)
    with yard.database.read() as conn:
        assert sharing.run_times(conn) == {(live.owner, live.spec.name): (60.0,)}


def test_shipped_folders_stay_while_a_job_names_them(yard: Yard, keeper: Housekeeper, tmp_path: Path) -> None:
    workdirs = Workdirs(tmp_path / "workdirs", 1 << 20)
    named, unnamed = b"named", b"unnamed"
    digests = [hashlib.sha256(content).hexdigest() for content in (named, unnamed)]
    for content, digest in zip((named, unnamed), digests, strict=True):
        workdirs.receive("ann", digest, [content])
        os.utime(workdirs.path("ann", digest), (0, 0))
    job = a_job()
    yard.submit(replace(job, spec=replace(job.spec, workdir=digests[0])))
    keeper.tidy(yard.time)
    assert [workdirs.path("ann", digest).exists() for digest in digests] == [True, False]
