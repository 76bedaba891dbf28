"""开发环境的中文说明。"""

from __future__ import annotations

from collections.abc import Mapping

from gpuyard.domain.reasons import Code
from gpuyard.words.language import Template

WORKPLACES: Mapping[Code, Template] = {
    Code.START_ASKED: "等待启动[，由 {by} 发起]。",
    Code.ASKED_ANEW: "从现在起改为申请[：{changes}]。",
    Code.IDLE_SOON: (
        "已有一段时间没有人使用：将在 {seconds:seconds} 后停止[（空闲上限 {idle_seconds:seconds}）]。"
        "继续使用，或执行 `yard env timer NAME --idle off`，即可保持运行。"
    ),
    Code.TIMER_SOON: "定时器将在 {seconds:seconds} 后停止它。用 `yard env timer NAME +1h` 可以延长。",
    Code.IDLE: (
        "已停止：一直没有人使用[（空闲上限 {idle_seconds:seconds}）]。"
        "已安装的内容都会保留，用 `yard env start NAME` 可以再次启动。"
    ),
    Code.TIMER: "定时器到点，已停止。已安装的内容都会保留，用 `yard env start NAME` 可以再次启动。",
    Code.RESTS: "已停止[，由 {by} 操作]。已安装的内容都会保留，用 `yard env start NAME` 可以再次启动。",
    Code.LEFT: "它自己结束了。已安装的内容都会保留，用 `yard env start NAME` 可以再次启动。",
}
