"""Questions to the server and its answers, on little more than sockets: these programs are started by the hundred, and
must be there at once.

Where the server is and as whom to speak is found as `yard` finds it, unless the door keeps a login of its own. What
is refused is raised as `Refusal`, the client's `YardApiError`: status 0 when nobody answered, otherwise with the
server's sentences.
"""

from __future__ import annotations

import contextlib
import json
import os
import time
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

from gpuyard.doors.speaking import Connection, Garbled, Reply
from gpuyard.sdk.address import split_address
from gpuyard.sdk.answers import odd_answer, read_answer
from gpuyard.sdk.errors import BadInput, NotAllowed, Problem, ServerUnreachable, YardApiError, kind_of_error
from gpuyard.sdk.finding import Door, choose_language, find_server, found_again
from gpuyard.sdk.peers import Stranger, stranger_told

if TYPE_CHECKING:
    import ssl

Refusal = YardApiError

ANSWER_SECONDS = 60.0
PATIENCE_SECONDS = 10.0  # a server on this machine that is being restarted answers again within this
PAUSE_SECONDS = 0.1
IDLE_SECONDS = 2.0  # servers and proxies close what rests for longer; a question sent there may or may not arrive
PAGE = 500
_BUSY = frozenset({502, 503, 504})


def own_words(refusal: YardApiError) -> str:
    """What the door's own system would have said, where the server knows; otherwise the server's sentences."""
    told = [str(problem.facts.get("text") or problem.message) for problem in refusal.problems]
    return "\n".join(dict.fromkeys(told)) or str(refusal.facts.get("text") or refusal.message)


class Server:
    """One server, asked over one connection that is kept while the program runs."""

    def __init__(self, door: Door, language: str = "en") -> None:
        self.door = door
        self.language = language
        self._connection: Connection | None = None
        self._used_at = 0.0

    @staticmethod
    def found(url: str | None = None, token: str | None = None) -> Server:
        """As `yard` finds it: the address given, YARD_URL, what `yard login` kept, or this machine's own server."""
        return Server(find_server(url, token, None, os.environ), choose_language(os.environ))

    def __enter__(self) -> Server:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        if self._connection is not None:
            self._connection.close()
            self._connection = None

    # --- asking ---------------------------------------------------------------------------------------------------

    def get(self, path: str, **params: Any) -> Any:
        return self.ask("GET", path, params=params)

    def post(self, path: str, data: Any = None, **params: Any) -> Any:
        return self.ask("POST", path, data=data, params=params)

    def put(self, path: str, data: Any, **params: Any) -> Any:
        return self.ask("PUT", path, data=data, params=params)

    def patch(self, path: str, data: Any) -> Any:
        return self.ask("PATCH", path, data=data)

    def delete(self, path: str, **params: Any) -> Any:
        return self.ask("DELETE", path, params=params)

    def post_text(self, path: str, text: str, key: str | None = None, **params: Any) -> Any:
        """A file as it is. With a key of its own it can be sent again: it is one job, not two."""
        headers = {"Content-Type": "text/plain; charset=utf-8"} | ({"Idempotency-Key": key} if key else {})
        return self.ask("POST", path, content=text.encode(), headers=headers, params=params)

    def every(self, path: str, **params: Any) -> Iterator[dict[str, Any]]:
        """Every item of a listing, page after page."""
        cursor = None
        while True:
            page = self.get(path, **{"limit": PAGE, **params, "cursor": cursor})
            items = page.get("items")
            if not isinstance(items, list) or not all(isinstance(item, dict) for item in items):
                raise odd_answer()
            yield from items
            cursor = page.get("next")
            if cursor is None:
                return

    def ask(
        self,
        method: str,
        path: str,
        *,
        params: Mapping[str, Any] | None = None,
        data: Any = None,
        content: bytes | None = None,
        headers: Mapping[str, str] | None = None,
    ) -> Any:
        """The data of a good answer; anything else is raised as a Refusal. `path` is below /api/v1."""
        sent = {**self._usual_headers(), **(headers or {})}
        if data is not None:
            content, sent["Content-Type"] = json.dumps(data).encode(), "application/json"
        address = f"/api/v1{path}{_query(params or {})}"
        repeatable = method == "GET" or "Idempotency-Key" in sent
        deadline = time.monotonic() + PATIENCE_SECONDS
        while True:
            try:
                return self._once(method, address, content, sent)
            except YardApiError as refusal:
                self.close()
                if not self._may_ask_again(refusal, repeatable) or time.monotonic() > deadline:
                    raise
            time.sleep(PAUSE_SECONDS)
            self.door = found_again(self.door)

    def _once(self, method: str, address: str, content: bytes | None, headers: Mapping[str, str]) -> Any:
        if time.monotonic() - self._used_at > IDLE_SECONDS:
            self.close()
        connection = self._connection or _connected(self.door, ANSWER_SECONDS)
        self._connection = connection
        try:
            answer = connection.ask(method, address, headers, content)
            told = answer.read()
        except OSError as problem:
            raise _unreachable(self.door, problem, sent=True) from problem
        self._used_at = time.monotonic()
        if not answer.keeps:
            self.close()
        if answer.status >= 300:
            raise refusal_of(answer.status, answer.reason, told)
        return _data(told)

    def _may_ask_again(self, refusal: YardApiError, repeatable: bool) -> bool:
        """Only what cannot happen twice; and patience only for a server of this machine, which may be restarting."""
        if refusal.status in _BUSY:
            return repeatable
        if refusal.status or refusal.facts.get("untrusted"):
            return False
        return self.door.data is not None and (repeatable or not refusal.facts.get("sent"))

    @contextlib.contextmanager
    def stream(self, path: str, silence_seconds: float = ANSWER_SECONDS, **params: Any) -> Iterator[Reply]:
        """An answer to be read piece by piece (`read`, `readline`), on a connection of its own."""
        connection = _connected(self.door, silence_seconds)
        try:
            answer = connection.ask("GET", f"/api/v1{path}{_query(params)}", self._usual_headers(), None)
            if answer.status >= 300:
                raise refusal_of(answer.status, answer.reason, answer.read())
            yield answer
        except (Garbled, TimeoutError, ConnectionResetError) as problem:  # not a pipe of ours that somebody closed
            raise _unreachable(self.door, problem, sent=True) from problem
        finally:
            connection.close()

    def _usual_headers(self) -> dict[str, str]:
        if self.door.token and not _is_token(self.door.token):
            raise NotAllowed("client.bad_token", "the token has characters no token has", status=401)
        token = {"Authorization": f"Bearer {self.door.token}"} if self.door.token else {}
        return {"Accept-Language": self.language, **token}


