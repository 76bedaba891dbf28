"""The gateway's own answers: small pages and JSON, always whole, never kept by anybody, framed by the console only."""

from __future__ import annotations

import html
import json
import math
from dataclasses import dataclass, field
from functools import cache
from http import HTTPStatus
from importlib import resources
from string import Template

from gpuyard import words
from gpuyard.domain import errors
from gpuyard.gateway.web.framing import NOBODY
from gpuyard.gateway.web.heads import Request, write_head
from gpuyard.gateway.web.rewriting import cookies_named
from gpuyard.gateway.web.texts import text

HTML, JSON = "text/html; charset=utf-8", "application/json; charset=utf-8"
STRICT = "default-src 'none'; style-src 'self'; base-uri 'none'"
STATUS: dict[type[errors.YardError], int] = {
    errors.BadInput: 400,
    errors.LoginNeeded: 401,
    errors.NotAllowed: 403,
    errors.NotFound: 404,
    errors.Conflict: 409,
    errors.TooMany: 429,
    errors.EngineError: 502,
    errors.Unavailable: 503,
}


@dataclass(slots=True)
class OwnAnswer:
    status: int
    body: bytes = b""
    type: str = HTML
    headers: list[tuple[str, str]] = field(default_factory=list)
    policy: str = STRICT
    kept_seconds: int = 0  # how long a browser may keep it
    is_alone: bool = False  # never inside another page: something secret is typed into it

    def to_bytes(
        self, *, with_body: bool, stays_open: bool, https_for_good: bool = False, shown_by: str = NOBODY
    ) -> bytes:
        """`shown_by`: whose pages may show it."""
        shown_by = NOBODY if self.is_alone else shown_by
        fields = [
            ("Content-Type", self.type),
            ("Content-Length", str(len(self.body))),
            ("Cache-Control", f"private, max-age={self.kept_seconds}" if self.kept_seconds else "no-store"),
            ("Content-Security-Policy", f"{self.policy}; frame-ancestors {shown_by}"),
            ("X-Content-Type-Options", "nosniff"),
            ("Referrer-Policy", "same-origin"),  # not even the address of a page of ours is told to others
            ("Cross-Origin-Opener-Policy", "same-origin"),
            *self.headers,
        ]
        if shown_by == NOBODY:
            fields.append(("X-Frame-Options", "DENY"))
        if https_for_good:
            fields.append(("Strict-Transport-Security", "max-age=31536000"))
        if not stays_open:
            fields.append(("Connection", "close"))
        first = f"HTTP/1.1 {self.status} {HTTPStatus(self.status).phrase}".encode()
        head = write_head(first, [f"{name}: {value}".encode("ascii") for name, value in fields])
        return head + self.body if with_body else head


def redirect(url: str, cookies: tuple[str, ...] = ()) -> OwnAnswer:
    return OwnAnswer(303, headers=[("Location", url), *(("Set-Cookie", cookie) for cookie in cookies)])


WORDS_COOKIE = b"yard_words"
"""The language of the page one came from: inside the console, its reader's choice rather than the browser's."""


def language_of(request: Request) -> words.LanguageName:
    for chosen in cookies_named(request.all(b"cookie"), WORDS_COOKIE, most=1):
        if chosen in (b"en", b"zh"):
            return "zh" if chosen == b"zh" else "en"
    return words.pick_language(request.get(b"accept-language").decode("latin-1"))


def refusal(request: Request, error: errors.YardError) -> OwnAnswer:
    """A page for people, JSON in the form of the api for programs."""
    language = language_of(request)
    status = next(status for kind, status in STATUS.items() if isinstance(error, kind))
    answer = message(request, status, error.reason.code.value, words.say(error.reason, language))
    if isinstance(error, errors.TooMany):
        answer.headers.append(("Retry-After", str(max(1, math.ceil(error.retry_after_seconds)))))
    elif isinstance(error, errors.Unavailable):
        answer.headers.append(("Retry-After", "2"))
    return answer


def message(request: Request, status: int, code: str, sentence: str, *, refresh: int = 0) -> OwnAnswer:
    """`refresh`: the page asks again after so many seconds."""
    extra = [("Retry-After", str(refresh))] if refresh else []
    if not request.wants_page:
        body = {"error": {"code": code, "message": sentence, "facts": {}, "problems": []}}
        return OwnAnswer(status, json.dumps(body, ensure_ascii=False).encode(), JSON, extra)
    if refresh:
        extra.append(("Refresh", str(refresh)))
    title = text("title.wait" if refresh else "title.message", language_of(request))
    return OwnAnswer(status, page(request, title, f'<p class="said">{html.escape(sentence)}</p>'), HTML, extra)


def page(request: Request, title: str, content: str, *, prefix: str = "") -> bytes:
    language = language_of(request)
    filled = Template(part("page.html")).substitute(
        language="zh-CN" if language == "zh" else "en", title=html.escape(title), content=content, prefix=prefix
    )
    return filled.encode()


@cache
def part(name: str) -> str:
    """A file that comes with this package."""
    return (resources.files("gpuyard.gateway.web") / "pages" / name).read_text(encoding="utf-8")
