"""Where running work is entered: the gateway's addresses, as it wrote them down itself."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any

from gpuyard.access.public_keys import PublicKey, parse_public_key
from gpuyard.access.rights import Action
from gpuyard.api import models
from gpuyard.api.guard import Caller, Doors, needs
from gpuyard.domain.errors import BadInput

doors = Doors(prefix="/api/v1", tags=["cluster"])
NOTE, HOST_KEY = "gateway.json", "ssh_host_ed25519_key.pub"


@doors.get("/gateway", response_model=models.GatewayOut)
def gateway(caller: Annotated[Caller, needs(Action.WHO_AM_I)]) -> Any:
    """Null where that door is not open. Without a host, it is the one this server is asked under."""
    folder = caller.parts.data
    told = read_note(folder / NOTE) if folder is not None else {}
    port, key = told.get("ssh_port"), _host_key(folder / HOST_KEY) if folder is not None else None
    return models.GatewayOut(
        url=_text(told.get("url")),
        ssh_host=_text(told.get("ssh_host")),
        ssh_port=port if isinstance(port, int) else None,
        host_key=key.fingerprint if key is not None else None,
        host_public_key=key.text if key is not None else None,
    )


def read_note(file: Path) -> Mapping[str, Any]:
    try:
        told = json.loads(file.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}
    return told if isinstance(told, dict) else {}


def _host_key(file: Path) -> PublicKey | None:
    try:
        return parse_public_key(file.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError, BadInput):
        return None


def _text(value: Any) -> str | None:
    return value if isinstance(value, str) and value else None
