"""Images: only names of images are names, they come from registries and archives, and failures say what to do."""

from __future__ import annotations

import hashlib
import io
import json
import socket
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest
from tests.engines.containers import IMAGE, NOBODYS_REGISTRY, REGISTRY, REGISTRY_PORT, ContainerYard, image_of_busybox
from tests.engines.places import replica

from gpuyard.domain.errors import EngineError, EngineUnsure
from gpuyard.domain.images import may_be_asked, registry_of
from gpuyard.domain.reasons import Code, because
from gpuyard.domain.workload import Life, ReplicaId
from gpuyard.engines.container import names
from gpuyard.engines.container.images import MOST_PULLS, cause_of, full_names, is_reference
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
        container_yard.engine.pull_image(name, print)
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


# --- a registry -------------------------------------------------------------------------------------------------------


class Registry:
    """As much of one as a pull needs: one good image, one that may not be had, one that never comes."""

    def __init__(self) -> None:
        layer = image_of_busybox({"etc/pulled": "yes"})
        rootfs = {"type": "layers", "diff_ids": [_digest(layer)]}
        config = json.dumps({"architecture": "amd64", "os": "linux", "config": {}, "rootfs": rootfs}).encode()
        kind = "application/vnd.docker.distribution.manifest.v2+json"
        self.manifest = json.dumps(
            {
                "schemaVersion": 2,
                "mediaType": kind,
                "config": _part("application/vnd.docker.container.image.v1+json", config),
                "layers": [_part("application/vnd.docker.image.rootfs.diff.tar", layer)],
            }
        ).encode()
        self.kind = kind
        self.blobs = {_digest(blob): blob for blob in (layer, config)}
        self.go_on = threading.Event()
        self.pulls = 0


def _digest(data: bytes) -> str:
    return f"sha256:{hashlib.sha256(data).hexdigest()}"


def _part(kind: str, data: bytes) -> dict[str, object]:
    return {"mediaType": kind, "size": len(data), "digest": _digest(data)}


@pytest.fixture
def registry() -> Iterator[Registry]:
    made = Registry()

    class Answers(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self._answer(with_body=True)

        def do_HEAD(self) -> None:
            self._answer(with_body=False)

        def _answer(self, *, with_body: bool) -> None:
            status, kind, body = self._find()
            self.send_response(status)
            self.send_header("Content-Type", kind)
            self.send_header("Content-Length", str(len(body)))
            self.send_header("Docker-Content-Digest", _digest(body))
            self.end_headers()
            if with_body:
                self.wfile.write(body)

        def _find(self) -> tuple[int, str, bytes]:
            parts = self.path.strip("/").split("/")
            if parts == ["v2"]:
                return 200, "application/json", b"{}"
            if parts[1] == "slow":
                made.go_on.wait()
            if parts[1] == "secret":
                return 401, "application/json", _error("UNAUTHORIZED", "authentication required")
            if parts[1] in ("good", "slow") and parts[2] == "manifests" and parts[3] in ("1", _digest(made.manifest)):
                made.pulls += self.command == "GET"
                return 200, made.kind, made.manifest
            if parts[1] in ("good", "slow") and parts[2] == "blobs" and parts[3] in made.blobs:
                return 200, "application/octet-stream", made.blobs[parts[3]]
            return 404, "application/json", _error("MANIFEST_UNKNOWN", "manifest unknown")

        def log_message(self, format: str, *args: object) -> None:
            return

    server = ThreadingHTTPServer(("127.0.0.1", REGISTRY_PORT), Answers)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    yield made
    made.go_on.set()
    server.shutdown()
    server.server_close()
    thread.join()


def _error(code: str, message: str) -> bytes:
    return json.dumps({"errors": [{"code": code, "message": message}]}).encode()


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
        lambda: container_yard.engine.pull_image(name, print),
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
    slow = [container_yard.request(replica(n), "true", image=f"{REGISTRY}/slow:{n + 2}") for n in range(MOST_PULLS + 1)]
    with ThreadPoolExecutor(MOST_PULLS) as pool:
        launches = [pool.submit(engine.launch, request) for request in slow[:MOST_PULLS]]
        container_yard.wait_for(lambda: all(container_yard.look(r.id).reason for r in slow[:MOST_PULLS]), "the pulls")
        with pytest.raises(EngineUnsure):
            engine.launch(slow[-1])
        assert container_yard.run("echo here", replica(9))[1] == "here\n"
        registry.go_on.set()
        assert all(isinstance(launch.exception(), EngineError) for launch in launches)


def test_steps_of_a_pull_are_told(container_yard: ContainerYard, registry: Registry) -> None:
    told: list[str] = []
    container_yard.engine.pull_image(f"{REGISTRY}/good:1", told.append)
    assert told[0] == f"{REGISTRY}/good:1"
    container_yard.engine.remove_image(f"{REGISTRY}/good:1")


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
