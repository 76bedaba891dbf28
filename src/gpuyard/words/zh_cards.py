"""中文：被没有分到卡的任务占用的卡。"""

from __future__ import annotations

from collections.abc import Mapping

from gpuyard.domain.reasons import Code
from gpuyard.words.language import Facts, Template


def _keeps_card(facts: Facts) -> str:
    bound = (
        "请在 {seconds:seconds}内关闭，否则它会被结束。" if facts.get("seconds") else "请关闭，否则管理员可能结束它。"
    )
    return (
        "它占用了没有分给它的卡[（{replica}）]：进程 {pid}（{command}）打开着 {node} 上 {device} {cards:list} 号卡"
        "的设备，这张卡因此无法分配给别人。" + bound
    )


CARDS: Mapping[Code, Template] = {
    Code.KEEPS_CARD: _keeps_card,
    Code.KEPT_CARD: (
        "已结束：它占用了没有分给它的卡[（{replica}）]。进程 {pid}（{command}）打开着 {node} 上 {device} {cards:list} "
        "号卡的设备[，该卡被占用已达 {seconds:seconds}]，因此无法分配给别人。要用卡请在任务中申请，"
        "不要把打开的设备传给其他任务。"
    ),
}
