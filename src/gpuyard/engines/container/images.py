"""Images: which are here, how they come here, and in plain words why one did not."""

from __future__ import annotations

import logging
import re
import threading
import time
from collections.abc import AsyncIterator, Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from typing import Any

from aiodocker import Docker

from gpuyard.domain.errors import EngineError
from gpuyard.domain.images import full_names as full_names
from gpuyard.domain.images import is_image_id, may_be_asked, read_image_name, registry_of
from gpuyard.domain.reasons import Code, Reason, because
from gpuyard.engines.container import names
from gpuyard.engines.container.client import EngineAway, EngineClient, Refused
from gpuyard.engines.container.wording import without_paths
from gpuyard.engines.seam import HeldImage

log = logging.getLogger(__name__)

PULL_SECONDS = 3600.0
LOAD_SECONDS = 3600.0
MOST_PULLS = 3
_TURN_SECONDS = 0.5

# What registries and engines say, by what it means. The first that fits.
_CAUSES: tuple[tuple[str, str], ...] = (
    ("denied", r"unauthorized|denied|authentication required|forbidden|\b40[13]\b|no basic auth"),
    ("not_found", r"manifest unknown|name unknown|not found|no such image|\b404\b|repository .* not known"),
    (
        "unreachable",
        r"connection refused|no such host|timeout|timed out|unreachable|dial tcp|tls:|x509|\beof\b|reset by peer"
        r"|\b50[0234]\b|server misbehaving|gave http response to https",
    ),
    ("disk_full", r"no space left|disk quota"),
)


def is_reference(text: str) -> bool:
    """An image's name in a registry, or its id; never a file, an option or another transport."""
    return is_image_id(text) or read_image_name(text) is not None


def cause_of(message: str) -> str:
    """Why a pull failed: denied, not_found, unreachable, disk_full, or other."""
    text = message.lower()
    return next((cause for cause, pattern in _CAUSES if re.search(pattern, text)), "other")


def pull_failed(image: str, message: str, replica: str = "") -> EngineError:
    detail = without_paths(" ".join(message.split()))[-300:]
    return EngineError(because(Code.PULL_FAILED, image=image, why=cause_of(message), detail=detail, replica=replica))


