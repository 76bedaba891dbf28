"""The engine's verbs for containers, each safe to repeat."""

from __future__ import annotations

import json
import logging
import re
import time
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from aiodocker import Docker

from gpuyard.domain.workload import ReplicaId
from gpuyard.engines.container import names
from gpuyard.engines.container.client import EngineClient, Refused

log = logging.getLogger(__name__)

START_SECONDS = 60.0
REMOVE_SECONDS = 60.0
COMMIT_SECONDS = 1800.0
_COLLISION_SECONDS = 0.3
_REMOVE_TRIES = 3
_TIME = re.compile(r"(?P<date>\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d)(?P<part>\.\d+)?(?P<zone>Z|[+-]\d\d:\d\d)")
_MOST_WORDS = 300


@dataclass(frozen=True, slots=True)
class Found:
    """What the engine says of one container."""

    id: str
    state: str  # created, running, exited, ...
    pid: int
    exit_code: int
    started_at: float  # the last time
    layer: str = ""  # the folder with what was changed in it, where the engine tells
    volumes: tuple[str, ...] = ()  # folders that its image asked for

    def has_begun_since(self, moment: float) -> bool:
        """A container that is kept has begun before, for an earlier attempt."""
        return self.state not in ("created", "configured", "initialized") and self.started_at >= moment

    @property
    def is_over(self) -> bool:
        return self.state in ("exited", "stopped", "dead")


@dataclass(frozen=True, slots=True)
class Listed:
    id: str
    replica: ReplicaId
    state: str
    created_at: float


def read_time(text: str) -> float:
    """Seconds since 1970 from the engine's way to write a time; 0 when it never was."""
    found = _TIME.match(text)
    if found is None or found["date"].startswith("0001"):
        return 0.0
    zone = found["zone"].replace("Z", "+00:00")
    return datetime.fromisoformat(found["date"] + zone).timestamp() + float(f"0{found['part'] or ''}")


class Containers:
    def __init__(self, client: EngineClient, mark: str) -> None:
        self._client = client
        self._mark = mark

    def create(self, name: str, body: Mapping[str, Any]) -> str:
        """Its id. One that is there already under this name is the one: names are never used for two things."""

        async def ask(docker: Docker) -> str:
            return (await docker.containers.create(dict(body), name=name)).id

        try:
            return self._client.call(ask, START_SECONDS)
        except Refused as problem:
            if not problem.is_taken:
                raise
        found = self.look(name)
        if found is None:  # it was just being removed
            return self._client.call(ask, START_SECONDS)
        return found.id

    def start(self, id: str) -> None:
        async def ask(docker: Docker) -> None:
            await docker.containers.container(id).start()

        try:
            self._client.call(ask, START_SECONDS)
        except Refused:  # podman's clean-up behind another container can meet a start; what has not begun can begin
            time.sleep(_COLLISION_SECONDS)
            self._client.call(ask, START_SECONDS)

    def look(self, id: str) -> Found | None:
        """None when there is none."""
        shown = self._show(id)
        if shown is None:
            return None
        state, layer = shown["State"], ((shown.get("GraphDriver") or {}).get("Data") or {}).get("UpperDir") or ""
        pid, code = int(state.get("Pid") or 0), int(state.get("ExitCode") or 0)
        started_at = read_time(str(state.get("StartedAt") or ""))
        volumes = tuple(str(m["Source"]) for m in shown.get("Mounts") or () if m.get("Type") == "volume")
        return Found(shown["Id"], str(state["Status"]), pid, code, started_at, str(layer), volumes)

    def _show(self, id: str) -> dict[str, Any] | None:
        async def ask(docker: Docker) -> dict[str, Any]:
            return await docker.containers.container(id).show()

        for is_last in (False, True):
            try:
                return self._client.call(ask)
            except Refused as problem:
                if problem.is_missing:
                    return None
                if is_last:
                    raise
                time.sleep(_COLLISION_SECONDS)  # podman looks at the process too, and stumbles when it ends right then
        raise AssertionError("unreachable")

    def remove(self, id: str) -> None:
        """With whatever volumes its image asked for. Nothing happens when it is gone. An engine that is itself cleaning
        up behind it may refuse for a moment, and docker does while somebody else removes it."""

        async def ask(docker: Docker) -> None:
            await docker.containers.container(id).delete(force=True, v=True)

        tries, until = _REMOVE_TRIES, time.monotonic() + REMOVE_SECONDS
        while True:
            try:
                self._client.call(ask, REMOVE_SECONDS)
                return
            except Refused as problem:
                if problem.is_missing:
                    return
                log.info("removing %s: %s", id[:12], problem)
                tries -= "already in progress" not in problem.message
                if not tries or time.monotonic() > until:
                    raise
            time.sleep(_COLLISION_SECONDS)

    def commit(self, id: str, repository: str, tag: str) -> str:
        """All that was changed in it, as an image. Its id."""

        async def ask(docker: Docker) -> str:
            made = await docker.containers.container(id).commit(
                repository=repository,
                tag=tag,
                config={},
                pause=False,  # podman wants a body, even an empty one
            )
            return str(made["Id"])

        return self._client.call(ask, COMMIT_SECONDS)

    def last_words(self, id: str) -> str:
        """The last line of what its first process said before it had a log of its own."""

        async def ask(docker: Docker) -> list[str]:
            return await docker.containers.container(id).log(stdout=True, stderr=True, tail=5)

        try:
            lines = "".join(self._client.call(ask)).strip().splitlines()
        except Refused:
            return ""
        printable = "".join(letter for letter in (lines[-1] if lines else "") if letter.isprintable())
        return printable.strip()[-_MOST_WORDS:]

    def ours(self) -> list[Listed]:
        """Every container with our labels for this data folder, running or not."""

        async def ask(docker: Docker) -> list[dict[str, Any]]:
            filters = json.dumps({"label": [f"{names.DATA}={self._mark}"]})
            found: list[dict[str, Any]] = await docker._query_json(
                "containers/json", method="GET", params={"all": True, "filters": filters}
            )
            return found

        listed = []
        for shown in self._client.call(ask):
            replica = names.read_labels(shown.get("Labels") or {})
            if replica is not None:
                listed.append(Listed(shown["Id"], replica, str(shown.get("State")), float(shown.get("Created") or 0)))
        return listed
