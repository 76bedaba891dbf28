"""What the gateway is told by the server that starts it: one small file, because a database URL may hold a password."""

from __future__ import annotations

import hashlib
import json
import os
from dataclasses import asdict, dataclass, field
from pathlib import Path

from gpuyard.domain.doorways import Doorway

RUN_FOLDER = "run"
CONFIG_FILE, NOTE_FILE = "gateway.config", "gateway.json"
GATEWAY_LOCK, BROKER_LOCK = "gateway.lock", "broker.lock"


@dataclass(frozen=True, slots=True)
class GatewayConfig:
    data: str
    database_url: str = field(repr=False)
    host: str = "127.0.0.1"
    port: int = 8471
    """0: any that is free."""
    ssh_port: int = 8472
    apps_domain: str = "localhost"
    paths: bool = False
    hosts: tuple[str, ...] = ()
    """Names under which the gateway's own pages may be asked for; `*` is any."""
    tls_cert: str | None = None
    tls_key: str | None = None
    per_address: int = 256
    """Connections from one address of visitors who have not shown yet who they are."""
    proxies: tuple[str, ...] = ()
    """Whose X-Forwarded-For is believed."""
    built: str = ""
    """The folder of the built console, of which the terminal's page is taken. Empty: as it comes with the package."""
    engine: str = "process"
    first_uid: int = 0
    version: str = ""
    """A newer gateway takes the place of one that an older server has started."""

    @property
    def folder(self) -> Path:
        return Path(self.data)

    @property
    def run_folder(self) -> Path:
        return self.folder / RUN_FOLDER

    @property
    def digest(self) -> str:
        return hashlib.sha256(self.to_json().encode()).hexdigest()[:16]

    def doorway(self, port: int) -> Doorway:
        scheme = "https" if self.tls_cert else "http"
        return Doorway(scheme, self.apps_domain, port, self.paths, frozenset(self.hosts))

    def to_json(self) -> str:
        return json.dumps(asdict(self), sort_keys=True)

    @staticmethod
    def from_json(text: str) -> GatewayConfig:
        told = json.loads(text)
        return GatewayConfig(**{**told, "hosts": tuple(told["hosts"]), "proxies": tuple(told["proxies"])})


def write_config(config: GatewayConfig) -> None:
    config.run_folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    path = config.run_folder / CONFIG_FILE
    beside = path.with_name(f"{path.name}.{os.getpid()}.new")
    with open(os.open(beside, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "w", encoding="utf-8") as file:
        file.write(config.to_json())
    beside.replace(path)


def read_config(data: Path) -> GatewayConfig:
    return GatewayConfig.from_json((data / RUN_FOLDER / CONFIG_FILE).read_text(encoding="utf-8"))


@dataclass(frozen=True, slots=True)
class GatewayNote:
    """What a running gateway says about itself in DATA/gateway.json."""

    url: str
    port: int
    ssh_port: int | None
    pid: int
    started_at: float
    config: str  # digest of what it was told
    scheme: str = "http"
    domain: str = "localhost"
    paths: bool = False

    def write(self, data: Path) -> None:
        fresh = data / f"{NOTE_FILE}.new"
        fresh.write_text(json.dumps(asdict(self)), encoding="utf-8")
        fresh.replace(data / NOTE_FILE)


def read_note(data: Path) -> GatewayNote | None:
    try:
        return GatewayNote(**json.loads((data / NOTE_FILE).read_text(encoding="utf-8")))
    except (OSError, ValueError, TypeError):
        return None
