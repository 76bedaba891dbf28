"""SSH keys that all replicas of one workload share, for programs that reach each other by ssh, as MPI's do.

Made from a secret of the platform and the workload's id: a replica that is launched later, or by the next server, gets
the same ones, and none have to be kept or found again.
"""

from __future__ import annotations

import contextlib
import hashlib
import hmac
import os
import secrets
from pathlib import Path

from gpuyard.domain.told import READ_BY_OWNER, SmallFile

_SECRET_BYTES = 32
_COMMENT = b" replicas of one job\n"
# Their addresses are given anew with every attempt, and nobody else is on their network.
_CONFIG = "StrictHostKeyChecking no\nUserKnownHostsFile /dev/null\nLogLevel ERROR\n"


class JobKeys:
    def __init__(self, secret: bytes) -> None:
        self._secret = secret

    @classmethod
    def kept_at(cls, path: Path) -> JobKeys:
        """With the secret that is kept there; the first time it is made."""
        with contextlib.suppress(FileExistsError):
            _write_once(path, secrets.token_bytes(_SECRET_BYTES))
        return cls(path.read_bytes())

    def files(self, workload: str, folder: str) -> tuple[SmallFile, ...]:
        """As ssh and sshd look for them in their folder."""
        private, public = self._pair(workload)
        return (
            SmallFile(f"{folder}/id_rsa", private, READ_BY_OWNER),
            SmallFile(f"{folder}/id_rsa.pub", public),
            SmallFile(f"{folder}/authorized_keys", public),
            SmallFile(f"{folder}/config", _CONFIG),
        )

    def _pair(self, workload: str) -> tuple[str, str]:
        """Ed25519, under the name that images are set up for: what kind of key it is stands in the file."""
        from cryptography.hazmat.primitives import serialization as form
        from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

        seed = hmac.new(self._secret, f"ssh keys of {workload}".encode(), hashlib.sha256).digest()
        key = Ed25519PrivateKey.from_private_bytes(seed)
        private = key.private_bytes(form.Encoding.PEM, form.PrivateFormat.OpenSSH, form.NoEncryption())
        public = key.public_key().public_bytes(form.Encoding.OpenSSH, form.PublicFormat.OpenSSH)
        return private.decode(), (public + _COMMENT).decode()


def _write_once(path: Path, data: bytes) -> None:
    """Whole or not at all, and never over one that is there."""
    part = path.with_name(f".{path.name}.{os.urandom(6).hex()}")
    fd = os.open(part, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
    try:
        with os.fdopen(fd, "wb") as file:
            file.write(data)
            file.flush()
            os.fsync(fd)
        os.link(part, path)
    finally:
        part.unlink()
