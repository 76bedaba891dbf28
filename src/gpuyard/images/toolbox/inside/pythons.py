"""Every Python in sight: the image's own, conda's and its environments, pyenv's; in system and user locations."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Iterable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from glob import glob

CONDA_NAMES = ("conda", "miniconda3", "miniconda", "anaconda3", "anaconda", "miniforge3", "mambaforge", "micromamba")
CONDA_PARENTS = ("/opt", "/usr/local", "/root", "/home/*")
_ASK = (
    "import json, sys\n"
    "try:\n"
    "    from importlib.util import find_spec\n"
    "    there = find_spec('ipykernel') is not None\n"
    "except Exception:\n"
    "    there = False\n"
    "try:\n"  # a person's own folder is searched only once it is there
    "    import site\n"
    "    own = [site.getusersitepackages()]\n"
    "except Exception:\n"
    "    own = []\n"
    "base = getattr(sys, 'base_prefix', sys.prefix)\n"
    "print(json.dumps([list(sys.version_info[:3]), sys.prefix, sys.path + own, there, base != sys.prefix]))\n"
)


@dataclass(frozen=True)
class Place:
    """A folder with bin/python in it, and what people call it."""

    name: str  # signs a kernel's name may have
    title: str
    python: str
    conda: bool = False

    @property
    def prefix(self) -> str:
        return os.path.dirname(os.path.dirname(self.python))


@dataclass(frozen=True)
class Python:
    """One that answered."""

    place: Place
    version: tuple[int, int, int]
    prefix: str
    looks_in: tuple[str, ...]  # where it finds modules
    has_kernel: bool
    is_venv: bool


def places(env: Mapping[str, str]) -> list[Place]:
    """The image's own first. One that is reached by several ways is named once, by the first."""
    seen: set[str] = set()
    found: list[Place] = []
    for place in (*_own(env), *_conda(env), *_pyenv(env)):
        mark = os.path.realpath(os.path.dirname(place.python))  # /bin is /usr/bin on many systems
        if mark not in seen and os.access(place.python, os.X_OK):
            seen.add(mark)
            found.append(place)
    return found


def _own(env: Mapping[str, str]) -> Iterator[Place]:
    folders = [*env.get("PATH", "").split(":"), "/usr/local/bin", "/usr/bin"]
    toolbox = env.get("YARD_TOOLBOX", "/opt/yard")
    first = True
    for folder in dict.fromkeys(folders):
        if not folder.startswith("/") or folder.startswith(toolbox) or folder.endswith("/shims"):
            continue
        python = next(filter(os.path.exists, (f"{folder}/python3", f"{folder}/python")), None)
        if python is not None:
            yield Place("python3" if first else f"python{folder.replace('/', '-')}", folder, python, _is_conda(python))
            first = False


def _is_conda(python: str) -> bool:
    return os.path.isdir(os.path.join(os.path.dirname(os.path.dirname(python)), "conda-meta"))


def _conda(env: Mapping[str, str]) -> Iterator[Place]:
    home = env.get("HOME", "/root")
    roots = [env[name] for name in ("CONDA_PREFIX", "CONDA_ROOT", "MAMBA_ROOT_PREFIX") if env.get(name)]
    if env.get("CONDA_EXE"):
        roots.append(os.path.dirname(os.path.dirname(env["CONDA_EXE"])))
    roots += [f"{parent}/{name}" for parent in (home, *CONDA_PARENTS) for name in CONDA_NAMES]
    wild = [found for root in roots for found in (sorted(glob(root)) if "*" in root else [root])]
    for root in dict.fromkeys(wild):
        if os.path.isdir(f"{root}/conda-meta"):
            yield _conda_place(root, f"base, {root}", "base")
        yield from _environments_in(f"{root}/envs")
    yield from _environments_in(f"{home}/.conda/envs")
    for root in _told(f"{home}/.conda/environments.txt"):
        if os.path.isdir(f"{root}/conda-meta"):
            yield _conda_place(root, os.path.basename(root), os.path.basename(root))


