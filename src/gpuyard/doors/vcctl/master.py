"""The server that is meant."""

from __future__ import annotations

from gpuyard.doors.asking import Server
from gpuyard.doors.cobra import Given


def server_of(given: Given) -> Server:
    """`--master` is the address of the server. A kubeconfig is accepted, and means nothing."""
    return Server.found(given.text("master") or None)
