"""中文：通过 SSH 登录，以及登录用的公钥。"""

from __future__ import annotations

from collections.abc import Mapping

from gpuyard.domain.problems import Problem
from gpuyard.domain.reasons import Code
from gpuyard.domain.workload import ENDED
from gpuyard.words.language import Facts, Template

ENDED_STATES = frozenset(state.value for state in ENDED)


def _not_running(facts: Facts) -> str:
    if facts.get("what") == "env" and facts.get("state") == "paused":
        return "开发环境 {name} 已停止。启动它：yard env start {name}"
    if facts.get("what") == "env" and facts.get("state") in ENDED_STATES:
        return "开发环境 {name} 已被删除。查看现有的开发环境：yard env ls"
    if facts.get("what") == "env":
        return "开发环境 {name} 没有在运行[（{state:noun}）]。查看原因：yard env show {name}"
    return "任务 {name} 没有在运行[（{state:noun}）]，无法进入。"


def _no_forwarding(facts: Facts) -> str:
    match facts.get("what"):
        case "remote":
            return "不能在这里为你打开端口（ssh -R）[：{target}]；请反过来用 ssh -L 转发。"
        case "unix":
            return "不能转发文件系统中的套接字[：{target}]；只能转发 localhost 的端口。"
        case "tunnel":
            return "这里不支持网络隧道（ssh -w）。"
    return "只能转发开发环境自己 localhost 上的端口[，不能转发到 {target}]；请写 localhost:端口。"


SSH_SENTENCES: Mapping[Code, Template] = {
    Code.NOT_RUNNING: _not_running,
    Code.WHICH_ENVIRONMENT: "你有多个开发环境在运行：{names:list}。请指定一个：ssh {user}+名称@...",
    Code.NO_ENVIRONMENT: "你没有正在运行的开发环境。[已停止的有：{names:list}；启动：yard env start 名称。]",
    Code.NO_FORWARDING: _no_forwarding,
    Code.NO_SFTP: (
        "里面没有 sftp-server，无法这样传文件。请在里面安装 openssh-sftp-server，或请管理员构建工具箱"
        "（yard toolbox build）；用 OpenSSH 时也可以用 scp -O。"
    ),
    Code.TOO_MANY_AT_ONCE: "同时打开的{what:noun}太多：最多 {limit} 个。",
    Code.LOGIN_OVER: "这次登录已失效：账号、密码或公钥有变动。请重新登录。",
    Code.GATEWAY_ENDS: "网关正在重启，请稍后重新连接；里面的任务不受影响。",
}

SSH_PROBLEMS: Mapping[str, str] = {
    Problem.SSH_KEY: "应为一行公钥，例如 `ssh-ed25519 AAAA... you@laptop`；通常在 ~/.ssh/id_ed25519.pub 中",
    Problem.SSH_KEY_BROKEN: "公钥不完整；请重新复制整行",
    Problem.SSH_KEY_KIND: "不接受 {kind} 类型的公钥；可用类型：{allowed:list}",
    Problem.SSH_KEY_OPTIONS: "这一行以选项开头；请只给出公钥本身，从类型开始",
    Problem.SSH_SEVERAL_KEYS: "有多个公钥；请一次添加一个",
    Problem.SSH_PRIVATE_KEY: (
        "这是私钥，只能由你自己保管，平台没有保存它。请给出公钥，即以 .pub 结尾的文件。如果私钥可能已被别人看到，"
        "请重新生成一对：ssh-keygen -t ed25519"
    ),
    Problem.SSH_CERTIFICATE: "这是证书；请给出公钥本身",
    Problem.SSH_RSA_SHORT: "{bits} 位的 RSA 公钥太短（至少 {least} 位）；请重新生成：ssh-keygen -t ed25519",
}

SSH_NOUNS: Mapping[str, str] = {
    "environment": "开发环境",
    "key": "SSH 公钥",
    "key.list": "查看 SSH 公钥",
    "key.add": "添加 SSH 公钥",
    "key.remove": "删除 SSH 公钥",
    "ssh.sessions": " SSH 会话",
    "ssh.connections": " SSH 连接（每人）",
    "ssh.forwards": "转发连接",
}
