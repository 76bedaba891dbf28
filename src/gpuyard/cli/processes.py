"""Is this process still the one we mean? Pids are used again, so its start and its command are compared too."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

_PS = "/bin/ps"
_COMMANDS = frozenset({"yard", "gpuyard", "gpuyard.cli.main"})
CLOCK_SLACK_SECONDS = 5.0
_GATEWAY = {"gateway.lock": "gpuyard.gateway.main", "broker.lock": "gpuyard.gateway.broker"}


def is_gone(pid: int) -> bool:
    """Ended, or only waiting to be buried by its parent."""
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return True
    except PermissionError:
        return False
    return _proc_state(pid) == "Z"


def is_our_server(pid: int, written_at: float) -> bool:
    """A `yard up` that was already running when its note was written."""
    words = command_of(pid)
    if not any(Path(word).name in _COMMANDS for word in words) or "up" not in words:
        return False
    start = started_at(pid)
    return start is None or start <= written_at + CLOCK_SLACK_SECONDS


def gateway_pids(data: Path) -> list[int]:
    """The gateway and the broker of this data folder, as far as they run."""
    found = []
    for lock, module in _GATEWAY.items():
        try:
            pid = int((data / "run" / lock).read_text(encoding="ascii"))
        except (OSError, ValueError):
            continue
        words = command_of(pid) if not is_gone(pid) else []
        if module in words and str(data.resolve()) in words:
            found.append(pid)
    return found


def command_of(pid: int) -> list[str]:
    try:
        raw = Path(f"/proc/{pid}/cmdline").read_bytes()
    except FileNotFoundError:
        return _ask_ps(pid)
    except OSError:
        return []
    return [os.fsdecode(word) for word in raw.split(b"\0") if word]


def started_at(pid: int) -> float | None:
    """Seconds since 1970, or None where the system does not tell."""
    try:
        ticks = int(_stat_fields(pid)[19])
        boot = next(line for line in Path("/proc/stat").read_text().splitlines() if line.startswith("btime"))
    except (OSError, StopIteration, IndexError, ValueError):
        return None
    return int(boot.split()[1]) + ticks / os.sysconf("SC_CLK_TCK")


def _proc_state(pid: int) -> str:
    try:
        return _stat_fields(pid)[0]
    except (OSError, IndexError):
        return ""


def _stat_fields(pid: int) -> list[str]:
    """What follows the name in /proc/PID/stat; the name itself may hold blanks and brackets."""
    return Path(f"/proc/{pid}/stat").read_text(errors="replace").rpartition(")")[2].split()


def _ask_ps(pid: int) -> list[str]:
    """macOS has no /proc."""
    if not Path(_PS).exists():
        return []
    asked = subprocess.run([_PS, "-o", "command=", "-p", str(pid)], capture_output=True, text=True, check=False)
    return asked.stdout.split()
