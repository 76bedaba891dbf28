"""How dlc speaks: `[OK]`, `[WARN]`, and `[FAILED] code: 400, ... request id: UUID`."""

from __future__ import annotations

import os
import sys

from gpuyard.dialects.dlc.tables import plain
from gpuyard.sdk.errors import YardApiError

BAD_REQUEST, UNAUTHORIZED, NOT_FOUND, UNAVAILABLE = 400, 401, 404, 503


class Failed(Exception):
    """What was asked cannot be done; told with a code, as HTTP has them."""

    def __init__(self, text: str, code: int = BAD_REQUEST) -> None:
        super().__init__(text)
        self.text = text
        self.code = code


def new_request_id() -> str:
    """A random UUID, made by hand: the library for them takes longer to load than all the rest of an answer."""
    digits = os.urandom(16).hex().upper()
    return f"{digits[:8]}-{digits[8:12]}-4{digits[13:16]}-A{digits[17:20]}-{digits[20:]}"


def ok(text: str) -> None:
    print(f"[OK] {plain(text)}")


def warn(text: str) -> None:
    """Beside the output, so that programs that read it are not disturbed."""
    print(f"[WARN] {plain(text)}", file=sys.stderr)


def failed(text: str, code: int, request_id: str = "") -> None:
    print(f"[FAILED] code: {code}, {plain(text)} request id: {request_id or new_request_id()}", file=sys.stderr)


def failure_of(refusal: YardApiError) -> Failed:
    """What the server refused, all of it, in the door's own words where it knows them."""
    told = [_sentence(str(p.facts.get("text") or p.message), p.facts.get("line")) for p in refusal.problems]
    text = "; ".join(dict.fromkeys(told)) or str(refusal.facts.get("text") or refusal.message)
    if refusal.status == UNAUTHORIZED:
        text = "the login is not good, or no longer. Log in with 'dlc config'."
    return Failed(text, refusal.status or UNAVAILABLE)


def _sentence(text: str, line: object) -> str:
    """The server's sentences name their lines themselves; dlc's own words do not."""
    return f"line {line}: {text}" if line and "line" not in text.lower() else text
