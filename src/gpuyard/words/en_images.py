"""English for images and for the disk they lie on."""

from __future__ import annotations

from collections.abc import Mapping

from gpuyard.domain.reasons import Code
from gpuyard.words.language import Facts, Template

IMAGE_NOUNS: Mapping[str, str] = {
    "disk_full": "its disk is nearly full",
    "engine.away": "it does not answer just now; try again in a moment",
    "engine.refused": "it refused; the server's log says why",
}


def _container_failed(facts: Facts) -> str:
    why = {
        "disk_full": "the machine's disk is full. Ask an admin to make room; `yard image ls` shows what takes some",
        "image_gone": "its image was removed meanwhile. Start it again, and the image is fetched again",
        "memory": "the machine did not give it its memory. Ask for a little more, or tell an admin",
        "device": "a card or a device file it was given cannot be used. Ask an admin to run `yard doctor`",
        "no_subnet": "no network is left for it. Ask an admin to enlarge `network_pool` in settings.toml",
        "network": "its network could not be made. Ask an admin to run `yard doctor`",
        "crowded": "the machine has too much open just now. Try again later",
    }
    other = "the container engine refused it. Try again; if that does not help, an admin finds why in the server's log"
    return "It could not be started[ ({replica})]: " + why.get(str(facts.get("why")), other) + "."


def _too_many_pulls(facts: Facts) -> str:
    if facts.get("own"):
        return (
            "{own} images are still being fetched for you, or wait for their turn. Wait until one is here, or end one "
            "(Ctrl-C), then ask again."
        )
    return "Too many images are being fetched just now. Try again in a moment."


def _image_not_used(facts: Facts) -> str:
    noted = "The image {image} is noted but not used: the {engine} engine"
    if facts.get("engine") == "simulated":
        return f"{noted} runs nothing, it only plays what would happen."
    return f"{noted} runs commands directly on the machine."


def _image_refused(facts: Facts) -> str:
    if facts.get("engine") == "simulated":
        return "The {engine} engine runs nothing and cannot use the image {image}. Leave `image` out."
    return (
        "The {engine} engine runs work directly on the machine and cannot use the image {image}. Leave `image` out, or "
        "have the server run containers (`yard doctor` says what that needs)."
    )


IMAGES: Mapping[Code, Template] = {
    Code.IMAGE_NOT_USED: _image_not_used,
    Code.IMAGE_REFUSED: _image_refused,
    Code.REGISTRY_REFUSED: (
        "The registry {registry} may not be asked for the image {image}[; these may: {allowed:list}]. Take an image "
        "from one of them or from `yard image ls`, or ask an admin to add it to `registries` in settings.toml."
    ),
    Code.DISK_SOON: (
        "It has written {used:memory} on the machine's own disk[ ({replica})]; beyond {limit:memory} it is stopped. "
        "Delete what it does not need, or write to its home or a share instead."
    ),
    Code.DISK_OVER: (
        "Stopped: it has written {used:memory} on the machine's own disk[ ({replica})]; {limit:memory} is the most. "
        "Write to its home or a share instead. A dev environment can be started again to delete what it does not need."
    ),
    Code.CONTAINER_FAILED: _container_failed,
    Code.IMAGE_IN_THE_WAY: (
        "It could not be started[ ({replica})]: a file or a link in its image lies where a folder has to be[: {at}]. "
        "Remove it from the image, or take another one."
    ),
    Code.IMAGE_IN_USE: (
        "The image {image} is in use[: {by:list}]. First stop the jobs (`yard stop ID`) and remove the environments "
        "(`yard env rm NAME`; stopped ones use it, too) made of it."
    ),
    Code.PULL_WAITS: "The image {image} will be fetched[ for {replica}] when it is its turn; others are before it.",
    Code.TOO_MANY_PULLS: _too_many_pulls,
    Code.NOT_AN_IMAGE: "That file is no image. Give one that `docker save` or `podman save` has written.",
}
