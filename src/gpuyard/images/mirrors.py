"""Where packages come from, set once for all workloads. Pure.

By environment only: neither a home nor an image is written to, and a person's own options still win. pip reads
PIP_INDEX_URL and PIP_TRUSTED_HOST. conda takes lists in CONDA_CHANNELS, before those of any condarc; addresses also
stand for `defaults` (CONDA_DEFAULT_CHANNELS), so that images whose condarc names only that are served by the mirror.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol


class Mirrors(Protocol):
    @property
    def pip_index_url(self) -> str: ...
    @property
    def pip_trusted_host(self) -> str: ...
    @property
    def conda_channels(self) -> Sequence[str]: ...


def environment(settings: Mirrors) -> dict[str, str]:
    """The variables every workload gets; none for what is not set."""
    addresses = [channel for channel in settings.conda_channels if "://" in channel]
    told = {
        "PIP_INDEX_URL": settings.pip_index_url,
        "PIP_TRUSTED_HOST": settings.pip_trusted_host,
        "CONDA_CHANNELS": ",".join(settings.conda_channels),
        "CONDA_DEFAULT_CHANNELS": ",".join(addresses),
    }
    return {name: value for name, value in told.items() if value}