class Images:
    def __init__(self, client: EngineClient, registries: Sequence[str]) -> None:
        self._client = client
        self._registries = tuple(registries)
        self._lock = threading.Lock()
        self._pulls: set[str] = set()

    def all(self) -> list[HeldImage]:
        """Those with a name; what only keeps a dev environment's changes is nobody's to choose."""
        found = [_held(image, name) for image in self._client.call(_list) for name in _tags(image)]
        return sorted(held for held in found if not held.name.startswith(names.KEPT_IMAGES))

    def find(self, name: str) -> dict[str, Any] | None:
        """Its details, or None when it is not here. What is somebody's own is not there for others, by whatever name or
        beginning of an id the engine would find it."""
        for candidate in full_names(name):
            try:
                found = self._client.call(partial(_inspect, candidate))
            except Refused as problem:
                if problem.status not in (400, 404, 500) or "no such image" not in problem.message.lower():
                    raise
            else:
                return None if _is_kept(found) else found
        return None

    def fetch_refusal(self, name: str) -> Reason | None:
        """Why its registry may not be asked for it; None when it may."""
        registry = registry_of(_asked_for(name))
        if may_be_asked(registry, self._registries):
            return None
        return because(Code.REGISTRY_REFUSED, image=name, registry=registry, allowed=list(self._registries))

    def ensure(self, name: str, told: Callable[[str], None]) -> dict[str, Any]:
        """The image's details, after pulling it if it is not here. Raises EngineAway when it is not yet its turn."""
        if not is_reference(name):
            raise EngineError(because(Code.ENGINE_CANNOT, engine="container", what=f"use {name!r} as an image"))
        found = self.find(name)
        if found is not None:
            return found
        with self._turn(name):
            found = self.find(name)
            if found is None:
                self.pull(name, told)
                found = self.find(name)
        if found is None:
            raise pull_failed(name, "it is not here although its registry gave it")
        return found

    @contextmanager
    def _turn(self, name: str) -> Iterator[None]:
        """Once for each image, and few at a time: those whose images are here must not wait behind slow registries."""
        with self._lock:
            is_free = name not in self._pulls and len(self._pulls) < MOST_PULLS
            if is_free:
                self._pulls.add(name)
        if not is_free:
            time.sleep(_TURN_SECONDS)
            raise EngineAway(f"other images are being fetched before {name}")
        try:
            yield
        finally:
            with self._lock:
                self._pulls.discard(name)

    def pull(self, name: str, told: Callable[[str], None]) -> None:
        """From its registry. `told` hears of each step."""
        if not is_reference(name) or is_image_id(name):
            raise EngineError(because(Code.ENGINE_CANNOT, engine="container", what=f"pull {name!r}"))
        refusal = self.fetch_refusal(name)
        if refusal is not None:
            raise EngineError(refusal)

        async def ask(docker: Docker) -> None:
            async for step in docker.images.pull(_asked_for(name), stream=True):
                told(_step(step))

        told(name)
        try:
            self._client.call(ask, PULL_SECONDS)
        except Refused as problem:
            log.warning("%s could not be fetched: %s", name, problem)
            raise pull_failed(name, problem.message) from problem

    def load(self, chunks: Iterable[bytes]) -> list[str]:
        """The images of a `docker save` archive. Returns their names."""

        async def pieces() -> AsyncIterator[bytes]:
            for chunk in chunks:
                yield chunk

        async def ask(docker: Docker) -> list[dict[str, Any]]:
            return [step async for step in docker.images.import_image(pieces(), stream=True)]

        try:
            said = self._client.call(ask, LOAD_SECONDS)
        except Refused as problem:
            raise _load_failed(problem.message) from problem
        loaded = re.findall(r"Loaded image(?: ID|\(s\))?:\s*([^\s,]+)", "\n".join(map(_step, said)))
        if not loaded:
            raise _load_failed(str(said)[:1000])
        return loaded

    def remove(self, name: str) -> bool:
        """False when it is not here. What is in use is refused."""
        found = self.find(name) if is_reference(name) else None
        if found is None:
            return False
        target = next((full for full in full_names(name) if full in (found.get("RepoTags") or ())), name)
        try:
            self._client.call(lambda docker: docker.images.delete(target))
        except Refused as problem:
            if problem.is_missing:
                return False
            used_by = self._users(str(found["Id"]))
            if not used_by:
                raise
            raise EngineError(because(Code.IMAGE_IN_USE, image=name, by=used_by)) from problem
        return True

    def _users(self, id: str) -> list[str]:
        """The workloads whose containers are made of it; those of others by the names of their containers."""
        used = [shown for shown in self._client.call(_all_containers) if _bare(shown.get("ImageID")) == _bare(id)]
        owners = [names.read_labels(shown.get("Labels") or {}) for shown in used]
        return sorted({owner.workload if owner else _called(shown) for owner, shown in zip(owners, used, strict=True)})

    def drop(self, id: str) -> None:
        """Take away an image of our own making, with all its names. Raises Refused while something needs it."""
        self._client.call(lambda docker: docker.images.delete(id, force=True))


def _asked_for(name: str) -> str:
    """As a registry is asked for it: without one in its name, the usual one is meant."""
    return full_names(name)[-1]


async def _inspect(name: str, docker: Docker) -> dict[str, Any]:
    found: dict[str, Any] = await docker.images.inspect(name)
    return found


async def _all_containers(docker: Docker) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = await docker._query_json("containers/json", method="GET", params={"all": True})
    return found


def _bare(id: Any) -> str:
    return str(id).removeprefix("sha256:")


def _called(container: dict[str, Any]) -> str:
    return str(next(iter(container.get("Names") or ()), container["Id"][:12])).lstrip("/")


def _load_failed(said: str) -> EngineError:
    log.warning("an archive could not be loaded: %s", said)
    if cause_of(said) == "disk_full":
        return EngineError(because(Code.STORE_FULL))
    return EngineError(because(Code.NOT_AN_IMAGE))


async def _list(docker: Docker) -> list[dict[str, Any]]:
    return await docker.images.list()


def _tags(image: dict[str, Any]) -> list[str]:
    return [name for name in image.get("RepoTags") or () if not name.startswith("<none>")]


def _is_kept(image: dict[str, Any]) -> bool:
    """Made from somebody's dev environment: it has a name of ours, or, when it has lost that, none at all and all of
    its container's labels. One that a registry or a file gave has a name of its own, and may have whatever labels."""
    digests = [name for name in image.get("RepoDigests") or () if not name.startswith("<none>")]
    called = [*_tags(image), *digests]
    if called:
        return any(name.startswith(names.KEPT_IMAGES) for name in called)
    return names.read_labels((image.get("Config") or {}).get("Labels") or {}) is not None


def _held(image: dict[str, Any], name: str) -> HeldImage:
    return HeldImage(name, str(image["Id"]), int(image.get("Size") or 0), float(image.get("Created") or 0))


def _step(step: Any) -> str:
    """What a progress message says, on one line."""
    if not isinstance(step, dict):
        return ""
    said = str(step.get("stream") or step.get("status") or "")
    return f"{said} {step.get('progress') or ''}".strip()
