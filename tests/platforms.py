"""Whole platforms as `yard up` starts them, for tests of people's daily work: with the toolbox, with images, and ended
without a trace."""

from __future__ import annotations

import json
import os
import signal
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from tests.cli.yard import Yard, wait_until
from tests.images import stage

from gpuyard.cli.processes import is_gone
from gpuyard.engines.container.service import OwnService


@dataclass
class Platform(Yard):
    """One that can be killed and started again as it was."""

    options: tuple[str, ...] = ()

    def start_server(self) -> None:
        self.up(*self.options)

    def kill_server(self) -> None:
        pid = self.pid
        os.kill(pid, signal.SIGKILL)
        wait_until(lambda: is_gone(pid), 20, lambda: "the server is still there")

    def load(self, image: str) -> str:
        """An image of the stage, into this platform's own store."""
        self.good("image", "load", str(stage.archive(image)))
        return image

    def podman(self, *words: str) -> subprocess.CompletedProcess[bytes]:
        """In its own store."""
        environ = os.environ | OwnService(self.data).environment()
        return subprocess.run(["podman", *words], env=environ, capture_output=True, timeout=120)

    def remove_environments(self) -> None:
        listed = self.run("env", "ls", "--all", "-o", "json")
        for env in json.loads(listed.out) if listed.code == 0 else ():  # a test that failed may have left no server
            self.run("env", "rm", "--yes", env["id"])

    def remove_containers(self) -> None:
        # What is just being removed by somebody else cannot be removed, until it is.
        wait_until(lambda: self.podman("rm", "--all", "--force", "--time", "0").returncode == 0)
        OwnService(self.data).end()


@contextmanager
def a_platform(
    folder: Path, engine: str, *options: str, with_toolbox: bool = False, settings: str = ""
) -> Iterator[Platform]:
    home, data = folder / "home", folder / "data"
    home.mkdir(parents=True)
    data.mkdir(mode=0o700)
    (data / "settings.toml").write_text(settings)
    if with_toolbox:
        (data / "toolbox").symlink_to(stage.built_toolbox().parent)
    platform = Platform(home, data, options=("--engine", engine, *options))
    platform.start_server()
    try:
        yield platform
    finally:
        platform.remove_environments()
        platform.run("down", "--all")
        if engine == "container":
            platform.remove_containers()
