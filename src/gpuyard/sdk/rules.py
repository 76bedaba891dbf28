"""The policy by program: the rules of order, sharing and placement as plain data."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from gpuyard.sdk.wire import Wire

if TYPE_CHECKING:
    from collections.abc import Callable

PATH = "/api/v1/policy"
Document = Mapping[str, Any] | bytes  # bytes: YAML or JSON as it stands in a file


class Rules:
    """The part of the client that speaks of the policy."""

    wire: Wire
    if TYPE_CHECKING:
        get: Callable[..., Any]

    def policy(self) -> dict[str, Any]:
        """All of it, also what is at its default."""
        return dict(self.get("/policy"))

    def set_policy(self, document: Document) -> dict[str, Any]:
        """Set all of it; what is left out gets its default. Tells what `changed`."""
        return self._send("PUT", PATH, document)

    def change_policy(self, changes: Mapping[str, Any]) -> dict[str, Any]:
        """Set some values: `{"order.half_life": "3d"}`. Tells what `changed`."""
        return dict(self.wire.told("PATCH", PATH, body={"set": dict(changes)}))

    def try_policy(
        self, document: Document | None = None, *, changes: Mapping[str, Any] | None = None
    ) -> dict[str, Any]:
        """What it would change on the present cluster. Nothing is changed."""
        tried = {"set": dict(changes)} if changes is not None else document
        return self._send("POST", f"{PATH}/try", {} if tried is None else tried)  # an empty file is sent as it is

    def _send(self, method: str, path: str, document: Document) -> dict[str, Any]:
        is_text = isinstance(document, bytes)
        content = document if isinstance(document, bytes) else json.dumps(dict(document)).encode()
        headers = {"Content-Type": "application/yaml" if is_text else "application/json"}
        return dict(self.wire.told(method, path, content=content, headers=headers))
