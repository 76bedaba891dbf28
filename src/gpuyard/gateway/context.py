"""What the parts of the gateway are given: the store and access to ask, and the broker to go inside with."""

from __future__ import annotations

import socket
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from gpuyard.access.service import Access
from gpuyard.domain.doorways import Doorway
from gpuyard.gateway.activity import Activity
from gpuyard.gateway.config import GatewayConfig
from gpuyard.store.database import Database


class Inside(Protocol):
    """The broker, as far as the web part needs it. Refusals are domain errors."""

    async def connect(
        self, replica: str, user: str, *, port: int | None = None, path: str | None = None
    ) -> socket.socket: ...

    async def serve(
        self, replica: str, user: str, name: str, argv: Sequence[str], env: Mapping[str, str], cwd: str | None = None
    ) -> bool: ...

    async def services(self, replica: str, user: str) -> Mapping[str, Mapping[str, Any]]: ...

    async def terminal(
        self,
        replica: str,
        user: str,
        *,
        session: str | None = None,
        rows: int = 24,
        cols: int = 80,
        argv: Sequence[str] | None = None,
    ) -> tuple[str, bool, socket.socket]:
        """The session's id, whether it is new, and the stream of its frames."""
        ...


class Service(Protocol):
    """How a program that is visited by browser is started inside."""

    @property
    def name(self) -> str: ...
    @property
    def argv(self) -> Sequence[str]: ...
    @property
    def env(self) -> Mapping[str, str]: ...
    @property
    def cwd(self) -> str | None: ...


# `lab` or `ide`, the path under which it is visited, the owner and the replica; None when the toolbox is not there.
Recipes = Callable[[str, str, str, str], Service | None]


@dataclass(frozen=True, slots=True)
class Context:
    config: GatewayConfig
    doorway: Doorway
    database: Database
    access: Access
    clock: Callable[[], float]
    broker: Inside
    activity: Activity
    recipes: Recipes