def _environments_in(folder: str) -> Iterator[Place]:
    for root in sorted(glob(f"{glob_safe(folder)}/*")):
        if os.path.isdir(f"{root}/conda-meta"):
            yield _conda_place(root, os.path.basename(root), os.path.basename(root))


def glob_safe(folder: str) -> str:
    return "".join(f"[{sign}]" if sign in "*?[" else sign for sign in folder)


def _conda_place(root: str, title: str, name: str) -> Place:
    return Place(f"conda-{plain(name)}", f"conda: {title}", f"{root}/bin/python", conda=True)


def _told(file: str) -> list[str]:
    try:
        with open(file, encoding="utf-8", errors="replace") as lines:
            return [line.strip() for line in lines][:200]
    except OSError:
        return []


def _pyenv(env: Mapping[str, str]) -> Iterator[Place]:
    roots = [env.get("PYENV_ROOT", ""), env.get("HOME", "/root") + "/.pyenv", "/root/.pyenv", "/opt/pyenv"]
    for root in dict.fromkeys(filter(None, roots)):
        for folder in sorted(glob(f"{glob_safe(root)}/versions/*")):
            name = os.path.basename(folder)
            yield Place(f"pyenv-{plain(name)}", f"pyenv: {name}", f"{folder}/bin/python")


def plain(name: str) -> str:
    """With the signs a kernel's name may have."""
    return "".join(sign if sign.isascii() and (sign.isalnum() or sign in "._-") else "-" for sign in name.lower())


class Asking:
    """Asks each Python once, and again only when something was installed beside it."""

    def __init__(self, patience_seconds: float = 10.0) -> None:
        self._patience = patience_seconds
        self._known: dict[str, tuple[tuple[float, ...], Python | None]] = {}

    def pythons(self, env: Mapping[str, str]) -> list[Python]:
        found = unique_names(places(env))
        with ThreadPoolExecutor(4) as several:
            answers = several.map(self._ask, found)
        return [answer for answer in answers if answer is not None]

    def _ask(self, place: Place) -> Python | None:
        known = self._known.get(place.python)
        if known is not None and known[0] == _marks(place, known[1]):
            before = known[1]
            return None if before is None else _called(before, place)
        answer = self._question(place)
        self._known[place.python] = (_marks(place, answer), answer)
        return answer

    def _question(self, place: Place) -> Python | None:
        try:
            asked = subprocess.run(
                [place.python, "-c", _ASK], capture_output=True, timeout=self._patience, stdin=subprocess.DEVNULL
            )
            version, prefix, looks_in, has_kernel, is_venv = json.loads(asked.stdout)
        except (OSError, ValueError, subprocess.TimeoutExpired):  # it does not start, or it is not a Python
            return None
        return Python(place, tuple(version), prefix, tuple(filter(None, looks_in)), has_kernel, is_venv)


def _called(python: Python, place: Place) -> Python:
    return Python(place, python.version, python.prefix, python.looks_in, python.has_kernel, python.is_venv)


def _marks(place: Place, answer: Python | None) -> tuple[float, ...]:
    watched: Iterable[str] = (place.python, *(answer.looks_in if answer is not None else ()))
    return tuple(_changed(path) for path in watched)


def _changed(path: str) -> float:
    try:
        return os.stat(path).st_mtime
    except OSError:
        return 0.0


def unique_names(found: Iterable[Place]) -> list[Place]:
    """Two environments may be called the same; the second gets a number."""
    taken: dict[str, int] = {}
    named: list[Place] = []
    for place in found:
        count = taken[place.name] = taken.get(place.name, 0) + 1
        name = place.name if count == 1 else f"{place.name}-{count}"
        named.append(Place(name, place.title, place.python, place.conda))
    return named
