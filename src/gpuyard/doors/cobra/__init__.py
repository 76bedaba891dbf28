"""Command lines as the Go library cobra makes them: both front doors were written with it, and scripts know its ways.

Command (a tree) ──finding──> which command, which words ──parsing──> Given ──run──> exit code
                 └─ helping: --help and usage        └─ completing: scripts for shells
"""

from __future__ import annotations

from gpuyard.doors.cobra.commands import Command, Flag, Given, Kind, UsageError
from gpuyard.doors.cobra.running import Program, run

__all__ = ["Command", "Flag", "Given", "Kind", "Program", "UsageError", "run"]
