"""A part of the platform fails under a running server: it says so, work goes on, and it recovers by itself."""

from __future__ import annotations

import contextlib
import os
import signal
import sqlite3
import subprocess
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.cli.yard import Yard, wait_until
from tests.ports import same_ports
from tests.postgres import PostgresServer, postgres_server

from gpuyard import Client, YardApiError

needs_root = pytest.mark.skipif(os.geteuid() != 0, reason="mounting a small disk needs root")


@pytest.fixture
def yard(tmp_path: Path) -> Iterator[Yard]:
    (tmp_path / "home").mkdir()
    fresh = Yard(tmp_path / "home", tmp_path / "data")
    yield fresh
    fresh.down()


def ticking(client: Client, seconds: int) -> str:
    """A job that prints a line every tenth of a second."""
    return client.submit(command=f"for i in $(seq {seconds * 10}); do echo $i; sleep 0.1; done", name="ticking").id


def test_a_second_server_on_the_same_folder_refuses_and_the_first_goes_on(yard: Yard) -> None:
    yard.up()
    refused = yard.run("up", "--port", "0")
    assert refused.code == 1
    assert f"pid {yard.pid}" in refused.err
    assert "yard down" in refused.err
    assert yard.good("ls") is not None


def test_a_database_locked_by_another_program_is_waited_for_and_said(yard: Yard) -> None:
    yard.up()
    locked = sqlite3.connect(yard.data / "gpuyard.db", isolation_level=None)
    locked.execute("BEGIN IMMEDIATE")
    with Client(data=yard.data, submit_patience_seconds=0) as client:
        assert list(client.jobs()) == []  # reads go on
        with pytest.raises(YardApiError) as refusal:
            client.submit(command="true")
        assert refusal.value.code == "refused.busy_store"
        locked.execute("ROLLBACK")
        locked.close()
        assert client.submit(command="true").wait(timeout=60).state == "succeeded"


def fill_up(ballast: Path) -> None:
    with contextlib.suppress(OSError), ballast.open("wb", buffering=0) as file:
        while file.write(b"x" * 4096) == 4096:
            pass


def refusal_of_many(client: Client) -> str:
    """The code of the first refusal: a little space is left in the database's own files."""
    for _ in range(2000):
        try:
            client.submit(command="true")
        except YardApiError as refusal:
            return refusal.code
    return "none was refused"


@needs_root
def test_a_full_disk_refuses_writes_in_words_and_heals_when_there_is_space(yard: Yard) -> None:
    yard.data.mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=16m", "tmpfs", str(yard.data)], check=True)
    try:
        yard.up("--engine", "simulated", "--nodes", "1x8")
        ballast = yard.data / "ballast"
        with Client(data=yard.data, submit_patience_seconds=0) as client:
            before = client.submit(command="sleep 600").id
            fill_up(ballast)
            assert refusal_of_many(client) == "refused.store_full"
            assert client.job(before).name == "sleep"
            ballast.unlink()
            wait_until(lambda: client.health()["status"] == "ok")
            assert client.submit(command="sleep 0.1").wait(timeout=60).state == "succeeded"
        yard.down()
    finally:
        subprocess.run(["umount", "-l", str(yard.data)], check=True)


def test_a_damaged_database_is_refused_with_the_way_to_restore_it(yard: Yard) -> None:
    yard.up()
    yard.good("backup", str(yard.home / "safe.backup"))
    yard.down()
    with (yard.data / "gpuyard.db").open("r+b") as file:
        file.seek(100)
        file.write(os.urandom(8000))
    refused = yard.run("up", "--port", "0")
    assert refused.code == 1
    assert "yard restore" in refused.err
    yard.good("restore", str(yard.home / "safe.backup"), "--force")
    yard.up()
    assert "admin" in yard.good("whoami")


@pytest.fixture
def own_postgres() -> Iterator[PostgresServer]:
    with postgres_server() as server:
        yield server


def test_postgresql_dies_and_comes_back_while_a_job_runs(own_postgres: PostgresServer, yard: Yard) -> None:
    yard.up("--database", own_postgres.new_database())
    with Client(data=yard.data) as client:
        job = client.job(ticking(client, 6))
        wait_until(lambda: job.refresh().state == "running")
        own_postgres.kill()
        time.sleep(1.0)
        own_postgres.start()
        assert job.refresh(patience_seconds=60).wait(timeout=120).state == "succeeded"
        assert job.logs() == "".join(f"{n}\n" for n in range(1, 61))
        assert client.submit(command="true").wait(timeout=60).state == "succeeded"


def test_the_server_ends_soon_though_somebody_follows_a_log_and_the_job_goes_on(yard: Yard) -> None:
    ports = same_ports()
    yard.up(*ports)
    with Client(data=yard.data) as client:
        job = client.job(ticking(client, 8))
        wait_until(lambda: job.refresh().state == "running")
    follower = yard.start("logs", "-f", job.id)
    try:
        assert follower.stdout is not None
        first = follower.stdout.readline()
        pid = yard.pid
        os.kill(pid, signal.SIGTERM)
        wait_until(lambda: not Path(f"/proc/{pid}/exe").exists(), seconds=10)
        yard.up(*ports)
        out = follower.stdout.read()
        assert (first + out).decode() == "".join(f"{n}\n" for n in range(1, 81))
    finally:
        follower.kill()
        follower.communicate()
    assert yard.wait_for(job.id)["state"] == "succeeded"


def test_twenty_followers_of_one_log_all_see_every_line(yard: Yard) -> None:
    yard.up()
    with Client(data=yard.data) as client:
        job = client.job(ticking(client, 3))
        seen: list[str] = []

        def follow() -> None:
            with Client(data=yard.data) as mine:
                seen.append("".join(mine.job(job.id).logs(follow=True)))

        followers = [threading.Thread(target=follow) for _ in range(20)]
        for thread in followers:
            thread.start()
        for thread in followers:
            thread.join()
    assert seen == ["".join(f"{n}\n" for n in range(1, 31))] * 20
