"""The words of the gateway's own pages, in English and Chinese."""

from __future__ import annotations

_TEXTS: dict[str, tuple[str, str]] = {
    "title.message": ("gpuyard", "gpuyard"),
    "title.wait": ("One moment …", "请稍候……"),
    "title.login": ("Log in", "登录"),
    "title.terminal": ("Terminal", "终端"),
    "login.name": ("Name", "用户名"),
    "login.password": ("Password", "密码"),
    "login.button": ("Log in", "登录"),
    "login.who": ("You are logged in as {name}.", "你已登录：{name}。"),
    "login.open": (
        "Open your work with `yard env open NAME`, or follow a link to it.",
        "用 `yard env open 名称` 打开你的环境，或点击它的链接。",
    ),
    "logout.button": ("Log out", "退出登录"),
    "logout.done": ("You are logged out.", "你已退出登录。"),
    "starting.lab": ("JupyterLab is starting …", "JupyterLab 正在启动……"),
    "starting.ide": ("VS Code is starting …", "VS Code 正在启动……"),
    "failed.service": (
        "{name} has ended by itself (exit code {code}). It is started again. If this goes on, look into {log}.",
        "{name} 自行退出（退出码 {code}），正在重新启动。如果反复出现，请查看 {log}。",
    ),
    "no.toolbox": (
        "The toolbox is not built yet, and this needs it. An admin can build it: yard toolbox build",
        "工具箱尚未构建，此功能需要它。管理员可以构建：yard toolbox build",
    ),
    "old.toolbox": (
        "{name} was started before the toolbox was built, and does not see it. Start it again: yard env restart {name}",
        "{name} 启动于工具箱构建之前，看不到工具箱。请重新启动：yard env restart {name}",
    ),
    "no.listener": (
        "Nothing answers on port {port} in there. Has the program started, and does it listen on 127.0.0.1?",
        "里面的端口 {port} 没有程序响应。程序启动了吗？是否监听 127.0.0.1？",
    ),
    "no.answer": ("What runs in there closed the connection without an answer.", "里面的程序没有回应就关闭了连接。"),
    "bad.answer": ("What runs in there answered with something that is not HTTP.", "里面的程序返回的不是有效的 HTTP。"),
    "bad.code": (
        "This link was used already, or is too old. Open it anew.",
        "这个链接已经用过或已过期，请重新打开。",
    ),
    "visit.over": (
        "This visit is over: you logged out, or it is too long ago. Open it again.",
        "本次访问已结束：你已退出登录，或时间过久。请重新打开。",
    ),
    "bad.origin": ("This request came from another page.", "这个请求来自其他页面。"),
    "bad.method": ("This is not how to ask for this page.", "请求方式不对。"),
    "https.only": (
        "This is answered over https only. Nothing was done.",
        "只能通过 https 访问，请求未执行。",
    ),
    "too.many": ("You have too many connections open at once.", "你同时打开的连接太多。"),
    "not.here": ("There is nothing here.", "这里什么也没有。"),
    "broken": ("Something went wrong in the gateway; it is in its log.", "网关内部出错，已记入日志。"),
}


def text(name: str, language: str, /, **facts: object) -> str:
    english, chinese = _TEXTS[name]
    return (chinese if language == "zh" else english).format(**facts)
