"""中文：镜像及其所在的磁盘。"""

from __future__ import annotations

from collections.abc import Mapping

from gpuyard.domain.reasons import Code
from gpuyard.words.language import Template

IMAGES: Mapping[Code, Template] = {
    Code.REGISTRY_REFUSED: (
        "不允许从镜像仓库 {registry} 拉取镜像 {image}[；允许的仓库：{allowed:list}]。请改用这些仓库或 `yard image ls` "
        "中的镜像，或请管理员把它写进 settings.toml 的 `registries`。"
    ),
}
