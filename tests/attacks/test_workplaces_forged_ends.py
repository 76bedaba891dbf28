"""What a workload says of its own end lies in its owner's hands: it fools nobody else and stops nothing."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from gpuyard import words
from gpuyard.domain.workload import ReplicaId
from gpuyard.engines.container import endings
from gpuyard.engines.process import verdicts
from gpuyard.engines.process.supervision import record

HALF = "\ud800"


@pytest.mark.parametrize(
    "text",
    [
        b'{"exit_code": 0, "x": ' + b"[" * 65_000,
        b'{"x": ' * 9_000,
        b'{"exit_code": ' + b"9" * 60_000 + b"}",
        b'{"exit_code": true}',
        b'{"exit_code": -1}',
        b'{"exit_code": 1e3}',
        b'{"exit_code": NaN}',
        b"\xff\xfe",
        b"",
    ],
    ids=["deep", "deep objects", "a huge number", "true", "negative", "a fraction", "no number", "bytes", "nothing"],
)
def test_an_end_that_makes_no_sense_is_none(tmp_path: Path, text: bytes) -> None:
    (tmp_path / "end.json").write_bytes(text)
    assert endings.read_end(str(tmp_path)) is None


@pytest.mark.parametrize(
    "problem",
    [
        {"code": "ended.no_start_file", "path": HALF, HALF: "x", "replica": HALF},
        {"code": "ended.no_start_file"},
        {"code": "ended.no_such_command", "command": "{path.__class__}", "path": "%s{0}"},
        {"code": HALF, "detail": HALF},
        {"code": ["ended.no_start_file"], "detail": {"x": [1]}},
        {"code": "ended.no_start_file", **{f"fact{number}": "x" * 1000 for number in range(60)}},
    ],
    ids=["half characters", "no facts", "patterns", "half a code", "no texts", "many facts"],
)
def test_a_forged_reason_can_be_written_down_said_and_sent(tmp_path: Path, problem: dict[str, Any]) -> None:
    (tmp_path / "end.json").write_text(json.dumps({"exit_code": 1, "problem": problem}))
    told = endings.read_end(str(tmp_path))
    assert told is not None
    status = {"life": record.ENDED, **endings.told_by_porter(told, was_stopped=False, oom_kills=0)}
    reason = verdicts.seen(ReplicaId("wabc", 1, "main", 0), status, "node").reason
    assert reason is not None
    assert len(json.dumps(reason.to_json(), ensure_ascii=False).encode()) < 32_768
    assert words.say(reason, "en").encode()
    assert words.say(reason, "zh").encode()
