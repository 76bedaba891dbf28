"""Images by name: a registry that may not be asked is refused wherever its name is written, and is never asked."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import ExitStack

import pytest
from tests.api.yard import Yard, running, wait_until

from gpuyard.api.parts import ImagePolicy
from gpuyard.domain.errors import EngineError
from gpuyard.domain.images import may_be_asked, registry_of
from gpuyard.domain.reasons import Code, Reason, because
from gpuyard.engines.seam import HeldImage

INSIDE = "169.254.169.254/latest:1"
JOB = {"name": "train", "command": "true"}
ENV = {"name": "lab", "cpu": 1, "memory": "1G"}


class Shelf:
    """Images that are here, and a note of every one that a registry was asked for."""

    def __init__(self, *names: str) -> None:
        self.names = set(names)
        self.pulled: list[str] = []
        self.users: list[str] = []
        self.waiting: list[str] = []

    def images(self) -> Sequence[HeldImage]:
        return [HeldImage(name, name, 1, 0.0) for name in sorted(self.names)]

    def fetch_refusal(self, name: str) -> Reason | None:
        registry, allowed = registry_of(name), ["docker.io"]
        refused = because(Code.REGISTRY_REFUSED, image=name, registry=registry, allowed=allowed)
        return None if may_be_asked(registry, allowed) else refused

    def has_image(self, name: str) -> bool:
        return name in self.names

    def pull_image(
        self, name: str, user: str, told: Callable[[str], None], over: Callable[[Reason | None], None]
    ) -> Callable[[], None]:
        """Those called silent never end."""
        if "silent" in name:
            self.waiting.append(user)
            return lambda: self.waiting.remove(user)
        self.pulled.append(name)
        told("a step")
        over(None)
        return lambda: None

    def load_image(self, chunks: Iterable[bytes]) -> Sequence[str]:
        raise EngineError(because(Code.NOT_AN_IMAGE))

    def remove_image(self, name: str) -> bool:
        if self.users:
            raise EngineError(because(Code.IMAGE_IN_USE, image=name, by=self.users))
        return name in self.names


@pytest.fixture
def shelf() -> Shelf:
    return Shelf()


@pytest.fixture
def yard(shelf: Shelf, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Yard]:
    policy = ImagePolicy("container", uses_images=True, held=shelf)
    with running(tmp_path_factory.mktemp("images"), images=policy) as yard:
        yield yard


@pytest.mark.parametrize(
    ("path", "body"),
    [
        ("/api/v1/workloads", JOB | {"image": INSIDE}),
        ("/api/v1/envs", ENV | {"image": INSIDE}),
        ("/api/v1/images/pull", {"image": INSIDE}),
    ],
)
def test_a_registry_that_may_not_be_asked_is_refused_in_words(
    yard: Yard, shelf: Shelf, path: str, body: dict[str, object]
) -> None:
    with yard.person("pia") as pia:
        answer = pia.post(path, json=body)
        assert answer.status_code == 400
        assert answer.json()["error"]["code"] == "ended.registry_refused"
        assert "169.254.169.254 may not be asked" in answer.json()["error"]["message"]
        chinese = pia.post(path, json=body, headers={"Accept-Language": "zh"}).json()["error"]["message"]
        assert "不允许从镜像仓库 169.254.169.254" in chinese
        assert pia.get("/api/v1/workloads").json()["items"] == []
    assert shelf.pulled == []


def test_an_image_that_is_here_is_taken_whatever_its_name_says(yard: Yard, shelf: Shelf) -> None:
    shelf.names.add(INSIDE)
    with yard.person("pia") as pia:
        assert pia.post("/api/v1/workloads", json=JOB | {"image": INSIDE}).status_code == 201
        assert pia.post("/api/v1/envs", json=ENV | {"image": INSIDE}).status_code == 201


def test_one_bad_role_among_good_ones_is_found(yard: Yard) -> None:
    roles = {"a": {"command": "true", "image": "debian:12"}, "b": {"command": "true", "image": INSIDE}}
    with yard.person("pia") as pia:
        answer = pia.post("/api/v1/workloads", json={"name": "two", "roles": roles})
        assert answer.json()["error"]["code"] == "ended.registry_refused"
        preview = pia.post("/api/v1/preview", json={"name": "two", "roles": roles}).json()
        assert (preview["starts"], preview["problems"][0]["code"]) == (False, "ended.registry_refused")


def test_what_may_be_fetched_is_fetched(yard: Yard, shelf: Shelf) -> None:
    with yard.person("pia") as pia:
        told = pia.post("/api/v1/images/pull", json={"image": "debian:12"}).text.splitlines()
    assert told == ['{"told": "a step"}', '{"done": true}']
    assert shelf.pulled == ["debian:12"]


def test_pulls_that_never_end_hold_nothing_that_others_need_and_who_hangs_up_is_gone(yard: Yard, shelf: Shelf) -> None:
    kept: list[Iterator[str]] = []
    with yard.person("pia") as pia, ExitStack() as open_pulls:
        for number in range(64):
            pull = pia.stream("POST", "/api/v1/images/pull", json={"image": f"silent:{number}"})
            lines = open_pulls.enter_context(pull).iter_lines()
            kept.append(lines)  # let go of, it would hang up
            assert "will be fetched" in next(lines)
            assert next(lines) == '{"told": ""}'  # still here
        assert len(shelf.waiting) == 64
        with yard.owner as owner:
            assert owner.get("/api/v1/images").status_code == 200
            assert owner.get("/healthz").status_code == 200
    wait_until(lambda: not shelf.waiting)


def test_who_may_not_be_here_any_more_waits_no_longer(yard: Yard, shelf: Shelf) -> None:
    with (
        yard.person("pia") as pia,
        yard.owner as owner,
        pia.stream("POST", "/api/v1/images/pull", json={"image": "silent:1"}) as answer,
    ):
        lines = answer.iter_lines()
        next(lines)
        tokens = owner.get("/api/v1/tokens", params={"user": "pia"}).json()["items"]
        assert owner.delete(f"/api/v1/tokens/{tokens[0]['id']}").status_code < 300
        assert '"error"' in list(lines)[-1]
    wait_until(lambda: not shelf.waiting)


def test_an_image_in_use_is_refused_with_the_names_of_those_who_use_it(yard: Yard, shelf: Shelf) -> None:
    with yard.person("pia") as pia:
        env = pia.post("/api/v1/envs", json=ENV | {"image": "debian:12"}).json()["id"]
    shelf.users = [env, "a-stranger"]
    with yard.owner as owner:
        answer = owner.delete("/api/v1/images", params={"image": "debian:12"})
        assert answer.status_code == 409
        told = answer.json()["error"]["message"]
        assert f"The image debian:12 is in use: lab ({env}, pia), a-stranger." in told
        assert "`yard env rm NAME`" in told


def test_a_file_that_is_no_image_is_refused_in_a_plain_sentence(yard: Yard) -> None:
    with yard.owner as owner:
        answer = owner.put("/api/v1/images/load", content=b"junk", headers={"Content-Type": "application/x-tar"})
        assert answer.status_code == 400
        assert answer.json()["error"]["message"].startswith("That file is no image.")
