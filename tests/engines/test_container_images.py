"""Images: only names of images are names, they come from registries and archives, and failures say what to do."""

from __future__ import annotations

import io
import socket
import threading
import time
from collections.abc import Iterator
from contextlib import closing
from functools import partial
from queue import SimpleQueue

import pytest
from aiodocker import Docker
from tests.engines.containers import (
    IMAGE,
    NOBODYS_REGISTRY,
    REGISTRY,
    REGISTRY_PORT,
    ContainerYard,
    image_of_busybox,
)
from tests.engines.places import PATIENCE_SECONDS, replica
from tests.engines.registries import Registry, SilentRegistry, serving

from gpuyard.domain.errors import EngineError, EngineWaits
from gpuyard.domain.images import may_be_asked, registry_of
from gpuyard.domain.reasons import Code, Reason, because
from gpuyard.domain.workload import Life, ReplicaId
from gpuyard.engines.container import names
from gpuyard.engines.container.client import EngineClient
from gpuyard.engines.container.images import Images, cause_of, full_names, is_reference
from gpuyard.engines.container.pulls import Problem
from gpuyard.engines.container.turns import MOST_OF_ONE
from gpuyard.engines.seam import KeepsImages


@pytest.mark.parametrize(
    "name",
    [
        *("", "--help", "-v/:/x", "a b", "a/B", "../x", "/etc/passwd", "dir:/", "docker-archive:/etc/passwd", "oci:x"),
        *("http://x/y", "x@sha256:12/..", "x:../y", "containers-storage:x", "x\n", "x;id", "$(id)", "`id`", "x" * 600),
    ],
)
def test_what_is_no_image_name_is_never_asked_for(container_yard: ContainerYard, name: str) -> None:
    assert not is_reference(name)
    with pytest.raises(EngineError):
        container_yard.launch("true", replica(), image=name)
    with pytest.raises(EngineError):
        ask_for(container_yard, name)
    assert container_yard.engine.remove_image(name) is False


@pytest.mark.parametrize(
    ("name", "full"),
    [
        ("python:3.12", "docker.io/library/python:3.12"),
        ("nvidia/cuda", "docker.io/nvidia/cuda:latest"),
        ("quay.io/a/b:1", "quay.io/a/b:1"),
        ("localhost/a:1", "localhost/a:1"),
        ("reg:5000/a", "reg:5000/a:latest"),
    ],
)
def test_a_short_name_means_the_usual_registry_unless_it_is_here(name: str, full: str) -> None:
    assert full_names(name)[-1] == full


@pytest.mark.parametrize(
    ("message", "cause"),
    [
        ("reading manifest 9 in docker.io/library/x: manifest unknown", "not_found"),
        ("requested access to the resource is denied", "denied"),
        ("unauthorized: authentication required", "denied"),
        ("dial tcp: lookup registry-1.docker.io: no such host", "unreachable"),
        ("pinging container registry localhost:5000: connection refused", "unreachable"),
        ("http: server gave HTTP response to HTTPS client", "unreachable"),
        ("write /var/x: no space left on device", "disk_full"),
        ("the moon is down", "other"),
    ],
)
def test_why_a_pull_failed_is_understood(message: str, cause: str) -> None:
    assert cause_of(message) == cause


@pytest.mark.parametrize(
    ("name", "registry"),
    [
        ("python:3.12", "docker.io"),
        ("nvidia/cuda", "docker.io"),
        ("index.docker.io/library/x", "docker.io"),
        ("Quay.io/a/b:1", "quay.io"),
        ("localhost/a", "localhost"),
        ("127.0.0.1:6379/x", "127.0.0.1:6379"),
        ("reg:5000/a@sha256:" + "0" * 64, "reg:5000"),
    ],
)
def test_which_registry_a_name_leads_to(name: str, registry: str) -> None:
    assert registry_of(name) == registry


