"""One workload as the server told it, and what can be asked of it."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, ClassVar, Literal, Self, overload

from gpuyard.domain.reasons import Code
from gpuyard.domain.workload import ENDED
from gpuyard.sdk.answers import read_answer
from gpuyard.sdk.follow import LogPiece, LogSource, follow_log
from gpuyard.sdk.results import NEVER_STARTS, Attempt, Before, Estimate, Event, Told, Why

if TYPE_CHECKING:
    from gpuyard.sdk.client import Client

ENDED_STATES = frozenset(state.value for state in ENDED)
TIME_UP_EXIT_CODE = 124  # as timeout(1) ends
CANNOT_RUN = {  # seen before the start, and told as a shell that tried would
    Code.NO_START_FILE.value: 127,
    Code.NO_SUCH_COMMAND.value: 127,
    Code.NO_INTERPRETER.value: 127,
    Code.NOT_EXECUTABLE.value: 126,
    Code.START_FILE_IS_FOLDER.value: 126,
}
LOG_PAGE_BYTES = 4 << 20
FIRST_LOOK_SECONDS, SLOWEST_LOOK_SECONDS = 0.1, 2.0


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class Job(Told):
    """A workload at the moment it was asked for. It does not change; `refresh()` gives the newer one."""

    parts: ClassVar[Mapping[str, type[Told]]] = {"attempts": Attempt}
    single: ClassVar[Mapping[str, type[Told]]] = {"expected_start": Estimate, "expected_end": Estimate}
    client: Client = field(repr=False, compare=False)
    id: str = ""
    name: str = ""
    kind: str = "job"
    state: str = ""
    reason: str = ""
    reason_code: str = ""
    reason_facts: Mapping[str, Any] = field(default_factory=dict)
    owner: str = ""
    group: str = ""
    priority: int = 0
    wanted: str = ""
    submitted_at: str = ""
    started_at: str | None = None
    ended_at: str | None = None
    exit_code: int | None = None
    attempt: int = 0
    image: str | None = None
    cards: float = 0
    device: str | None = None
    replicas: int = 1
    simulated_cards: bool = False
    saved_step: int | None = None
    replicas_by_state: Mapping[str, int] = field(default_factory=dict)
    origin: Mapping[str, Any] | None = None
    """Through which front door it came, and what that door remembers."""
    removed_at: str | None = None
    expected_start: Estimate | None = None  # of one that waits
    expected_end: Estimate | None = None  # of one that runs
    max_seconds: float | None = None
    preemptible: bool = False
    together: str = "any"
    checkpoint: str | None = None
    attempts: tuple[Attempt, ...] = ()

    @classmethod
    def of(cls, client: Client, data: Mapping[str, Any]) -> Self:
        return cls.read(data, client=client)

    def __repr__(self) -> str:
        return f"Job(id={self.id!r}, name={self.name!r}, state={self.state!r}, reason={self.reason!r})"

    @property
    def ended(self) -> bool:
        return self.state in ENDED_STATES

    @property
    def can_never_start(self) -> bool:
        """It waits for something that no end of other work will bring."""
        return self.state == "queued" and self.reason_code in NEVER_STARTS

    @property
    def warnings(self) -> tuple[str, ...]:
        """What the server had to say about a job it took; only in the answer to a submit."""
        return tuple(map(str, self.raw.get("warnings") or ()))

    @property
    def failed_replica(self) -> str | None:
        """The replica that the failure is about, when it names one of the newest attempt's."""
        told = self.reason_facts.get("replica") if self.state == "failed" else None
        names = [replica.replica for attempt in self.attempts[-1:] for replica in attempt.replicas]
        return str(told) if told in names else None

    def refresh(self, *, patience_seconds: float = 0.0) -> Job:
        return self.client.job(self.id, patience_seconds=patience_seconds)

    def wait(self, timeout: float | None = None) -> Job:
        """Until it has ended, through server restarts. Returns the newest look at it: `job = job.wait()`.

        This job itself stays as it was told. Raises TimeoutError when it has not ended after `timeout` seconds.
        """
        deadline = None if timeout is None else time.monotonic() + timeout
        pause, job = FIRST_LOOK_SECONDS, self
        while not job.ended:
            if deadline is not None and time.monotonic() + pause > deadline:
                raise TimeoutError(f"{job.id} is still {job.state} after {timeout:g} s")
            time.sleep(pause)
            pause = min(pause * 1.3, SLOWEST_LOOK_SECONDS)
            job = job.refresh(patience_seconds=self.client.patience_seconds)
        return job

    def stop(self) -> Job:
        return self._wish("stop")

    def remove(self) -> Job:
        """Stop it if it has not ended, and take it off the lists; by its id it is still found."""
        return Job.of(self.client, self.client.wire.told("DELETE", f"/api/v1/workloads/{self.id}"))

    def pause(self) -> Job:
        return self._wish("pause")

    def resume(self) -> Job:
        return self._wish("resume")

    def set_priority(self, priority: int | str) -> Job:
        """Another priority, as a number or the name of a class; only while it has not ended."""
        answer = self.client.wire.ask("PATCH", f"/api/v1/workloads/{self.id}", body={"priority": priority})
        return Job.of(self.client, read_answer(answer.content))

    def rerun(self, set: Mapping[str, Any] | None = None, *, instead: bool = False) -> Job:
        """Submit it again as a new job, changed by `set`: `{"cards": 4, "env.LR": "0.1"}`.

        `instead`: this one, which waits, is stopped, and the new one takes its place in the queue.
        """
        return self.client.rerun(self.id, set, instead=instead)

    def events(self) -> list[Event]:
        return [Event.read(event) for event in self.client.listing(f"/workloads/{self.id}/events")]

    def why(self, *, remedies: bool = True) -> Why:
        """Why it is as it is; `remedies=False` answers faster, without what would start it now."""
        return Why.read(self.client.get(f"/workloads/{self.id}/why", remedies=None if remedies else "false"))

    def before(self, other: str) -> Before:
        """Why did, or does, this one come before the other?"""
        return self.client.before(self.id, other)

    def file(self) -> dict[str, Any]:
        """The job file it came from, ready to be submitted again."""
        return dict(self.client.get(f"/workloads/{self.id}/file"))

    def usage(self) -> list[dict[str, Any]]:
        """CPU, memory and cards over the last hours, per replica."""
        return self.client.listing(f"/workloads/{self.id}/usage")

    @overload
    def logs(
        self,
        *,
        follow: Literal[False] = False,
        tail: int | None = None,
        replica: str | None = None,
        attempt: int | None = None,
    ) -> str: ...
    @overload
    def logs(
        self,
        *,
        follow: Literal[True],
        tail: int | None = None,
        replica: str | None = None,
        attempt: int | None = None,
    ) -> Iterator[str]: ...
    def logs(
        self,
        *,
        follow: bool = False,
        tail: int | None = None,
        replica: str | None = None,
        attempt: int | None = None,
    ) -> str | Iterator[str]:
        """The output of one replica: all of it so far, or (`follow`) piece by piece until the end.

        Following without naming an attempt goes on into the next attempt when the job is tried again.
        """
        pieces = self.log_pieces(follow=follow, tail=tail, replica=replica, attempt=attempt)
        texts = (_in_words(piece) for piece in pieces)
        return texts if follow else "".join(texts)

    def log_pieces(
        self, *, follow: bool, tail: int | None = None, replica: str | None = None, attempt: int | None = None
    ) -> Iterator[LogPiece]:
        """As `logs`, with the place of each piece."""
        if not follow:
            return self._kept_log(LogSource(self.id, attempt or self._newest_attempt(), replica), tail)
        if attempt:
            return follow_log(self.client.wire, LogSource(self.id, attempt, replica), tail=tail)
        return self._follow_attempts(tail, replica)

    def _follow_attempts(self, tail: int | None, replica: str | None) -> Iterator[LogPiece]:
        done, pause, job = 0, FIRST_LOOK_SECONDS, self
        while True:
            job = job.refresh(patience_seconds=self.client.patience_seconds)
            if job.attempt > done:
                # The newest first; after that none is left out, however quickly it failed.
                number = done + 1 if done else job.attempt
                yield from follow_log(self.client.wire, LogSource(self.id, number, replica), tail=tail)
                done, tail, pause = number, None, FIRST_LOOK_SECONDS
            elif job.ended:
                return
            else:
                time.sleep(pause)
                pause = min(pause * 1.3, SLOWEST_LOOK_SECONDS)

    def _kept_log(self, source: LogSource, tail: int | None) -> Iterator[LogPiece]:
        if not source.attempt:
            return
        position: int | None = None if tail is not None else 0
        size: int | None = None
        while True:
            answer = self.client.wire.ask(
                "GET",
                f"/api/v1/workloads/{source.workload}/logs",
                params={
                    "attempt": source.attempt,
                    "replica": source.replica,
                    "offset": position,
                    "tail": tail if position is None else None,
                    "limit": LOG_PAGE_BYTES,
                },
            )
            start, end = int(answer.headers["X-Log-Start"]), int(answer.headers["X-Log-End"])
            # What is written after the first look belongs to the next reading: a flood must not keep us here.
            size = int(answer.headers["X-Log-Size"]) if size is None else size
            if position is not None and start > position:
                yield LogPiece("", position, start, dropped=True)
            if end > start:
                yield LogPiece(answer.text, start, end)
            if end >= size or end <= (position or 0):
                return
            position = end

    def _newest_attempt(self) -> int:
        return self.refresh().attempt

    def _wish(self, verb: str) -> Job:
        answer = self.client.wire.ask("POST", f"/api/v1/workloads/{self.id}/{verb}")
        return Job.of(self.client, read_answer(answer.content))


def _in_words(piece: LogPiece) -> str:
    if piece.dropped:
        return f"\n[{piece.end - piece.start} bytes were not kept here]\n"
    return piece.text


def exit_code_of(job: Job) -> int:
    """As a shell would tell it: the job's own code, 128 + n for signal n, 143 when stopped, 1 when it never ran.

    124 when its time was up, as timeout(1) does: whatever code it ended with then was not its own choice. 127 and 126
    when what it should run was not there or could not be run.
    """
    if job.state == "succeeded":
        return 0
    if job.state == "stopped":
        return 143
    if job.reason_code == Code.TIME_UP.value:
        return TIME_UP_EXIT_CODE
    if job.reason_code in CANNOT_RUN:
        return CANNOT_RUN[job.reason_code]
    code = job.exit_code
    if code is None or code == 0:
        return 1
    return 128 - code if code < 0 else code
