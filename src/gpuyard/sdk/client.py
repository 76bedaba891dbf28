"""The client: every verb of the HTTP API as a method."""

from __future__ import annotations

import json
import os
import re
import tempfile
import uuid
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from types import TracebackType
from typing import Any, BinaryIO, Self

from gpuyard.sdk.answers import read_answer
from gpuyard.sdk.errors import YardApiError
from gpuyard.sdk.finding import Door, choose_language, find_server
from gpuyard.sdk.images import Images
from gpuyard.sdk.job import Job
from gpuyard.sdk.lookback import Lookback
from gpuyard.sdk.people import People
from gpuyard.sdk.results import Before, Imported, Node, Preview, QuotaLine, Top
from gpuyard.sdk.rules import Rules
from gpuyard.sdk.ways_in import WaysIn
from gpuyard.sdk.wire import Patience, Wire, in_path
from gpuyard.sdk.workdir import DEFAULT_LIMIT_BYTES, READ_BYTES, pack
from gpuyard.sdk.workplaces import Workplaces

SUBMIT_PATIENCE_SECONDS = 30.0
WATCH_PATIENCE_SECONDS = 600.0  # for those who wait for a job: longer than any restart or a sleeping laptop's wake-up
BACKUP_SECONDS = 600.0  # the server may work this long before the first byte comes
PAGE = 500
_DIGEST = re.compile(r"[0-9a-f]{64}")
Progress = Callable[[int, int], None]  # bytes sent, bytes in all


