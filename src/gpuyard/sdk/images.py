"""Images by program."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO

from gpuyard.sdk.answers import read_answer
from gpuyard.sdk.errors import Problem, kind_of_error
from gpuyard.sdk.results import Told
from gpuyard.sdk.wire import Wire

PULL_SILENCE_SECONDS = 3600.0  # a large layer may take this long without a word
READ_BYTES = 1 << 20


@dataclass(frozen=True, slots=True)
class Image(Told):
    name: str = ""
    id: str = ""
    size: int = 0
    created_at: str = ""


class Images:
    """The part of the client that speaks of images."""

    wire: Wire
    if TYPE_CHECKING:
        listing: Callable[..., list[dict[str, Any]]]

    def images(self) -> list[Image]:
        """Those on the machine, which start without a registry."""
        return [Image.read(image) for image in self.listing("/images")]

    def pull_image(self, name: str, told: Callable[[str], None] | None = None) -> None:
        """Fetch it from its registry; `told` hears of each step."""
        body = json.dumps({"image": name}).encode()
        for line in self._lines(body):
            if "error" in line:
                raise _error(line["error"])
            if told is not None and line.get("told"):
                told(str(line["told"]))

    def load_image(self, file: str | os.PathLike[str], progress: Callable[[int, int], None] | None = None) -> list[str]:
        """Take in the images of a `docker save` file; for admins. Returns their names."""
        path = Path(file)
        size = path.stat().st_size
        with path.open("rb") as archive:
            answer = self.wire.send("/api/v1/images/load", _chunks(archive, size, progress), size)
        return [str(name) for name in read_answer(answer.content)["images"]]

    def remove_image(self, name: str) -> None:
        """For admins; one in use is refused."""
        self.wire.ask("DELETE", "/api/v1/images", params={"image": name})

    def _lines(self, body: bytes) -> Iterator[dict[str, Any]]:
        headers = {"Content-Type": "application/json"}
        with self.wire.stream(
            "POST", "/api/v1/images/pull", content=body, headers=headers, silence_seconds=PULL_SILENCE_SECONDS
        ) as answer:
            for line in answer.iter_lines():
                if line.strip():
                    yield json.loads(line)


def _error(told: dict[str, Any]) -> Exception:
    problems = [Problem(p["code"], p["message"], p.get("facts") or {}) for p in told.get("problems") or []]
    return kind_of_error(502)(told["code"], told["message"], told.get("facts"), status=502, problems=problems)


def _chunks(file: BinaryIO, size: int, progress: Callable[[int, int], None] | None) -> Iterator[bytes]:
    sent = 0
    while chunk := file.read(READ_BYTES):
        yield chunk
        sent += len(chunk)
        if progress is not None:
            progress(sent, size)
