"""One session of a visitor: a shell, a command or a subsystem, running inside, seen through a channel."""

from __future__ import annotations

import asyncio
import contextlib
import fcntl
import logging
import os
import signal
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

import asyncssh

from gpuyard import words
from gpuyard.domain.errors import YardError
from gpuyard.domain.reasons import Code, Reason, because
from gpuyard.gateway.ssh.inside import Program
from gpuyard.gateway.ssh.pumps import Sink, Source

if TYPE_CHECKING:
    from gpuyard.gateway.ssh.visitors import Visitor

PIPE_BYTES = 1024 * 1024
REFUSED = 255  # as ssh itself ends when it cannot do what was asked
NO_SFTP_SERVER = 97
LONGEST_VALUE = 256
LARGEST_SIZE = 4096
MOST_VARIABLES = 64
WRITE_HIGH, WRITE_LOW = 256 * 1024, 64 * 1024
# Looked for inside, in this order: the toolbox's own, then where distributions put it.
FIND_SFTP = (
    'for p in "${YARD_TOOLBOX:-/opt/yard}/libexec/sftp-server" /usr/lib/openssh/sftp-server '
    "/usr/lib/ssh/sftp-server /usr/libexec/openssh/sftp-server /usr/libexec/sftp-server; do "
    f'if [ -x "$p" ]; then exec "$p"; fi; done; exit {NO_SFTP_SERVER}'
)
_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Terminal:
    term: str
    rows: int
    cols: int
    modes: Mapping[int, int]


class FewVariables(dict[bytes, bytes]):
    """Of what a visitor wants to have set, so much is kept as anybody could mean."""

    def __setitem__(self, key: bytes, value: bytes) -> None:
        if len(self) < MOST_VARIABLES and len(key) + len(value) <= LONGEST_VALUE:
            super().__setitem__(key, value)


