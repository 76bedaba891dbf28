"""From a fork of the supervisor to the user's command, or to a porter beside it: session, cgroup, room, identity,
working folder, exec."""

from __future__ import annotations

import json
import os
import resource
import signal

from ...inside import preflight, shipped, wire
from . import cgroups, linux, processes, room

TYPE_CHECKING = False  # loading typing would cost every replica a tenth of its start
if TYPE_CHECKING:
    import _socket
    from typing import Any, NoReturn

NOT_FOUND, NOT_ALLOWED = 127, 126
_MOST_FILES = (
    1 << 16
)  # some programs walk through all numbers up to the limit; so does whoever looks for a card's holder
UNREADY = b"\0"  # what follows in a report is a problem found by the look before the start


def become(request: dict[str, Any], *, supervisor: int, log: int, report: int, hand: _socket.socket | None) -> NoReturn:
    """Never returns. What keeps it from starting is written to `report`; a good start closes it. Its view of the
    machine is handed to the supervisor, who may have to let a porter in later."""
    try:
        _prepare(request, supervisor, log, hand)
    except _Unready as problem:
        os.write(2, preflight.in_words(problem.found).encode("utf-8", "replace") + b"\n")
        os.write(report, UNREADY + json.dumps(problem.found).encode())
        os._exit(1)
    except Exception as problem:  # the last process that can tell why
        os.write(report, _in_words(problem).encode("utf-8", "replace")[:4000] or b"unknown")
        os._exit(1)
    if request["argv"]:
        _execute(request["argv"], request["env"])
    _execute_porter(request)


def become_porter(request: dict[str, Any], *, supervisor: int, view: list[int]) -> NoReturn:
    """Beside the job that runs: in its cgroup and its view of the machine, with its rights. It has no voice in the
    job's log."""
    try:
        _begin(request, supervisor, os.open(os.devnull, os.O_WRONLY))
        for namespace in view:
            linux.join(namespace)
        _take_place(request, supervisor)
        _enter_folder(request["cwd"], "/")
        _execute_porter(request)
    finally:  # nothing of the supervisor may go on here
        os._exit(1)


def _prepare(request: dict[str, Any], supervisor: int, log: int, hand: _socket.socket | None) -> None:
    _begin(request, supervisor, log)
    folder = open(request["workdir"], "rb") if request["workdir"] else None  # noqa: SIM115
    if folder:
        import tarfile  # noqa: F401  loaded while its files can surely be read
    identity = request["identity"]
    if identity and request["room"]:
        room.enter(request["room"], identity["uid"], identity["gid"])
        if hand:
            _hand_over_view(hand)
    _take_place(request, supervisor)
    _heed(preflight.check_folder(request["cwd"]))
    os.chdir(request["cwd"])
    if folder:
        shipped.unpack(folder)
    if request["checkpoint"]:
        _make_checkpoint_folder(request["checkpoint"])
    if request["argv"]:
        _heed(preflight.check(request["argv"], request["cwd"], request["env"].get("PATH", "")))


class _Unready(Exception):
    """It plainly cannot run."""

    def __init__(self, found: dict[str, str]) -> None:
        super().__init__(found["code"])
        self.found = found


def _heed(found: dict[str, str] | None) -> None:
    if found is not None:
        raise _Unready(found)


def _begin(request: dict[str, Any], supervisor: int, output: int) -> None:
    os.setsid()
    _forget_signals()
    _die_with(supervisor)
    _put_streams(output)
    _be_spared_no_more()
    if request["cgroup"]:
        cgroups.open_group(request["cgroup"]).join()


def _take_place(request: dict[str, Any], supervisor: int) -> None:
    """From here on with the rights of the owner, for good."""
    identity = request["identity"]
    if identity:
        linux.leave_keyring()
        _drop_rights(identity["uid"], identity["gid"])
        _die_with(supervisor)  # changing the user id forgot it
    linux.prctl(linux.PR_SET_NO_NEW_PRIVS, 1)
    os.umask(request["umask"])
    _set_limits()


