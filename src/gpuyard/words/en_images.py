"""English for images and for the disk they lie on."""

from __future__ import annotations

from collections.abc import Mapping

from gpuyard.domain.reasons import Code
from gpuyard.words.language import Template

IMAGES: Mapping[Code, Template] = {
    Code.REGISTRY_REFUSED: (
        "The registry {registry} may not be asked for the image {image}[; these may: {allowed:list}]. Take an image "
        "from one of them or from `yard image ls`, or ask an admin to add it to `registries` in settings.toml."
    ),
}
