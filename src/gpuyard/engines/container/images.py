"""Images: which are here, how they come here, and in plain words why one did not."""

from __future__ import annotations

import contextlib
import json
import logging
import re
from collections.abc import AsyncIterator, Callable, Iterable, Sequence
from concurrent.futures import Future
from functools import partial
from typing import Any

import aiohttp
from aiodocker import Docker
from aiodocker.exceptions import DockerError

from gpuyard.domain.errors import EngineError
from gpuyard.domain.images import full_names as full_names
from gpuyard.domain.images import is_image_id, may_be_asked, read_image_name, registry_of
from gpuyard.domain.reasons import Code, Reason, because
from gpuyard.engines.container import names
from gpuyard.engines.container.client import EngineClient, Refused
from gpuyard.engines.container.pulls import Over, Pulls, Told
from gpuyard.engines.container.wording import without_paths
from gpuyard.engines.seam import HeldImage

log = logging.getLogger(__name__)

PULL_SECONDS = 3600.0
LOAD_SECONDS = 3600.0

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
    def __init__(self, client: EngineClient, registries: Sequence[str], is_full: Callable[[], bool]) -> None:
        """`is_full`: what is left of the disk is for what runs."""
        self._client = client
        self._registries = tuple(registries)
        self._is_full = is_full
        self._pulls = Pulls(self._pull)

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

    def fetch(self, name: str, user: str, told: Told, over: Over, *, is_request: bool) -> Callable[[], None]:
        """Have it fetched from its registry, when it is its turn; see Pulls."""
        if not is_reference(name) or is_image_id(name):
            raise EngineError(because(Code.ENGINE_CANNOT, engine="container", what=f"pull {name!r}"))
        refusal = self.fetch_refusal(name)
        if refusal is not None:
            raise EngineError(refusal)
        return self._pulls.join(_asked_for(name), user, told, over, is_request=is_request)

    def _pull(self, image: str, told: Told) -> Future[None]:
        if self._is_full():  # it was not, perhaps, when somebody began to wait
            full: Future[None] = Future()
            full.set_exception(Refused(0, "no space left for images"))
            return full
        return self._client.begin(partial(_create, image, told), PULL_SECONDS)

    def load(self, chunks: Iterable[bytes]) -> list[str]:
        """The images of a `docker save` archive. Returns their names."""

        async def pieces() -> AsyncIterator[bytes]:
            for chunk in chunks:
                yield chunk

        async def ask(docker: Docker) -> list[dict[str, Any]]:
            return [step async for step in docker.images.import_image(pieces(), stream=True)]

        try:
            said = self._client.call(ask, LOAD_SECONDS, apart=True)
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


async def _create(image: str, told: Told, docker: Docker) -> None:
    """aiodocker's own pull keeps its connection when it is cancelled, so that the engine would go on, and takes one
    that broke for the end."""
    no_limit = aiohttp.ClientTimeout()
    async with docker._query("images/create", "POST", params={"fromImage": image}, timeout=no_limit) as answer:
        with contextlib.closing(answer):
            async for line in answer.content:
                step = json.loads(line)
                if "error" in step or "errorDetail" in step:
                    raise DockerError(500, str((step.get("errorDetail") or {}).get("message") or step.get("error")))
                told(_step(step))


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
