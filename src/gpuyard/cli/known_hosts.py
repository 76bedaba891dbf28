"""The gateway's SSH host key, as the server told it: whoever trusts the server need not be asked about it."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path

from gpuyard.sdk.finding import login_file

NAME = "known_hosts"


def trust(key: str | None, host: str, port: int) -> list[str]:
    """What to tell ssh, so that it takes this key for this address and no other. Without a key it asks as usual."""
    if key is None or not key.isprintable():
        return []
    file = login_file(os.environ).with_name(NAME)
    try:
        _keep(file, f"[{host}]:{port}" if port != 22 else host, key)
    except OSError:  # a home that cannot be written to: ssh asks as usual
        return []
    return ["-o", f'UserKnownHostsFile="{file}"', "-o", "StrictHostKeyChecking=yes"]


def _keep(file: Path, address: str, key: str) -> None:
    line = f"{address} {key}"
    lines = file.read_text(encoding="utf-8").splitlines() if file.exists() else []
    if line in lines:
        return
    kept = [other for other in lines if other.partition(" ")[0] != address]
    file.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    with tempfile.NamedTemporaryFile("w", dir=file.parent, prefix=NAME, delete=False, encoding="utf-8") as fresh:
        fresh.write("\n".join([*kept, line, ""]))
    os.replace(fresh.name, file)
