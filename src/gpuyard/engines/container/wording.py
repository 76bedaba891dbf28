"""What a container engine says when it refuses, put into our words: people need a cause they can act upon, and none of
the server's paths. What it said in full is for the server's log. Pure."""

from __future__ import annotations

import re

from gpuyard.domain.reasons import Code, Reason, because

# What engines and runtimes say, by what it means. The first that fits.
_CAUSES: tuple[tuple[str, str], ...] = (
    ("disk_full", r"no space left|disk quota"),
    ("image_gone", r"no such image|image not known|identifier is not an image"),
    ("memory", r"memory limit|cannot allocate memory|minimum memory"),
    ("device", r"\bcdi\b|nvidia|no such device|adding device|/dev/(?!shm|null|console)"),
    ("no_subnet", r"subnet .* taken|no subnet|non-overlapping"),
    ("network", r"network|netavark|iptables|nftables|bridge"),
    ("crowded", r"too many open files|resource temporarily unavailable|no free lock|exhausted"),
)
# A file or a link of the image lies where a folder of ours, or of the system, has to be shown.
_IN_THE_WAY = re.compile(
    r"not a directory|is a directory|ordinary directory|too many levels of symbolic links|mtab symlink", re.IGNORECASE
)
_SHOWN_AT = re.compile(r'to rootfs at "(?P<inside>/[^"]*)"')
_PATH = re.compile(r"""(?<![\w.:/-])/(?:[^\s:'",()]+/)+[^\s:'",()]*""")


def why_not_started(said: str, replica: str) -> Reason:
    if _IN_THE_WAY.search(said):
        shown = _SHOWN_AT.search(said)
        return because(Code.IMAGE_IN_THE_WAY, at=shown["inside"] if shown else "", replica=replica)
    text = said.lower()
    why = next((cause for cause, pattern in _CAUSES if re.search(pattern, text)), "other")
    return because(Code.CONTAINER_FAILED, why=why, replica=replica)


def without_paths(said: str) -> str:
    """Names of images and addresses stay; files of this machine do not."""
    return _PATH.sub("…", said)