def _hand_over_view(hand: _socket.socket) -> None:
    """Now, while it is as we made it: the job may make itself another one, which would not be ours to enter."""
    names = ("ipc", "mnt")  # in this order: the last one changes where /proc is
    view = [os.open(f"/proc/self/ns/{name}", os.O_RDONLY | os.O_CLOEXEC) for name in names]
    wire.send(hand, {}, view)
    wire.close_all(view)


def _enter_folder(*folders: str) -> None:
    for folder in folders:
        try:
            os.chdir(folder)
            return
        except OSError:
            continue


def _execute_porter(request: dict[str, Any]) -> NoReturn:
    """What it is to know goes through memory: nothing of it lies on a disk, and nobody can put something else there."""
    told = {name: request[name] for name in ("env", "cwd", "grace")}
    told |= {"argv": [], "log": None, "workdir": None} | request["porter"]["told"]
    memory = os.memfd_create("request", 0)
    left = json.dumps(told).encode("utf-8", "surrogateescape")
    while left:
        left = left[os.write(memory, left) :]
    os.lseek(memory, 0, os.SEEK_SET)
    kept = {name: os.environ[name] for name in ("LD_LIBRARY_PATH",) if name in os.environ}
    _execute([*request["porter"]["argv"], f"fd:{memory}"], {processes.MARKER: request["id"]} | kept)


def _forget_signals() -> None:
    """The job gets the default for every signal, not what Python or the supervisor made of it."""
    signal.set_wakeup_fd(-1)
    for number in (
        signal.SIGPIPE,
        signal.SIGXFSZ,
        signal.SIGCHLD,
        signal.SIGUSR1,
        signal.SIGTERM,
        signal.SIGHUP,
        signal.SIGINT,
    ):
        signal.signal(number, signal.SIG_DFL)
    signal.pthread_sigmask(signal.SIG_SETMASK, ())


def _die_with(supervisor: int) -> None:
    linux.prctl(linux.PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() != supervisor:  # it died before the line above
        os._exit(1)


def _be_spared_no_more() -> None:
    """The supervisor's place in the kernel's order of killing is not the job's."""
    with open("/proc/self/oom_score_adj", "w", encoding="ascii") as file:
        file.write("0")


def _put_streams(log: int) -> None:
    nothing = os.open(os.devnull, os.O_RDONLY)
    os.dup2(nothing, 0)
    os.dup2(log, 1)
    os.dup2(log, 2)


def _drop_rights(uid: int, gid: int) -> None:
    """Made files are the group's; the user's own group has the user's number."""
    os.setgroups(sorted({gid, uid}))
    os.setresgid(gid, gid, gid)
    os.setresuid(uid, uid, uid)


def _set_limits() -> None:
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    if hard == resource.RLIM_INFINITY or hard > _MOST_FILES:
        hard = _MOST_FILES
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))


def _make_checkpoint_folder(path: str) -> None:
    """With the user's own rights. Better told now than after hours whose work could not be saved."""
    try:
        os.makedirs(path, exist_ok=True)
    except OSError as problem:
        raise room.RoomProblem(f"the checkpoint folder {path} cannot be made: {problem.strerror}") from problem


def _in_words(problem: Exception) -> str:
    if isinstance(problem, room.RoomProblem | shipped.ShippedProblem):
        return str(problem)
    if isinstance(problem, OSError):
        return f"{problem.strerror}: {problem.filename}" if problem.filename else str(problem)
    return f"{type(problem).__name__}: {problem}"


def _execute(argv: list[str], env: dict[str, str]) -> NoReturn:
    try:
        os.execvpe(argv[0], argv, env)  # noqa: S606
    except (FileNotFoundError, NotADirectoryError):
        _give_up(f"yard: {argv[0]}: there is no such command", NOT_FOUND)
    except (OSError, ValueError) as problem:
        text = problem.strerror if isinstance(problem, OSError) else str(problem)
        _give_up(f"yard: {argv[0]}: it cannot be run: {text}", NOT_ALLOWED)


def _give_up(line: str, code: int) -> NoReturn:
    os.write(2, line.encode("utf-8", "replace") + b"\n")
    os._exit(code)
