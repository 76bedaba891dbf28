"""What `--help` says of each command and option, in English and Chinese."""

from __future__ import annotations

HELP: dict[str, tuple[str, str]] = {
    "yard": (
        "Run work on shared GPU and NPU machines. ID is an id, the beginning of one, or a name (your newest).",
        "在共享的 GPU 与 NPU 机器上运行任务。ID 可以是编号、编号开头或名称（取自己最新的一个）。",
    ),
    "environment": (
        "YARD_URL and YARD_TOKEN, or YARD_DATA, say which server; YARD_CA_FILE whose certificates to trust; YARD_LANG "
        "the language (en, zh); YARD_RETRY_SECONDS how long to wait for a server; YARD_DEBUG=1 shows where a bug is.",
        "YARD_URL 与 YARD_TOKEN，或 YARD_DATA 指定服务器；YARD_CA_FILE 指定信任的证书；YARD_LANG 指定语言（en、zh）；"
        "YARD_RETRY_SECONDS 指定等待服务器的时间；YARD_DEBUG=1 显示错误位置。",
    ),
    "up": ("Start the server on this machine.", "在本机启动服务。"),
    "down": ("Stop the server; running jobs go on.", "停止服务；运行中的任务会继续。"),
    "login": ("Log in to a server and save a token.", "登录服务器并保存令牌。"),
    "logout": ("Forget the saved login and take its token back.", "删除保存的登录并吊销其令牌。"),
    "whoami": ("Say who you are to the server.", "显示当前身份。"),
    "doctor": ("Check whether all is well, a sentence each.", "逐项检查运行状况。"),
    "top": ("What running work uses now.", "运行中任务的资源使用情况。"),
    "run": ("Run a command as a job and show its output.", "把命令作为任务运行并显示输出。"),
    "run.examples": (
        "\b\nExamples:\n"
        "  yard run --cards 2 --workdir . -- python3 train.py --lr 0.1\n"
        "  yard run --detach -- 'python3 clean.py && python3 train.py'   (one quoted word: run by a shell)",
        "\b\n示例：\n"
        "  yard run --cards 2 --workdir . -- python3 train.py --lr 0.1\n"
        "  yard run --detach -- 'python3 clean.py && python3 train.py'   （引号中的一整句由 shell 执行）",
    ),
    "submit": ("Submit a job file (YAML; - reads standard input).", "提交任务文件（YAML；- 表示标准输入）。"),
    "preview": ("What would happen if this were submitted now.", "预览：现在提交会怎样。"),
    "ls": ("List jobs, newest first.", "列出任务，最新的在前。"),
    "show": ("Everything about one job.", "显示一个任务的全部信息。"),
    "logs": ("The output of a job.", "任务的输出。"),
    "why": (
        "Why it waits and what would start it now, or why it ended as it did.",
        "为什么等待、怎样改可以马上启动，或为什么这样结束。",
    ),
    "why.examples": (
        "\b\nExamples:\n  yard why train\n  yard why k4ab2c9x0z --before train   (why did that one run before mine?)",
        "\b\n示例：\n  yard why train\n  yard why k4ab2c9x0z --before train   （为什么那个任务先于我的？）",
    ),
    "opt.before": ("why it comes or came before this one", "它为什么先于这个任务"),
    "opt.instead": (
        "in place of the waiting one: that is stopped, this takes its place in the queue",
        "代替还在等待的任务：原任务停止，新任务保留它的排队位置",
    ),
    "events": ("The story of a job, line by line.", "任务的经过，逐行显示。"),
    "stop": ("Stop jobs.", "停止任务。"),
    "import": (
        "Show what a file of another system becomes as a job file; nothing is submitted.",
        "显示其他系统的作业文件对应的任务文件；不会提交。",
    ),
    "import.examples": (
        "\b\nExamples:\n  yard import job.params > job.yaml\n  kubectl get vcjob x -o yaml | yard import -",
        "\b\n示例：\n  yard import job.params > job.yaml\n  kubectl get vcjob x -o yaml | yard import -",
    ),
    "opt.from": ("whose file it is, when that cannot be seen", "文件属于哪个系统（无法自动判断时）"),
    "rm_job": (
        "Take jobs off the lists; those that have not ended are stopped.",
        "从列表中移除任务；尚未结束的会先停止。",
    ),
    "opt.removed": ("also those taken off the lists", "包括已从列表中移除的"),
    "pause": ("End the attempt, free the cards, keep the place in the queue.", "结束当前尝试，释放卡，保留排队位置。"),
    "resume": ("Put a paused job back into the queue.", "恢复已暂停的任务。"),
    "priority": (
        "Change the priority of a job: 1 to 1000, larger first, or a class such as low, normal, high, urgent.",
        "修改任务的优先级：1 到 1000，越大越先；或等级名，如 low、normal、high、urgent。",
    ),
    "rerun": ("Submit a job again, changed by --set.", "重新提交任务，可用 --set 修改。"),
    "nodes": ("The machines and their cards.", "机器及其卡。"),
    "cordon": ("Give no new work to a node.", "让节点不再接收新任务。"),
    "label": (
        "Label a node: KEY=VALUE sets a label, KEY- takes it away.",
        "给节点加标签：KEY=VALUE 设置，KEY- 去掉。",
    ),
    "label.examples": (
        "\b\nExample:\n  yard nodes label gpu-07 zone=north old-\n  yard run --label zone=north -- python3 train.py",
        "\b\n示例：\n  yard nodes label gpu-07 zone=north old-\n  yard run --label zone=north -- python3 train.py",
    ),
    "uncordon": ("Let a node take work again.", "让节点重新接收任务。"),
    "quota": ("Quotas and what is used of them.", "配额及使用情况。"),
    "user": ("Users.", "用户。"),
    "group": ("Groups and their quotas.", "用户组及其配额。"),
    "token": ("Tokens for programs.", "供程序使用的令牌。"),
    "key": ("Your SSH keys.", "你的 SSH 公钥。"),
    "key.add": (
        "Add a public key for SSH: FILE, - for standard input, or the usual one in ~/.ssh.",
        "添加 SSH 公钥：文件 FILE、用 - 读标准输入，或默认使用 ~/.ssh 中的公钥。",
    ),
    "opt.key_name": ("what to call it (otherwise the key's own comment)", "名称（默认使用公钥的注释）"),
    "create": ("Create one.", "创建。"),
    "list": ("List all you may see.", "列出可见的全部。"),
    "show_one": ("Show one.", "显示一个。"),
    "set": ("Change one.", "修改。"),
    "rm": ("Remove one.", "删除。"),
    "audit": ("Who did what, newest first.", "操作记录，最新的在前。"),
    "backup": ("Write a backup of the server's memory to FILE.", "把服务器数据备份到 FILE。"),
    "restore": ("Bring a backup back; the server must be stopped.", "恢复备份；服务必须已停止。"),
    "version": ("The version of this command and of the server.", "本命令与服务器的版本。"),
    "opt.output": ("table, or json for programs", "table，或供程序使用的 json"),
    "opt.data": ("data folder [YARD_DATA]", "数据目录 [YARD_DATA]"),
    "opt.host": ("address to listen on (127.0.0.1)", "监听地址（默认 127.0.0.1）"),
    "opt.port": ("port to listen on (8470; 0: any free one)", "监听端口（默认 8470；0 表示任意空闲端口）"),
    "opt.engine": (
        "where work runs (auto: in containers with root, podman or docker and a toolbox, else as processes)",
        "任务运行方式（默认 auto：有 root、podman 或 docker、以及工具箱时用容器，否则用进程）",
    ),
    "opt.simulate_cards": ("pretend to have N cards, as 8 or 8:ascend", "模拟 N 张卡，如 8 或 8:ascend"),
    "opt.nodes": (
        "with --engine simulated: so many virtual machines with so many cards, as 20x8 or 10x8:A100,2x8:ascend; "
        "2x8=python:3.12 hold that image",
        "与 --engine simulated 一起使用：虚拟机器的台数和每台的卡数，如 20x8 或 10x8:A100,2x8:ascend；"
        "2x8=python:3.12 表示已有该镜像",
    ),
    "opt.database": (
        "postgresql://… instead of SQLite in the data folder",
        "用 postgresql://… 代替数据目录中的 SQLite",
    ),
    "opt.tls_cert": ("certificate file (PEM)", "证书文件（PEM）"),
    "opt.tls_key": ("key file (PEM)", "私钥文件（PEM）"),
    "opt.insecure_http": ("allow plain http beyond this machine", "允许在本机之外使用明文 http"),
    "opt.up_detach": ("run in the background, leaving DATA/server.pid", "在后台运行，生成 DATA/server.pid"),
    "opt.name": ("name of the job", "任务名称"),
    "opt.cards": ("cards per replica, as 2 or 0.5", "每个副本的卡数，如 2 或 0.5"),
    "opt.device": ("kind of card: nvidia or ascend", "卡的类型：nvidia 或 ascend"),
    "opt.cpu": ("cores per replica, as 4 or 500m", "每个副本的核数，如 4 或 500m"),
    "opt.memory": ("memory per replica, as 16G", "每个副本的内存，如 16G"),
    "opt.shm": ("shared memory per replica, as 8G", "每个副本的共享内存，如 8G"),
    "opt.image": ("image to run in", "镜像"),
    "opt.replicas": ("how many copies, started together or not at all", "副本数，要么全部启动，要么都不启动"),
    "opt.env": (
        "environment variable K=V (K alone: as it is here); repeatable",
        "环境变量 K=V（只写 K：取当前值）；可重复",
    ),
    "opt.workdir": ("ship this folder with the job (see .yardignore)", "随任务上传此目录（见 .yardignore）"),
    "opt.group": ("group whose quota it uses", "使用哪个组的配额"),
    "opt.priority": (
        "1 to 1000, larger first, or a class such as low, normal, high, urgent",
        "1 到 1000，越大越先；或等级名，如 low、normal、high、urgent",
    ),
    "opt.model": (
        "model of card that will do, as A100; repeatable: any of them",
        "可用的卡型号，如 A100；可重复，任一即可",
    ),
    "opt.node": ("only on this machine; repeatable: any of them", "只在这台机器上运行；可重复，任一即可"),
    "opt.label": (
        "only on machines with this label; repeatable: all of them",
        "只在带此标签的机器上运行；可重复，须全部满足",
    ),
    "opt.together": (
        "replicas: any (the default), one_node, or spread (each on its own machine)",
        "副本的分布：any（默认）、one_node（同一台机器）或 spread（每台一个）",
    ),
    "opt.checkpoint": (
        "folder where the job saves its work, relative to its home",
        "任务保存进度的目录，相对于其主目录",
    ),
    "opt.max_time": ("end it after this long, as 30m or 2h", "最长运行时间，如 30m 或 2h"),
    "opt.grace": (
        "time to save and end by itself when it is stopped, as 30s",
        "被要求停止时，留给它保存和自行结束的时间，如 30s",
    ),
    "opt.retries": ("try again this often when it fails", "失败后重试次数"),
    "opt.preemptible": ("may be put back in the queue for more urgent work", "可被更紧急的任务抢占"),
    "opt.run_detach": ("print the id and leave", "打印编号后立即返回"),
    "opt.follow": ("go on until the end", "持续显示直到结束"),
    "opt.tail": ("only the last N lines", "只显示最后 N 行"),
    "opt.replica": ("which replica, as worker-0", "哪个副本，如 worker-0"),
    "opt.attempt": ("which attempt (the newest if left out)", "第几次尝试（默认为最新）"),
    "opt.state": ("only in this state; repeatable", "只显示此状态；可重复"),
    "opt.owner": ("only of this user", "只显示此用户的"),
    "opt.in_group": ("only of this group", "只显示此组的"),
    "opt.mine": ("only your own", "只显示自己的"),
    "opt.limit": ("at most so many", "最多显示条数"),
    "opt.rerun_set": (
        "change a key of the job, as cards=4 or env.LR=0.1; repeatable",
        "修改任务的键，如 cards=4 或 env.LR=0.1；可重复",
    ),
    "opt.once": ("show once and end", "只显示一次"),
    "opt.password": ("password (better: --password-stdin)", "密码（建议用 --password-stdin）"),
    "password": ("Change your own password.", "修改自己的密码。"),
    "opt.passwords_stdin": (
        "read the old and the new password from standard input, a line each (on the server's own machine the new one "
        "alone will do)",
        "从标准输入读取旧密码和新密码，各占一行（在服务器本机上只需新密码）",
    ),
    "opt.password_stdin": ("read the password from standard input", "从标准输入读取密码"),
    "opt.user_group": ("group it belongs to", "所属组"),
    "opt.role": ("admin, lead or member", "admin、lead 或 member"),
    "opt.quota": (
        "most in use at a time, as nvidia=8,cpu=64 (none takes a limit away)",
        "同时使用上限，如 nvidia=8,cpu=64（none 表示取消）",
    ),
    "opt.active": ("let the user in, or lock it out", "启用或停用该用户"),
    "opt.add": ("add a member, as NAME or NAME:lead; repeatable", "添加成员，如 NAME 或 NAME:lead；可重复"),
    "opt.remove": ("remove a member; repeatable", "移除成员；可重复"),
    "opt.scope": ("what it may do: read, write or admin", "权限：read、write 或 admin"),
    "opt.days": ("days until it ends", "有效天数"),
    "opt.for_user": ("of another user (admins)", "其他用户的（管理员）"),
    "opt.login_name": ("user name", "用户名"),
    "opt.server_user": (
        "whose process the server is, if it runs on this machine, without TLS, and neither as root nor as you",
        "服务在本机运行、未用 TLS，且既不属于 root 也不属于你时，服务进程所属的用户",
    ),
    "opt.force": ("replace what is there", "覆盖已有数据"),
}
