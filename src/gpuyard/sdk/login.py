"""Logging in with a password, once, to get a token for later."""

from __future__ import annotations

from types import TracebackType
from typing import Self

from gpuyard.sdk.errors import BadInput, YardApiError
from gpuyard.sdk.finding import Door, clean_url, is_loopback
from gpuyard.sdk.results import Token
from gpuyard.sdk.wire import Wire


class PasswordSession:
    """A short session opened with a password. Ends with the `with` block; the token made in it stays."""

    def __init__(self, url: str, language: str, *, insecure_http: bool = False, server_uid: int | None = None) -> None:
        self.url = clean_url(url)
        if self.url.startswith("http:") and not is_loopback(self.url) and not insecure_http:
            words = f"{self.url} is not encrypted: a password sent there can be read by others on the way"
            raise BadInput("client.insecure_http", words, {"url": self.url}, status=400)
        self._wire = Wire(Door(self.url, server_uid=server_uid), language)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._wire.close()

    def log_in(self, name: str, password: str) -> bool:
        """Returns True when the password must be changed before anything else."""
        answer = self._wire.ask("POST", "/api/v1/login", body={"name": name, "password": password})
        try:
            told = answer.json()
            key, must_change = str(told["session_key"]), bool(told["must_change_password"])
        except (ValueError, KeyError, TypeError) as problem:  # a page of something else that has this address
            words = f"what answers at {self.url} is no gpuyard server"
            raise YardApiError("client.odd_answer", words, {"status": answer.status_code}, status=200) from problem
        self._wire.always_send("X-Session-Key", key)
        return must_change

    def change_password(self, old: str, new: str) -> None:
        self._wire.ask("POST", "/api/v1/password", body={"old": old, "new": new})

    def make_token(self, name: str, scope: str) -> Token:
        return Token.read(self._wire.ask("POST", "/api/v1/tokens", body={"name": name, "scope": scope}).json())

    def log_out(self) -> None:
        self._wire.ask("POST", "/api/v1/logout")
