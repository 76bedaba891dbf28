"""What a good answer of the server holds. Something else may have its address, a proxy's page for example: that is told
in words, and so is whatever an answer lacks that a server of ours would have told."""

from __future__ import annotations

import json
from typing import Any

from gpuyard.sdk.errors import YardApiError

GOOD = 200


class Answer(dict[str, Any]):
    """One object of it."""

    def __missing__(self, key: str) -> Any:
        raise odd_answer()


def read_answer(content: bytes) -> Any:
    """An object, or a list of them."""
    try:
        told = json.loads(content, object_hook=Answer) if content else Answer()
    except (ValueError, RecursionError) as problem:
        raise odd_answer() from problem
    if not isinstance(told, (dict, list)):
        raise odd_answer()
    return told


def odd_answer() -> YardApiError:
    words = "the server's answer cannot be read: is this the address of a gpuyard server?"
    return YardApiError("client.odd_answer", words, {"status": GOOD}, status=GOOD)
