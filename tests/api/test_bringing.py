"""Job files of other systems, sent as they are: read by the server, or refused with nothing created."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx2
import pytest
from tests.api.yard import Yard, running

from gpuyard.domain.workload import Mount

PARAMS = """\
name=first
kind=PyTorchJob
worker_count=1
worker_cpu=1
worker_gpu=1
worker_memory=4
worker_shared_memory=4
worker_image=debian:12
command=echo "hello world" a=b
priority=1
"""
VOLCANO = """\
jobname: train
tasks:
  - name: task-0
    amount: 2
    image: debian:12
    command: echo hello
    resources:
      cpu: "500m"
      memory: "1024Mi"
"""


@pytest.fixture(scope="module")
def yard(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Yard]:
    mounts = {"volcano": (Mount("home", "/nfs/testdata/code/{user}"),)}
    folder: Path = tmp_path_factory.mktemp("bringing")
    with running(folder, door_mounts=mounts) as server:
        yield server


def send(client: httpx2.Client, path: str, dialect: str, text: str) -> httpx2.Response:
    headers = {"Content-Type": "text/plain; charset=utf-8"}
    return client.post(f"/api/v1/{path}", params={"dialect": dialect}, content=text.encode(), headers=headers)


def names(client: httpx2.Client) -> list[str]:
    return [item["name"] for item in client.get("/api/v1/workloads").json()["items"]]


def test_a_params_file_becomes_a_workload_that_remembers_its_door(yard: Yard) -> None:
    with yard.person("dora") as dora:
        made = send(dora, "workloads", "dlc", PARAMS)
        assert made.status_code == 201, made.text
        told: dict[str, Any] = made.json()
        assert (told["name"], told["cards"], told["origin"]["door"]) == ("first", 1, "dlc")
        assert told["replicas_by_state"] == {"pending": 1, "running": 0, "succeeded": 0, "failed": 0}
        listed = dora.get("/api/v1/workloads").json()["items"][0]
        assert listed["origin"] == told["origin"]
        again = dora.get(f"/api/v1/workloads/{told['id']}/file").json()
        assert again["origin"]["door"] == "dlc"
        assert dora.post("/api/v1/workloads", json=again).status_code == 201


def test_a_volcano_file_gets_the_folders_its_users_expect(yard: Yard) -> None:
    with yard.person("vera") as vera:
        made = send(vera, "workloads", "volcano", VOLCANO)
        assert made.status_code == 201, made.text
        told = made.json()
        assert (told["replicas"], told["origin"]["door"]) == (2, "volcano")
        roles = list(vera.get(f"/api/v1/workloads/{told['id']}/file").json()["roles"].values())
        assert roles[0]["mounts"] == [{"volume": "home", "at": "/nfs/testdata/code/vera"}]


def test_a_name_that_lives_is_refused_and_is_free_again_after_the_end(yard: Yard) -> None:
    with yard.person("una") as una, yard.person("ugo") as ugo:
        first = send(una, "workloads", "volcano", VOLCANO).json()["id"]
        taken = send(una, "workloads", "volcano", VOLCANO)
        assert taken.status_code == 409
        assert taken.json()["error"]["code"] == "refused.name_taken"
        assert taken.json()["error"]["facts"] == {"name": "train", "id": first}
        assert send(ugo, "workloads", "volcano", VOLCANO).status_code == 201, "names are each owner's own"
        yard.start(first)
        yard.end(first)
        assert send(una, "workloads", "volcano", VOLCANO).status_code == 201


def test_names_of_our_own_files_and_of_dlc_need_not_differ(yard: Yard) -> None:
    with yard.person("nina") as nina:
        assert [send(nina, "workloads", "dlc", PARAMS).status_code for _ in range(2)] == [201, 201]


@pytest.mark.parametrize("path", ["workloads", "preview", "read"])
@pytest.mark.parametrize(
    ("dialect", "text"),
    [
        ("dlc", "name=first\nkind=NoSuchJob\nworker_count=1\nworker_image=a\ncommand=true\n"),
        ("volcano", "tasks: []\n"),
        ("volcano", "jobname: [a\n"),
        ("slurm", "#!/bin/sh\n"),
        ("dlc", ""),
    ],
)
def test_what_cannot_be_meant_creates_nothing(yard: Yard, path: str, dialect: str, text: str) -> None:
    with yard.owner as owner:
        before = len(names(owner))
        answer = send(owner, path, dialect, text)
        assert answer.status_code == 400, answer.text
        assert answer.json()["error"]["message"]
        assert len(names(owner)) == before


def test_reading_shows_our_job_file_and_creates_nothing(yard: Yard) -> None:
    with yard.person("rita") as rita:
        shown = send(rita, "read", "volcano", VOLCANO)
        assert shown.status_code == 200, shown.text
        told = shown.json()
        assert told["dialect"] == "volcano"
        assert told["job"]["name"] == "train"
        assert names(rita) == []
        assert rita.post("/api/v1/workloads", json=told["job"]).status_code == 201


def test_the_same_key_with_another_dialect_is_another_request(yard: Yard) -> None:
    with yard.person("kim") as kim:
        for dialect, status in (("dlc", 201), ("dlc", 200), ("volcano", 400)):
            headers = {"Content-Type": "text/plain", "Idempotency-Key": "one"}
            url = f"/api/v1/workloads?dialect={dialect}"
            assert kim.post(url, content=PARAMS.encode(), headers=headers).status_code == status


def test_text_that_is_no_utf8_is_refused_with_its_line(yard: Yard) -> None:
    with yard.owner as owner:
        answer = owner.post("/api/v1/read?dialect=dlc", content=b"name=a\ncommand=\xff\n")
        assert answer.status_code == 400
        assert answer.json()["error"]["facts"]["line"] == 2
