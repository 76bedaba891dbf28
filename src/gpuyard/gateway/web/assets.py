"""Files that our pages need: our own come with the package, the terminal's with the built console."""

from __future__ import annotations

import re
from importlib import resources
from pathlib import Path

from gpuyard.gateway.web.answers import OwnAnswer, message, part
from gpuyard.gateway.web.heads import Request

_TYPES = {".js": "text/javascript; charset=utf-8", ".css": "text/css; charset=utf-8"}
_PLAIN = {"style": "plain_terminal.css", "screen": "plain_screen.js", "fitting": "plain_terminal.js"}
_OURS = frozenset({"style.css", "terminal.js", "terminal.css", *_PLAIN.values()})
_BUILT = re.compile(r'"/assets/([A-Za-z0-9_-]+\.(?:js|css))"')  # as the page names what it needs
KEPT_SECONDS = 600
FOR_GOOD_SECONDS = 31536000  # built files are named by what is in them


def asset(request: Request, name: str, built: Path) -> OwnAnswer:
    """Only names on a list: nothing of the address reaches the disk."""
    if name in _OURS:
        return OwnAnswer(200, part(name).encode(), _type(name), kept_seconds=KEPT_SECONDS)
    if name in _BUILT.findall(built_terminal(built) or ""):
        return _built_file(request, built / "assets" / name)
    return message(request, 404, "refused.not_found", "no such file")


def built_folder(told: str) -> Path:
    return Path(told) if told else Path(str(resources.files("gpuyard.console"))) / "built"


def built_terminal(built: Path) -> str | None:
    """The page of the terminal as it was built; None where the console was not."""
    try:
        return (built / "terminal.html").read_text(encoding="utf-8")
    except OSError:
        return None


def terminal_page(built: Path, language: str, title: str, prefix: str) -> str | None:
    """It and its files, at the address of a visit. What is given must be fit for HTML."""
    page = built_terminal(built)
    if page is None:
        return None
    page = _BUILT.sub(lambda found: f'"{prefix}/.yard/assets/{found.group(1)}"', page)
    page = page.replace("<title>terminal</title>", f"<title>{title}</title>", 1)
    return page.replace('<html lang="en">', f'<html lang="{language}">', 1)


def plain_terminal_parts() -> dict[str, str]:
    """What the small terminal is made of, which needs no build."""
    return dict(_PLAIN)


def _built_file(request: Request, path: Path) -> OwnAnswer:
    packed = path.with_name(path.name + ".gz")
    is_packed = b"gzip" in request.get(b"accept-encoding") and packed.is_file()
    try:
        body = (packed if is_packed else path).read_bytes()
    except OSError:  # it is being built anew just now
        return message(request, 404, "refused.not_found", "no such file")
    headers = [("Vary", "Accept-Encoding"), *([("Content-Encoding", "gzip")] if is_packed else [])]
    return OwnAnswer(200, body, _type(path.name), headers, kept_seconds=FOR_GOOD_SECONDS)


def _type(name: str) -> str:
    return _TYPES.get(Path(name).suffix, "")
