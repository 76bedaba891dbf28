"""A podman of the tests' own: its images, containers, networks and locks lie in one folder and are nobody else's."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Iterable
from pathlib import Path


class Store:
    """Images of other stores can be shown in it, which costs nothing: they are only read."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._shown: list[Path] = []
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "containers.conf").write_text(_containers_conf(folder))
        self._write_storage_conf()

    @property
    def graph(self) -> Path:
        """What can be shown in other stores."""
        return self.folder / "store"

    def show(self, stores: Iterable[Path]) -> None:
        new = [store for store in stores if store not in self._shown]
        self._shown += new
        if new:
            self._write_storage_conf()

    def environment(self) -> dict[str, str]:
        """What makes podman use it."""
        return {
            "CONTAINERS_CONF": str(self.folder / "containers.conf"),
            "CONTAINERS_STORAGE_CONF": str(self.folder / "storage.conf"),
        }

    def podman(self, *words: str, input: bytes | None = None, check: bool = True) -> subprocess.CompletedProcess[bytes]:
        environment = os.environ | self.environment()
        done = subprocess.run(["podman", *words], input=input, capture_output=True, timeout=200, env=environment)
        if check and done.returncode != 0:
            raise AssertionError(f"podman {' '.join(words)[:300]}: {done.stderr.decode(errors='replace')[-2000:]}")
        return done

    def remove(self) -> None:
        self.podman("rm", "--all", "--force", "--time", "0", check=False)
        shutil.rmtree(self.folder, ignore_errors=True)

    def _write_storage_conf(self) -> None:
        shown = ", ".join(f'"{store}"' for store in self._shown)
        part = self.folder / ".storage.conf.part"
        part.write_text(_STORAGE_CONF.format(folder=self.folder, shown=shown))
        part.replace(self.folder / "storage.conf")


# Without a mount of the store onto itself, so that its folder can be renamed and removed.
_STORAGE_CONF = """[storage]
driver = "overlay"
graphroot = "{folder}/store"
runroot = "{folder}/run"
[storage.options]
additionalimagestores = [{shown}]
[storage.options.overlay]
skip_mount_home = "true"
"""


def _containers_conf(folder: Path) -> str:
    """Locks in files: those in shared memory are one set for all stores of a machine."""
    return f"""[network]
network_config_dir = "{folder}/networks"
[engine]
cgroup_manager = "cgroupfs"
events_logger = "file"
lock_type = "file"
static_dir = "{folder}/store/libpod"
tmp_dir = "{folder}/run/libpod"
volume_path = "{folder}/volumes"
"""
