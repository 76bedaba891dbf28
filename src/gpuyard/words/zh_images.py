"""中文：镜像及其所在的磁盘。"""

from __future__ import annotations

from collections.abc import Mapping

from gpuyard.domain.reasons import Code
from gpuyard.words.language import Facts, Template

IMAGE_NOUNS: Mapping[str, str] = {
    "disk_full": "磁盘快满了",
    "engine.away": "它暂时没有回应，请稍后再试",
    "engine.refused": "它拒绝了请求，原因见服务器日志",
}


def _container_failed(facts: Facts) -> str:
    why = {
        "disk_full": "机器磁盘已满。请管理员清理空间，`yard image ls` 列出占用空间的镜像",
        "image_gone": "它的镜像刚刚被删除。请再次启动，镜像会重新拉取",
        "memory": "机器没能给它分配内存。请多申请一些，或联系管理员",
        "device": "分给它的卡或设备文件无法使用。请管理员运行 `yard doctor` 检查",
        "no_subnet": "已没有可用的网段。请管理员在 settings.toml 中调大 `network_pool`",
        "network": "没能建立它的网络。请管理员运行 `yard doctor` 检查",
        "crowded": "机器上打开的内容太多，请稍后再试",
    }
    other = "容器引擎拒绝了请求。请再试一次；仍然不行时，管理员可以在服务器日志中查到原因"
    return "没能启动[（{replica}）]：" + why.get(str(facts.get("why")), other) + "。"


def _too_many_pulls(facts: Facts) -> str:
    if facts.get("own"):
        return "你还有 {own} 个镜像正在拉取或排队。请等其中一个完成，或用 Ctrl-C 结束一个，然后再试。"
    return "现在拉取的镜像太多，请稍后再试。"


def _image_not_used(facts: Facts) -> str:
    noted = "镜像 {image} 只作记录，没有使用：{engine} 引擎"
    if facts.get("engine") == "simulated":
        return f"{noted}什么也不运行，只模拟经过。"
    return f"{noted}直接在机器上运行命令。"


def _image_refused(facts: Facts) -> str:
    if facts.get("engine") == "simulated":
        return "{engine} 引擎什么也不运行，不能使用镜像 {image}。请去掉 `image`。"
    return (
        "{engine} 引擎直接在机器上运行任务，不能使用镜像 {image}。请去掉 `image`，"
        "或者让服务以容器方式运行（`yard doctor` 会说明需要什么）。"
    )


IMAGES: Mapping[Code, Template] = {
    Code.IMAGE_NOT_USED: _image_not_used,
    Code.IMAGE_REFUSED: _image_refused,
    Code.REGISTRY_REFUSED: (
        "不允许从镜像仓库 {registry} 拉取镜像 {image}[；允许的仓库：{allowed:list}]。请改用这些仓库或 `yard image ls` "
        "中的镜像，或请管理员把它写进 settings.toml 的 `registries`。"
    ),
    Code.DISK_SOON: (
        "它在本机磁盘上已写入 {used:memory}[（{replica}）]，超过 {limit:memory} 就会被停止。"
        "请删除不需要的文件，或改写到自己的目录或组目录。"
    ),
    Code.DISK_OVER: (
        "已停止：它在本机磁盘上写入了 {used:memory}[（{replica}）]，上限是 {limit:memory}。请改写到自己的目录或组目录。"
        "开发环境可以再次启动，以便删除不需要的文件。"
    ),
    Code.CONTAINER_FAILED: _container_failed,
    Code.IMAGE_IN_THE_WAY: (
        "没能启动[（{replica}）]：镜像中有文件或链接占住了要挂载目录的位置[：{at}]。请从镜像中去掉它，或换一个镜像。"
    ),
    Code.IMAGE_IN_USE: (
        "镜像 {image} 正在使用[：{by:list}]。请先停止使用它的任务（`yard stop ID`），并删除使用它的环境"
        "（`yard env rm NAME`，已停止的也算），再删除镜像。"
    ),
    Code.PULL_WAITS: "镜像 {image} 正在排队等待拉取[（{replica}）]，前面还有其他镜像。",
    Code.TOO_MANY_PULLS: _too_many_pulls,
    Code.NOT_AN_IMAGE: "这个文件不是镜像。请提供 `docker save` 或 `podman save` 保存的文件。",
}
