"""Watching one job to its end: its output on stdout as it comes, what happens to it on stderr.

The main thread looks at the job's state and answers Ctrl-C; one thread per replica brings its log.
"""

from __future__ import annotations

import os
import select
import sys
import threading
from typing import TYPE_CHECKING

import click

from gpuyard.cli.failures import FAILED, INTERRUPTED, words_of
from gpuyard.cli.labels import state_label
from gpuyard.cli.logs import log_command
from gpuyard.cli.output import by_local_clock, note, printable, spent
from gpuyard.cli.phrases import say
from gpuyard.cli.taken import never_in_words
from gpuyard.cli.terminal import TerminalFilter
from gpuyard.domain.reasons import Code
from gpuyard.domain.resources import show_bytes
from gpuyard.sdk.errors import YardApiError
from gpuyard.sdk.follow import LogPiece, LogSource, follow_log
from gpuyard.sdk.job import Job, exit_code_of

if TYPE_CHECKING:
    from gpuyard.sdk.wire import Wire

MOST_REPLICAS_SHOWN = 16
LONGEST_LINE = 64 * 1024
NOBODY_LOOKED_YET = Code.NEW.value  # says nothing, and is over at once
QUICKEST_LOOK_SECONDS, SLOWEST_LOOK_SECONDS = 0.1, 1.0
LOOK_WHILE_ASKING_SECONDS = 1.0


class Screen:
    """stdout, shared by the replicas. Nothing is written while a question is on the screen."""

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self._filter = TerminalFilter() if sys.stdout.isatty() else None

    def write(self, text: str) -> None:
        with self.lock:
            if self._filter is not None:
                text = self._filter.feed(text)
            sys.stdout.buffer.write(text.encode("utf-8", "replace"))
            sys.stdout.buffer.flush()


class LabelledLines:
    """Whole lines with the replica's name before each, so that several logs can share the screen."""

    def __init__(self, screen: Screen, label: str) -> None:
        self._screen, self._label, self._pending = screen, label, ""

    def write(self, text: str) -> None:
        *lines, self._pending = (self._pending + text).split("\n")
        if len(self._pending) > LONGEST_LINE:
            lines, self._pending = [*lines, self._pending], ""
        if lines:
            # Of a progress bar, only what it showed last.
            shown = (line.rstrip("\r").rsplit("\r", 1)[-1] for line in lines)
            self._screen.write("".join(f"{self._label} | {line}\n" for line in shown))

    def finish(self) -> None:
        if self._pending:
            self.write("\n")


class Follower(threading.Thread):
    """Brings the log of one replica to the screen."""

    def __init__(self, wire: Wire, source: LogSource, out: Screen | LabelledLines, woken: threading.Event) -> None:
        super().__init__(daemon=True, name=f"log {source.replica}")
        self._wire, self._source, self._out, self._woken = wire, source, out, woken
        self.problem: YardApiError | OSError | None = None

    def run(self) -> None:
        try:
            for piece in follow_log(self._wire, self._source):
                write_piece(piece, self._out)
            if isinstance(self._out, LabelledLines):
                self._out.finish()
        except (YardApiError, OSError) as problem:
            self.problem = problem
        finally:
            self._woken.set()


def write_piece(piece: LogPiece, out: Screen | LabelledLines) -> None:
    if piece.dropped:
        note(say("logs.gap", size=show_bytes(piece.end - piece.start)))
    else:
        out.write(piece.text)


