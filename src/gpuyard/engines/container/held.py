"""Which images this machine holds, as last seen: whoever asks gets an answer at once, also when the engine is away."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable
from math import inf
from typing import Any

from aiodocker import Docker

from gpuyard.domain.images import full_names, is_image_id
from gpuyard.engines.container import names
from gpuyard.engines.container.client import EngineAway, EngineClient, Refused

log = logging.getLogger(__name__)

LOOK_SECONDS = 60.0  # others may fetch and remove images too, where the engine is not ours alone
MOST_NAMES = 1000  # of the newest; a node's record is read whole


class Held:
    """`soon` has something done by another thread."""

    def __init__(self, client: EngineClient, soon: Callable[[Callable[[], None]], object]) -> None:
        self._client = client
        self._soon = soon
        self._names: tuple[str, ...] = ()
        self._lock = threading.Lock()
        self._looked_at = -inf
        self._is_looking = False

    def names(self) -> tuple[str, ...]:
        """Full names, sorted, with tags and by digest. The same object as long as nothing changes."""
        if time.monotonic() - self._looked_at > LOOK_SECONDS:
            self._look_soon()
        return self._names

    def changed(self) -> None:
        """Some came or went."""
        self._looked_at = -inf
        self._look_soon()

    def met(self, image: str) -> None:
        """Work starts in this one: if it was not known to be here, it has just come."""
        if not is_image_id(image) and not set(full_names(image)).intersection(self._names):
            self.changed()

    def _look_soon(self) -> None:
        with self._lock:
            if self._is_looking:  # the next who asks finds that something changed meanwhile
                return
            self._is_looking = True
        try:
            self._soon(self._look)
        except RuntimeError:  # the engine was let go in this very moment
            self._is_looking = False

    def _look(self) -> None:
        self._looked_at = time.monotonic()
        try:
            found = _names_of(self._client.call(_list))
            if found != self._names:
                self._names = found
        except (EngineAway, Refused) as problem:
            log.info("which images are here is not known now: %s", problem)
        except Exception:  # it is looked again later
            log.exception("looking for images")
        finally:
            self._is_looking = False


def _names_of(images: list[dict[str, Any]]) -> tuple[str, ...]:
    newest = sorted(images, key=lambda image: float(image.get("Created") or 0), reverse=True)
    listed = [name for image in newest for key in ("RepoTags", "RepoDigests") for name in image.get(key) or ()]
    real = [name for name in listed if "<none>" not in name and not name.startswith(names.KEPT_IMAGES)]
    return tuple(sorted(set(real[:MOST_NAMES])))


async def _list(docker: Docker) -> list[dict[str, Any]]:
    return await docker.images.list()