@pytest.mark.parametrize(
    ("registry", "allowed", "may"),
    [
        ("docker.io", ["docker.io"], True),
        ("docker.io:8080", ["docker.io"], False),
        ("evil-docker.io", ["docker.io"], False),
        ("docker.io.evil.example", ["docker.io"], False),
        ("a.example.com", ["*.example.com"], True),
        ("a.example.com:5000", ["*.example.com"], False),
        ("example.com", ["*.example.com"], False),
        ("evilexample.com", ["*.example.com"], False),
        ("127.0.0.1:80", [], False),
        ("127.0.0.1:80", ["*"], True),
    ],
)
def test_a_registry_may_be_asked_only_by_the_name_it_was_allowed_by(
    registry: str, allowed: list[str], may: bool
) -> None:
    assert may_be_asked(registry, allowed) is may


def ask_for(container_yard: ContainerYard, name: str) -> None:
    container_yard.engine.pull_image(name, "ann", lambda step: None, lambda problem: None)


# --- a registry -------------------------------------------------------------------------------------------------------


@pytest.fixture
def registry() -> Iterator[Registry]:
    with serving(REGISTRY_PORT) as made:
        yield made


def test_an_image_that_is_not_here_is_pulled_for_the_work_that_names_it(
    container_yard: ContainerYard, registry: Registry
) -> None:
    assert isinstance(container_yard.engine, KeepsImages)
    name = f"{REGISTRY}/good:1"
    assert container_yard.run("cat /etc/pulled", replica(0), image=name)[1] == "yes"
    pulls = registry.pulls
    assert name in [held.name for held in container_yard.engine.images()]
    assert container_yard.run("cat /etc/pulled", replica(1), image=name)[1] == "yes"
    assert registry.pulls == pulls
    container_yard.wait_for(lambda: container_yard.containers() == [], "the end of all that uses it")
    assert container_yard.engine.remove_image(name)
    assert name not in [held.name for held in container_yard.engine.images()]


@pytest.mark.parametrize(("name", "why"), [("gone:1", "not_found"), ("good:2", "not_found"), ("secret:1", "denied")])
def test_a_failed_pull_says_which_image_and_why(
    container_yard: ContainerYard, registry: Registry, name: str, why: str
) -> None:
    is_refused(container_yard, f"{REGISTRY}/{name}", why)


def test_a_pull_from_a_registry_that_is_not_there_says_so(container_yard: ContainerYard) -> None:
    is_refused(container_yard, f"{NOBODYS_REGISTRY}/good:1", "unreachable")


def is_refused(container_yard: ContainerYard, image: str, why: str) -> None:
    with pytest.raises(EngineError) as refused:
        container_yard.launch("true", replica(), image=image)
    reason = refused.value.reason
    assert reason.code is Code.PULL_FAILED
    assert (reason.facts["image"], reason.facts["why"], reason.facts["replica"]) == (image, why, "worker-0")
    assert container_yard.look(replica()).life is Life.ABSENT


class Listener:
    """Somebody on this machine whom no user should be able to knock at."""

    def __init__(self) -> None:
        self.socket = socket.create_server(("127.0.0.1", 0))
        self.socket.setblocking(False)
        self.port = self.socket.getsockname()[1]

    def was_knocked_at(self) -> bool:
        try:
            self.socket.accept()[0].close()
        except BlockingIOError:
            return False
        return True


@pytest.mark.parametrize("host", ["127.0.0.1", "localhost", "LOCALHOST", "0x7f.1", "2130706433"])
def test_a_name_that_leads_to_a_machine_nobody_allowed_is_refused_before_anybody_is_asked(
    container_yard: ContainerYard, host: str
) -> None:
    listener = Listener()
    name = f"{host}:{listener.port}/x"
    for ask in (
        lambda: ask_for(container_yard, name),
        lambda: container_yard.launch("true", replica(), image=name),
    ):
        with pytest.raises(EngineError) as refused:
            ask()
        reason = refused.value.reason
        assert reason.code is Code.REGISTRY_REFUSED
        assert (reason.facts["image"], reason.facts["registry"]) == (name, f"{host.lower()}:{listener.port}")
    assert not listener.was_knocked_at()
    assert container_yard.look(replica()).life is Life.ABSENT
    listener.socket.close()


