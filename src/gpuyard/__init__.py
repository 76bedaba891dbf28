"""gpuyard: the platform a team puts on its GPU and NPU machines.

`import gpuyard` is the client: `gpuyard.Client().submit(command="python3 train.py", cards=2)`. It needs none of the
server's dependencies, and its names are loaded when first used, so that the server's own rooms do not pay for them.
Inside a job, `gpuyard.saved(step=120)` tells the platform that the work is saved.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from gpuyard.sdk.version import VERSION

if TYPE_CHECKING:
    from gpuyard.sdk import (
        BadInput,
        Client,
        Job,
        NotAllowed,
        NotFound,
        ServerUnreachable,
        WorkdirRefused,
        YardApiError,
        resuming,
        saved,
    )

__version__ = VERSION
__all__ = [
    "BadInput",
    "Client",
    "Job",
    "NotAllowed",
    "NotFound",
    "ServerUnreachable",
    "WorkdirRefused",
    "YardApiError",
    "__version__",
    "resuming",
    "saved",
]


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})


def __getattr__(name: str) -> Any:
    if name in __all__:
        from gpuyard import sdk

        return getattr(sdk, name)
    raise AttributeError(f"module 'gpuyard' has no attribute {name!r}")
