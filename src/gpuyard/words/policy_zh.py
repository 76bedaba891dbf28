"""中文：策略、保证配额与合并组。"""

from __future__ import annotations

from collections.abc import Mapping

from gpuyard.domain.problems import Problem
from gpuyard.domain.reasons import Code
from gpuyard.words.language import Facts, Template


def _names_nothing(facts: Facts) -> str:
    if facts.get("what") == "model":
        return "[{at:where}：]目前没有型号为 {name} 的卡。"
    if facts.get("what") == "label":
        return "[{at:where}：]目前没有带标签 {name} 的机器。"
    return "[{at:where}：]目前没有{what:noun}[ {name}]。"


POLICY_SENTENCES: Mapping[Code, Template] = {
    Code.NAMES_NOTHING: _names_nothing,
    Code.SERVERS_UNUSED: (
        "服务器顺序已保存，但[在 `placing` 为 `{placing}` 时]不起作用；请把 `placing` 设为 `in_order`。"
    ),
    Code.OVER_GUARANTEED: (
        "保证总量超过了实际数量：各组合计保证 {guaranteed:amount}，而所有机器只有 {there:amount}。"
        "各组无法同时用满自己的保证。"
    ),
    Code.BELOW_USE: (
        "目前已用 {used:amount}，超过新的上限 {limit:amount}。正在运行的任务不会停止；用量降下来之前不会启动新任务。"
    ),
    Code.LEAD_NO_MORE: "{user} 原是 {source} 组的组长，现在是 {target} 组的普通成员。",
    Code.SHARE_MOVED: "{source} 组的共享文件现在位于 {target} 组共享目录下的 `{source}` 文件夹。",
    Code.SHARE_NOT_MOVED: (
        "没能移动 {source} 组的共享文件[：{detail}]。请自行把服务器数据目录下的 `files/share/{source}` "
        "移到 `files/share/{target}/{source}`，并把属组改为 {target} 组。"
    ),
}

POLICY_PROBLEMS: Mapping[str, str] = {
    Problem.NUMBER: "应当是数字[，大于 {above}][，最大 {most}]",
    Problem.POOL: "没有这个资源池[，现有的是：{allowed:list}][（是不是想写 `{nearest}`？）]；请先写在 `pools` 里",
    Problem.CEILING_ORDER: (
        "{role:noun}的优先级上限（{ceiling}）不能高于{above:noun}的上限（{its}），请调低它，或调高后者"
    ),
    Problem.NORMAL_CEILING: "这样普通成员什么都提交不了：`normal` 等级（{normal}）高于成员的上限（{ceiling}）",
    Problem.GUARANTEE_LIMIT: "保证量（{guaranteed:amount}）不能高于上限（{limit:amount}）",
    Problem.USER_GUARANTEE: "只有组才有保证配额，个人只有上限",
    Problem.SAME_GROUP: "不能把组合并到它自己",
    Problem.SEVERAL_GROUPS: "你在多个组里（{allowed:list}）：请加上 `--group`，或在任务文件里写 `group:`",
    Problem.SAME_WORKLOAD: "两个名字指的是同一个任务，请写两个不同的任务",
}

POLICY_NOUNS: Mapping[str, str] = {
    "model": "型号",
    "label": "标签",
    "member": "成员",
    "lead": "组长",
    "admin": "管理员",
    "policy.show": "查看策略",
    "policy.change": "修改策略",
    "policy.try": "试算策略",
    "group.merge": "合并组",
}