def test_an_image_that_is_here_is_used_whatever_its_name_says(container_yard: ContainerYard) -> None:
    name = "169.254.169.254/latest/meta-data:1"
    assert container_yard.engine.fetch_refusal(name) is not None
    assert not container_yard.engine.has_image(name)
    container_yard.host.command("tag", IMAGE, name)
    assert container_yard.engine.has_image(name)
    assert container_yard.run("echo ran", replica(), image=name)[1] == "ran\n"
    container_yard.host.command("untag", IMAGE, name)


def test_while_it_is_pulled_the_replica_is_starting_and_says_so_and_can_be_stopped(
    container_yard: ContainerYard, registry: Registry
) -> None:
    name, id = f"{REGISTRY}/slow:1", replica()
    launch = threading.Thread(target=container_yard.launch, args=("echo ran", id), kwargs={"image": name})
    launch.start()
    container_yard.wait_for(lambda: container_yard.look(id).reason, "a reason")
    seen = container_yard.look(id)
    assert (seen.life, seen.reason) == (Life.STARTING, because(Code.PULLING, image=name, replica="worker-0"))
    assert container_yard.run("echo beside", replica(1))[1] == "beside\n"
    container_yard.engine.stop(id, None, 0.0)
    assert container_yard.look(id).life is Life.ABSENT
    registry.go_on.set()
    launch.join()
    assert container_yard.look(id).life is Life.ABSENT
    assert container_yard.log(id) == ""
    container_yard.engine.remove_image(name)


def test_work_whose_image_is_here_does_not_wait_behind_slow_registries(
    container_yard: ContainerYard, registry: Registry
) -> None:
    engine = container_yard.engine
    slow = [
        container_yard.request(replica(n), "true", image=f"{REGISTRY}/slow:{n + 2}") for n in range(MOST_OF_ONE + 1)
    ]
    woken = threading.Semaphore(0)
    for request in slow:
        with pytest.raises(EngineWaits) as waits:
            engine.launch(request)
        waits.value.then(woken.release)
    told = [container_yard.look(request.id).reason for request in slow]
    assert [reason.code for reason in told if reason] == [Code.PULLING] * MOST_OF_ONE + [Code.PULL_WAITS]
    assert container_yard.run("echo here", replica(9))[1] == "here\n"
    assert container_yard.run("echo other", replica(8), owner="bob", image=f"{REGISTRY}/good:1")[1] == "other\n"
    registry.go_on.set()
    for _ in slow:
        assert woken.acquire(timeout=PATIENCE_SECONDS)
    for request in slow[:MOST_OF_ONE]:
        with pytest.raises(EngineError, match=r"pull_failed.*slow"):
            engine.launch(request)
    for request in slow:
        engine.stop(request.id, None, 0.0)
        assert container_yard.look(request.id).life is Life.ABSENT
    container_yard.wait_for(lambda: container_yard.containers() == [], "the end of all that uses it")
    engine.remove_image(f"{REGISTRY}/good:1")


def test_the_steps_of_a_pull_and_its_end_are_told(container_yard: ContainerYard, registry: Registry) -> None:
    told: list[str] = []
    ends: SimpleQueue[Reason | None] = SimpleQueue()
    name = f"{REGISTRY}/good:1"
    container_yard.engine.pull_image(name, "ann", told.append, ends.put)
    assert ends.get(timeout=PATIENCE_SECONDS) is None
    assert told[0] == name
    assert container_yard.engine.has_image(name)
    container_yard.engine.remove_image(name)
    container_yard.engine.pull_image(f"{REGISTRY}/gone:1", "ann", told.append, ends.put)
    failed = ends.get(timeout=PATIENCE_SECONDS)
    assert failed is not None
    assert (failed.code, failed.facts["why"]) == (Code.PULL_FAILED, "not_found")


def test_a_pull_that_nobody_waits_for_any_more_hangs_up(each_yard: ContainerYard) -> None:
    silent, engine, id = SilentRegistry(REGISTRY_PORT), each_yard.engine, replica()
    try:
        leave = engine.pull_image(f"{REGISTRY}/x:1", "ann", lambda step: None, lambda problem: None)
        with pytest.raises(EngineWaits):
            engine.launch(each_yard.request(id, "true", image=f"{REGISTRY}/x:1"))
        each_yard.wait_for(lambda: silent.open, "a knock at the registry")
        engine.stop(id, None, 0.0)
        assert each_yard.look(id).life is Life.ABSENT
        assert silent.open
        leave()
        each_yard.wait_for(lambda: not silent.open, "the end of the pull")
    finally:
        silent.close()


