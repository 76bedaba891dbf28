"""What `yard env` says, in English and Chinese."""

from __future__ import annotations

ENV: dict[str, tuple[str, str]] = {
    "env": (
        "Dev environments: a place to work in, with cards or without, that keeps what you install.",
        "开发环境：带卡或不带卡的工作空间，安装的内容会保留。",
    ),
    "env.create": ("Create a dev environment and start it.", "创建并启动开发环境。"),
    "env.create.examples": (
        "\b\nExamples:\n"
        "  yard env create dev --image debian:12 --cpu 4 --memory 16G --cards 1\n"
        "  yard env create notes --idle 2h --timer 8h",
        "\b\n示例：\n"
        "  yard env create dev --image debian:12 --cpu 4 --memory 16G --cards 1\n"
        "  yard env create notes --idle 2h --timer 8h",
    ),
    "env.ls": ("Your dev environments.", "列出自己的开发环境。"),
    "env.show": ("Everything about one.", "显示一个开发环境的全部信息。"),
    "env.open": (
        "Open it in the browser: lab (JupyterLab), ide (VS Code), terminal, or a port.",
        "在浏览器中打开：lab（JupyterLab）、ide（VS Code）、terminal（终端）或端口号。",
    ),
    "env.ssh": ("Enter it by SSH, or run a command in it.", "通过 SSH 进入，或在其中执行命令。"),
    "env.stop": ("Stop it and free its cards; what is installed in it stays.", "停止并释放卡；已安装的内容保留。"),
    "env.start": (
        "Start it, with other resources if you like: --cards 1, --cards 0.",
        "启动，可同时更改资源：--cards 1、--cards 0。",
    ),
    "env.restart": (
        "Stop it and start it again, with other resources if you like. What could never start again is not stopped.",
        "重启，可同时更改资源。永远无法再启动的要求会被拒绝，不会停止。",
    ),
    "env.rm": ("Remove it with all that is installed in it; your files stay.", "删除，连同其中安装的内容；文件保留。"),
    "env.timer": (
        "Stop it by itself: in 2h, an hour later (+1h), never (off); or when idle.",
        "自动停止：2h 后、推迟 +1h、off 取消；或空闲时停止。",
    ),
    "kind.job": ("job", "任务"),
    "kind.env": ("env", "开发环境"),
    "image": ("Container images on the machine.", "机器上的容器镜像。"),
    "image.ls": ("The images that are here.", "列出已有的镜像。"),
    "image.pull": ("Fetch an image from its registry.", "从镜像仓库拉取镜像。"),
    "image.load": (
        "Take in the images of a `docker save` file (admins).",
        "导入 `docker save` 文件中的镜像（管理员）。",
    ),
    "image.rm": ("Remove images from the machine (admins).", "从机器上删除镜像（管理员）。"),
    "image.none": ("no images yet; fetch one: yard image pull NAME", "还没有镜像；拉取：yard image pull NAME"),
    "image.pulled": ("{name} is here", "{name} 已就绪"),
    "image.loaded": ("loaded: {names}", "已导入：{names}"),
    "image.removed": ("{name} is removed", "已删除 {name}"),
    "opt.idle": (
        "stop it when nobody has used it for so long (30m, off; at least 1m)",
        "空闲多久后自动停止（30m、off；至少 1m）",
    ),
    "opt.timer": ("stop it after so long (8h)", "多久后自动停止（8h）"),
    "opt.env_all": ("everybody's that you may see", "所有可见的开发环境"),
    "opt.env_detach": ("do not wait until it runs", "不等待启动完成"),
    "opt.env_port": ("a port to reach through the browser; repeatable", "可在浏览器中访问的端口；可重复"),
    "opt.env_cards": ("cards, as 2 or 0.5; 0 for none", "卡数，如 2 或 0.5；0 表示不用卡"),
    "opt.env_cpu": ("cores, as 4 or 500m", "核数，如 4 或 500m"),
    "opt.env_memory": ("memory, as 16G", "内存，如 16G"),
    "opt.env_shm": ("shared memory, as 8G (otherwise half of the memory)", "共享内存，如 8G（默认为内存的一半）"),
    "opt.print_url": ("only print the address", "只打印地址"),
    "opt.env_yes": ("do not ask; needed where there is no terminal", "不再询问；没有终端时必须给出"),
    "opt.env_force": (
        "do it even when it could never start again with this",
        "即使这样永远无法再启动也照做",
    ),
    "opt.env_detach_stop": ("do not wait until it is stopped", "不等待停止完成"),
    "opt.env_detach_rm": ("do not wait until its name is free again", "不等待删除完成"),
    "env.state": ("{name} is {state}: {reason}", "{name} 状态：{state}：{reason}"),
    "env.ready": ("{name} runs.", "{name} 已运行。"),
    "env.ready.open": ("In the browser: yard env open {name} {tools}", "浏览器：yard env open {name} {tools}"),
    "env.ready.enter": (
        "Here: yard shell {name}   By SSH: yard env ssh {name}",
        "终端：yard shell {name}   SSH：yard env ssh {name}",
    ),
    "env.short.ended.rests": ("by {by}", "由 {by} 停止"),
    "env.short.ended.idle": ("nobody used it", "没有人使用"),
    "env.short.ended.timer": ("by its timer", "定时停止"),
    "env.short.ended.left": ("ended by itself", "自行结束"),
    "env.no_image": ("none: the machine's own programs", "无：使用机器自带的程序"),
    "env.waits": (
        "{name} goes on waiting. See it: yard env show {name}   Why: yard why {id}",
        "{name} 仍在等待。查看：yard env show {name}   原因：yard why {id}",
    ),
    "env.stopping": ("{name} is asked to stop; what is installed in it stays", "已请求停止 {name}；已安装的内容保留"),
    "env.stopped": (
        "{name} is stopped; start it again with: yard env start {name}",
        "{name} 已停止；再次启动：yard env start {name}",
    ),
    "env.starting": (
        "{name} is asked to start; see it: yard env show {name}",
        "已请求启动 {name}；查看：yard env show {name}",
    ),
    "env.no_log": (
        "{name} is a dev environment: it has no output of its own. What JupyterLab and VS Code write is inside, in "
        "$YARD_DOOR: yard shell {name} -- 'tail $YARD_DOOR/*.log'",
        "{name} 是开发环境，没有自己的输出。JupyterLab 和 VS Code 的日志在环境内的 $YARD_DOOR 中："
        "yard shell {name} -- 'tail $YARD_DOOR/*.log'",
    ),
    "env.removed": ("{name} is removed; your files stay", "已删除 {name}；你的文件保留"),
    "env.ask_rm": (
        "Remove {name} with all that is installed in it? Files in your home and in shares stay.",
        "确定删除 {name} 以及其中安装的全部内容？个人目录和共享目录中的文件会保留。",
    ),
    "env.none": ("no dev environments; create one: yard env create dev", "还没有开发环境；创建：yard env create dev"),
    "env.timer_set": ("{name}: timer {timer}, idle {idle}", "{name}：定时停止 {timer}，空闲停止 {idle}"),
    "opt.env_other_image": (
        "another image: a fresh start, what is installed in it goes",
        "换成另一个镜像：重新开始，已安装的内容会丢失",
    ),
    "env.ask_image": (
        "With {image} it starts afresh: what is installed in {name} is thrown away. Files in your home and in shares "
        "stay. Go on?",
        "换成 {image} 会重新开始：{name} 中安装的内容会丢失，个人目录和共享目录中的文件会保留。继续吗？",
    ),
    "env.image_unasked": (
        "with another image what is installed in it is thrown away, and there is no terminal to ask on; say --yes",
        "换镜像会丢失已安装的内容，而且没有终端可供询问；请加上 --yes",
    ),
    "env.rm_unasked": (
        "there is no terminal to ask on, so nothing was removed; to remove {names} say --yes",
        "没有终端可供询问，未删除任何内容；要删除 {names}，请加上 --yes",
    ),
    "env.never": ("off", "关闭"),
    "env.never_as_asked": (
        "{name} stays as it is, since with this: {reason}\n  do it all the same with: --force",
        "{name} 保持不变。{reason}\n  仍要这样做：--force",
    ),
    "env.never_starts": (
        "waiting would not help. Ask for less: yard env restart {name} --cards N   Or remove it: yard env rm {name}",
        "继续等待也不会启动。减少资源：yard env restart {name} --cards N   或删除：yard env rm {name}",
    ),
    "env.unknown": (
        "There is no dev environment called `{name}`, or it is not yours to see.\n"
        "  see what there is with: yard env ls",
        "找不到开发环境 `{name}`，或者你无权查看。\n  查看现有的开发环境：yard env ls",
    ),
    "env.runs_already": (
        "{name} runs. To change what it has, it is stopped and started again: yard env restart {name} …",
        "{name} 正在运行。要更改资源需要重启：yard env restart {name} ……",
    ),
    "env.is_stopped": (
        "{name} is stopped; start it with: yard env start {name}",
        "{name} 已停止；启动：yard env start {name}",
    ),
    "env.unknown_way": (
        "`{what}` cannot be opened: lab, ide, terminal, or a port from 1 to 65535",
        "无法打开 `{what}`：可以是 lab、ide、terminal，或 1 到 65535 的端口",
    ),
    "env.no_ssh": ("SSH is not open on this server", "此服务器没有开放 SSH"),
    "env.no_ssh_here": (
        "there is no ssh on this machine; `yard shell` needs none",
        "本机没有 ssh；可以用 `yard shell`",
    ),
    "env.password_first": (
        "SSH needs a password of your own choice first; choose one with: yard password",
        "使用 SSH 前需要先设置自己的密码：yard password",
    ),
    "env.opened": (
        "open this in your browser (it works once, for a minute):",
        "请在浏览器中打开（一分钟内有效，只能用一次）：",
    ),
    "env.nothing_to_do": ("say when: 2h, +1h, off, or --idle 30m", "请指定：2h、+1h、off，或 --idle 30m"),
}
