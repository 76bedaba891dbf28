"""The secret of the data folder: whoever can read the file owns the platform. Never decided by network address."""

from __future__ import annotations

import hmac
import os
import secrets
from pathlib import Path

PREFIX = "yard_"


class OwnerSecret:
    """The content of DATA/owner.token, compared in constant time."""

    def __init__(self, secret: str) -> None:
        self._secret = secret.encode()

    def is_it(self, given: str) -> bool:
        return hmac.compare_digest(self._secret, given.encode("utf-8", "surrogateescape"))


def keep_owner_secret(path: Path) -> OwnerSecret:
    """Read the secret, making it on the first start. One that others could have read is replaced by a new one."""
    try:
        return OwnerSecret(_read_private(path))
    except FileNotFoundError:
        pass
    except (OSError, UnicodeDecodeError):  # open to others, a link, or not a secret at all
        path.unlink()
    return OwnerSecret(_make(path))


def _read_private(path: Path) -> str:
    descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC)
    with os.fdopen(descriptor, encoding="ascii") as file:
        about = os.fstat(file.fileno())
        if about.st_mode & 0o077 or about.st_uid != os.geteuid():
            raise PermissionError(f"{path} is open to others")
        secret = file.read().strip()
    if not secret.startswith(PREFIX) or len(secret) < 40:
        raise PermissionError(f"{path} does not hold a secret")
    return secret


def _make(path: Path) -> str:
    """Written beside and linked into place, so that nobody ever reads half a secret."""
    secret = PREFIX + secrets.token_urlsafe(32)
    beside = path.with_name(f"{path.name}.{os.getpid()}.new")
    descriptor = os.open(beside, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
    with os.fdopen(descriptor, "w", encoding="ascii") as file:
        file.write(secret + "\n")
        file.flush()
        os.fsync(file.fileno())
    os.replace(beside, path)
    return secret