class Client(Workplaces, Images, People, Rules, Lookback, WaysIn):
    """A gpuyard server. Found by itself (see `sdk.finding`) unless url and token, or a data folder, are given."""

    def __init__(
        self,
        url: str | None = None,
        token: str | None = None,
        data: str | os.PathLike[str] | None = None,
        *,
        language: str | None = None,
        submit_patience_seconds: float = SUBMIT_PATIENCE_SECONDS,
        patience_seconds: float = WATCH_PATIENCE_SECONDS,
        say_waiting: Callable[[YardApiError], None] | None = None,
        door: Door | None = None,
    ) -> None:
        found = door or find_server(url, token, Path(data) if data is not None else None, os.environ)
        self.wire = Wire(found, language or choose_language(os.environ), say_waiting)
        self.submit_patience_seconds = submit_patience_seconds
        self.patience_seconds = patience_seconds

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        self.wire.close()

    @property
    def door(self) -> Door:
        """The way to the server, as it is now."""
        return self.wire.door

    # --- submitting -----------------------------------------------------------------------------------------------

    def submit(
        self,
        file: str | os.PathLike[str] | None = None,
        *,
        idempotency_key: str | None = None,
        progress: Progress | None = None,
        **job: Any,
    ) -> Job:
        """Submit a job by its keys: `submit(command="python3 train.py", cards=2, workdir=".")`, or a job file:
        `submit("job.yaml", workdir=".")`. The folder is shipped along.

        The request carries a key of its own and is repeated when the connection breaks or the server restarts: it
        becomes one job, not none and not two.
        """
        content, kind, workdir = self._job_body(file, job, progress)
        return self.submit_text(content, kind, idempotency_key, workdir=workdir)

    def submit_text(
        self,
        content: bytes,
        kind: str = "application/yaml",
        idempotency_key: str | None = None,
        *,
        workdir: str | None = None,
    ) -> Job:
        """Submit a job file that is already in memory; `workdir` is the digest of a folder shipped for it."""
        return Job.of(self, self._post_once("/api/v1/workloads", content, kind, idempotency_key, workdir))

    def preview(self, file: str | os.PathLike[str] | None = None, **job: Any) -> Preview:
        """What would happen if this were submitted now."""
        content, kind, workdir = self._job_body(file, job, None)
        return self.preview_text(content, kind, workdir=workdir)

    def preview_text(
        self, content: bytes, kind: str = "application/yaml", *, workdir: str | None = None, remedies: bool = False
    ) -> Preview:
        """`remedies`: also look for changes that would start it."""
        headers, params = {"Content-Type": kind}, {"workdir": workdir, "remedies": "true" if remedies else None}
        answer = self.wire.ask("POST", "/api/v1/preview", params=params, content=content, headers=headers)
        return Preview.read(read_answer(answer.content))

    def read_text(self, content: bytes, *, dialect: str | None = None, filename: str = "") -> Imported:
        """What a file of another system (`dlc`, `volcano`) becomes as a job file; nothing is created."""
        headers, params = {"Content-Type": "text/plain"}, {"dialect": dialect, "filename": filename[-255:]}
        answer = self.wire.ask("POST", "/api/v1/read", params=params, content=content, headers=headers)
        return Imported.read(read_answer(answer.content))

    def rerun(self, ref: str, set: Mapping[str, Any] | None = None, *, instead: bool = False) -> Job:
        body = json.dumps({"set": dict(set or {})} | ({"instead": True} if instead else {})).encode()
        return Job.of(self, self._post_once(f"/api/v1/workloads/{in_path(ref)}/rerun", body, "application/json", None))

    def ship_workdir(
        self, folder: str | os.PathLike[str], limit_bytes: int = DEFAULT_LIMIT_BYTES, progress: Progress | None = None
    ) -> str:
        """Send a folder ahead of the job that will use it, unless the server has it already. Returns its digest."""
        with tempfile.TemporaryFile() as tar:
            packed = pack(Path(folder), tar, limit_bytes)
            path = f"/api/v1/workdirs/{packed.digest}"
            patience = Patience(self.submit_patience_seconds)
            if not self._has(path, patience):
                self.wire.upload(path, lambda: _chunks(tar, packed.size, progress), packed.size, patience)
        return packed.digest

    # --- looking --------------------------------------------------------------------------------------------------

    def jobs(
        self,
        *,
        state: str | None = None,
        owner: str | None = None,
        group: str | None = None,
        name: str | None = None,
        mine: bool = False,
        removed: bool = False,
        limit: int | None = None,
    ) -> Iterator[Job]:
        """Workloads one may see, newest first, fetched page by page; all of them unless `limit` is given. `removed`:
        also those that were taken off the lists."""
        filters = {"state": state, "owner": owner, "group": group, "name": name, "mine": "true" if mine else None}
        filters["removed"] = "true" if removed else None
        cursor: str | None = None
        left = limit
        while left is None or left > 0:
            page = self.get("/workloads", **filters, cursor=cursor, limit=min(PAGE, left or PAGE))
            for item in page["items"]:
                yield Job.of(self, item)
            cursor = page["next"]
            left = None if left is None else left - len(page["items"])
            if cursor is None:
                return

    def job(self, ref: str, *, patience_seconds: float = 0.0) -> Job:
        """By id, unique beginning of an id, or name (the newest of one's own)."""
        data = self.wire.get(f"/api/v1/workloads/{in_path(ref)}", patience=Patience(patience_seconds))
        return Job.of(self, data)

    def before(self, ref: str, other: str) -> Before:
        """Why did, or does, the one come before the other? One of the two is one's own, the other is named by id."""
        return Before.read(self.get(f"/workloads/{in_path(ref)}/before/{in_path(other)}"))

    def nodes(self) -> list[Node]:
        return [Node.read(node) for node in self.listing("/nodes")]

    def fragments(self) -> dict[str, Any]:
        """Free cards that typical requests cannot use, those that wait for that reason, and moves that would help."""
        return dict(self.get("/nodes/fragments"))

    def cordon(self, node: str) -> None:
        """Give no new work to this node."""
        self.wire.ask("POST", f"/api/v1/nodes/{in_path(node)}/cordon")

    def uncordon(self, node: str) -> None:
        self.wire.ask("POST", f"/api/v1/nodes/{in_path(node)}/uncordon")

    def label(self, node: str, labels: Mapping[str, str | None]) -> dict[str, str]:
        """Set labels of a node; None takes one away, those not named stay. Returns all it has now."""
        answer = self.wire.ask("PATCH", f"/api/v1/nodes/{in_path(node)}/labels", body={"labels": dict(labels)})
        return dict(read_answer(answer.content)["labels"])

    def quota(self) -> list[QuotaLine]:
        return [QuotaLine.read(line) for line in self.listing("/quota")]

    def ledger(self, *, since: str | None = None, until: str | None = None, by: str = "day") -> dict[str, Any]:
        """Where the cards' time went, by day, node or model: exact, in thousandths of a card times milliseconds."""
        return dict(self.get("/ledger", since=since, until=until, by=by))

    def top(self) -> Top:
        """What running work uses now, and the nodes it runs on."""
        return Top.read(self.get("/top"))

    def backup(self, file: str | os.PathLike[str]) -> int:
        """Write a backup of the server's memory into `file`, readable by its owner alone. Returns its size."""
        part = Path(f"{os.fspath(file)}.part")
        part.unlink(missing_ok=True)
        try:
            with open(os.open(part, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as out:
                with self.wire.stream("POST", "/api/v1/backup", silence_seconds=BACKUP_SECONDS) as answer:
                    for chunk in answer.iter_bytes():
                        out.write(chunk)
                out.flush()
                os.fsync(out.fileno())
                size = out.tell()
            part.replace(file)
        finally:
            part.unlink(missing_ok=True)
        return size

    def health(self) -> dict[str, Any]:
        return dict(self.wire.get("/healthz"))

    # --- shared ---------------------------------------------------------------------------------------------------

    def get(self, path: str, **params: Any) -> Any:
        return self.wire.get(f"/api/v1{path}", **params)

    def listing(self, path: str, **params: Any) -> list[dict[str, Any]]:
        """Every item of a listing, whether the server sends it whole or in pages."""
        answer = self.get(path, **params)
        return list(answer["items"] if isinstance(answer, dict) else answer)

    def _job_body(
        self, file: str | os.PathLike[str] | None, job: dict[str, Any], progress: Progress | None
    ) -> tuple[bytes, str, str | None]:
        """What to send, its type, and the digest of the folder when it is not in there."""
        if (file is None and not job) or (file is not None and job.keys() - {"workdir"}):
            raise TypeError("give either a job file (and a workdir, if you like) or the job's keys")
        content = None if file is None else Path(file).read_bytes()
        workdir = job.get("workdir")
        if workdir is not None and not _DIGEST.fullmatch(str(workdir)):
            workdir = self.ship_workdir(workdir, progress=progress)
            job = {**job, "workdir": workdir}
        if content is not None:
            return content, "application/yaml", workdir
        return json.dumps(job).encode(), "application/json", None

    def _post_once(
        self, path: str, content: bytes, kind: str, key: str | None, workdir: str | None = None
    ) -> dict[str, Any]:
        headers = {"Content-Type": kind, "Idempotency-Key": key or uuid.uuid4().hex}
        patience, params = Patience(self.submit_patience_seconds), {"workdir": workdir}
        answer = self.wire.ask("POST", path, params=params, content=content, headers=headers, patience=patience)
        return dict(read_answer(answer.content))

    def _has(self, path: str, patience: Patience) -> bool:
        try:
            self.wire.ask("HEAD", path, patience=patience)
        except YardApiError as error:
            if error.status == 404:
                return False
            raise
        return True


def _chunks(file: BinaryIO, size: int, progress: Progress | None) -> Iterator[bytes]:
    file.seek(0)
    sent = 0
    while chunk := file.read(READ_BYTES):
        yield chunk
        sent += len(chunk)
        if progress is not None:
            progress(sent, size)
