"""The life of one replica as its supervisor leads it: start, watch, stop, end, and the record of all that."""

from __future__ import annotations

import _socket
import json
import os
import select
import signal
import time

from . import cgroups, child, linux, processes, record, removal
from .doorkeeper import Doorkeeper
from .logbound import LogBound

TYPE_CHECKING = False  # loading typing would cost every replica a tenth of its start
if TYPE_CHECKING:
    from typing import Any

_SIGNALS = (signal.SIGCHLD, signal.SIGUSR1, signal.SIGTERM)
_TICK_SECONDS = 0.2
_MOST_RINGS = 20
_MOST_READS = 64  # of the side door in one go: a flood there must not keep the supervisor from its other duties


class Supervisor:
    def __init__(self, folder: str, request: dict[str, Any]) -> None:
        self._folder, self._request = folder, request
        self._group = cgroups.open_group(request["cgroup"]) if request["cgroup"] else None
        self._status: dict[str, Any] = {}
        self._job = 0
        self._wait_status: int | None = None
        self._launch_problem = ""
        self._unready: dict[str, str] | None = None
        self._door = Doorkeeper(folder, request)
        self._kill_at: float | None = None  # set once it was asked to stop
        self._was_told_to_go = False  # the supervisor itself got SIGTERM: the machine goes down
        self._stop_seen: tuple[int, int] | None = None
        self._is_saved = True
        self._log = self._bell = self._report = -1
        self._bound: LogBound | None = None
        self._side_door: int | None = None

    def begin(self) -> None:
        """From here on the replica has begun, for everybody and for good; and whoever reads that may ring."""
        self._listen()
        pid = os.getpid()
        self._status = {
            "life": record.STARTING,
            "boot_id": processes.boot_id(self._request["boot_id_path"]),
            "supervisor": {"pid": pid, "start": processes.start_time(pid)},
            "begun_at": time.time(),
            "cgroup": self._request["cgroup"],
            "memory": self._request["limits"]["memory"],
        }
        with open(self._request["live_mark"], "ab"):  # first: what has begun can be found
            record.write(self._folder, record.STATUS, self._status)

    def _listen(self) -> None:
        self._bell, mouth = os.pipe2(os.O_NONBLOCK | os.O_CLOEXEC)
        os.set_blocking(mouth, False)
        signal.set_wakeup_fd(mouth, warn_on_full_buffer=False)
        signal.signal(signal.SIGCHLD, _hear)
        signal.signal(signal.SIGUSR1, _hear)
        signal.signal(signal.SIGTERM, self._told_to_go)
        signal.signal(signal.SIGHUP, signal.SIG_IGN)
        signal.signal(signal.SIGINT, signal.SIG_IGN)

    def run(self) -> None:
        try:
            self._prepare()
            if record.exists(self._folder, record.STOP):
                self._kill_at = 0.0
            else:
                self._start()
                self._watch()
            how = self._how_it_ended()
        except Exception as problem:  # whatever it is, the end must be told
            _leave_trace()
            self._launch_problem = f"the supervisor failed: {type(problem).__name__}: {problem}"
            how = record.LOST if self._status.get("started_at") else record.LAUNCH
        self._end_everything()
        self._finish(how)

    def _prepare(self) -> None:
        linux.prctl(linux.PR_SET_CHILD_SUBREAPER, 1)
        path = os.path.join(self._folder, record.LOG)
        self._log = os.open(path, os.O_RDWR | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC, 0o600)
        self._bound = LogBound(self._folder, self._log, self._request["log_limit"])
        self._side_door = self._open_side_door()
        _be_spared()

    def _open_side_door(self) -> int | None:
        """What the job writes to /dev/stdout and /dev/stderr by name comes through here."""
        room = self._request["room"]
        if not room:
            return None
        os.mkfifo(room["output"], 0o600)
        os.chown(room["output"], self._request["identity"]["uid"], self._request["identity"]["gid"])
        return os.open(room["output"], os.O_RDWR | os.O_NONBLOCK | os.O_CLOEXEC)

    def _start(self) -> None:
        if self._group:
            limits = self._request["limits"]
            self._group.make(limits["memory"], limits["pids"], limits["cpu_milli"])
        self._report, mouth = os.pipe2(os.O_NONBLOCK | os.O_CLOEXEC)
        os.set_blocking(mouth, True)
        log = os.open(os.path.join(self._folder, record.LOG), os.O_WRONLY | os.O_APPEND | os.O_CLOEXEC)
        supervisor, hand = os.getpid(), self._door.hand()
        signal.pthread_sigmask(signal.SIG_BLOCK, _SIGNALS)  # none of them may meet the child before it is ready
        self._job = os.fork()
        if self._job == 0:
            child.become(self._request, supervisor=supervisor, log=log, report=mouth, hand=hand)
        signal.pthread_sigmask(signal.SIG_UNBLOCK, _SIGNALS)
        if hand:
            hand.close()
        os.close(mouth)
        os.close(log)

    def _watch(self) -> None:
        poll = select.poll()
        poll.register(self._bell, select.POLLIN)
        poll.register(self._report, select.POLLIN)
        if self._side_door is not None:
            poll.register(self._side_door, select.POLLIN)
        patience = _TICK_SECONDS
        while self._wait_status is None or self._others_have_grace():
            ready = dict(poll.poll(self._timeout_ms(patience)))
            if self._report in ready:
                self._hear_report()
                poll.unregister(self._report)
            if self._bell in ready:
                os.read(self._bell, 4096)
            self._copy_side_door()
            patience = self._bound.check() if self._bound else _TICK_SECONDS
            self._heed_stop()
            self._collect()
            self._door.heed(job_runs=bool(self._status.get("started_at")) and self._wait_status is None)
            if not self._is_saved:
                self._save_running()

    def _others_have_grace(self) -> bool:
        """The shell that was the first process dies of the stop signal at once; the program it ran may be saving."""
        assert self._wait_status is not None
        if self._kill_at is None or time.monotonic() >= self._kill_at:
            return False
        if not os.WIFSIGNALED(self._wait_status) or os.WTERMSIG(self._wait_status) != signal.SIGTERM:
            return False
        others = self._group.pids() if self._group else processes.descendants(os.getpid())
        return bool(set(others) - self._door.visitors())

    def _timeout_ms(self, patience: float) -> int:
        if self._kill_at is not None:
            patience = min(patience, max(0.0, self._kill_at - time.monotonic()))
        return int(patience * 1000) + 1

    def _hear_report(self) -> None:
        """Words: it could not be started. Silence: the command runs."""
        told = os.read(self._report, 8192)
        if told.startswith(child.UNREADY):
            self._unready = json.loads(told[len(child.UNREADY) :])
            self._launch_problem = "it was not started"
            return
        if told:
            self._launch_problem = told.decode("utf-8", "replace")
            return
        self._door.take_view()
        job = {"pid": self._job, "start": processes.start_time(self._job)}
        self._status |= {"life": record.RUNNING, "started_at": time.time(), "job": job}
        self._save_running()

    def _save_running(self) -> None:
        """On a full disk it is tried again with the next look around."""
        try:
            record.write(self._folder, record.STATUS, self._status, durable=False)
        except OSError:
            self._is_saved = False
            return
        self._is_saved = True
        self._tell()

    def _collect(self) -> None:
        ended = processes.reap()
        self._door.note_ended(ended)
        if self._job in ended:
            self._wait_status = ended[self._job]
            if not self._launch_problem and not self._status.get("started_at"):
                self._hear_report()

    def _heed_stop(self) -> None:
        if self._was_told_to_go and self._kill_at is None:
            self._ask_to_end(self._request["grace"])
        try:
            found = os.stat(os.path.join(self._folder, record.STOP))
        except FileNotFoundError:
            found = None
        if found and (found.st_mtime_ns, found.st_ino) != self._stop_seen:
            self._stop_seen = (found.st_mtime_ns, found.st_ino)
            asked = record.read(self._folder, record.STOP) or {}
            self._ask_to_end(float(asked.get("grace", 0.0)))
        if self._kill_at is not None and time.monotonic() >= self._kill_at:
            self._kill()

    def _ask_to_end(self, grace: float) -> None:
        """The first time a signal; each further time can only shorten what is left."""
        until = time.monotonic() + max(0.0, grace)
        if self._kill_at is not None:
            self._kill_at = min(self._kill_at, until)
            return
        self._kill_at = until
        for number in (signal.SIGTERM, signal.SIGCONT):
            try:
                os.killpg(self._job, number)
            except ProcessLookupError:  # it has not made its group yet
                processes.send([self._job], number)

    def _kill(self) -> bool:
        return self._group.kill() if self._group else processes.end_tree(os.getpid())

    def _end_everything(self) -> None:
        """Nothing the job forked outlives it. A process that cannot die now (a hung disk) is waited for."""
        self._door.close()
        pause = 0.001
        while not self._kill():
            self._remember(processes.reap())
            self._copy_side_door()
            time.sleep(pause)
            pause = min(pause * 2, 0.5)
        self._remember(processes.reap())
        self._copy_side_door()  # all writers are gone, and a pipe holds less than one such copy

    def _remember(self, ended: dict[int, int]) -> None:
        if self._job in ended and self._wait_status is None:
            self._wait_status = ended[self._job]

    def _how_it_ended(self) -> str:
        status = self._wait_status
        if self._launch_problem:
            return record.LAUNCH
        if self._kill_at is not None:
            return record.LOST if self._was_told_to_go and not self._stop_seen else record.STOPPED
        if status and self._group and self._group.oom_kills():
            return record.OOM
        if status is not None and os.WIFSIGNALED(status):
            return record.SIGNALLED
        return record.EXITED if status else record.GOOD

    def _finish(self, how: str) -> None:
        if self._bound:
            self._bound.settle()
        code, number = _decode(self._wait_status)
        self._status |= {
            "life": record.ENDED,
            "how": how,
            "exit_code": None if how == record.LAUNCH else code,
            "signal": number,
            "detail": self._launch_problem,
            "problem": self._unready,
            "ended_at": time.time(),
        }
        self._save_end()
        self._tell()
        self._clean()

    def _save_end(self) -> None:
        """The one thing it must not fail at. A full disk is waited out; only a folder that is gone ends it."""
        while True:
            try:
                record.write(self._folder, record.STATUS, self._status)
                return
            except FileNotFoundError:
                return
            except OSError:
                time.sleep(1.0)

    def _clean(self) -> None:
        """The end has been told. What cannot be taken away now goes with the replica's folder."""
        try:
            self._remove_group()
            for path in (self._request["live_mark"], (self._request["room"] or {}).get("output")):
                if path and os.path.lexists(path):
                    os.unlink(path)
            if self._request["tmp"]:
                removal.remove_tree(self._request["tmp"])
        except OSError:
            _leave_trace()

    def _remove_group(self) -> None:
        for _ in range(50):
            if not self._group or self._group.remove():
                return
            time.sleep(0.02)

    def _copy_side_door(self) -> None:
        if self._side_door is None:
            return
        for _ in range(_MOST_READS):
            try:
                piece = os.read(self._side_door, 65536)
            except BlockingIOError:
                return
            _append(self._log, piece)

    def _tell(self) -> None:
        """Wake the server if one listens, and say who it was. If none does, it will look by itself."""
        try:
            run = os.open(self._request["run"], os.O_PATH | os.O_CLOEXEC)
        except OSError:
            return
        try:
            # Through the descriptor, the address is short however long the folder's path is.
            bell = _socket.socket(_socket.AF_UNIX, _socket.SOCK_DGRAM | _socket.SOCK_NONBLOCK)
            _send(bell, self._request["id"].encode("ascii"), f"/proc/self/fd/{run}/wake.sock")
            bell.close()
        except OSError:
            return
        finally:
            os.close(run)

    def _told_to_go(self, number: int, frame: object) -> None:
        self._was_told_to_go = True


