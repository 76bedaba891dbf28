"""Whatever is wrong with a request is told in our words, in both languages; no rule of a program is shown."""

from __future__ import annotations

import re
from typing import Any

import pytest
from tests.api.yard import Yard

MISTAKES: list[tuple[str, str, Any]] = [
    ("GET", "/workloads?cursor=zzz", None),
    ("GET", "/workloads?name=%2F", None),
    ("GET", "/workloads?owner=A", None),
    ("GET", "/workloads?limit=0", None),
    ("GET", "/workloads?limit=1.5", None),
    ("GET", "/workloads?mine=perhaps", None),
    ("GET", "/workloads?state=gone", None),
    ("GET", "/workloads/x/logs?offset=x", None),
    ("GET", "/workloads/x/usage?minutes=0", None),
    ("GET", "/workloads/x/usage?minutes=nan", None),
    ("GET", "/workloads/x/usage?minutes=many", None),
    ("GET", "/audit?cursor=x", None),
    ("HEAD", "/workdirs/abc", None),
    ("PUT", "/workdirs/abc", b""),
    ("POST", "/workloads", b'{"command": "x",}'),
    ("POST", "/workloads", b"\xff"),
    ("POST", "/tokens", b'{"name": '),
    ("POST", "/tokens", b"\xff\xfe"),
    ("POST", "/tokens", []),
    ("POST", "/tokens", {}),
    ("POST", "/tokens", {"name": "a\nb"}),
    ("POST", "/tokens", {"name": ""}),
    ("POST", "/tokens", {"name": "a" * 65}),
    ("POST", "/tokens", {"name": 1}),
    ("POST", "/tokens", {"name": "a", "days": 0}),
    ("POST", "/tokens", {"name": "a", "days": 1e9}),
    ("POST", "/tokens", {"name": "a", "days": "long"}),
    ("POST", "/tokens", {"name": "a", "scope": "all"}),
    ("POST", "/tokens", {"name": "a", "more": 1}),
    ("POST", "/users", {"name": "No Name"}),
    ("POST", "/users", {"name": "nina", "role": 3}),
    ("PATCH", "/users/admin", {"active": "yes"}),
    ("PUT", "/groups/default/quota", {"limits": {"cpu": {}}}),
    ("PUT", "/groups/default/quota", {"limits": {}}),
    ("PUT", "/groups/default/quota", {"limits": {"tpu": 1}}),
    ("POST", "/workloads/x/rerun", {"set": 3}),
]


@pytest.mark.parametrize("language", ["en", "zh"])
@pytest.mark.parametrize(("method", "path", "body"), MISTAKES, ids=[f"{m} {p} {b!r}"[:60] for m, p, b in MISTAKES])
def test_a_mistake_is_told_in_our_words(server: Yard, method: str, path: str, body: Any, language: str) -> None:
    content = {"content": body} if isinstance(body, bytes) else {"json": body} if body is not None else {}
    headers = {"Accept-Language": language} | ({"Content-Type": "application/json"} if body is not None else {})
    with server.owner as owner:
        answer = owner.request(method, f"/api/v1{path}", headers=headers, **content)
    assert answer.status_code == 400
    if method == "HEAD":
        return
    for problem in [answer.json()["error"], *answer.json()["error"]["problems"]]:
        message = problem["message"]
        assert not re.search(r"should|pattern|\^|\\x", message), message
        assert language == "en" or "Expecting" not in message
        assert bool(re.search(r"[\u4e00-\u9fff]", message)) == (language == "zh"), message


def test_an_event_id_that_is_none_is_told_in_our_words(server: Yard) -> None:
    with server.owner as owner:
        answer = owner.get("/api/v1/workloads/x/logs/follow", headers={"Last-Event-ID": "x"})
        assert answer.json()["error"]["message"] == "last-event-id: `x` will not do; expected the id of an event."
