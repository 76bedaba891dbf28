"""Pulls that never end, on a whole platform with real containers: whoever asks for them keeps nobody else from the
container engine, from the api or from an image of their own."""

from __future__ import annotations

import http.client
import json
import threading
import urllib.request
from collections.abc import Iterator
from typing import Any
from urllib.parse import urlsplit

import pytest
from tests.attacks.test_workplaces_tenants import IMAGE, Tenant, Town
from tests.cli.yard import wait_until
from tests.engines.containers import missing
from tests.engines.registries import SilentRegistry, serving
from tests.ports import a_port

pytestmark = [pytest.mark.timeout(300), pytest.mark.skipif(bool(missing()), reason=missing())]
MANY = 64
GOOD_PORT, SILENT_PORT = a_port(), a_port()
GOOD, SILENT = f"localhost:{GOOD_PORT}/good:1", f"localhost:{SILENT_PORT}"


@pytest.fixture(scope="module")
def silent() -> Iterator[SilentRegistry]:
    made = SilentRegistry(SILENT_PORT)
    yield made
    made.close()


@pytest.fixture(scope="module")
def town(tmp_path_factory: pytest.TempPathFactory, silent: SilentRegistry) -> Iterator[Town]:
    folder = tmp_path_factory.mktemp("pulls")
    (folder / "data").mkdir(mode=0o700)
    (folder / "data" / "settings.toml").write_text(
        f'insecure_registries = ["localhost:{GOOD_PORT}", "localhost:{SILENT_PORT}"]\n'
    )
    town = Town(folder)
    try:
        with serving(GOOD_PORT):
            yield town
    finally:
        town.close()


class Pull:
    """A request to fetch an image, as a program would send it that never reads the rest of the answer."""

    def __init__(self, tenant: Tenant, image: str, language: str = "en") -> None:
        url = urlsplit(tenant.town.yard.url)
        self.connection = http.client.HTTPConnection(url.hostname or "", url.port, timeout=60)
        headers = {"Authorization": f"Bearer {tenant.secret}", "Accept-Language": language}
        body = json.dumps({"image": image})
        self.connection.request("POST", "/api/v1/images/pull", body, {**headers, "Content-Type": "application/json"})
        self.answer = self.connection.getresponse()

    def error(self) -> dict[str, Any]:
        error = dict(json.loads(self.answer.read())["error"])
        self.drop()
        return error

    def drop(self) -> None:
        self.answer.close()
        self.connection.close()


def begin_many(tenant: Tenant, number: int) -> list[Pull]:
    """All at the same time."""
    found: list[Pull] = []

    def begin(image: str) -> None:
        found.append(Pull(tenant, image))

    threads = [threading.Thread(target=begin, args=(f"{SILENT}/x{n}:1",)) for n in range(number)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return found


def submit(tenant: Tenant, name: str, image: str) -> str:
    job = {"name": name, "command": "true", "image": image, "cpu": 0.01, "memory": "16M"}
    return str(tenant.ask("POST", "workloads", job)["id"])


def state(tenant: Tenant, id: str) -> str:
    return str(tenant.ask("GET", f"workloads/{id}")["state"])


def succeeds(tenant: Tenant, id: str) -> None:
    wait_until(lambda: state(tenant, id) == "succeeded", 60, lambda: str(tenant.ask("GET", f"workloads/{id}")))


def test_who_asks_for_many_images_that_never_come_keeps_nobody_else_waiting(town: Town, silent: SilentRegistry) -> None:
    pulls = begin_many(town.ann, MANY)
    assert len(pulls) == MANY  # each has its answer
    wait_until(lambda: silent.open > 0, 60, lambda: "nobody asks the silent registry")
    with urllib.request.urlopen(f"{town.yard.url}/healthz", timeout=30) as answer:
        assert answer.status == 200
    succeeds(town.bob, submit(town.bob, "beside", IMAGE))
    town.bob.client.pull_image(GOOD)
    assert GOOD in [image.name for image in town.bob.client.images()]
    (node,) = town.bob.ask("GET", "nodes")["items"]
    assert node["state"] == "ready"
    assert silent.most < 8

    refused = [pull for pull in pulls if pull.answer.status != 200]
    assert {pull.answer.status for pull in refused} == {429}
    assert {pull.error()["code"] for pull in refused} == {"refused.too_many_pulls"}
    assert "are still being fetched for you" in Pull(town.ann, f"{SILENT}/y:1").error()["message"]
    assert "拉取" in Pull(town.ann, f"{SILENT}/y:1", "zh").error()["message"]
    for pull in pulls:
        pull.drop()
    wait_until(lambda: silent.open == 0, 60, lambda: f"{silent.open} pulls go on that nobody waits for")


def test_jobs_whose_images_never_come_keep_no_job_of_others_waiting(town: Town, silent: SilentRegistry) -> None:
    slow = [submit(town.ann, f"slow{n}", f"{SILENT}/job{n}:1") for n in range(8)]
    wait_until(lambda: all(state(town.ann, id) == "placed" for id in slow))
    wait_until(lambda: silent.open > 0, 60, lambda: "nobody asks the silent registry")
    town.yard.run("image", "rm", GOOD)
    succeeds(town.bob, submit(town.bob, "fetched", GOOD))
    succeeds(town.bob, submit(town.bob, "local", IMAGE))
    succeeds(town.ann, submit(town.ann, "own", IMAGE))
    for id in slow:
        town.ann.ask("POST", f"workloads/{id}/stop")
    wait_until(lambda: all(state(town.ann, id) == "stopped" for id in slow), 60, lambda: "jobs do not stop")
    wait_until(lambda: silent.open == 0, 60, lambda: f"{silent.open} pulls go on that nobody waits for")


def test_a_job_that_waits_for_its_image_says_so_in_its_story(town: Town, silent: SilentRegistry) -> None:
    ids = [submit(town.ann, f"told{n}", f"{SILENT}/told{n}:1") for n in range(3)]

    def codes(id: str) -> list[str]:
        return [line["code"] for line in town.ann.ask("GET", f"workloads/{id}/events")["items"]]

    wait_until(lambda: sum("story.pulling" in codes(id) for id in ids) == 2, 60, lambda: str(list(map(codes, ids))))
    wait_until(lambda: any("story.pull_waits" in codes(id) for id in ids), 60, lambda: str(list(map(codes, ids))))
    for id in ids:
        town.ann.ask("POST", f"workloads/{id}/stop")
    wait_until(lambda: silent.open == 0)
