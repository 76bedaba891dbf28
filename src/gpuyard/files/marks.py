"""What has been done to which folder, kept in one small file: so that it is done again only where it must be."""

from __future__ import annotations

import json
import os
import threading
from pathlib import Path


class Marks:
    """Safe to use from any thread. A file that is gone or damaged is an empty one: everything is done once more."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._lock = threading.Lock()
        self._marks: dict[str, str] | None = None

    def get(self, name: str) -> str | None:
        with self._lock:
            return self._known().get(name)

    def put(self, name: str, mark: str) -> None:
        with self._lock:
            self._write({**self._known(), name: mark})

    def forget(self, name: str) -> None:
        with self._lock:
            self._write({other: mark for other, mark in self._known().items() if other != name})

    def _known(self) -> dict[str, str]:
        if self._marks is None:
            self._marks = _read(self._path)
        return self._marks

    def _write(self, marks: dict[str, str]) -> None:
        if marks == self._known():
            return
        part = self._path.with_name(f"{self._path.name}.new")
        descriptor = os.open(part, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o600)
        with os.fdopen(descriptor, "w", encoding="utf-8") as file:
            json.dump(marks, file)
        part.replace(self._path)
        self._marks = marks


def _read(path: Path) -> dict[str, str]:
    try:
        marks = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}
    if not isinstance(marks, dict):
        return {}
    return {str(name): mark for name, mark in marks.items() if isinstance(mark, str)}
