"""The built pages, served beside the api. An address that is no file is the application's own.

Names of files carry a digest of what is in them, so browsers keep them for good; the page that names them is asked for
anew each time. Only what the last build left is served, by its exact name: no path from outside reaches the disk.
"""

from __future__ import annotations

import mimetypes
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from starlette.datastructures import Headers
from starlette.responses import HTMLResponse, PlainTextResponse, Response
from starlette.types import ASGIApp, Receive, Scope, Send

BUILT = Path(__file__).parent / "built"
NOT_OURS = ("/api/", "/healthz")  # answered by the server behind
PAGE = "/index.html"
FOR_GOOD = "public, max-age=31536000, immutable"
ASSETS = "/assets/"

# Styles are set from scripts (one sheet per component in use); scripts never stand in a page.
POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self' 'unsafe-inline'; img-src 'self' data: blob:; "
    "font-src 'self'; connect-src 'self'; frame-src {frames}; worker-src 'self'; manifest-src 'self'; "
    "form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
)
NOT_BUILT = """<!doctype html>
<html lang="en"><head><meta charset="utf-8"><title>gpuyard</title></head><body>
<h1>gpuyard</h1>
<p>The server runs. Its console was not built here: with Node 20 or newer, type <code>make web</code> in the project's
folder and reload this page. The wheel of a release has it built in. The command <code>yard</code> needs no console.</p>
<p lang="zh">服务器正在运行，但这里还没有构建控制台：安装 Node 20 或更新版本后，在项目目录中执行 <code>make web</code>，
然后刷新本页。发布的安装包已内置控制台。命令行 <code>yard</code> 不需要控制台。</p>
</body></html>
"""


@dataclass(frozen=True, slots=True)
class _File:
    path: Path
    packed: Path | None  # the same, compressed
    media_type: str


class Console:
    """An ASGI application before another one, which gets what is not the console's."""

    def __init__(self, app: ASGIApp, frames: Callable[[], str], built: Path = BUILT) -> None:
        self._app = app
        self._frames = frames
        self._built = built
        self._files: dict[str, _File] = {}
        self._made_at = 0

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http" or scope["path"].startswith(NOT_OURS):
            await self._app(scope, receive, send)
            return
        await self._answer(scope)(scope, receive, send)

    def _answer(self, scope: Scope) -> Response:
        path: str = scope["path"]
        self._look_for_a_new_build()
        if scope["method"] not in ("GET", "HEAD"):
            return PlainTextResponse("only for reading\n", 405, {"Allow": "GET, HEAD"})
        if path in self._files and path != PAGE:
            cache = FOR_GOOD if path.startswith(ASSETS) else "no-cache"
            return _send(self._files[path], Headers(scope=scope), {"Cache-Control": cache})
        if path.startswith(ASSETS):  # of another version; the page says so and loads itself again
            return PlainTextResponse("not here\n", 404)
        policy = {"Content-Security-Policy": POLICY.format(frames=self._frames() or "'none'")}
        if PAGE not in self._files:
            return HTMLResponse(NOT_BUILT, 503, policy)
        return _send(self._files[PAGE], Headers(scope=scope), policy | {"Cache-Control": "no-cache"})

    def _look_for_a_new_build(self) -> None:
        page = self._built / PAGE[1:]
        made_at = page.stat().st_mtime_ns if page.is_file() else 0
        if made_at != self._made_at:
            self._files, self._made_at = _found(self._built), made_at


def _found(built: Path) -> dict[str, _File]:
    """What may be asked for, by its address."""
    paths = {file for file in built.rglob("*") if file.is_file()} if built.is_dir() else set()
    return {
        "/" + file.relative_to(built).as_posix(): _File(file, _packed(file, paths), _media_type(file))
        for file in paths
        if file.suffix != ".gz"
    }


def _packed(file: Path, paths: set[Path]) -> Path | None:
    packed = file.with_name(file.name + ".gz")
    return packed if packed in paths else None


def _media_type(file: Path) -> str:
    return mimetypes.types_map.get(file.suffix, "application/octet-stream")


def _send(file: _File, asked: Headers, headers: dict[str, str]) -> Response:
    """Small files, read whole: the largest is a few hundred kilobytes packed."""
    packed = file.packed is not None and "gzip" in asked.get("accept-encoding", "")
    path = file.packed if packed and file.packed is not None else file.path
    try:
        data = path.read_bytes()
    except FileNotFoundError:  # it is being built anew just now
        return PlainTextResponse("the console is being built; reload in a moment\n", 503)
    encoding = {"Content-Encoding": "gzip"} if packed else {}
    return Response(data, media_type=file.media_type, headers={**headers, **encoding, "Vary": "Accept-Encoding"})
