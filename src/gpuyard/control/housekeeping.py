"""Once a night: a backup. Now and then: what nobody needs any more is removed, so that disks do not fill."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable
from pathlib import Path

from gpuyard.domain.errors import YardError
from gpuyard.engines.seam import KeepsLogs
from gpuyard.files.workdirs import Workdirs
from gpuyard.settings import ControlSettings
from gpuyard.store import gates, ledger, logins, sharing, workplaces
from gpuyard.store import workloads as workload_rows
from gpuyard.store.backup import backup
from gpuyard.store.database import Database
from gpuyard.store.feed import prune

log = logging.getLogger(__name__)

TIDY_SECONDS = 3600.0
LOOK_SECONDS = 60.0
CLEAR_OUT_SECONDS = 3.0  # what its owner removed should be gone when they look
DAY = 86400.0
WORKDIR_GRACE_SECONDS = DAY  # a folder is shipped shortly before the job that names it
DELETE_AT_ONCE = 200


class Housekeeper:
    def __init__(
        self,
        database: Database,
        engine: KeepsLogs,
        workdirs: Workdirs,
        backups: Path,
        clock: Callable[[], float],
        settings: ControlSettings,
    ) -> None:
        self._database = database
        self._engine = engine
        self._workdirs = workdirs
        self._backups = backups
        self._clock = clock
        self._settings = settings
        self._over = threading.Event()

    def run(self) -> None:
        next_look = time.monotonic() + LOOK_SECONDS
        while not self._over.wait(CLEAR_OUT_SECONDS):
            try:
                self.clear_out()
                if time.monotonic() >= next_look:
                    next_look = time.monotonic() + LOOK_SECONDS
                    self.look()
            except (YardError, OSError):
                log.exception("housekeeping failed; trying again soon")

    def end(self) -> None:
        self._over.set()

    def look(self) -> None:
        now = self._clock()
        if self._backup_is_due(now):
            self.back_up(now)
        marker = self._backups / ".tidied"
        if not marker.exists() or now - marker.stat().st_mtime >= TIDY_SECONDS:
            self.tidy(now)
            marker.touch()

    def _backup_is_due(self, now: float) -> bool:
        local = time.localtime(now)
        return local.tm_hour == self._settings.backup_hour and not self._target(now).exists()

    def _target(self, now: float) -> Path:
        return self._backups / time.strftime("gpuyard-%Y%m%d.backup", time.localtime(now))

    def back_up(self, now: float) -> Path:
        """Write tonight's backup and drop the oldest ones."""
        self._backups.mkdir(mode=0o700, exist_ok=True)
        target = self._target(now)
        backup(self._database, target)
        for old in sorted(self._backups.glob("gpuyard-*.backup"))[: -self._settings.backups_kept]:
            old.unlink()
        log.info("backup written: %s", target)
        return target

    def clear_out(self) -> None:
        """What was installed in dev environments that their owners removed."""
        with self._database.read() as conn:
            gone = workplaces.gone(conn)
        for id in gone:
            if self._forget(id):
                with self._database.write() as conn:
                    workplaces.forget(conn, id)

    def tidy(self, now: float) -> None:
        """Old workloads with their logs and run times, sessions that are over, shipped folders that nothing names."""
        with self._database.write() as conn:
            logins.remove_expired_sessions(conn, now)
            gates.remove_expired(conn, now)
            ledger.roll_up(conn, now)
            prune(conn, now)
        if self._settings.keep_days > 0:
            self._remove_old_workloads(now - self._settings.keep_days * DAY)
            with self._database.write() as conn:
                sharing.forget_run_times(conn)
        with self._database.read() as conn:
            named = workload_rows.workdirs_named(conn)
        self._workdirs.prune(named, now - WORKDIR_GRACE_SECONDS)

    def _forget(self, workload: str) -> bool:
        """One folder that cannot be removed must not keep the others."""
        try:
            self._engine.forget(workload)
        except (YardError, OSError):
            log.exception("the files of %s could not be removed", workload)
            return False
        return True

    def _remove_old_workloads(self, before: float) -> None:
        while True:
            with self._database.write() as conn:
                removed = workload_rows.delete_ended_before(conn, before, DELETE_AT_ONCE)
            for id in removed:
                self._forget(id)
            if len(removed) < DELETE_AT_ONCE:
                return
