"""The listening door: its host key, its ciphers, its limits."""

from __future__ import annotations

import asyncio
import contextlib
import os
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

import asyncssh

from gpuyard.access.service import Access
from gpuyard.gateway.ssh.house import MOST_STRANGERS, MOST_STRANGERS_PER_ADDRESS, House
from gpuyard.gateway.ssh.inside import Inside
from gpuyard.gateway.ssh.logins import Logins
from gpuyard.gateway.ssh.visitors import Visitor
from gpuyard.gateway.strangers import Proxies, Strangers
from gpuyard.store.database import Database
from gpuyard.words import LanguageName

HOST_KEY = "ssh_host_ed25519_key"
LOGIN_SECONDS = 30
KEEPALIVE_SECONDS, KEEPALIVES = 60, 5
BACKLOG = 128
# AES only: most visitors would rather have ChaCha20, and their order decides, but it is half as fast here.
CIPHERS = ("aes128-gcm@openssh.com", "aes256-gcm@openssh.com", "aes256-ctr", "aes128-ctr")
MACS = (
    "hmac-sha2-256-etm@openssh.com",
    "hmac-sha2-512-etm@openssh.com",
    "hmac-sha2-256",
    "hmac-sha2-512",
)
SIGNATURES = (
    "ssh-ed25519",
    "sk-ssh-ed25519@openssh.com",
    "ecdsa-sha2-nistp256",
    "ecdsa-sha2-nistp384",
    "ecdsa-sha2-nistp521",
    "sk-ecdsa-sha2-nistp256@openssh.com",
    "rsa-sha2-256",
    "rsa-sha2-512",
)


def _nobody(workload: str) -> None:
    return


@dataclass(frozen=True, slots=True)
class SshContext:
    database: Database
    access: Access
    clock: Callable[[], float]
    broker: Inside
    host: str
    port: int
    """0: any that is free."""
    host_key: Path
    """Made once, readable by its owner alone."""
    language: LanguageName = "en"
    used: Callable[[str], None] = field(default=_nobody)
    """Told whenever somebody works in a workload."""
    per_address: int = MOST_STRANGERS_PER_ADDRESS
    """Who has not logged in yet; never more than that, however many the web lets in."""
    proxies: tuple[str, ...] = ()


class SshDoor:
    """An open door."""

    def __init__(self, house: House, listener: asyncssh.SSHAcceptor) -> None:
        self._house = house
        self._listener = listener
        self._looking = asyncio.create_task(house.keep_looking())

    @property
    def port(self) -> int:
        return self._listener.get_port()

    async def close(self) -> None:
        self._listener.close()
        self._looking.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await self._looking
        await self._house.close()
        await self._listener.wait_closed()


async def start_ssh(context: SshContext) -> SshDoor:
    asyncssh.set_log_level("WARNING")  # below that it writes down commands and variables
    logins = Logins(context.database, context.access, context.clock)
    most = min(context.per_address, MOST_STRANGERS_PER_ADDRESS)
    strangers = Strangers(MOST_STRANGERS, most, Proxies(context.proxies))
    house = House(logins, context.broker, context.used, context.language, strangers)
    key = await asyncio.to_thread(keep_host_key, context.host_key)
    listener = await asyncssh.listen(
        context.host,
        context.port,
        server_factory=lambda: Visitor(house),
        server_host_keys=[key],
        server_version="gpuyard",
        backlog=BACKLOG,
        login_timeout=LOGIN_SECONDS,
        keepalive_interval=KEEPALIVE_SECONDS,
        keepalive_count_max=KEEPALIVES,
        encryption_algs=CIPHERS,
        mac_algs=MACS,
        signature_algs=SIGNATURES,
        compression_algs=["none"],
        line_editor=False,
        agent_forwarding=False,
        x11_forwarding=False,
        host_based_auth=False,
        gss_host=None,
        x509_trusted_certs=None,
        encoding=None,
    )
    return SshDoor(house, listener)


def keep_host_key(path: Path) -> asyncssh.SSHKey:
    """The key this door is known by. Whoever comes second while it is being made takes the one that is there. Raises
    OSError when what is there cannot be used: a new one would look to everybody like an attack."""
    if not path.exists():
        key = asyncssh.generate_private_key("ssh-ed25519", comment="gpuyard")
        fresh = path.with_name(f"{path.name}.{os.getpid()}.new")
        with contextlib.suppress(FileNotFoundError):
            fresh.unlink()
        with open(os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as file:
            file.write(key.export_private_key())
            file.flush()
            os.fsync(file.fileno())
        with contextlib.suppress(FileExistsError):
            os.link(fresh, path)
        fresh.unlink()
    try:
        kept = asyncssh.read_private_key(path)
    except asyncssh.KeyImportError as problem:
        raise OSError(f"{path} is not a usable host key: {problem}") from problem
    public = path.with_name(f"{path.name}.pub")
    if not public.exists():
        public.write_bytes(kept.export_public_key())
    return kept
