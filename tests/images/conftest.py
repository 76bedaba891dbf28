"""One toolbox for all tests, and images to try it in; both are in the cache, or made now, which takes minutes."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.images import stage


@pytest.fixture(scope="session")
def toolbox() -> Path:
    return stage.built_toolbox()


@pytest.fixture(scope="session")
def busybox() -> str:
    return stage.busybox_image()


@pytest.fixture(scope="session")
def debian() -> str:
    return stage.debian_image()
