"""Files that our pages need: our own come with the package, the better terminal's with the toolbox."""

from __future__ import annotations

from pathlib import Path

from gpuyard.gateway.web.answers import OwnAnswer, message, part
from gpuyard.gateway.web.heads import Request

_TYPES = {".js": "text/javascript; charset=utf-8", ".css": "text/css; charset=utf-8"}
_PLAIN = ("plain_terminal.css", "plain_screen.js", "plain_terminal.js")
_OURS = frozenset({"style.css", "terminal.js", "terminal.css", *_PLAIN})
_XTERM = {"xterm.js": "lib/xterm.js", "xterm.css": "css/xterm.css", "addon-fit.js": "lib/addon-fit.js"}
KEPT_SECONDS = 600


def asset(data: Path, request: Request, name: str) -> OwnAnswer:
    """Only names on the list: nothing of the address reaches the disk."""
    kind = _TYPES.get(Path(name).suffix, "")
    body: bytes | None = None
    if name in _OURS:
        body = part(name).encode()
    elif name in _XTERM:
        body = _from_toolbox(data / "toolbox" / "current" / "web" / "xterm", name)
    if body is None:
        return message(request, 404, "refused.not_found", "no such file")
    return OwnAnswer(200, body, kind, kept_seconds=KEPT_SECONDS)


def terminal_parts(data: Path) -> dict[str, str]:
    """What the page of a terminal is made of: the toolbox's where there is one, otherwise our own small one."""
    there = (data / "toolbox" / "current" / "web" / "xterm").is_dir()
    names = ("xterm.css", "xterm.js", "addon-fit.js") if there else _PLAIN
    return dict(zip(("style", "screen", "fitting"), names, strict=True))


def _from_toolbox(folder: Path, name: str) -> bytes | None:
    for path in (folder / name, folder / _XTERM[name]):
        if path.is_file():
            return path.read_bytes()
    return None
