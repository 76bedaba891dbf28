"""One toolbox for all tests, kept outside the repository; the first run on a machine builds it, which takes minutes."""

from __future__ import annotations

import shutil
from collections.abc import Mapping
from pathlib import Path

import pytest
from tests.images import stage

from gpuyard.images.toolbox.build import BuildFailed, Missing, build, remove


@pytest.fixture(scope="session")
def toolbox(request: pytest.FixtureRequest) -> Path:
    """Without compilers or packages to fetch there is none, and what needs it is skipped, aloud."""
    if problem := stage.missing():
        pytest.skip(problem)
    told = request.config.get_terminal_writer()

    def tell(what: str, facts: Mapping[str, object]) -> None:
        if what in ("begin", "installing"):
            told.line(f"\ntoolbox: {what} {facts}")

    try:
        made = build(stage.CACHE, tell)
        remove(stage.CACHE, keep_current=True)  # of earlier versions
        return made
    except (Missing, BuildFailed) as problem:
        pytest.skip(f"no toolbox on this machine: {problem}")


@pytest.fixture(scope="session")
def busybox() -> str:
    return stage.busybox_image()


@pytest.fixture(scope="session")
def debian() -> str:
    if shutil.which("debootstrap") is None:
        pytest.skip("not installed: debootstrap")
    return stage.debian_image()
