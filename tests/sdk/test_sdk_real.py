"""The client against real servers: jobs from submit to end, through a server that is killed in between."""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.cli.yard import Yard, wait_until
from tests.ports import same_ports

import gpuyard
from gpuyard.sdk.job import exit_code_of


@pytest.fixture
def yard(tmp_path: Path) -> Iterator[Yard]:
    (tmp_path / "home").mkdir()
    there = Yard(tmp_path / "home", tmp_path / "data")
    yield there
    there.down()


@pytest.fixture(scope="module")
def simulated(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Yard]:
    folder = tmp_path_factory.mktemp("sdk")
    there = Yard(folder, folder / "data")
    there.up("--engine", "simulated", "--nodes", "2x4")
    yield there
    there.down()


@pytest.fixture
def client(simulated: Yard) -> Iterator[gpuyard.Client]:
    with gpuyard.Client(data=simulated.data) as opened:
        yield opened


def test_a_job_from_submit_to_its_log(client: gpuyard.Client) -> None:
    job = client.submit(command=["sleep", "0"], name="first", cards=2, env={"A": "b"})
    assert (job.state, job.owner, job.cards, job.device) == ("queued", "admin", 2, "nvidia")
    ended = job.wait(timeout=60)
    assert ended.state == "succeeded"
    assert exit_code_of(ended) == 0
    assert "sleep 0" in ended.logs()
    assert "".join(ended.logs(follow=True)) == ended.logs()
    assert [event.state for event in job.events()][-1] == "succeeded"
    assert job.why().reason == ended.reason
    assert ended.attempts[0].replicas[0].node.startswith("sim-")
    assert job.file()["cards"] == 2
    assert client.job("first").id == job.id


def test_a_job_runs_where_its_labels_and_models_say(client: gpuyard.Client) -> None:
    assert client.label("sim-2", {"zone": "north", "never": None}) == {"zone": "north"}
    assert client.nodes()[1].labels == {"zone": "north"}
    job = client.submit(
        command=["sleep", "0"],
        cards=1,
        models=["nvidia"],
        where={"labels": {"zone": "north"}},
        together="spread",
        checkpoint="out",
        priority="low",
    )
    ended = job.wait(timeout=60)
    assert [replica.node for replica in ended.attempts[0].replicas] == ["sim-2"]
    assert (ended.together, ended.checkpoint, ended.priority) == ("spread", "out", 200)
    assert ended.attempts[0].saved_at is None
    assert client.label("sim-2", {"zone": None}) == {}


def test_preview_pause_resume_rerun_and_stop(client: gpuyard.Client) -> None:
    assert client.preview(command="x", cards=4).starts
    job = client.submit(command="x", env={"YARD_SIM_SECONDS": "3600"})
    job.pause()
    wait_until(lambda: job.refresh().state == "paused")
    job.resume()
    assert (job.set_priority(120).priority, job.set_priority("low").priority) == (120, 200)
    again = job.rerun(set={"cards": 1})
    assert again.cards == 1
    for running in (job, again):
        running.stop()
        assert running.wait(timeout=60).state == "stopped"
    with pytest.raises(gpuyard.YardApiError) as refusal:
        job.resume()
    assert (refusal.value.code, refusal.value.status) == ("refused.wrong_state", 409)


def test_waiting_has_a_limit(client: gpuyard.Client) -> None:
    job = client.submit(command="x", env={"YARD_SIM_SECONDS": "3600"})
    with pytest.raises(TimeoutError, match=job.id):
        job.wait(timeout=0.3)
    job.stop()


def test_people_and_tokens(client: gpuyard.Client, simulated: Yard) -> None:
    client.create_group("speech", quota={"nvidia": 2})
    client.create_user("nora", password="a rather long one", group="speech")
    client.set_quota("speech", {"nvidia": 1}, user="nora")
    assert {(line.user, line.limit) for line in client.group("speech").quotas} == {(None, 2), ("nora", 1)}
    token = client.create_token("nora's", user="nora")
    with gpuyard.Client(data=simulated.data, token=token.token) as nora:
        assert nora.whoami().user.memberships[0].group == "speech"
        assert list(nora.jobs()) == []
    client.remove_token(token.id)
    assert client.set_password("nora")
    client.remove_user("nora")
    client.remove_group("speech")
    assert "nora" not in [user.name for user in client.users()]
    assert next(client.audit()).object == "speech"


def test_the_server_speaks_the_language_of_the_client(simulated: Yard) -> None:
    with gpuyard.Client(data=simulated.data, language="zh") as client, pytest.raises(gpuyard.YardApiError) as told:
        client.job("nothing-of-this-name")
    assert any("\u4e00" <= sign <= "\u9fff" for sign in told.value.message)


def test_no_submit_is_lost_or_doubled_while_the_server_is_killed_and_restarted(yard: Yard) -> None:
    options = ("--engine", "simulated", "--nodes", "4x8", *same_ports())
    yard.up(*options)
    made: list[str] = []
    stop = threading.Event()

    def submit_on(client: gpuyard.Client) -> None:
        while not stop.is_set():
            made.append(client.submit(command=["sleep", "0"]).id)

    client = gpuyard.Client(data=yard.data, submit_patience_seconds=60)
    with client:
        threads = [threading.Thread(target=submit_on, args=[client]) for _ in range(3)]
        for thread in threads:
            thread.start()
        for _ in range(2):
            before = len(made)
            while len(made) < before + 10:
                stop.wait(0.01)
            os.kill(yard.pid, signal.SIGKILL)
            yard.up(*options)
        stop.set()
        for thread in threads:
            thread.join(120)
        kept = [job.id for job in client.jobs()]
    assert sorted(made) == sorted(kept)
