"""The kernels Lab offers: registered ones that can start here, every Python found, and the toolbox's own.

A Python without ipykernel is offered, too: starting it installs ipykernel with its own pip first, and when that fails,
pip's words are what the person sees.
"""

from __future__ import annotations

import asyncio
import json
import os
import sys
import time
from typing import Any

from jupyter_client.kernelspec import KernelSpec, KernelSpecManager, NoSuchKernel
from jupyter_server.services.kernels.kernelmanager import AsyncMappingKernelManager
from tornado import web

from .pythons import Asking, Python, plain

OWN_NAME = "yard-python"
REMEMBERED_SECONDS = 3.0
_PATIENCE_SECONDS = 600.0
_LAST_LINES = 25


class FoundKernels(KernelSpecManager):  # type: ignore[misc]
    """Looked for anew whenever Lab asks, which it does when the launcher is opened."""

    def __init__(self, **options: Any) -> None:
        super().__init__(**options)
        self._asking = Asking()
        self._seen_at = 0.0
        self._specs: dict[str, KernelSpec] = {}

    def find_kernel_specs(self) -> dict[str, str]:
        return {name: spec.resource_dir for name, spec in self._all().items()}

    def get_kernel_spec(self, kernel_name: str) -> KernelSpec:
        name = kernel_name.lower()
        spec = self._all().get(name)
        if spec is None and name == OWN_NAME:  # it goes by another name where it is the only one
            return _of_toolbox()
        if spec is None:
            raise NoSuchKernel(kernel_name)
        return spec

    def _all(self) -> dict[str, KernelSpec]:
        if time.monotonic() - self._seen_at > REMEMBERED_SECONDS:
            self._specs = self._look()
            self._seen_at = time.monotonic()
        return self._specs

    def forget(self) -> None:
        self._seen_at = 0.0

    def _look(self) -> dict[str, KernelSpec]:
        pythons = self._asking.pythons(os.environ)
        specs = {python.place.name: _of_python(python) for python in pythons}
        for python in pythons:
            specs |= self._others_of(python, specs)
        specs[OWN_NAME if "python3" in specs else "python3"] = _of_toolbox()
        own_python = pythons[0].place.python if pythons else sys.executable
        return specs | self._registered(own_python)

    def _registered(self, own_python: str) -> dict[str, KernelSpec]:
        """What people registered in their home or the image's system folders. A home is used in many images: what
        cannot start in this one is left out."""
        found: dict[str, KernelSpec] = {}
        for name, folder in super().find_kernel_specs().items():
            spec = self._read(folder)
            if spec is not None and (name != "python3" or not _is_plain_python(spec)):
                spec.argv = _with_python(spec.argv, own_python)
                if _can_start(spec.argv):
                    found[name] = spec
        return found

    def _others_of(self, python: Python, taken: dict[str, KernelSpec]) -> dict[str, KernelSpec]:
        """Kernels of other languages that were installed into an environment, such as R's."""
        folder = os.path.join(python.place.prefix, "share", "jupyter", "kernels")
        found: dict[str, KernelSpec] = {}
        for entry in sorted(os.listdir(folder)) if os.path.isdir(folder) else []:
            spec = self._read(os.path.join(folder, entry))
            name = plain(f"{python.place.name}-{entry}")
            if spec is not None and name not in taken and not _is_plain_python(spec) and _can_start(spec.argv):
                spec.display_name = f"{spec.display_name} ({python.place.title})"
                found[name] = spec
        return found

    def _read(self, folder: str) -> KernelSpec | None:
        try:
            return KernelSpec.from_resource_dir(folder)
        except (OSError, ValueError, KeyError, TypeError):
            return None


def _is_plain_python(spec: KernelSpec) -> bool:
    """An environment's own Python, which was found already."""
    return "ipykernel_launcher" in spec.argv and (
        spec.resource_dir.rstrip("/").endswith("/python3") or spec.argv[0] in ("python", "python3")
    )


def _with_python(argv: list[str], python: str) -> list[str]:
    return [python, *argv[1:]] if argv[:1] in (["python"], ["python3"]) else argv


def _can_start(argv: list[str]) -> bool:
    if not argv:
        return False
    if os.path.isabs(argv[0]):
        return os.access(argv[0], os.X_OK)
    folders = os.environ.get("PATH", "").split(":")
    return any(os.access(os.path.join(folder, argv[0]), os.X_OK) for folder in folders)


def _of_python(python: Python) -> KernelSpec:
    version = ".".join(map(str, python.version[:2]))
    missing = "" if python.has_kernel else " - needs: pip install ipykernel"
    return KernelSpec(
        argv=[python.place.python, "-m", "ipykernel_launcher", "-f", "{connection_file}"],
        display_name=f"Python {version} ({python.place.title}){missing}",
        language="python",
        env=_environment(python),
        resource_dir=_pictures(),
        metadata={
            "debugger": python.has_kernel,
            "yard": {"python": python.place.python, "needs": "" if python.has_kernel else "ipykernel"},
        },
    )