def _send(bell: _socket.socket, words: bytes, address: str) -> None:
    """When very many end at once the server's ear is full for a moment. It is not waited for long."""
    for _ in range(_MOST_RINGS):
        try:
            bell.sendto(words, address)
            return
        except BlockingIOError:
            time.sleep(0.01)


def _append(log: int, piece: bytes) -> None:
    """What the log cannot take, on a full disk or at its largest size, is lost. The job goes on."""
    while piece:
        try:
            piece = piece[os.write(log, piece) :]
        except OSError:
            return


def _leave_trace() -> None:
    import traceback  # rarely needed, and it takes as long to load as all the rest

    try:
        traceback.print_exc()
    except OSError:  # no room even for that
        return


def _hear(number: int, frame: object) -> None:
    """The signal's arrival in the pipe is all that is needed."""


def _decode(status: int | None) -> tuple[int | None, int | None]:
    """The shell's way: 128 and the signal's number for one that was killed."""
    if status is None:
        return None, None
    if os.WIFSIGNALED(status):
        return 128 + os.WTERMSIG(status), os.WTERMSIG(status)
    return os.waitstatus_to_exitcode(status), None


def _be_spared() -> None:
    """When the machine runs out of memory, the one who can tell about it should go last."""
    try:
        with open("/proc/self/oom_score_adj", "w", encoding="ascii") as file:
            file.write("-900")
    except OSError:
        return
