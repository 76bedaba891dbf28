"""Phrases about the gateway and shells, in English and Chinese."""

from __future__ import annotations

GATEWAY: dict[str, tuple[str, str]] = {
    "opt.gateway_port": (
        "port of the gateway, where running work is entered by browser (8471; 0: any free one)",
        "网关端口，浏览器由此进入运行中的任务（默认 8471；0 表示任意空闲端口）",
    ),
    "opt.ssh_port": (
        "port for SSH into running work (8472; 0: any free one)",
        "SSH 端口（默认 8472；0 表示任意空闲端口）",
    ),
    "opt.apps_domain": (
        "domain below which every visit has a name of its own (localhost)",
        "每个入口在此域名下有自己的名称（默认 localhost）",
    ),
    "opt.gateway_paths": (
        "paths instead of names, for teams that trust each other",
        "用路径代替域名，适用于互相信任的团队",
    ),
    "opt.down_all": (
        "also end the gateway, and with it open shells and notebooks' connections",
        "同时停止网关及其连接",
    ),
    "down.gateway_goes_on": (
        "{count:dev environment runs|dev environments run}, so the gateway stays for those who work in "
        "them; `yard down --all` ends it too",
        "有 {count} 个开发环境在运行，网关保留给正在使用的人；`yard down --all` 可一并停止",
    ),
    "down.gateway_left": (
        "the gateway still runs; `yard down --all` ends it too",
        "网关仍在运行；`yard down --all` 可一并停止",
    ),
    "down.gateway_done": ("the gateway is stopped", "网关已停止"),
    "shell": ("A terminal inside a running job or dev environment.", "进入运行中的任务或开发环境的终端。"),
    "shell.examples": (
        "\b\nExamples:\n  yard shell train\n  yard shell train --replica worker-1 -- nvidia-smi",
        "\b\n示例：\n  yard shell train\n  yard shell train --replica worker-1 -- nvidia-smi",
    ),
    "opt.shell_replica": (
        "which replica, such as worker-1 (the first that runs)",
        "哪个副本，例如 worker-1（默认第一个）",
    ),
    "shell.away": ("the gateway is not open on this server", "该服务没有开放网关"),
    "shell.lost": ("\r\n[the connection is lost; connecting again …]\r\n", "\r\n[连接已断开，正在重新连接……]\r\n"),
    "shell.given_up": (
        "the connection is lost, and the gateway has not answered for {seconds} s",
        "连接已断开，网关 {seconds} 秒没有响应",
    ),
    "shell.command_lost": (
        "the connection was lost; whether the command ran to its end is not known",
        "连接曾断开；无法得知命令是否已执行完毕",
    ),
    "shell.new": ("[the shell before is gone; this is a new one]", "[之前的 shell 已不在；这是新的]"),
    "shell.shown_out": (
        "[you were shown out: the login has ended, or the work has]",
        "[已断开：登录已失效，或任务已结束]",
    ),
}
