"""The process that replays: a request on its first line of input, then how far it is, and last what it found.

python -m gpuyard.journal.main     {"what": "replay", "folder": ..., "last": 100}
"""

from __future__ import annotations

import contextlib
import json
import os
import sys
import threading
from dataclasses import asdict
from pathlib import Path
from typing import Any

from gpuyard.domain.policy import Policy
from gpuyard.journal.plain import from_plain
from gpuyard.journal.replay import Asked, Report, replay
from gpuyard.journal.whatif import what_if

NICE = 10  # control and the api come first


def main() -> int:
    request = json.loads(sys.stdin.readline())
    os.nice(NICE)
    with contextlib.suppress(OSError):  # where memory runs out, this goes before anything that works
        Path("/proc/self/oom_score_adj").write_text("1000")
    threading.Thread(target=_end_with_whom_asked, daemon=True).start()
    found = _answer(request)
    _say({"read": found.pop("read"), "result": found})
    return 0


def _end_with_whom_asked() -> None:
    sys.stdin.read()
    os._exit(1)


def _answer(request: dict[str, Any]) -> dict[str, Any]:
    folder = Path(request["folder"])
    if request["what"] == "replay":
        asked = Asked(
            since=request.get("since"), until=request.get("until"), last=request.get("last"), job=request.get("job")
        )
        return told(replay(folder, asked, _progress))
    found = what_if(
        folder,
        from_plain(Policy, request["present"]),
        from_plain(Policy, request["other"]),
        since=request.get("since"),
        until=request["until"],
        progress=_progress,
    )
    return {**asdict(found), "changed": request.get("changed", [])}


def told(report: Report) -> dict[str, Any]:
    return {**asdict(report), "versions": sorted(report.versions), "same": report.is_same}


def _progress(done: int, of: int) -> None:
    _say({"done": done, "of": of})


def _say(data: dict[str, Any]) -> None:
    print(json.dumps(data), flush=True)


if __name__ == "__main__":
    sys.exit(main())
