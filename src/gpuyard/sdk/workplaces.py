"""Dev environments by program."""

from __future__ import annotations

import json
import time
import uuid
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Self

from gpuyard.sdk.answers import read_answer
from gpuyard.sdk.errors import NotFound
from gpuyard.sdk.results import Event, Told
from gpuyard.sdk.wire import Patience, Wire, in_path

if TYPE_CHECKING:
    from gpuyard.sdk.client import Client

RESTING, RUNNING = "paused", "running"
LOOK_SECONDS = 0.2


@dataclass(frozen=True, slots=True)
class EnvPreview(Told):
    """Whether an environment could ever start with what is asked for, and why not."""

    never: bool = False
    reason: str = ""
    reason_code: str = ""
    reason_facts: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class Env(Told):
    """A dev environment at the moment it was asked for; `refresh()` gives the newer one."""

    client: Client = field(repr=False, compare=False)
    id: str = ""
    name: str = ""
    state: str = ""
    reason: str = ""
    reason_code: str = ""
    reason_facts: Mapping[str, Any] = field(default_factory=dict)
    owner: str = ""
    group: str = ""
    wanted: str = ""
    submitted_at: str = ""
    started_at: str | None = None
    attempt: int = 0
    image: str | None = None
    cards: float = 0
    device: str | None = None
    simulated_cards: bool = False
    cpu: float | None = None
    memory: int | None = None
    shm: int | None = None
    node: str | None = None
    idle_seconds: float | None = None
    stop_at: str | None = None
    used_at: str | None = None
    restarting: bool = False
    """It is being stopped to be started again."""
    addresses: Mapping[str, str] = field(default_factory=dict)
    """Where it is opened in the browser, after a login there: lab, ide, terminal, p8080. In lists it is left out."""
    ssh: str | None = None
    warnings: list[str] = field(default_factory=list)

    @classmethod
    def of(cls, client: Client, data: Mapping[str, Any]) -> Self:
        return cls.read(data, client=client)

    def __repr__(self) -> str:
        return f"Env(name={self.name!r}, state={self.shown_state!r}, reason={self.reason!r})"

    @property
    def shown_state(self) -> str:
        """To people an environment that rests is stopped."""
        return "stopped" if self.state == RESTING else self.state

    @property
    def is_settled(self) -> bool:
        """Nothing more will happen to it by itself: it runs, or it is stopped and meant to be."""
        if self.restarting:
            return False
        return self.state == RUNNING if self.wanted == "run" else self.state == RESTING

    def refresh(self) -> Env:
        return self.client.env(self.id)

    def start(self, set: Mapping[str, Any] | None = None, *, timer: str | None = None, force: bool = False) -> Env:
        """Start it, asking for something else if need be: `{"cards": 1}` moves it to a card, `{"cards": 0}` off it.
        What can never start is refused, and nothing is changed, unless it is forced."""
        return self._ask("POST", "/start", {"set": dict(set or {}), "timer": timer, "force": force})

    def preview(self, set: Mapping[str, Any] | None = None, *, timer: str | None = None) -> EnvPreview:
        """Whether it could ever start with this. Nothing is changed."""
        path, body = f"/api/v1/envs/{in_path(self.id)}/preview", {"set": dict(set or {}), "timer": timer}
        return EnvPreview.read(self.client.wire.told("POST", path, body=body))

    def restart(self, set: Mapping[str, Any] | None = None, *, timer: str | None = None, force: bool = False) -> Env:
        """Have it stopped, and started again when it has stopped, perhaps asking for something else; `wait` waits for
        that, but nobody has to. One that could never start again is not stopped, unless it is forced."""
        return self._ask("POST", "/restart", {"set": dict(set or {}), "timer": timer, "force": force})

    def stop(self) -> Env:
        """Free its cards; what is installed in it stays."""
        return self._ask("POST", "/stop", None)

    def remove(self) -> Env:
        """Stop it for good and throw away what is installed in it; files in the home and in shares stay."""
        return self._ask("DELETE", "", None)

    def set_timer(self, timer: str | None = None, *, idle: str | None = None) -> Env:
        """`2h` from now, `+1h` later than so far, `off`; `idle`: stop it when nobody has used it for so long."""
        return self._ask("PUT", "/timer", {"timer": timer, "idle": idle})

    def wait(self, timeout: float | None = None, told: Callable[[Env], None] | None = None) -> Env:
        """Until it runs, or rests. `told` hears of every change meanwhile."""
        deadline = None if timeout is None else time.monotonic() + timeout
        env = self
        while not env.is_settled:
            if deadline is not None and time.monotonic() > deadline:
                raise TimeoutError(f"{env.name} is still {env.shown_state} after {timeout:g} s")
            time.sleep(LOOK_SECONDS)
            newer = env.refresh()
            if told is not None and (newer.state, newer.reason) != (env.state, env.reason):
                told(newer)
            env = newer
        return env

    def wait_gone(self, timeout: float | None = None) -> None:
        """After `remove`: until its name is free again."""
        deadline = None if timeout is None else time.monotonic() + timeout
        while True:
            try:
                self.refresh()
            except NotFound:
                return
            if deadline is not None and time.monotonic() > deadline:
                raise TimeoutError(f"{self.name} is still there after {timeout:g} s")
            time.sleep(LOOK_SECONDS)

    def events(self) -> list[Event]:
        return [Event.read(event) for event in self.client.listing(f"/workloads/{self.id}/events")]

    def _ask(self, method: str, verb: str, body: Any) -> Env:
        path = f"/api/v1/envs/{in_path(self.id)}{verb}"
        return Env.of(self.client, self.client.wire.told(method, path, body=body))


class Workplaces:
    """The part of the client that speaks of dev environments."""

    wire: Wire
    submit_patience_seconds: float
    if TYPE_CHECKING:
        get: Callable[..., Any]
        listing: Callable[..., list[dict[str, Any]]]

    def create_env(self: Client, name: str, **asked: Any) -> Env:  # type: ignore[misc]
        """`create_env("dev", image="debian:12", cpu=4, memory="16G", cards=1, idle="2h")`."""
        headers = {"Content-Type": "application/json", "Idempotency-Key": uuid.uuid4().hex}
        content, patience = json.dumps({"name": name, **asked}).encode(), Patience(self.submit_patience_seconds)
        answer = self.wire.ask("POST", "/api/v1/envs", content=content, headers=headers, patience=patience)
        return Env.of(self, read_answer(answer.content))

    def envs(self: Client, *, everyone: bool = False) -> list[Env]:  # type: ignore[misc]
        """One's own that were not removed, or all that one may see."""
        found = self.listing("/envs", **({"all": "true"} if everyone else {}))
        return [Env.of(self, env) for env in found]

    def env(self: Client, ref: str) -> Env:  # type: ignore[misc]
        """By the name of one's own, or by id."""
        return Env.of(self, self.get(f"/envs/{in_path(ref)}"))
