"""The short words of tables: headings, names of fields, states. English words are their own keys."""

from __future__ import annotations

from gpuyard.cli.phrases import LANGUAGE

CHINESE: dict[str, str] = {
    # Headings
    "ID": "编号",
    "NAME": "名称",
    "VERSION": "版本",
    "CURRENT": "当前",
    "PARTS": "组成",
    "STATE": "状态",
    "OWNER": "所有者",
    "GROUP": "组",
    "CARDS": "卡",
    "AGE": "已提交",
    "REASON": "原因",
    "REPLICA": "副本",
    "NODE": "节点",
    "EXIT": "退出码",
    "TIME": "时间",
    "TRY": "尝试",
    "BY": "操作者",
    "WHAT": "内容",
    "CPU": "CPU",
    "MEMORY": "内存",
    "CPU FREE": "空闲 CPU",
    "MEMORY FREE": "空闲内存",
    "CARDS FREE": "空闲卡",
    "TROUBLE": "故障",
    "MODEL": "型号",
    "LABELS": "标签",
    "USER": "用户",
    "RESOURCE": "资源",
    "USED": "已用",
    "LIMIT": "上限",
    "GUARANTEED": "保证",
    "BORROWED": "借入",
    "LENT": "借出",
    "WEIGHT": "权重",
    "FIFO": "先进先出",
    "KEY": "项目",
    "VALUE": "值",
    "MEANING": "说明",
    "BEFORE": "原来",
    "AFTER": "之后",
    "STARTING": "将启动",
    "WAITING": "将等待",
    "PREEMPTED": "将让位",
    "MAKES ROOM FOR": "让位给",
    "RULE": "规则",
    "LOST": "损失",
    "ROLE": "角色",
    "GROUPS": "组",
    "ACTIVE": "启用",
    "MEMBERS": "成员数",
    "MEMBER": "成员",
    "QUOTA": "配额",
    "SCOPE": "权限",
    "CREATED": "创建时间",
    "EXPIRES": "到期时间",
    "LAST USED": "最近使用",
    "KIND": "类型",
    "IMAGE": "镜像",
    "FINGERPRINT": "指纹",
    "WHO": "谁",
    "ACTION": "操作",
    "OBJECT": "对象",
    "FROM": "来源",
    "OUTCOME": "结果",
    # Fields
    "id": "编号",
    "name": "名称",
    "state": "状态",
    "reason": "原因",
    "owner": "所有者",
    "group": "组",
    "priority": "优先级",
    "cards": "卡",
    "image": "镜像",
    "cpu": "CPU",
    "memory": "内存",
    "shm": "共享内存",
    "max time": "最长时间",
    "models": "型号",
    "nodes": "节点",
    "labels": "标签",
    "together": "副本分布",
    "preemptible": "可被抢占",
    "checkpoint": "进度目录",
    "work saved": "上次保存",
    "retries used": "已用重试",
    "env": "环境变量",
    "ports": "端口",
    "shipped folder": "上传的目录",
    "files": "文件",
    "submitted": "提交时间",
    "started": "开始时间",
    "running since": "运行自",
    "port": "端口",
    "lab": "JupyterLab",
    "ide": "VS Code",
    "terminal": "浏览器终端",
    "shell": "终端",
    "ssh": "SSH",
    "ended": "结束时间",
    "ran for": "用时",
    "exit code": "退出码",
    "role": "角色",
    "groups": "组",
    "active": "启用",
    "user": "用户",
    "scope": "权限",
    "created": "创建时间",
    "expires": "到期时间",
    "last used": "最近使用",
    "node": "节点",
    "timer": "定时停止",
    "idle": "空闲停止",
    "server": "服务器",
    "logged in by": "登录方式",
    "may": "权限",
    "weight": "权重",
    "first in, first out": "先进先出",
    "guarantee": "保证",
    # States of nodes and replicas; those of jobs are in `words`
    "ready": "就绪",
    "cordoned": "已隔离",
    "lost": "失联",
    "disk_full": "磁盘快满",
    "absent": "未启动",
    "ended ": "已结束",
    # Small words
    "yes": "是",
    "no": "否",
    "simulated": "模拟",
}


def label(text: str) -> str:
    """A heading or the name of a field. What has no translation (a role's or a group's name) stays."""
    return CHINESE.get(text, text) if LANGUAGE == "zh" else text


def workload_state_label(kind: str, state: str) -> str:
    """A dev environment that rests is stopped, wherever it is spoken of; a job that does is paused."""
    return state_label("stopped" if kind == "env" and state == "paused" else state)


def state_label(state: str) -> str:
    """The state of a job, a replica or a node, as people read it."""
    if LANGUAGE != "zh":
        return state
    from gpuyard.domain.workload import State
    from gpuyard.words import state_word

    if state in set(State):
        return state_word(State(state), "zh")
    return CHINESE.get("ended " if state == "ended" else state, state)
