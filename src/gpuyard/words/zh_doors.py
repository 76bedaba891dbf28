"""来自其他系统的作业文件的中文说明。被拒绝的内容用那个系统自己的话来说。"""

from __future__ import annotations

from collections.abc import Mapping

from gpuyard.domain.reasons import Code
from gpuyard.words.language import Template

DOORS: Mapping[Code, Template] = {
    Code.DOOR_REFUSED: "无法接受[，第 {line} 行][，第 {column} 列]：{text}",
    Code.NAME_TAKEN: ("已有一个名为 `{name}` 的作业尚未结束[（{id}）]。请换一个名称，或先停止它[：`yard stop {id}`]。"),
    Code.DOOR_UNUSED: "[第 {line} 行：]`{at}` 在这里不起作用[：{why:noun}]。",
    Code.DOOR_READ_AS: "[第 {line} 行：][`{at}`：]{what:noun}。",
}

DOOR_NOUNS: Mapping[str, str] = {
    "door.unused.always": "这里总是如此",
    "door.unused.cluster": "它针对的设施在这里不存在",
    "door.unused.decided": "由平台自行决定",
    "door.unused.unknown": "无法识别",
    "door.unused.not_yet": "目前还不支持",
    "door.read.tab": "制表符按空格处理",
    "door.read.name": "名称中不允许的字符已被替换",
}
