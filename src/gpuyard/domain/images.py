"""The name of an image: the OCI reference grammar and nothing else, so that no name means a file on the server; and
which registry it leads to, so that no name means a machine that nobody wanted to be asked."""

from __future__ import annotations

import re
from collections.abc import Sequence

LONGEST_NAME = 255
LONGEST_REFERENCE = 500
USUAL_REGISTRY = "docker.io"
_OTHER_NAMES = {"index.docker.io": USUAL_REGISTRY, "registry-1.docker.io": USUAL_REGISTRY}

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

_ID = re.compile(r"(?:sha256:)?[0-9a-f]{64}", re.ASCII)


def is_image_id(text: str) -> bool:
    """By its content, which no registry can be asked for."""
    return _ID.fullmatch(text) is not None


def full_names(text: str) -> list[str]:
    """Under which names an image may be on a machine, best first: as it is said, its own, of the usual registry."""
    read = read_image_name(text)
    if read is None or is_image_id(text):
        return [text]
    name, end = read
    if own_registry(name) is not None:
        return [name + end]
    library = name if "/" in name else f"library/{name}"
    return [name + end, f"localhost/{name}{end}", f"{USUAL_REGISTRY}/{library}{end}"]


def read_image_name(text: str) -> tuple[str, str] | None:
    """The name, and the tag or digest as it is written behind it (`latest` when none is); None when it is no name."""
    match = _REFERENCE.fullmatch(text) if len(text) <= LONGEST_REFERENCE else None
    if match is None or len(match["name"]) > LONGEST_NAME or _TRANSPORTS.match(text):
        return None
    return match["name"], match["digest"] or f":{match['tag'] or 'latest'}"


def own_registry(name: str) -> str | None:
    """The registry that a name begins with, with its port; None when it begins with none."""
    first, slash, _ = name.partition("/")
    return first if slash and ("." in first or ":" in first or first == "localhost") else None


def registry_of(name: str) -> str:
    """The registry that would be asked for it."""
    registry = (own_registry(name) or USUAL_REGISTRY).lower()
    return _OTHER_NAMES.get(registry, registry)


def may_be_asked(registry: str, allowed: Sequence[str]) -> bool:
    """Whether it is among the allowed ones, its port included. `*.example.com` are all hosts below that name, `*` is
    whatever anybody writes."""
    host = registry.lower()
    return any(
        place in ("*", host) or (place.startswith("*.") and host.endswith(place[1:]) and host != place[1:])
        for place in map(str.lower, allowed)
    )
