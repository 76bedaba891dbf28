"""For programs that run as jobs: tell the platform that work is saved, and learn whether this is a later attempt.

    import gpuyard

    if gpuyard.resuming():
        load_the_newest_checkpoint()
    ...
    save_checkpoint(step)
    gpuyard.saved(step=step)

Work that may be preempted loses what it did since then; the platform preempts the one that loses least. Outside a job
nothing happens. Any program can do the same: `echo 120 > "$YARD_BEACON"`.
"""

from __future__ import annotations

import contextlib
import os


def saved(step: int | None = None) -> None:
    """Everything up to here is saved and will not have to be done again. A full disk does not make it fail."""
    beacon = os.environ.get("YARD_BEACON")
    if not beacon:
        return
    part = f"{beacon}.{os.getpid()}"
    with contextlib.suppress(OSError):
        with open(part, "w", encoding="ascii") as file:
            file.write("" if step is None else f"{int(step)}\n")
        os.replace(part, beacon)


def resuming() -> bool:
    """Whether an earlier attempt of this job may have left something to go on from."""
    return os.environ.get("YARD_ATTEMPT", "1") not in ("", "0", "1")
