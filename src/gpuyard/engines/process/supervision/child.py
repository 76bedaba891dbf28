"""From a fork of the supervisor to the user's command: session, cgroup, room, identity, working folder, exec."""

from __future__ import annotations

import os
import resource
import signal

from . import cgroups, linux, room

TYPE_CHECKING = False  # loading typing would cost every replica a tenth of its start
if TYPE_CHECKING:
    from tarfile import TarInfo
    from typing import IO, Any, NoReturn

NOT_FOUND, NOT_ALLOWED = 127, 126
_MOST_FILES = (
    1 << 16
)  # some programs walk through all numbers up to the limit; so does whoever looks for a card's holder
_LEAST_UNPACKED, _MOST_UNPACKED = 64 << 20, 10 << 30
_MOST_MEMBERS = 1_000_000


def become(request: dict[str, Any], *, supervisor: int, log: int, report: int) -> NoReturn:
    """Never returns. What keeps it from starting is written to `report`; a good start closes it."""
    try:
        _prepare(request, supervisor, log)
    except Exception as problem:  # the last process that can tell why
        os.write(report, _in_words(problem).encode("utf-8", "replace")[:4000] or b"unknown")
        os._exit(1)
    _execute(request["argv"], request["env"])


def _prepare(request: dict[str, Any], supervisor: int, log: int) -> None:
    os.setsid()
    _forget_signals()
    _die_with(supervisor)
    _put_streams(log)
    _be_spared_no_more()
    if request["cgroup"]:
        cgroups.open_group(request["cgroup"]).join()
    shipped = open(request["workdir"], "rb") if request["workdir"] else None  # noqa: SIM115
    if shipped:
        import tarfile  # noqa: F401  loaded while its files can surely be read
    identity = request["identity"]
    if identity:
        if request["room"]:
            room.enter(request["room"], identity["uid"], identity["gid"])
        linux.leave_keyring()
        _drop_rights(identity["uid"], identity["gid"])
        _die_with(supervisor)  # changing the user id forgot it
    linux.prctl(linux.PR_SET_NO_NEW_PRIVS, 1)
    os.umask(request["umask"])
    _set_limits()
    os.chdir(request["cwd"])
    if shipped:
        _unpack(shipped)
    if request["checkpoint"]:
        _make_checkpoint_folder(request["checkpoint"])


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


def _unpack(shipped: IO[bytes]) -> None:
    import tarfile

    measure = _Measure(os.fstat(shipped.fileno()).st_size)
    try:
        with shipped, tarfile.open(fileobj=shipped, mode="r:*") as folder:
            folder.extractall(".", filter=measure.let_pass)  # noqa: S202  as the user, and it keeps it inside
    except (tarfile.TarError, EOFError, ValueError) as problem:
        raise room.RoomProblem(f"the shipped folder cannot be unpacked: {problem}") from problem


def _make_checkpoint_folder(path: str) -> None:
    """With the user's own rights. Better told now than after hours whose work could not be saved."""
    try:
        os.makedirs(path, exist_ok=True)
    except OSError as problem:
        raise room.RoomProblem(f"the checkpoint folder {path} cannot be made: {problem.strerror}") from problem


class _Measure:
    """A small file can unpack into one that fills the disk. What is not packed tightly passes at any size."""

    def __init__(self, packed: int) -> None:
        self._most = max(packed, min(max(20 * packed, _LEAST_UNPACKED), _MOST_UNPACKED))
        self._bytes = self._members = 0

    def let_pass(self, member: TarInfo, path: str) -> TarInfo:
        import tarfile

        self._members += 1
        self._bytes += member.size
        if self._members > _MOST_MEMBERS:
            raise room.RoomProblem(f"the shipped folder has more than {_MOST_MEMBERS} entries")
        if self._bytes > self._most:
            raise room.RoomProblem(f"the shipped folder unpacks to more than {self._most >> 20} MiB")
        return tarfile.data_filter(member, path)


def _in_words(problem: Exception) -> str:
    if isinstance(problem, room.RoomProblem):
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
