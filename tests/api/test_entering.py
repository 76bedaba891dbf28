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

NOTE = {"url": "http://localhost:8471", "port": 8471, "ssh_port": 8472, "pid": 1, "started_at": 1.0, "config": "x"}
NAMES, PATHS = {"scheme": "http", "domain": "localhost", "paths": False}, {"paths": True}


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
        ann.post(f"/api/v1/workloads/{job}/open", json={"what": "terminal"})
        entry = owner.get("/api/v1/audit").json()["items"][0]
        assert (entry["who"], entry["action"], entry["object"]) == ("ann", "workload.enter", job)
        assert entry["facts"]["what"] == "terminal"


def test_a_lead_sees_it_but_does_not_enter_and_a_stranger_sees_nothing(yard: Yard) -> None:
    ann, ben = yard.person("ann", group="vision"), yard.person("ben")
    lea = yard.person("lea", group="vision", role="lead")
    job = ann.post("/api/v1/workloads", json={"command": "true"}).json()["id"]
    assert lea.get(f"/api/v1/workloads/{job}").status_code == 200
    refused = lea.post(f"/api/v1/workloads/{job}/open")
    assert (refused.status_code, "owner and admins" in refused.json()["error"]["message"]) == (403, True)
    assert ben.post(f"/api/v1/workloads/{job}/open").status_code == 404
    with yard.owner as owner:
        assert owner.post(f"/api/v1/workloads/{job}/open").status_code == 200


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
        away = ann.post(f"/api/v1/workloads/{other}/open")
        assert (away.status_code, away.json()["error"]["code"]) == (503, "refused.gateway_away")


def test_by_paths_the_address_has_the_name_the_server_is_asked_under(yard: Yard, tmp_path: Path) -> None:
    (tmp_path / "gateway.json").write_text(json.dumps(NOTE | NAMES | PATHS))
    with yard.person("ann", group="vision") as ann:
        job = ann.post("/api/v1/workloads", json={"command": "true"}).json()["id"]
        url = ann.post(f"/api/v1/workloads/{job}/open", json={"what": "ide"}).json()["url"]
        assert url.startswith(f"http://127.0.0.1:8471/i/{job}/ide/.yard/enter?code=")
