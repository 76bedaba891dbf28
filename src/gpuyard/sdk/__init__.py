"""The same by program: a client of the HTTP API with typed answers.

What belongs here is what a program needs to use a gpuyard server from outside. It imports nothing of the server but
`domain`, so it installs and runs where the server cannot. Its names are loaded when first used: the HTTP library takes
longer to load than `yard --help` may take.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from gpuyard.sdk.beacon import resuming, saved
    from gpuyard.sdk.client import Client
    from gpuyard.sdk.errors import BadInput, NotAllowed, NotFound, ServerUnreachable, WorkdirRefused, YardApiError
    from gpuyard.sdk.job import Job

__all__ = [
    "BadInput",
    "Client",
    "Job",
    "NotAllowed",
    "NotFound",
    "ServerUnreachable",
    "WorkdirRefused",
    "YardApiError",
    "resuming",
    "saved",
]
_HOME = {"Client": "client", "Job": "job", "resuming": "beacon", "saved": "beacon"}


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})


def __getattr__(name: str) -> Any:
    if name in __all__:
        import importlib

        return getattr(importlib.import_module(f"gpuyard.sdk.{_HOME.get(name, 'errors')}"), name)
    raise AttributeError(f"module 'gpuyard.sdk' has no attribute {name!r}")
