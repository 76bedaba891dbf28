"""Opening running work in the browser: an address with a code, for those who may enter."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import parse_qs, urlsplit

import pytest
from tests.api.yard import Yard, running

from gpuyard.access import gates
from gpuyard.domain.doorways import Visit
from gpuyard.domain.lifecycle import Observed, PauseAsked
from gpuyard.domain.workload import Life, Seen

NOTE = {"url": "http://localhost:8471", "port": 8471, "ssh_port": 8472, "pid": 1, "started_at": 1.0, "config": "x"}
NAMES, PATHS = {"scheme": "http", "domain": "localhost", "paths": False}, {"paths": True}


def build_toolbox(data: Path, *parts: str) -> None:
    """As far as the api looks at it."""
    place = data / "toolbox" / "v1"
    place.mkdir(parents=True)
    (place / "toolbox.json").write_text(json.dumps({"version": "v1", "parts": ["base", *parts], "built_at": 1.0}))
    (data / "toolbox" / "current").symlink_to("v1")


@pytest.fixture
def yard(tmp_path: Path) -> Iterator[Yard]:
    (tmp_path / "gateway.json").write_text(json.dumps(NOTE | NAMES))
    with running(tmp_path, data=tmp_path) as there:
        there.group("vision")
        yield there


def test_the_owner_gets_an_address_with_a_code_that_works_once(yard: Yard) -> None:
    with yard.person("ann", group="vision") as ann:
        job = ann.post("/api/v1/workloads", json={"command": "true"}).json()["id"]
        yard.start(job)
        told = ann.post(f"/api/v1/workloads/{job}/open", json={"what": "8080", "path": "/tree?x=1"})
        assert told.status_code == 200, told.text
        url = urlsplit(told.json()["url"])
        assert (url.netloc, url.path) == (f"p8080-{job}.localhost:8471", "/.yard/enter")
        query = parse_qs(url.query)
        assert query["next"] == ["/tree?x=1"]
        with yard.database.write() as conn:
            entered = gates.exchange_code(conn, query["code"][0], Visit(job, "p8080"), yard.clock())
            again = gates.exchange_code(conn, query["code"][0], Visit(job, "p8080"), yard.clock())
        assert entered is not None
        assert entered[0].user == "ann"
        assert again is None


def test_an_entry_is_in_the_audit_trail(yard: Yard) -> None:
    with yard.person("ann", group="vision") as ann, yard.owner as owner:
        job = ann.post("/api/v1/workloads", json={"command": "true"}).json()["id"]
        ann.post(f"/api/v1/workloads/{job}/open", json={"what": "p8080"})
        entry = owner.get("/api/v1/audit").json()["items"][0]
        assert (entry["who"], entry["action"], entry["object"]) == ("ann", "workload.enter", job)
        assert entry["facts"]["what"] == "p8080"


def test_a_lead_sees_it_but_does_not_enter_and_a_stranger_sees_nothing(yard: Yard) -> None:
    ann, ben = yard.person("ann", group="vision"), yard.person("ben")
    lea = yard.person("lea", group="vision", role="lead")
    job = ann.post("/api/v1/workloads", json={"command": "true"}).json()["id"]
    assert lea.get(f"/api/v1/workloads/{job}").status_code == 200
    refused = lea.post(f"/api/v1/workloads/{job}/open")
    assert (refused.status_code, "owner and admins" in refused.json()["error"]["message"]) == (403, True)
    assert ben.post(f"/api/v1/workloads/{job}/open").status_code == 404
    with yard.owner as owner:
        assert owner.post(f"/api/v1/workloads/{job}/open", json={"what": "p8080"}).status_code == 200


def test_a_token_that_only_reads_opens_nothing(yard: Yard) -> None:
    with yard.person("ann", group="vision") as ann, yard.client(yard.token_of("ann", "read")) as reader:
        job = ann.post("/api/v1/workloads", json={"command": "true"}).json()["id"]
        assert reader.post(f"/api/v1/workloads/{job}/open").status_code == 403


def test_what_cannot_be_opened_is_said(yard: Yard, tmp_path: Path) -> None:
    with yard.person("ann", group="vision") as ann:
        job = ann.post("/api/v1/workloads", json={"command": "true"}).json()["id"]
        for what in ("p0", "p70000", "kitchen", "p22;ls", "99999999"):
            assert ann.post(f"/api/v1/workloads/{job}/open", json={"what": what}).status_code == 400
        yard.start(job)
        yard.end(job)
        over = ann.post(f"/api/v1/workloads/{job}/open")
        assert (over.status_code, over.json()["error"]["code"]) == (409, "refused.not_running")
        other = ann.post("/api/v1/workloads", json={"command": "true"}).json()["id"]
        (tmp_path / "gateway.json").unlink()
        away = ann.post(f"/api/v1/workloads/{other}/open", json={"what": "p8080"})
        assert (away.status_code, away.json()["error"]["code"]) == (503, "refused.gateway_away")


def test_by_paths_the_address_has_the_name_the_server_is_asked_under(yard: Yard, tmp_path: Path) -> None:
    (tmp_path / "gateway.json").write_text(json.dumps(NOTE | NAMES | PATHS))
    with yard.person("ann", group="vision") as ann:
        job = ann.post("/api/v1/workloads", json={"command": "true"}).json()["id"]
        url = ann.post(f"/api/v1/workloads/{job}/open", json={"what": "p8080"}).json()["url"]
        assert url.startswith(f"http://127.0.0.1:8471/i/{job}/p8080/.yard/enter?code=")


def test_what_comes_from_the_toolbox_is_refused_in_words_until_the_toolbox_has_it(yard: Yard, tmp_path: Path) -> None:
    with yard.person("ann", group="vision") as ann:
        id = ann.post("/api/v1/envs", json={"name": "dev"}).json()["id"]
        for what in ("lab", "ide"):
            refused = ann.post(f"/api/v1/workloads/{id}/open", json={"what": what})
            assert (refused.status_code, refused.json()["error"]["code"]) == (409, "refused.no_toolbox")
            for words in ("yard toolbox build", "yard shell dev"):
                assert words in refused.json()["error"]["message"]
        assert ann.post(f"/api/v1/workloads/{id}/open", json={"what": "terminal"}).status_code == 200
        build_toolbox(tmp_path, "lab")
        assert ann.post(f"/api/v1/workloads/{id}/open", json={"what": "lab"}).status_code == 200
        assert ann.post(f"/api/v1/workloads/{id}/open", json={"what": "terminal"}).status_code == 200
        without = ann.post(f"/api/v1/workloads/{id}/open", json={"what": "ide"})
        assert "VS Code" in without.json()["error"]["message"]


def test_a_job_has_no_notebook_to_open(yard: Yard, tmp_path: Path) -> None:
    build_toolbox(tmp_path, "lab", "ide", "terminal")
    with yard.person("ann", group="vision") as ann:
        job = ann.post("/api/v1/workloads", json={"command": "true"}).json()["id"]
        assert ann.post(f"/api/v1/workloads/{job}/open", json={"what": "lab"}).status_code == 404
        assert ann.post(f"/api/v1/workloads/{job}/open", json={"what": "terminal"}).status_code == 200


def test_an_environment_that_is_stopped_is_called_so_when_it_is_opened(yard: Yard) -> None:
    with yard.person("ann", group="vision") as ann:
        id = ann.post("/api/v1/envs", json={"name": "dev"}).json()["id"]
        yard.step(id, PauseAsked("ann"))
        said = ann.post(f"/api/v1/workloads/{id}/open", json={"what": "p8080"}).json()["error"]["message"]
        assert said == "The environment dev is stopped. Start it with: yard env start dev"


def test_an_environment_tells_its_owner_the_ways_in_while_it_can_be_entered(yard: Yard, tmp_path: Path) -> None:
    build_toolbox(tmp_path, "lab", "terminal")
    with yard.person("ann", group="vision") as ann, yard.person("lea", group="vision", role="lead") as lea:
        id = ann.post("/api/v1/envs", json={"name": "dev", "ports": [6006]}).json()["id"]
        assert ann.get("/api/v1/envs/dev").json()["ssh"] is None
        yard.start(id)
        told = ann.get("/api/v1/envs/dev").json()
        assert told["addresses"] == {
            what: f"http://{what}-{id}.localhost:8471/" for what in ("lab", "terminal", "p6006")
        }
        assert told["ssh"] == "ssh -p 8472 ann+dev@127.0.0.1"
        seen = lea.get(f"/api/v1/envs/{id}").json()
        assert (seen["addresses"], seen["ssh"]) == ({}, None)
        yard.step(id, PauseAsked("ann"))
        yard.step(id, Observed({replica.id: Seen(Life.ABSENT) for replica in yard.replicas(yard.workload(id))}))
        stopped = ann.get("/api/v1/envs/dev").json()
        assert (stopped["addresses"], stopped["ssh"]) == ({}, None)
