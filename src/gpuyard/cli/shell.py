"""`yard shell`: a terminal of one's own inside a running replica. It outlives a lost connection."""

from __future__ import annotations

import contextlib
import os
import select
import shutil
import signal
import sys
import time
from collections.abc import Iterator
from typing import TYPE_CHECKING

import click

from gpuyard.cli.failures import FAILED, Refused
from gpuyard.cli.output import note
from gpuyard.cli.phrases import say
from gpuyard.cli.shared import open_client
from gpuyard.sdk.errors import NotAllowed, NotFound, ServerUnreachable, YardApiError

if TYPE_CHECKING:
    from gpuyard.sdk.shells import Shell

AGAIN_SECONDS = 1800.0  # as long as a shell waits for us
SILENT_SECONDS = 70.0  # the gateway says something every 20
END_OF_INPUT = b"\x04"
GIVE_UP = (b"\x03", b"\x1d")  # Ctrl-C and Ctrl-], while there is nobody to send them to
CLEAR = b"\x1b[H\x1b[2J\x1b[3J"
LOST_CODE = 255


@click.command(help=say("shell"), epilog=say("shell.examples"))
@click.argument("ref", metavar="ID")
@click.option("--replica", metavar="NAME", help=say("opt.shell_replica"))
@click.argument("command", nargs=-1, type=click.UNPROCESSED, metavar="[-- COMMAND...]")
def shell(ref: str, replica: str | None, command: tuple[str, ...]) -> int:
    cols, rows = shutil.get_terminal_size()
    inside = open_client().shell(ref, replica=replica, argv=_words(command), rows=rows, cols=cols)
    inside.attach()
    try:
        with _raw_terminal(), _told_of_sizes() as sizes:
            return Sitting(inside, sizes, may_begin_anew=not command).run()
    finally:
        inside.detach()


def _words(command: tuple[str, ...]) -> tuple[str, ...]:
    """One argument with blanks in it is a line for the shell, as with `yard run` and with ssh."""
    return ("sh", "-c", command[0]) if len(command) == 1 and " " in command[0].strip() else command


class Sitting:
    """From the first letter to the end of the shell."""

    def __init__(self, shell: Shell, sizes: int, *, may_begin_anew: bool) -> None:
        self._shell = shell
        self._sizes = sizes
        self._may_begin_anew = may_begin_anew
        self._stdin: int | None = sys.stdin.fileno()
        self._is_terminal = os.isatty(self._stdin)
        self._heard_at = time.monotonic()

    def run(self) -> int:
        from gpuyard.sdk.websocket import ConnectionLost

        while True:
            try:
                code = self._turn()
                if code is not None:
                    return code
            except ConnectionLost:
                if not self._attach_again():
                    return LOST_CODE

    def _turn(self) -> int | None:
        watched = [self._shell.fileno(), self._sizes, *([] if self._stdin is None else [self._stdin])]
        ready = watched[:1] if self._shell.has_more else select.select(watched, [], [], 5.0)[0]
        if self._sizes in ready:
            os.read(self._sizes, 100)
            cols, rows = shutil.get_terminal_size()
            self._shell.resize(rows, cols)
        if self._stdin is not None and self._stdin in ready:
            self._pass_on(self._stdin)
        if watched[0] in ready:
            self._heard_at = time.monotonic()
            return self._show()
        if time.monotonic() - self._heard_at > SILENT_SECONDS:
            from gpuyard.sdk.websocket import ConnectionLost

            raise ConnectionLost
        return None

    def _pass_on(self, stdin: int) -> None:
        data = os.read(stdin, 65536)
        if data:
            self._shell.type(data)
        else:
            self._stdin = None
            self._shell.type(END_OF_INPUT)

    def _show(self) -> int | None:
        from gpuyard.sdk.shells import Ended, ShownOut

        for heard in self._shell.hear():
            if isinstance(heard, bytes):
                _write(heard)
            elif isinstance(heard, Ended):
                return _exit_code(heard.code)
            elif isinstance(heard, ShownOut):
                _say(say("shell.shown_out"))
                return FAILED
        return None

    def _attach_again(self) -> bool:
        """Patiently. False when whoever sits here has had enough."""
        _say(say("shell.lost"))
        deadline, pause = time.monotonic() + AGAIN_SECONDS, 0.2
        while time.monotonic() < deadline:
            if self._has_had_enough(pause):
                return False
            pause = min(pause * 1.6, 5.0)
            try:
                self._shell.attach()
            except NotFound:
                if self._shell.session is None:
                    raise
                if not self._may_begin_anew:
                    raise Refused(say("shell.command_lost"), LOST_CODE) from None
                self._shell.session = None  # the shell is gone; a new one, and said so
                continue
            except NotAllowed:
                raise
            except YardApiError as error:
                if not isinstance(error, ServerUnreachable) and error.status not in (429, 502, 503):
                    raise
                continue
            self._heard_at = time.monotonic()
            _write(CLEAR if self._is_terminal else b"")  # all that was shown comes again
            if self._shell.session is None:
                _say(say("shell.new"))
            return True
        raise Refused(say("shell.given_up", seconds=int(AGAIN_SECONDS)))

    def _has_had_enough(self, seconds: float) -> bool:
        """Wait. What is typed meanwhile is for nobody."""
        deadline = time.monotonic() + seconds
        while (left := deadline - time.monotonic()) > 0:
            if not self._is_terminal or self._stdin is None:
                time.sleep(left)
            elif select.select([self._stdin], [], [], left)[0] and os.read(self._stdin, 65536).endswith(GIVE_UP):
                return True
        return False


def _exit_code(code: int | None) -> int:
    """As shells tell it: 128 and the number for a signal."""
    if code is None:
        return LOST_CODE
    return code if code >= 0 else 128 - code


def _write(data: bytes) -> None:
    while data:
        data = data[os.write(1, data) :]


def _say(text: str) -> None:
    if sys.stderr.isatty():
        _write(f"{text}\r\n".encode())
    else:
        note(text.strip())


@contextlib.contextmanager
def _raw_terminal() -> Iterator[None]:
    """Every key goes inside, also Ctrl-C. Put back whatever happens."""
    if not sys.stdin.isatty():
        yield
        return
    import termios
    import tty

    descriptor = sys.stdin.fileno()
    before = termios.tcgetattr(descriptor)
    try:
        tty.setraw(descriptor, termios.TCSADRAIN)  # what is typed ahead is not lost
        yield
    finally:
        termios.tcsetattr(descriptor, termios.TCSADRAIN, before)


@contextlib.contextmanager
def _told_of_sizes() -> Iterator[int]:
    """A descriptor that can be read when the window changes."""
    bell, mouth = os.pipe()
    os.set_blocking(mouth, False)

    def changed(number: int, frame: object) -> None:
        with contextlib.suppress(BlockingIOError):
            os.write(mouth, b".")

    before = signal.signal(signal.SIGWINCH, changed)
    try:
        yield bell
    finally:
        signal.signal(signal.SIGWINCH, before)
        os.close(bell)
        os.close(mouth)


COMMANDS = (shell,)
