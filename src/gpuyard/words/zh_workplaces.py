"""开发环境的中文说明。"""

from __future__ import annotations

from collections.abc import Mapping

from gpuyard.domain.reasons import Code
from gpuyard.words.language import Facts, Template, by_name

_TOOLS = {"lab": "JupyterLab", "ide": "VS Code"}


def _no_toolbox(facts: Facts) -> str:
    what = _TOOLS.get(str(facts.get("what")), "`{what}`")
    return (
        f"{what} 由工具箱提供，而此服务器的工具箱中没有。管理员可在服务器上构建：`yard toolbox build`。"
        "[在此之前可以用 `yard shell {name}` 或 `yard env open {name} terminal`。]"
    )


WORKPLACES: Mapping[Code, Template] = {
    Code.NO_TOOLBOX: _no_toolbox,
    Code.START_ASKED: "等待启动[，由 {by} 发起]。",
    Code.ASKED_ANEW: "从现在起改为申请[：{changes}]。",
    Code.IDLE_SOON: by_name(
        "已有一段时间没有人使用：将在 {seconds:seconds} 后停止[（空闲上限 {idle_seconds:seconds}）]。"
        "继续使用，或执行 `yard env timer NAME --idle off`，即可保持运行。"
    ),
    Code.TIMER_SOON: by_name("定时器将在 {seconds:seconds} 后停止它。用 `yard env timer NAME +1h` 可以延长。"),
    Code.IDLE: by_name(
        "已停止：一直没有人使用[（空闲上限 {idle_seconds:seconds}）]。"
        "已安装的内容都会保留，用 `yard env start NAME` 可以再次启动。"
    ),
    Code.TIMER: by_name("定时器到点，已停止。已安装的内容都会保留，用 `yard env start NAME` 可以再次启动。"),
    Code.RESTS: by_name("已停止[，由 {by} 操作]。已安装的内容都会保留，用 `yard env start NAME` 可以再次启动。"),
    Code.LEFT: by_name("它自己结束了。已安装的内容都会保留，用 `yard env start NAME` 可以再次启动。"),
}
