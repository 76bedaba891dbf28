"""Dev environments over the wire."""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import Field, StringConstraints

from gpuyard.api.models import Facts, In, Instant, Number, Out, WorkloadOut

Duration = Annotated[str, StringConstraints(min_length=1, max_length=32)]


class EnvOut(WorkloadOut):
    """A dev environment. The state `paused` means that it is stopped and can be started."""

    cpu: Number | None = Field(description="cores asked for; null: a fair share")
    memory: int | None
    shm: int | None
    node: str | None = Field(description="where it runs")
    idle_seconds: float | None = Field(description="it is stopped when nobody has used it for so long; null: never")
    stop_at: Instant | None = Field(description="when its timer stops it")
    used_at: Instant | None = Field(description="when somebody last worked in it, through browser or SSH")
    restarting: bool = Field(description="it is being stopped to be started again")


class EnvDetail(EnvOut):
    """With the ways in for whoever asks, while there is something to enter."""

    addresses: dict[str, str] = Field(
        description="where it is opened in the browser: lab, ide, terminal and its ports (p8080); each asks for a login"
    )
    closed: dict[str, str] = Field(description="of lab, ide and terminal those that cannot be opened now, and why")
    ssh: str | None = Field(description="the command that enters it by SSH, for its owner")


class EnvPreview(Out):
    never: bool = Field(description="with this it could never start, however long it waits")
    reason: str | None = Field(description="why not")
    reason_code: str | None
    reason_facts: Facts


class EnvAnswered(EnvOut):
    warnings: list[str]


class EnvList(Out):
    items: list[EnvOut]


class StartIn(In):
    set: dict[Annotated[str, StringConstraints(max_length=200)], Any] = Field(
        default_factory=dict,
        max_length=64,
        description="what it should ask for from now on; null takes a value away",
        examples=[{"cards": 1, "memory": "32G"}],
    )
    timer: Duration | None = None
    force: bool = Field(default=False, description="also when it could never start with what is asked for")


class TimerIn(In):
    timer: Duration | None = Field(
        default=None, description="2h: stop it two hours from now; +1h: an hour later than so far; off: no timer"
    )
    idle: Duration | None = Field(default=None, description="30m: stop it when nobody has used it for so long; off")