def in_path(name: str) -> str:
    """A name as one piece of a path. An empty one would silently ask for the whole listing."""
    if not name or name in (".", ".."):
        raise BadInput("client.bad_name", f"not a name: {name!r}", {"name": name}, status=400)
    from urllib.parse import quote  # not every question has a name in it

    return quote(name, safe="")


def _is_token(text: str) -> bool:
    return text.isascii() and text.isprintable() and " " not in text


def refusal_of(status: int, phrase: str, told: bytes) -> YardApiError:
    """What the server said no with. An answer that is not in our form (a proxy's page) is named by its status."""
    try:
        error = json.loads(told)["error"]
        problems = [Problem(p["code"], p["message"], p.get("facts") or {}) for p in error.get("problems") or []]
        return kind_of_error(status)(
            error["code"], error["message"], error.get("facts"), status=status, problems=problems
        )
    except (ValueError, KeyError, TypeError, AttributeError):
        return YardApiError("client.odd_answer", f"the server answered {status} {phrase}", {}, status=status)


def _data(told: bytes) -> Any:
    """Whatever is asked, our server answers with an object."""
    data = read_answer(told)
    if not isinstance(data, dict):
        raise odd_answer()
    return data


def _query(params: Mapping[str, Any]) -> str:
    given = {name: _written(value) for name, value in params.items() if value is not None}
    if all(map(_is_plain, given.values())):
        return "?" + "&".join(f"{name}={value}" for name, value in given.items()) if given else ""
    from urllib.parse import urlencode

    return f"?{urlencode(given)}"


def _is_plain(value: str) -> bool:
    """Whether it stands in an address as it is."""
    return not value or (value.isascii() and value.replace("-", "").replace("_", "").isalnum())


def _written(value: Any) -> str:
    return ("true" if value else "false") if isinstance(value, bool) else str(value)


def _connected(door: Door, seconds: float) -> Connection:
    parts = split_address(door.url)
    is_https = parts.scheme == "https"
    port = parts.port or (443 if is_https else 80)
    connection = Connection(parts.host, port, seconds, _trust(door) if is_https else None, door.require_server)
    try:
        connection.connect()
    except OSError as problem:
        raise _unreachable(door, problem, sent=False) from problem
    return connection


def _trust(door: Door) -> ssl.SSLContext:
    """Whose certificates are believed: the system's, or those in the file YARD_CA_FILE."""
    import ssl  # only where it is needed: loading it takes as long as asking

    file = os.environ.get("YARD_CA_FILE")
    try:
        context = ssl.create_default_context(cafile=file)
    except OSError as problem:
        words = f"YARD_CA_FILE {file} cannot be read: {problem}"
        raise BadInput("client.bad_ca_file", words, {"file": file}, status=400) from problem
    if not door.believes_certificates:
        context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    return context


def _unreachable(door: Door, problem: Exception, *, sent: bool) -> ServerUnreachable:
    if isinstance(problem, Stranger):
        return stranger_told(problem, door.url)
    untrusted = type(problem).__name__ == "SSLCertVerificationError"
    detail = getattr(problem, "strerror", None) or str(problem) or type(problem).__name__
    facts = {"url": door.url, "detail": detail, "sent": sent, "untrusted": untrusted}
    return ServerUnreachable("client.unreachable", f"the server at {door.url} cannot be reached: {detail}", facts)