class Session(asyncssh.SSHServerSession[bytes]):
    """Everything asyncssh tells about one session, and the program that answers it."""

    def __init__(self, visitor: Visitor) -> None:
        self._visitor = visitor
        self._channel: asyncssh.SSHServerChannel[bytes]
        self._is_open = False
        self._terminal: Terminal | None = None
        self._line: str | None = None
        self._is_sftp = False
        self._sink: Sink
        self._sources: list[Source] = []
        self._held = False
        self._program: Program | None = None
        self._task: asyncio.Task[None] | None = None

    # --- what the visitor asks for --------------------------------------------------------------------------------

    def connection_made(self, chan: asyncssh.SSHServerChannel[bytes]) -> None:
        self._channel = chan
        self._is_open = True
        self._sink = Sink(chan)
        chan.set_write_buffer_limits(WRITE_HIGH, WRITE_LOW)
        vars(chan)["_env"] = FewVariables()  # asyncssh keeps as many as are sent

    def pty_requested(
        self, term_type: str, term_size: tuple[int, int, int, int], term_modes: Mapping[int, int]
    ) -> bool:
        term = term_type if term_type.isprintable() and 0 < len(term_type) <= 64 else "xterm"
        cols, rows = term_size[0], term_size[1]
        self._terminal = Terminal(term, _size(rows, 24), _size(cols, 80), dict(term_modes))
        return True

    def shell_requested(self) -> bool:
        return True

    def exec_requested(self, command: str) -> bool:
        self._line = command
        return "\0" not in command

    def subsystem_requested(self, subsystem: str) -> bool:
        self._is_sftp = subsystem == "sftp"
        self._line, self._terminal = FIND_SFTP, None
        return self._is_sftp

    def session_started(self) -> None:
        self._task = asyncio.create_task(self._serve())

    def data_received(self, data: bytes, datatype: asyncssh.DataType) -> None:
        self._visitor.worked()
        self._sink.take(data)

    def eof_received(self) -> bool:
        """The other direction stays open. A terminal has no half that could be closed."""
        if self._terminal is None:
            self._sink.finish()
        return True

    def terminal_size_changed(self, width: int, height: int, pixwidth: int, pixheight: int) -> None:
        if self._terminal is None:
            return
        self._terminal = Terminal(self._terminal.term, _size(height, 24), _size(width, 80), self._terminal.modes)
        if self._program is not None:
            self._program.resize(self._terminal.rows, self._terminal.cols)

    def signal_received(self, signal: str) -> None:
        number = _signal_number(signal)
        if self._program is not None and number is not None:
            self._program.signal(number)

    def break_received(self, msec: int) -> bool:
        return False

    def pause_writing(self) -> None:
        self._held = True
        for source in self._sources:
            source.hold("channel")

    def resume_writing(self) -> None:
        self._held = False
        for source in self._sources:
            source.release("channel")

    def connection_lost(self, exc: Exception | None) -> None:
        self._is_open = False
        self._visitor.session_over(self)
        if self._task is not None:
            self._task.cancel()
        self._let_go()

    # --- what is done about it ------------------------------------------------------------------------------------

    async def _serve(self) -> None:
        try:
            code = await self._run()
        except YardError as error:
            self.say(error.reason)
            code = REFUSED
        except Exception:  # whatever it was, the visitor must not wait for it
            _log.exception("a session over SSH failed")
            code = REFUSED
        self._end(code)

    async def _run(self) -> int:
        for remark in self._visitor.take_remarks():
            self.say(remark)
        target = await self._visitor.enter()
        program = await self._start(target.replica)
        self._program = program
        if not self._is_open:  # whoever waits with a deadline may not notice that the visitor left meanwhile
            self._let_go()
            return REFUSED
        code = await program.wait()
        await self._drain()
        if self._is_sftp and code == NO_SFTP_SERVER:
            self.say(because(Code.NO_SFTP))
        return code

    async def _start(self, replica: str) -> Program:
        terminal = self._terminal
        if terminal is None:
            return await self._start_with_pipes(replica)
        stream, program = await self._visitor.house.broker.shell(
            replica,
            self._visitor.user,
            line=self._line,
            env=self._env(),
            rows=terminal.rows,
            cols=terminal.cols,
            term=terminal.term,
            modes=terminal.modes,
        )
        self._sink.attach(os.dup(stream))
        self._pour(stream, self._channel.write)
        latest = self._terminal or terminal  # the window may have changed meanwhile
        if latest is not terminal:
            program.resize(latest.rows, latest.cols)
        return program

    async def _start_with_pipes(self, replica: str) -> Program:
        theirs: list[int] = []
        ours: list[int] = []
        try:
            for their_end in (0, 1, 1):
                pair = _pipe()
                theirs.append(pair[their_end])
                ours.append(pair[1 - their_end])
            program = await self._visitor.house.broker.run(
                replica,
                self._visitor.user,
                line=self._line,
                argv=None,
                env=self._env(),
                fds=(theirs[0], theirs[1], theirs[2]),
            )
        except BaseException:
            for fd in ours:
                os.close(fd)
            raise
        finally:
            for fd in theirs:
                os.close(fd)
        self._sink.attach(ours[0])
        self._pour(ours[1], self._channel.write)
        self._pour(ours[2], self._channel.write_stderr)
        return program

    def _pour(self, fd: int, write: Callable[[bytes], None]) -> None:
        def give(data: bytes) -> None:
            self._visitor.worked()
            write(data)
            self._visitor.sent()

        source = Source(fd, give)
        if self._held:
            source.hold("channel")
        self._sources.append(source)
        self._visitor.add_source(source)

    async def _drain(self) -> None:
        """What was written before the end is still told. As with any sshd, a pipe is read until everyone has closed it;
        a terminal's stream ends with what the broker still found in it."""
        for source in self._sources:
            await source.ended.wait()

    def _env(self) -> dict[str, str]:
        """Only what tells the language, and where the visitor comes from."""
        given = self._channel.get_environment()
        language = {key: value for key, value in given.items() if _is_language(key, value)}
        return {**language, **self._visitor.connection_env}

    def say(self, reason: Reason) -> None:
        if not self._is_open:
            return
        text = words.say(reason, self._language()) + "\n"
        with contextlib.suppress(OSError):
            if self._terminal is None:
                self._channel.write_stderr(text.encode())
            else:
                self._channel.write(text.replace("\n", "\r\n").encode())

    def _language(self) -> words.LanguageName:
        given = self._channel.get_environment()
        told = given.get("LC_ALL") or given.get("LC_MESSAGES") or given.get("LANG") or ""
        return "zh" if told.startswith("zh") else self._visitor.house.language

    def _end(self, code: int) -> None:
        with contextlib.suppress(OSError):
            if code < 0 and (name := _signal_name(-code)):
                self._channel.exit_with_signal(name)
            else:
                self._channel.exit(code)

    def _let_go(self) -> None:
        """The visitor is gone, or everything is done."""
        self._sink.close()
        for source in self._sources:
            self._visitor.remove_source(source)
            source.close()
        program, self._program = self._program, None
        if program is not None:
            if self._terminal is not None:
                program.close()
            else:
                self._visitor.house.linger(program)


def _pipe() -> tuple[int, int]:
    read, write = os.pipe2(os.O_CLOEXEC)
    with contextlib.suppress(OSError):  # over the system's allowance for large pipes
        fcntl.fcntl(write, fcntl.F_SETPIPE_SZ, PIPE_BYTES)
    # Whoever runs inside is another system user, and programs open /dev/stdout and /dev/stderr by name.
    os.fchmod(read, 0o666)
    return read, write


def _is_language(key: str, value: str) -> bool:
    return (key == "LANG" or key.startswith("LC_")) and key.isidentifier() and _is_plain(value)


def _is_plain(value: str) -> bool:
    return len(value) <= LONGEST_VALUE and value.isascii() and value.isprintable()


def _signal_number(name: str) -> int | None:
    found = getattr(signal, f"SIG{name}", None) if name.isalnum() else None
    return int(found) if isinstance(found, signal.Signals) else None


def _signal_name(number: int) -> str | None:
    try:
        return signal.Signals(number).name.removeprefix("SIG")
    except ValueError:
        return None


def _size(number: int, usual: int) -> int:
    """One that a terminal can have."""
    return min(number, LARGEST_SIZE) if number > 0 else usual
