"""Public keys as people paste them: one line of OpenSSH's form, read strictly.

What else people paste is told apart, so that each can be answered with what to do: private keys, certificates, lines
with options, several keys at once, kinds that are no longer safe.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from gpuyard.domain.errors import BadInput
from gpuyard.domain.problems import Problem
from gpuyard.domain.reasons import Code, because

LONGEST = 16 * 1024
LEAST_RSA_BITS, MOST_RSA_BITS = 2048, 16384
CERTIFICATE_MARK = "-cert-v01@openssh.com"
_POINT_BYTES = {"nistp256": 65, "nistp384": 97, "nistp521": 133}


@dataclass(frozen=True, slots=True)
class PublicKey:
    kind: str
    blob: bytes
    comment: str = ""

    @property
    def text(self) -> str:
        return f"{self.kind} {base64.b64encode(self.blob).decode()}"

    @property
    def fingerprint(self) -> str:
        return fingerprint_of(self.blob)


def fingerprint_of(blob: bytes) -> str:
    """As `ssh-keygen -l` shows it."""
    return "SHA256:" + base64.b64encode(hashlib.sha256(blob).digest()).decode().rstrip("=")


def parse_public_key(text: str) -> PublicKey:
    """One key, or the first thing that is wrong with it. The answer never repeats what was pasted."""
    line = _only_line(text)
    kind, _, rest = line.partition(" ")
    if kind not in _KINDS:
        raise _refused(*_what_else(line))
    encoded, _, comment = rest.strip().partition(" ")
    try:
        blob = base64.b64decode(encoded.encode("ascii"), validate=True)
    except (UnicodeEncodeError, binascii.Error):
        raise _refused(Problem.SSH_KEY_BROKEN) from None
    _check_blob(kind, blob)
    return PublicKey(kind, blob, _clean(comment))


def _only_line(text: str) -> str:
    if len(text) > LONGEST:
        raise _refused(Problem.TOO_LONG, limit=LONGEST)
    if "PRIVATE KEY" in text or "PuTTY-User-Key-File" in text:
        raise _refused(Problem.SSH_PRIVATE_KEY)
    lines = [line.strip().replace("\t", " ") for line in text.strip().splitlines()]
    lines = [line for line in lines if line and not line.startswith("#")]
    if not lines or lines[0].startswith("--"):
        raise _refused(Problem.SSH_KEY)
    if len(lines) > 1:
        several = sum(1 for line in lines if line.partition(" ")[0] in _KINDS)
        raise _refused(Problem.SSH_SEVERAL_KEYS if several > 1 else Problem.SSH_KEY_BROKEN)
    return lines[0]


def _what_else(line: str) -> tuple[Problem, dict[str, Any]]:
    """What a line is that does not begin with the name of a kind of key."""
    words = line.split(" ")
    kind = words[0]
    if any(word.endswith(CERTIFICATE_MARK) for word in words):
        return Problem.SSH_CERTIFICATE, {}
    if any(word in _KINDS for word in words):
        return Problem.SSH_KEY_OPTIONS, {}
    if kind.startswith(("ssh-", "ecdsa-", "sk-")) and kind.isascii() and kind.isprintable():
        return Problem.SSH_KEY_KIND, {"kind": kind[:60], "allowed": list(_KINDS)}
    return Problem.SSH_KEY, {}


def _clean(comment: str) -> str:
    return "".join(letter for letter in comment.strip() if letter.isprintable())[:64]


# --- the inside of a key ------------------------------------------------------------------------------------------


class _Reader:
    """Length-prefixed strings, one after the other."""

    def __init__(self, blob: bytes) -> None:
        self._blob = blob
        self._at = 0

    def string(self) -> bytes:
        start = self._at + 4
        end = start + int.from_bytes(self._blob[self._at : start], "big")
        if start > len(self._blob) or end > len(self._blob):
            raise _refused(Problem.SSH_KEY_BROKEN)
        self._at = end
        return self._blob[start:end]

    def number(self) -> int:
        """Positive, and written in the shortest way."""
        raw = self.string()
        value = int.from_bytes(raw, "big", signed=True)
        if value <= 0 or len(raw) != value.bit_length() // 8 + 1:
            raise _refused(Problem.SSH_KEY_BROKEN)
        return value

    @property
    def at_end(self) -> bool:
        return self._at == len(self._blob)


def _check_blob(kind: str, blob: bytes) -> None:
    reader = _Reader(blob)
    if reader.string() != kind.encode():
        raise _refused(Problem.SSH_KEY_BROKEN)
    _KINDS[kind](kind, reader)
    if not reader.at_end:
        raise _refused(Problem.SSH_KEY_BROKEN)


def _edwards(kind: str, reader: _Reader) -> None:
    if len(reader.string()) != 32:
        raise _refused(Problem.SSH_KEY_BROKEN)


def _elliptic(kind: str, reader: _Reader) -> None:
    curve = kind.partition("@")[0].rpartition("-")[2]
    if reader.string() != curve.encode():
        raise _refused(Problem.SSH_KEY_BROKEN)
    point = reader.string()
    if len(point) != _POINT_BYTES[curve] or point[0] != 4:
        raise _refused(Problem.SSH_KEY_BROKEN)


def _rsa(kind: str, reader: _Reader) -> None:
    exponent, modulus = reader.number(), reader.number()
    bits = modulus.bit_length()
    if bits < LEAST_RSA_BITS:
        raise _refused(Problem.SSH_RSA_SHORT, bits=bits, least=LEAST_RSA_BITS)
    if bits > MOST_RSA_BITS or exponent < 3 or exponent % 2 == 0 or exponent.bit_length() > 64:
        raise _refused(Problem.SSH_KEY_BROKEN)


def _with_application(check: Callable[[str, _Reader], None]) -> Callable[[str, _Reader], None]:
    """Keys that live in a security key also name what they are for."""

    def checked(kind: str, reader: _Reader) -> None:
        check(kind, reader)
        if not reader.string():
            raise _refused(Problem.SSH_KEY_BROKEN)

    return checked


_KINDS: Mapping[str, Callable[[str, _Reader], None]] = {
    "ssh-ed25519": _edwards,
    "ecdsa-sha2-nistp256": _elliptic,
    "ecdsa-sha2-nistp384": _elliptic,
    "ecdsa-sha2-nistp521": _elliptic,
    "sk-ssh-ed25519@openssh.com": _with_application(_edwards),
    "sk-ecdsa-sha2-nistp256@openssh.com": _with_application(_elliptic),
    "ssh-rsa": _rsa,
}
KINDS = tuple(_KINDS)


def _refused(problem: Problem, /, *args: Any, **facts: Any) -> BadInput:
    more = args[0] if args else facts
    return BadInput(because(Code.BAD_VALUE, at="public_key", problem=problem, value="", **more))
