"""SSH keys, and where running work is entered, by program."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from gpuyard.domain.reasons import Code
from gpuyard.sdk.answers import read_answer
from gpuyard.sdk.errors import ServerUnreachable, YardApiError
from gpuyard.sdk.results import Gateway, SshKey
from gpuyard.sdk.wire import Wire, in_path, trust_of

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from gpuyard.sdk.shells import Shell


GATEWAY_SECONDS = 15.0  # it starts a little after the server, and comes back within this when it was killed
GATEWAY_PAUSE_SECONDS = 0.3


class WaysIn:
    """The part of the client that speaks of the gateway."""

    wire: Wire
    if TYPE_CHECKING:
        get: Callable[..., Any]
        listing: Callable[..., list[dict[str, Any]]]

    def keys(self, user: str | None = None) -> list[SshKey]:
        """One's own, or (admins) those of another user."""
        return [SshKey.read(key) for key in self.listing("/keys", user=user)]

    def add_key(self, public_key: str, *, name: str | None = None) -> SshKey:
        """`public_key` is the line of a file like `~/.ssh/id_ed25519.pub`."""
        body = {"public_key": public_key} | ({"name": name} if name else {})
        return SshKey.read(self.wire.told("POST", "/api/v1/keys", body=body))

    def remove_key(self, id: str) -> None:
        self.wire.ask("DELETE", f"/api/v1/keys/{in_path(id)}")

    def open(self, ref: str, what: str = "lab") -> str:
        """An address that opens running work in the browser, once and soon: lab, ide, terminal or p8080 for a port."""
        until = time.monotonic() + GATEWAY_SECONDS
        while True:
            try:
                answer = self.wire.ask("POST", f"/api/v1/workloads/{in_path(ref)}/open", body={"what": what})
                return str(read_answer(answer.content)["url"])
            except YardApiError as refusal:
                if refusal.code != Code.GATEWAY_AWAY.value or time.monotonic() > until:
                    raise
            time.sleep(GATEWAY_PAUSE_SECONDS)

    def shell(
        self,
        ref: str,
        *,
        replica: str | None = None,
        argv: Sequence[str] = (),
        rows: int = 24,
        cols: int = 80,
    ) -> Shell:
        """A terminal inside, with a login shell or the given command; `attach` begins it."""
        from gpuyard.sdk.shells import Shell, Way

        id, door = str(self.get(f"/workloads/{in_path(ref)}")["id"]), self.wire.door
        parts, host = urlsplit(self._gateway_url()), urlsplit(door.url).hostname or "localhost"
        base = f"{parts.scheme}://{f'[{host}]' if ':' in host else host}:{parts.port}"
        headers = {"Authorization": f"Bearer {door.token}", "Accept-Language": self.wire.language}
        return Shell(Way(base, headers, trust_of(door), door.require_server), id, replica, argv, rows, cols)

    def _gateway_url(self) -> str:
        until = time.monotonic() + GATEWAY_SECONDS
        while (told := self.gateway().url) is None:
            if time.monotonic() > until:
                raise ServerUnreachable("client.no_gateway", "the gateway is not open on this server")
            time.sleep(GATEWAY_PAUSE_SECONDS)
        return told

    def gateway(self) -> Gateway:
        """Where running work is entered. What the server does not say about hosts is the host it is asked under."""
        told = Gateway.read(self.get("/gateway"))
        if told.ssh_port is None or told.ssh_host:
            return told
        host = urlsplit(self.wire.door.url).hostname or "localhost"
        return Gateway.read({**told.raw, "ssh_host": host})