def _environment(python: Python) -> dict[str, str]:
    """As after `conda activate`, as far as it matters: its programs first."""
    path = os.environ.get("PATH", "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin")
    folder = os.path.dirname(python.place.python)
    env = {"PATH": f"{folder}:{path}"} if folder not in path.split(":") or python.place.conda else {}
    if python.place.conda:
        prefix = python.place.prefix
        env |= {"CONDA_PREFIX": prefix, "CONDA_DEFAULT_ENV": os.path.basename(prefix)}
    return env


def _of_toolbox() -> KernelSpec:
    """Always there, so that a notebook runs even in an image without Python. What is installed with its pip goes to a
    place of its own in the home: the home's usual one belongs to the images' Pythons."""
    home = os.path.expanduser("~")
    version = ".".join(map(str, sys.version_info[:2]))
    return KernelSpec(
        argv=[sys.executable, "-m", "ipykernel_launcher", "-f", "{connection_file}"],
        display_name=f"Python {version} (toolbox)",
        language="python",
        env={"PYTHONUSERBASE": os.path.join(home, ".local", "share", "gpuyard", "python")},
        resource_dir=_pictures(),
        metadata={"debugger": True, "yard": {"python": sys.executable, "needs": ""}},
    )


def _pictures() -> str:
    from ipykernel.kernelspec import RESOURCES

    return str(RESOURCES)


class StartsKernels(AsyncMappingKernelManager):  # type: ignore[misc]
    """Starts kernels, and makes a Python able to run one where it is not."""

    async def start_kernel(self, *, kernel_name: str | None = None, **options: Any) -> str:
        name = kernel_name or self.default_kernel_name
        try:
            spec = self.kernel_spec_manager.get_kernel_spec(name)
        except NoSuchKernel as problem:
            raise web.HTTPError(501, f"there is no kernel {name} here") from problem
        told = spec.metadata.get("yard", {})
        if told.get("needs"):
            await self._install(told["python"])
            self.kernel_spec_manager.forget()
        started: str = await super().start_kernel(kernel_name=name, **options)
        return started

    async def _install(self, python: str) -> None:
        code, said = await _run(pip_command(python, sys.executable))
        if code != 0:
            last = "\n".join(said.splitlines()[-_LAST_LINES:])
            raise web.HTTPError(500, f"{python} has no ipykernel, and it could not be installed:\n{last}")


def pip_command(python: str, toolbox_python: str) -> list[str]:
    """With its own pip, or with the toolbox's where it has none. Into the home, unless it is an environment: those are
    the person's own."""
    own = os.path.dirname(os.path.dirname(python))
    is_environment = os.path.isfile(f"{own}/pyvenv.cfg") or os.path.isdir(f"{own}/conda-meta")
    where = [] if is_environment else ["--user"]
    pip = [python, "-m", "pip"] if _has_pip(own) else [toolbox_python, "-I", "-m", "pip", "--python", python]
    return [*pip, "install", *where, "--no-input", "--disable-pip-version-check", "ipykernel"]


def _has_pip(prefix: str) -> bool:
    home = os.path.expanduser("~/.local")
    for root in (prefix, f"{prefix}/local", home):
        library = os.path.join(root, "lib")
        for entry in sorted(os.listdir(library)) if os.path.isdir(library) else []:
            for packages in ("site-packages", "dist-packages"):
                if entry.startswith("python") and os.path.isdir(os.path.join(library, entry, packages, "pip")):
                    return True
    return False


async def _run(argv: list[str]) -> tuple[int, str]:
    # Debian asks for this consent where pip would write beside apt's packages; it writes to the home.
    env = {**os.environ, "PIP_BREAK_SYSTEM_PACKAGES": "1"}
    try:
        process = await asyncio.create_subprocess_exec(
            *argv,
            env=env,
            stdin=asyncio.subprocess.DEVNULL,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.STDOUT,
        )
    except OSError as problem:
        return 127, f"{argv[0]}: {problem.strerror}"
    try:
        said, _ = await asyncio.wait_for(process.communicate(), _PATIENCE_SECONDS)
    except TimeoutError:
        process.kill()
        return 1, f"pip took longer than {_PATIENCE_SECONDS:g} s"
    return process.returncode or 0, said.decode(errors="replace")


def show() -> None:
    """What would be offered here, as JSON."""
    sys.stdout.write(json.dumps(FoundKernels().get_all_specs(), indent=1) + "\n")
