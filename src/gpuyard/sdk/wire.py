"""Speaking HTTP with the server: one place for headers, errors, and trying again.

A request is repeated only when repeating is safe: it never left this machine, it only reads, or the server knows it by
its idempotency key. How long to be patient is said by the caller; the default is not at all.
"""

from __future__ import annotations

import contextlib
import json
import os
import random
import re
import ssl
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any
from urllib.parse import quote

import httpx2

from gpuyard.sdk.address import split_address
from gpuyard.sdk.answers import read_answer
from gpuyard.sdk.errors import BadInput, NotAllowed, Problem, ServerUnreachable, YardApiError, kind_of_error
from gpuyard.sdk.finding import Door, found_again
from gpuyard.sdk.peers import Stranger, stranger_told

CONNECT_SECONDS = 10.0
LONG_WORK_SECONDS = 3600.0
ANSWER_SECONDS = 60.0  # the server gives up on a locked store after 15 s; a large upload answers when it is on disk
PAUSE_BASE_SECONDS = 0.1
PAUSE_MAX_SECONDS = 3.0
UNTRUSTED = "client.untrusted"  # its certificate is not believed; asking again does not help
_BUSY = frozenset({502, 503, 504})


@dataclass(frozen=True, slots=True)
class Patience:
    """How long to go on asking while nobody answers, and whether a request that may have arrived can be repeated."""

    seconds: float = 0.0
    repeatable: bool = True


NO_PATIENCE = Patience()


class _NotTheServer(httpx2.ConnectError):
    """Nothing was sent."""

    def __init__(self, found: OSError) -> None:
        super().__init__(str(found))
        self.found = found


class Wire:
    """A connection to one server. Safe to use from several threads."""

    def __init__(self, door: Door, language: str, say_waiting: Callable[[YardApiError], None] | None = None) -> None:
        self.door = door
        self.language = language
        self.say_waiting = say_waiting
        self._moving = threading.Lock()
        self._left: list[httpx2.Client] = []  # to addresses the server had before; another thread may still read there
        self._http = _connection(door, _headers(door, language))

    def always_send(self, name: str, value: str) -> None:
        """From now on every request carries this header."""
        self._http.headers[name] = value

    def look_again(self) -> None:
        """Before asking once more: a restarted server may have another address, told in its data folder."""
        with self._moving:
            door = found_again(self.door)
            if door.url != self.door.url:
                self._left.append(self._http)
                self.door, self._http = door, _connection(door, self._http.headers)

    def close(self) -> None:
        for http in (*self._left, self._http):
            http.close()

    def get(self, path: str, *, patience: Patience = NO_PATIENCE, **params: Any) -> Any:
        return self.told("GET", path, params=params, patience=patience)

    def told(self, method: str, path: str, **more: Any) -> Any:
        """What the answer holds, as `ask` gets it."""
        return read_answer(self.ask(method, path, **more).content)

    def ask(
        self,
        method: str,
        path: str,
        *,
        params: Mapping[str, Any] | None = None,
        body: Any = None,
        content: bytes | None = None,
        headers: Mapping[str, str] | None = None,
        patience: Patience = NO_PATIENCE,
    ) -> httpx2.Response:
        """Send one request and return its good answer; anything else is raised as YardApiError."""

        def once() -> httpx2.Response:
            return self._http.request(
                method, path, params=_given(params), json=body, content=content, headers=dict(headers or {})
            )

        return self._patiently(once, patience)

    def upload(self, path: str, open_body: Callable[[], Iterator[bytes]], size: int, patience: Patience) -> None:
        """PUT a large body, read anew at each try."""
        headers = {"Content-Type": "application/x-tar", "Content-Length": str(size)}

        def once() -> httpx2.Response:
            return self._http.put(path, content=open_body(), headers=headers)

        self._patiently(once, patience)

    def send(self, path: str, body: Iterator[bytes], size: int) -> httpx2.Response:
        """PUT a large body once; what becomes of it may take as long again."""
        headers = {"Content-Type": "application/x-tar", "Content-Length": str(size)}
        timeout = httpx2.Timeout(LONG_WORK_SECONDS, connect=CONNECT_SECONDS)
        return self._patiently(
            lambda: self._http.put(path, content=body, headers=headers, timeout=timeout), NO_PATIENCE
        )

    @contextlib.contextmanager
    def stream(
        self,
        method: str,
        path: str,
        *,
        params: Mapping[str, Any] | None = None,
        content: bytes | None = None,
        headers: Mapping[str, str] | None = None,
        silence_seconds: float = ANSWER_SECONDS,
    ) -> Iterator[httpx2.Response]:
        """An answer read piece by piece. Raises ServerUnreachable when the connection breaks, also in the middle."""
        timeout = httpx2.Timeout(silence_seconds, connect=CONNECT_SECONDS)
        try:
            with self._http.stream(
                method, path, params=_given(params), content=content, headers=dict(headers or {}), timeout=timeout
            ) as response:
                if response.status_code >= 300:
                    response.read()
                    raise error_of(response)
                yield response
        except httpx2.TransportError as error:
            raise _unreachable(self.door, error) from error

    def _patiently(self, once: Callable[[], httpx2.Response], patience: Patience) -> httpx2.Response:
        deadline = time.monotonic() + patience.seconds
        tries = 0
        while True:
            try:
                response = once()
                if response.status_code < 300:
                    return response
                error: YardApiError = error_of(response)
                again = response.status_code in _BUSY and patience.repeatable
            except httpx2.TransportError as broken:
                error = _unreachable(self.door, broken)
                never_arrived = isinstance(broken, httpx2.ConnectError | httpx2.ConnectTimeout)
                again = (patience.repeatable or never_arrived) and error.code != UNTRUSTED
            pause = pause_before_retry(tries)
            if not again or time.monotonic() + pause > deadline:
                raise error
            if tries == 2 and self.say_waiting is not None:
                self.say_waiting(error)
            tries += 1
            time.sleep(pause)
            self.look_again()