class Watch:
    """The state of watching: what was told already, and which attempt's logs are being brought."""

    def __init__(self, job: Job) -> None:
        self.job = job
        self.screen = Screen()
        self.woken = threading.Event()
        self.followers: list[Follower] = []
        self.attempt = 0
        self.told = ("", "")
        self.pause = QUICKEST_LOOK_SECONDS

    def look(self) -> bool:
        """Look once. True when the job has ended and all its output is shown."""
        self.job = self.job.refresh(patience_seconds=self.job.client.patience_seconds)
        self._tell_state()
        if self.job.attempt > self.attempt and not self._busy():
            self._follow_attempt(self.attempt + 1)
        finished = self.job.ended and self.attempt == self.job.attempt and not self._busy()
        self._raise_if_nobody_reads()  # last: a reader may leave while the state is asked for
        return finished

    def rest(self) -> None:
        """Until the next look: sooner when a log ended, since then something has happened."""
        if self.woken.wait(self.pause):
            self.woken.clear()
            self.pause = QUICKEST_LOOK_SECONDS
        else:
            self.pause = min(self.pause * 1.3, SLOWEST_LOOK_SECONDS)

    def problems(self) -> list[YardApiError]:
        found = (follower.problem for follower in self.followers)
        return [problem for problem in found if isinstance(problem, YardApiError)]

    def _raise_if_nobody_reads(self) -> None:
        for follower in self.followers:
            if isinstance(follower.problem, OSError):
                raise follower.problem

    def _busy(self) -> bool:
        return any(follower.is_alive() for follower in self.followers)

    def _tell_state(self) -> None:
        job = self.job
        news = (job.state, job.reason)
        if job.ended or news == self.told or job.reason_code == NOBODY_LOOKED_YET or job.can_never_start:
            return
        self.told = news
        self.pause = QUICKEST_LOOK_SECONDS
        phrase = "run.state_because" if job.reason else "run.state"
        note(say(phrase, id=job.id, state=state_label(job.state), reason=by_local_clock(printable(job.reason))))

    def _follow_attempt(self, number: int) -> None:
        """One after the other: an attempt that failed faster than we look has its output shown too."""
        job = self.job
        if number > 1:
            note(say("run.attempt", id=job.id, number=number))
        self.attempt = number
        names = [r.replica for attempt in job.attempts if attempt.number == number for r in attempt.replicas]
        shown = names[:MOST_REPLICAS_SHOWN]
        if len(names) > len(shown):
            note(say("run.first_replicas", shown=len(shown), all=len(names), id=job.id))
        self.followers = [
            Follower(
                job.client.wire,
                LogSource(job.id, number, name),
                self.screen if len(names) == 1 else LabelledLines(self.screen, name),
                self.woken,
            )
            for name in shown
        ]
        for follower in self.followers:
            follower.start()


def watch(job: Job) -> int:
    """Show everything until the end; returns the exit code of `yard run`."""
    state = Watch(job)
    stopped_by_us = False
    while True:
        try:
            if state.look():
                break
            if state.job.can_never_start:
                return _give_up(state)
            state.rest()
        except KeyboardInterrupt:
            answer = _ask(state)
            if answer in ("d", ""):
                note(say("run.detached", id=job.id))
                return 0 if answer == "d" else INTERRUPTED
            if answer == "s":
                stopped_by_us = True
                _stop(state)
    for problem in state.problems():
        note(say("run.no_log", problem=words_of(problem)))
    tell_verdict(state.job)
    return INTERRUPTED if stopped_by_us and state.job.state == "stopped" else exit_code_of(state.job)


def _give_up(state: Watch) -> int:
    """Nothing will ever start it: say so rather than wait for ever, and leave nothing in the queue."""
    note(f"{state.job.id}: {never_in_words(state.job.reason)}")
    try:
        state.job.stop()
        note(say("run.given_up", id=state.job.id))
    except YardApiError as error:
        note(words_of(error))
    return FAILED


def _ask(state: Watch) -> str:
    """What Ctrl-C meant: s, d or c; empty when there is nobody to ask."""
    if not sys.stdin.isatty():
        return ""
    with state.screen.lock:
        try:
            while True:
                job = state.job
                click.echo(say("run.ask", id=job.id, state=state_label(job.state)), err=True, nl=False)
                answer = _answer(state)
                if answer is None:
                    note(say("run.ended_meanwhile", id=job.id))
                    return "c"
                if not answer:
                    return "d"
                if answer.strip()[:1].lower() in ("s", "d", "c"):
                    return answer.strip()[:1].lower()
                note(say("run.not_understood", answer=printable(answer.strip())))
        except KeyboardInterrupt:
            click.echo(err=True)
            return "d"


def _answer(state: Watch) -> str | None:
    """The line that is typed; empty at the end of input, None when the job has ended before one came."""
    keyboard = sys.stdin.fileno()
    while not select.select([keyboard], [], [], LOOK_WHILE_ASKING_SECONDS)[0]:
        if _has_ended(state):
            return None
    return os.read(keyboard, 4096).decode("utf-8", "replace")


def _has_ended(state: Watch) -> bool:
    """A server that does not answer just now is no reason to take the question back."""
    try:
        return state.job.refresh().ended
    except YardApiError:
        return False


def _stop(state: Watch) -> None:
    try:
        state.job.stop()
        note(say("done.stop", job=state.job.id))
    except YardApiError as error:  # it may have ended in between: the next look tells
        note(words_of(error))


def tell_verdict(job: Job) -> None:
    reason = printable(job.reason)
    retried = job.state == "failed" and any((job.raw.get("retries_used") or {}).values())
    phrase = "run.failed_again" if retried else f"run.{job.state}"
    took = spent(job.started_at, job.ended_at) or "0s"
    note(say(phrase, id=job.id, reason=reason, time=took, number=job.attempt))
    if command := log_command(job):
        note(say("run.see_log", command=command))
