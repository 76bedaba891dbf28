"""Which pages may stand inside the console's own: those of the gateway, and no others."""

from __future__ import annotations

import re
from pathlib import Path

from gpuyard.api.gateway_info import NOTE, read_note

DOMAIN_RULE = re.compile(r"[a-z0-9](?:[a-z0-9.-]{0,251}[a-z0-9])?")


def frame_sources(folder: Path | None) -> str:
    """For the console's content security policy, as the gateway's note about itself says."""
    told = read_note(folder / NOTE) if folder is not None else {}
    scheme, domain, port = told.get("scheme"), told.get("domain"), told.get("port")
    if scheme not in ("http", "https") or not isinstance(port, int):
        return ""
    if not isinstance(domain, str) or not DOMAIN_RULE.fullmatch(domain):
        return ""
    return f"{scheme}://*:{port}" if told.get("paths") else f"{scheme}://*.{domain}:{port}"
