"""One toolbox for all tests, kept outside the repository; the first run on a machine builds it, which takes minutes."""

from __future__ import annotations

import shutil
from collections.abc import Mapping
from pathlib import Path

import pytest
from tests.images import stage


@pytest.fixture(scope="session")
def toolbox(request: pytest.FixtureRequest) -> Path:
    told = request.config.get_terminal_writer()

    def tell(what: str, facts: Mapping[str, object]) -> None:
        if what in ("begin", "installing"):
            told.line(f"\ntoolbox: {what} {facts}")

    return stage.built_toolbox(tell)


@pytest.fixture(scope="session")
def busybox() -> str:
    return stage.busybox_image()


@pytest.fixture(scope="session")
def debian() -> str:
    if shutil.which("debootstrap") is None:
        pytest.skip("not installed: debootstrap")
    return stage.debian_image()