def pause_before_retry(tries: int) -> float:
    """Longer each time, and never the same for two clients, so that a restarted server is not met by all at once."""
    longest = min(PAUSE_MAX_SECONDS, PAUSE_BASE_SECONDS * 2**tries)
    return random.uniform(longest / 2, longest)  # noqa: S311 - spreads load, hides nothing


def error_of(response: httpx2.Response) -> YardApiError:
    """What the server said no with. An answer that is not in our form (a proxy's page) is named by its status."""
    try:
        told = json.loads(response.content)["error"]
        problems = [Problem(p["code"], p["message"], p.get("facts") or {}) for p in told.get("problems") or []]
        return kind_of_error(response.status_code)(
            told["code"], told["message"], told.get("facts"), status=response.status_code, problems=problems
        )
    except (ValueError, KeyError, TypeError, AttributeError):
        words = f"the server answered {response.status_code} {response.reason_phrase}"
        return YardApiError("client.odd_answer", words, {"status": response.status_code}, status=response.status_code)


def in_path(name: str) -> str:
    """A name as one piece of a path. An empty one would silently ask for the whole listing."""
    if not name or name in (".", ".."):
        raise BadInput("client.bad_name", f"not a name: {name!r}", {"name": name}, status=400)
    return quote(name, safe="")


def _connection(door: Door, headers: Mapping[str, str]) -> httpx2.Client:
    def look_at_connections(request: httpx2.Request) -> None:
        request.extensions["trace"] = lambda step, told: _require_server(door, step, told)

    return httpx2.Client(
        event_hooks={"request": [look_at_connections]},
        base_url=door.url,
        headers=headers,
        timeout=httpx2.Timeout(ANSWER_SECONDS, connect=CONNECT_SECONDS),
        trust_env=not door.on_this_machine,  # on loopback a proxy from the environment would only get in the way
        verify=trust_of(door),
    )


def _require_server(door: Door, step: str, told: Mapping[str, Any]) -> None:
    """Called at every step of a request: with a new connection, before anything is sent on it."""
    if step != "connection.connect_tcp.complete":
        return
    stream = told["return_value"]
    sock = stream.get_extra_info("socket")
    address = split_address(door.url)
    if sock.getpeername()[1] != (address.port or (443 if address.scheme == "https" else 80)):
        return  # a proxy of ours, which is asked about servers elsewhere
    try:
        door.require_server(sock)
    except OSError as problem:
        stream.close()
        raise _NotTheServer(problem) from problem


def trust_of(door: Door) -> ssl.SSLContext | bool:
    """Whose certificates are believed: the system's, or those in the file YARD_CA_FILE."""
    if not door.believes_certificates:
        return False
    file = os.environ.get("YARD_CA_FILE")
    try:
        return ssl.create_default_context(cafile=file) if file else True
    except OSError as error:
        words = f"YARD_CA_FILE {file} cannot be read: {error}"
        raise BadInput("client.bad_ca_file", words, {"file": file, "detail": str(error)}, status=400) from error


def _headers(door: Door, language: str) -> dict[str, str]:
    headers = {"Accept-Language": language}
    if door.token:
        if not re.fullmatch(r"[!-~]+", door.token):
            raise NotAllowed("client.bad_token", "the token has characters no token has", status=401)
        headers["Authorization"] = f"Bearer {door.token}"
    return headers


def _given(params: Mapping[str, Any] | None) -> dict[str, Any] | None:
    kept = {key: value for key, value in (params or {}).items() if value is not None}
    return kept or None


def _unreachable(door: Door, error: httpx2.TransportError) -> ServerUnreachable:
    words = f"the server at {door.url} does not answer ({error or type(error).__name__})"
    facts = {"url": door.url, "detail": str(error) or type(error).__name__}
    if isinstance(error, _NotTheServer) and isinstance(error.found, Stranger):
        return stranger_told(error.found, door.url)
    code = UNTRUSTED if "CERTIFICATE_VERIFY_FAILED" in str(error) else "client.unreachable"
    return ServerUnreachable(code, words, facts)
