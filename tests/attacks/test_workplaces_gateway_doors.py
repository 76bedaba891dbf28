"""Someone who guesses passwords goes from door to door: the web, SSH, the server, each a process of its own."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path
from urllib.parse import urlencode

import pytest
from tests.gateway.house import PASSWORD, QUICK_HASH, House, running

from gpuyard.access.passwords import Passwords
from gpuyard.access.service import Access
from gpuyard.domain.errors import LoginNeeded, TooMany
from gpuyard.gateway.ssh.logins import Logins
from gpuyard.store.database import Database


def by_web(house: House, name: str, password: str) -> int:
    form = urlencode({"name": name, "password": password})
    return house.ask("POST", "localhost", "/.yard/login", form, Origin=f"http://localhost:{house.port}").status


def test_guesses_at_all_doors_count_together(tmp_path: Path) -> None:
    with running(tmp_path) as house, closing(Database.open(house.context.config.database_url)) as store:
        house.person("ann")
        house.person("ben")
        house.clock.stop()
        server = Access(store, house.clock, passwords=Passwords(QUICK_HASH))
        ssh = Logins(store, server, house.clock)
        for _ in range(4):
            assert by_web(house, "ann", "a wrong guess") == 401
        for _ in range(3):
            with pytest.raises(LoginNeeded):
                ssh.by_password("ann", "a wrong guess", "127.0.0.1")
            with pytest.raises(LoginNeeded):
                server.log_in("ann", "a wrong guess", "10.9.8.7")
        assert by_web(house, "ann", PASSWORD) == 429, "even the right one, for a moment"
        with pytest.raises(TooMany):
            ssh.by_password("ann", PASSWORD, "127.0.0.1")
        with pytest.raises(TooMany):
            server.log_in("ann", PASSWORD, "10.9.8.7")
        assert by_web(house, "ben", PASSWORD) == 303, "nobody else is held up"
