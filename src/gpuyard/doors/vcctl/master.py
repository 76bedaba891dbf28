"""The server that is meant."""

from __future__ import annotations

from gpuyard.doors.asking import Server
from gpuyard.doors.cobra import Given
from gpuyard.sdk.finding import safe_url


def server_of(given: Given) -> Server:
    """`--master` is the address of the server. A kubeconfig is accepted, and means nothing."""
    master = given.text("master")
    return Server.found(safe_url(master) if master else None)
