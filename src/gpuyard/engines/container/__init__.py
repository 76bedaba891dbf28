"""Replicas as containers, through the Docker-compatible API of podman or docker.

    launch ──> pull, network, folders, create, start        (in the launch's own thread; every call has a time-out)
    watch  ──> hears each end from the kernel, bounds logs, carries out stops        (needs no engine)
    settle ──> writes down how it ended, then clears away   (in the background; asks the engine only when it must)

What runs is known by its first process, not by the engine's word: an engine that hangs or is gone keeps nobody from
seeing, stopping or ending work. Everything that must survive the server is in the replica's folder.
"""
