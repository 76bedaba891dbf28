"""The program `dlc`."""

from __future__ import annotations

import contextlib
import os
import sys
from collections.abc import Sequence

from gpuyard.doors.cobra import Program, run
from gpuyard.doors.dlc.saying import Failed, failed, failure_of
from gpuyard.doors.dlc.tree import ROOT
from gpuyard.sdk.errors import YardApiError

INTERRUPTED = 130
PIPE_CLOSED = 141  # as a shell tells SIGPIPE


def main(typed: Sequence[str] | None = None) -> int:
    """Run the command line and return the exit code: 0, or 1 for everything that was refused."""
    for stream in (sys.stdout, sys.stderr):
        with contextlib.suppress(AttributeError):
            stream.reconfigure(errors="replace")  # type: ignore[union-attr]
    try:
        code = run(Program(ROOT), list(sys.argv[1:] if typed is None else typed))
        sys.stdout.flush()
        return code
    except Failed as failure:
        failed(failure.text, failure.code)
    except YardApiError as refusal:
        told = failure_of(refusal)
        failed(told.text, told.code)
    except KeyboardInterrupt:
        return INTERRUPTED
    except BrokenPipeError:  # whoever read the output has left
        _drop_output()
        return PIPE_CLOSED
    except OSError as problem:  # what else may be missing was told where it was looked for: only the output is left
        _drop_output()
        print(f"Error: write /dev/stdout: {(problem.strerror or str(problem)).lower()}", file=sys.stderr)
    return 1


def _drop_output() -> None:
    """Python must not complain a second time while it ends."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


if __name__ == "__main__":
    sys.exit(main())
