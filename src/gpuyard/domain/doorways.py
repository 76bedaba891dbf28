"""Addresses of what can be visited inside running work, and of the gateway that leads there.

Every place has a name of its own, `lab-k3v9x2m4qa.localhost`, so that a page in one workload is a stranger to the pages
of all others. Teams that trust each other and have no such names use paths, `/i/k3v9x2m4qa/lab/`, instead.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

LAB, IDE, TERMINAL = "lab", "ide", "terminal"
OWN = "/.yard/"  # what follows it is answered by the gateway itself, on every host
_WHAT = r"lab|ide|terminal|p[1-9][0-9]{0,4}"
_ID = r"[a-z][a-z0-9]{9}"
WHAT_RULE = re.compile(rf"(?:{_WHAT})\Z")
_LABEL = re.compile(rf"({_WHAT})-({_ID})\Z")
_PATH = re.compile(rf"/i/({_ID})/({_WHAT})(?=[/?]|\Z)")
_HOST = re.compile(r"([a-z0-9](?:[a-z0-9.-]{0,251}[a-z0-9])?|\[[0-9a-f:.]{2,45}\])(?::([0-9]{1,5}))?\Z")
LARGEST_PORT = 65535
FIRST_FREE_PORT = 1024  # below are the system's own


class UnknownHost(ValueError):
    """A name under which the gateway is not to be asked."""


@dataclass(frozen=True, slots=True)
class Visit:
    """One thing inside one workload: its notebooks, its editor, a terminal, or a port."""

    workload: str
    what: str  # lab, ide, terminal or p8080

    @property
    def port(self) -> int | None:
        return int(self.what[1:]) if self.what[0] == "p" else None

    @property
    def label(self) -> str:
        return f"{self.what}-{self.workload}"


@dataclass(frozen=True, slots=True)
class Asked:
    """What the host and the path of a request stand for. Without a visit it is for the gateway's own pages."""

    base: str  # `localhost:8471`: where the gateway's own pages are, as the asker reaches them
    visit: Visit | None = None
    prefix: str = ""  # of the path, where visits are told by paths


@dataclass(frozen=True, slots=True)
class Doorway:
    """Where the gateway is, as seen from outside."""

    scheme: str  # http or https
    domain: str  # every visit is a name below this one
    port: int
    paths: bool = False  # visits are told by paths
    hosts: frozenset[str] = frozenset()  # further names of the gateway itself; `*` is any

    def asked(self, host: str, path: str) -> Asked:
        """Read a request. Raises UnknownHost for a name that is not ours."""
        match = _HOST.match(host.lower())
        if match is None:
            raise UnknownHost(host[:80])
        name, port = match.group(1), match.group(2)
        if name.endswith("." + self.domain) and (label := _LABEL.match(name[: -len(self.domain) - 1])):
            base = self.domain if port is None else f"{self.domain}:{port}"
            return Asked(base, Visit(label.group(2), label.group(1)))
        if name != self.domain and name not in self.hosts and "*" not in self.hosts:
            raise UnknownHost(host[:80])
        if self.paths and (found := _PATH.match(path)):
            return Asked(host.lower(), Visit(found.group(1), found.group(2)), found.group(0))
        return Asked(host.lower())

    def root(self, visit: Visit, base: str) -> str:
        """Where this visit begins, without the last slash. `base` is where the gateway itself is reached."""
        if self.paths:
            return f"{self.scheme}://{base}/i/{visit.workload}/{visit.what}"
        return f"{self.scheme}://{visit.label}.{base}"

    def base_for(self, host: str) -> str:
        """Where the gateway is for someone who reaches this machine under that name."""
        name = host if self.paths else self.domain
        return f"{name}:{self.port}"


def read_what(text: str) -> str | None:
    """`lab`, `ide`, `terminal`, `p8080` or plain `8080`; None for anything else."""
    what = f"p{text}" if text.isdigit() else text
    if not WHAT_RULE.match(what):
        return None
    return None if what[0] == "p" and int(what[1:]) > LARGEST_PORT else what


def safe_path(text: str) -> str:
    """A path to go on to on the same host, or `/` for anything that a browser could take for another address."""
    good = re.fullmatch(r"/(?![/\\])[\x21-\x5b\x5d-\x7e]{0,2000}", text)
    return text if good else "/"
