"""来自其他系统的作业文件的中文说明。那些系统自己的程序拒绝时，用它们自己的话来说。"""

from __future__ import annotations

from collections.abc import Mapping

from gpuyard.domain.reasons import Code
from gpuyard.words.language import Facts, Template

DOOR_PROBLEMS: Mapping[str, str] = {
    "door.problem.no_task": "没有 task；至少需要一个有副本的 task",
    "door.problem.min_of_job": "大于所有 task 的副本总数",
    "door.problem.min_of_task": "大于该 task 的副本数",
    "door.problem.plugin": "这里没有这个插件；可用的有 {allowed:list}",
    "door.problem.mpi_task": "需要一个作为 {value} 的 task，但没有这个名称的 task",
    "door.problem.negative": "不能小于 0",
    "door.problem.queue": "没有你可以使用的组 `{value}`；队列就是组",
    "door.problem.task_name": "最多 63 个小写字母、数字和 `-`，以字母或数字开头和结尾",
    "door.problem.job_name": "最多 63 个小写字母、数字、`-` 和 `.`，以字母或数字开头和结尾",
    "door.problem.port_name": "最多 15 个字母、数字和 `-`，至少有一个字母",
    "door.problem.no_container": "没有容器；请写一个，并写明镜像和命令",
    "door.problem.containers": "写了 {count} 个容器，这里每个 Pod 只运行一个；请把其余的写成单独的 task",
    "door.problem.init_containers": "这里不会运行；请放在命令的开头执行",
    "door.problem.no_command": "必须写命令，因为这里不会运行镜像自带的命令",
    "door.problem.policy_star": "`*` 表示所有事件，不能再有其他策略",
    "door.problem.policy_both": "同时写了 `event` 和 `exitCode`，请只保留一个",
    "door.problem.policy_neither": "需要写 `event` 或 `exitCode`",
    "door.problem.policy_zero": "退出码 0 不是失败，请写别的退出码",
    "door.problem.policy_twice": "`{value}` 出现在两条策略里，请只保留一条",
    "door.problem.kind": "`{value}` 不是作业；作业应为 `kind: Job`，`apiVersion: batch.volcano.sh/v1alpha1`",
    "door.problem.too_many": "太多了（最多 {tasks} 个 task，副本总数最多 {replicas}）",
    "door.problem.resource": "这里没有这种资源；可用的有 {allowed:list}",
    "door.problem.quantity": "应当是 `500m`、`2`、`1024Mi` 或 `16Gi` 这样的数量",
    "door.problem.too_few_bytes": "只有 {count} 字节，太少了；请写上单位，例如 `1024Mi` 或 `16Gi`",
    "door.problem.too_much": "超过了任何机器所有的",
    "door.problem.unknown_field": "无法识别；是不是想写 `{nearest}`？",
}


def _refused(facts: Facts) -> str:
    """没有别的说法时，才用那个系统自己的话。"""
    where, problem = "无法接受[，第 {line} 行][，第 {column} 列]：", facts.get("problem")
    if not problem:
        return where + "{text}"
    return where + "[`{field}`：]" + DOOR_PROBLEMS.get(str(problem), "{problem:problem}") + "。"


DOORS: Mapping[Code, Template] = {
    Code.DOOR_REFUSED: _refused,
    Code.NAME_TAKEN: ("已有一个名为 `{name}` 的作业尚未结束[（{id}）]。请换一个名称，或先停止它[：`yard stop {id}`]。"),
    Code.REMOVED: "已从列表中移除[，由 {by} 操作]；经过、日志和编号都会保留。",
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
    "door.unused.dlc_resource": "使用工作空间自己的配额",
    "door.unused.dlc_data": "这里的数据集就是文件夹：个人文件在 /mnt/user 下，组内文件在 /mnt/share 下",
    "door.unused.dlc_code": "这里不会拉取代码；请放在 /mnt/user 下，或用 `yard run` 随作业提交",
    "door.unused.dlc_tags": "这里的作业没有标签",
    "door.unused.dlc_registry": "可以拉取哪些镜像由平台管理员设置",
    "door.unused.dlc_spec": "这里没有机型；请写明 cpu、gpu 和 memory",
    "door.unused.dlc_aimaster": "只使用 --enable-job-restart 和 --max-num-of-job-restart",
    "door.unused.dlc_no_gpu": "没有申请 GPU",
    "door.unused.dlc_no_node": "没有申请这种节点",
    "door.unused.dlc_aimaster_off": "aimaster_enable 不是 true",
    "door.unused.dlc_success": "只用于带 chief 的 TFJob",
    "door.read.dlc_workspace": "这是另一个平台的 ID，不是这里的组；请写组名",
    "door.read.dlc_elastic": "节点数固定不变",
    "door.read.dlc_quote": "引号没有闭合，请确认文件完整",
    "door.unused.at_once": "事件发生后立即处理",
    "door.unused.policy": "这里对该事件没有这种处理",
    "door.unused.no_replicas": "没有副本",
    "door.unused.all_or_nothing": "任务的全部副本一起启动，否则都不启动",
    "door.unused.registries": "镜像仓库由平台设置",
    "door.unused.secrets": "这里没有 Secret、ConfigMap 和 Pod 字段，请直接写值",
    "door.unused.requests": "副本得到的是 `limits` 写的数量",
    "door.unused.volume": "这里没有集群的存储卷；每个任务里都能看到自己的和组里的文件",
    "door.unused.many_hosts": "副本超过 1,000 个时不列出全部主机；名称和数量照常给出",
    "door.read.ssh": "密钥只在容器内提供给 root；其他情况请自备，并告诉 ssh 和 sshd 位置",
    "door.unused.ttl": "任务会留在列表里，直到被删除",
    "door.unused.maxRetry": "重试次数按整个任务计算",
    "door.unused.topologyPolicy": "由平台自行决定",
    "door.unused.dependsOn": "所有 task 同时启动",
    "door.read.any_ascend": "任何一种 Ascend 卡都可以",
    "door.read.any_exit_code": "退出码不是 0 就会重试",
    "door.read.always": "失败后重试，运行成功即结束",
}