def test_pulls_of_any_number_hold_up_no_knock_and_no_question(container_yard: ContainerYard) -> None:
    silent, client = SilentRegistry(REGISTRY_PORT), EngineClient(container_yard.host.socket)

    async def pull(number: int, docker: Docker) -> None:
        params = {"fromImage": f"{REGISTRY}/x{number}:1"}
        async with docker._query("images/create", "POST", params=params) as answer:
            with closing(answer):
                await answer.read()

    try:
        pulls = [client.begin(partial(pull, number), PATIENCE_SECONDS) for number in range(70)]
        container_yard.wait_for(lambda: silent.open, "a knock at the registry")
        assert client.knock()
        assert client.call(lambda docker: docker.images.list())
        for one in pulls:
            one.cancel()
    finally:
        client.close()
        silent.close()


def test_a_pull_whose_turn_comes_when_the_disk_is_nearly_full_is_not_begun(container_yard: ContainerYard) -> None:
    client, ends = EngineClient(container_yard.host.socket), list[Problem | None]()
    images = Images(client, ["*"], is_full=lambda: True)
    images.fetch(f"{REGISTRY}/good:1", "ann", lambda step: None, ends.append, is_request=False)
    assert cause_of(str(ends[0])) == "disk_full"
    client.close()


def test_an_image_that_only_looks_like_somebodys_environment_is_like_any_other(each_yard: ContainerYard) -> None:
    name, id = "localhost/alike:1", replica()
    labels = names.labels(ReplicaId("wsomebodys", 1, "main", 0), "abcdefabcdef")
    for chosen in (name, "its id"):
        each_yard.host.load(name, *(f"LABEL {key}={value}" for key, value in labels.items()))
        (held,) = [held for held in each_yard.engine.images() if held.name == name]
        assert each_yard.run("echo ran", id, image=name)[1] == "ran\n"
        each_yard.wait_for(lambda: each_yard.containers() == [], "the end of all that uses it")
        assert each_yard.engine.remove_image(held.id if chosen != name else name)
        assert not each_yard.engine.has_image(name)
        id = replica(1)


def test_an_archive_is_loaded_and_its_images_named(container_yard: ContainerYard) -> None:
    container_yard.host.command("tag", IMAGE, "localhost/saved:7")
    path = container_yard.data.parent / "saved.tar"
    container_yard.host.command("save", "--output", str(path), "localhost/saved:7")
    assert container_yard.engine.remove_image("localhost/saved:7")
    with path.open("rb") as archive:
        loaded = container_yard.engine.load_image(iter(lambda: archive.read(65536), b""))
    assert list(loaded) == ["localhost/saved:7"]
    assert container_yard.engine.remove_image("saved:7")
    assert not container_yard.engine.remove_image("saved:7")


@pytest.mark.parametrize("junk", [b"", b"not an archive", image_of_busybox({})], ids=["nothing", "text", "tar"])
def test_what_is_no_image_is_refused_in_words(container_yard: ContainerYard, junk: bytes) -> None:
    with pytest.raises(EngineError) as refused:
        container_yard.engine.load_image(io.BytesIO(junk))
    assert refused.value.reason == because(Code.NOT_AN_IMAGE)


def test_an_image_in_use_is_not_removed(container_yard: ContainerYard) -> None:
    container_yard.host.load("localhost/used:1")
    id = container_yard.launch("sleep 600", replica(), image="localhost/used:1")
    with pytest.raises(EngineError) as refused:
        container_yard.engine.remove_image("localhost/used:1")
    assert refused.value.reason == because(Code.IMAGE_IN_USE, image="localhost/used:1", by=[id.workload])
    assert container_yard.look(id).life is Life.RUNNING


def test_each_image_is_told_with_its_size_and_age(container_yard: ContainerYard) -> None:
    held = next(held for held in container_yard.engine.images() if held.name == IMAGE)
    assert held.size > 1 << 20
    assert held.created_at <= time.time()
    assert held.id
