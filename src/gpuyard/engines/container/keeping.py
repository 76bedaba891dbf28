"""What is installed in a dev environment stays: its container is kept from one attempt to the next as long as it would
be made the same way; otherwise what was changed in it is put into an image that the next one is made from."""

from __future__ import annotations

import contextlib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from gpuyard.engines.container import creating, names
from gpuyard.engines.container.client import Refused
from gpuyard.engines.container.containers import Containers
from gpuyard.engines.container.images import Images
from gpuyard.engines.container.layers import shift_back
from gpuyard.engines.container.places import Places
from gpuyard.engines.process.supervision import record, removal

_NOTE = "kept.json"


@dataclass(frozen=True, slots=True)
class _Base:
    """The image that holds what was changed in earlier containers, if there is one."""

    id: str | None = None
    name: str | None = None


def _base_of(note: Mapping[str, Any]) -> _Base:
    return _Base(note["base"], note.get("base_name"))


class Keeping:
    def __init__(self, places: Places, containers: Containers, images: Images) -> None:
        self._places = places
        self._containers = containers
        self._images = images

    def container_for(self, workload: str, image: str, body: Mapping[str, Any]) -> str:
        """The kept container if it will do, otherwise a new one that holds what the old one held. Another image is a
        fresh start: that is what asking for it means."""
        note, digest = self._read(workload), creating.digest(body)
        if note is None or note["image"] != image:
            return self._make(workload, image, body, digest, old=note, base=_Base())
        is_the_same = note["digest"] == digest and not note.get("saving")
        if is_the_same and self._containers.look(note["container"]) is not None:
            return str(note["container"])
        return self._make(workload, image, body, digest, old=note, base=self._saved(workload, note))

    def holds(self, workload: str, container: str) -> bool:
        """Whether this container is the one to be kept. When the note cannot be read, nothing is given up."""
        if not self._places.kept(workload).is_dir():
            return False
        note = self._read(workload)
        return note is None or note["container"] == container

    def forget(self, workload: str) -> None:
        note = self._read(workload)
        if note is not None:
            self._containers.remove(note["container"])
            self._drop_image(_base_of(note))
        removal.remove_tree(str(self._places.kept(workload)))

    def workloads(self) -> set[str]:
        folder = self._places.kept("any").parent
        return {path.name for path in folder.iterdir()} if folder.is_dir() else set()

    def _saved(self, workload: str, note: Mapping[str, Any]) -> _Base:
        """An image with everything the old container holds."""
        found = self._containers.look(note["container"])
        if found is None:
            return _base_of(note)
        first = note.get("first")
        if first is not None and found.layer:
            # From here on it is fit for nothing else: after a crash in between it is saved, not started.
            record.write(str(self._places.kept(workload)), _NOTE, {**note, "saving": True})
            shift_back(Path(found.layer), int(first))
        repository, tag = names.kept_image(workload), str(int(note["number"]) + 1)
        return _Base(self._containers.commit(found.id, repository, tag), f"{repository}:{tag}")

    def _make(
        self,
        workload: str,
        image: str,
        body: Mapping[str, Any],
        digest: str,
        *,
        old: Mapping[str, Any] | None,
        base: _Base,
    ) -> str:
        """First the new one, then the note, then the old one goes: a crash at any point loses nothing."""
        number = int(old["number"]) + 1 if old else 1
        made = self._containers.create(
            names.kept_name(workload, f"{number}x{digest}"), {**body, "Image": base.id or body["Image"]}
        )
        first = creating.first_number(body)
        note = {
            "container": made,
            "digest": digest,
            "image": image,
            "base": base.id,
            "base_name": base.name,
            "number": number,
            "first": first,
        }
        record.write(str(self._places.kept(workload)), _NOTE, note)
        if old is not None and old["container"] != made:
            self._containers.remove(old["container"])
            if old["base"] != base.id:
                self._drop_image(_base_of(old))
        return made

    def _drop_image(self, base: _Base) -> None:
        """One that others are built on stays under no name, and goes with them. Docker takes a name away from such a
        one only when it is told which."""
        for word in (base.name, base.id):
            if word is not None:
                with contextlib.suppress(Refused):
                    self._images.drop(word)

    def _read(self, workload: str) -> dict[str, Any] | None:
        return record.read(str(self._places.kept(workload)), _NOTE) or None
