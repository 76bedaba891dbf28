"""The name of an image: the OCI reference grammar and nothing else, so that no name means a file on the server."""

from __future__ import annotations

import re

LONGEST_NAME = 255
LONGEST_REFERENCE = 500

_HOST_PART = r"(?:[A-Za-z0-9]|[A-Za-z0-9][A-Za-z0-9-]*[A-Za-z0-9])"
_HOST = rf"{_HOST_PART}(?:\.{_HOST_PART})*(?::[0-9]{{1,5}})?"
_PART = r"[a-z0-9]+(?:(?:\.|_|__|-+)[a-z0-9]+)*"
_NAME = rf"(?:{_HOST}/)?{_PART}(?:/{_PART})*"
_TAG = r"[A-Za-z0-9_][A-Za-z0-9_.-]{0,127}"
_DIGEST = r"sha256:[0-9a-f]{64}|sha512:[0-9a-f]{128}"
_REFERENCE = re.compile(rf"(?P<name>{_NAME})(?::(?P<tag>{_TAG}))?(?P<digest>@(?:{_DIGEST}))?", re.ASCII)

# `oci:x` is a good reference, but container tools would read a local folder instead of asking a registry.
_TRANSPORTS = re.compile(
    r"(?:atomic|containers-storage|dir|docker-archive|docker-daemon|oci|oci-archive|ostree|sif|tarball):", re.ASCII
)


def read_image_name(text: str) -> tuple[str, str] | None:
    """The name, and the tag or digest as it is written behind it (`latest` when none is); None when it is no name."""
    match = _REFERENCE.fullmatch(text) if len(text) <= LONGEST_REFERENCE else None
    if match is None or len(match["name"]) > LONGEST_NAME or _TRANSPORTS.match(text):
        return None
    return match["name"], match["digest"] or f":{match['tag'] or 'latest'}"
