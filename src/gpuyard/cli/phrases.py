"""The command's own phrases, in English and Chinese. The server's words come from the server in the same language."""

from __future__ import annotations

import os

from gpuyard.cli.counted import Counted
from gpuyard.cli.doctor_phrases import CONTAINERS
from gpuyard.cli.env_phrases import ENV
from gpuyard.cli.file_phrases import FILES
from gpuyard.cli.fragment_phrases import FRAGMENTS
from gpuyard.cli.gateway_phrases import GATEWAY
from gpuyard.cli.help_phrases import HELP
from gpuyard.cli.ledger_phrases import LEDGER
from gpuyard.cli.policy_phrases import POLICY
from gpuyard.cli.replay_phrases import REPLAY
from gpuyard.cli.toolbox_phrases import TOOLBOX
from gpuyard.sdk.finding import choose_language

LANGUAGE = choose_language(os.environ)

_TABLE: dict[str, tuple[str, str]] = {
    **POLICY,
    **REPLAY,
    **LEDGER,
    **FILES,
    **FRAGMENTS,
    **ENV,
    **TOOLBOX,
    **CONTAINERS,
    **GATEWAY,
    # Watching a job
    "run.submitted": ("{id} submitted", "{id} 已提交"),
    "run.state": ("{id} is {state}", "{id} 状态：{state}"),
    "run.state_because": ("{id} is {state}: {reason}", "{id} 状态：{state}：{reason}"),
    "run.attempt": ("{id} begins attempt {number}", "{id} 开始第 {number} 次尝试"),
    "run.first_replicas": (
        "showing the first {shown} of {all} replicas; the others: yard logs {id} --replica NAME",
        "仅显示前 {shown} 个副本（共 {all} 个）；其他副本：yard logs {id} --replica 名称",
    ),
    "run.succeeded": ("{id} succeeded after {time}", "{id} 成功，用时 {time}"),
    "run.failed": ("{id} failed: {reason}", "{id} 失败：{reason}"),
    "run.failed_again": (
        "{id} failed (attempt {number}, no retries left): {reason}",
        "{id} 失败（第 {number} 次尝试，已无重试机会）：{reason}",
    ),
    "run.see_log": ("its log: {command}", "查看日志：{command}"),
    "run.warning": ("warning: {text}", "注意：{text}"),
    "run.given_up": (
        "{id} is stopped: waiting would not help",
        "{id} 已停止：继续等待也不会启动",
    ),
    "run.stopped": ("{id} was stopped: {reason}", "{id} 已停止：{reason}"),
    "run.ask": (
        "\n{id} is {state}. [s]top it, [d]etach and leave it, or [c]ontinue watching? ",
        "\n{id} 状态：{state}。[s] 停止，[d] 离开并让它继续，[c] 继续查看？",
    ),
    "run.not_understood": ("“{answer}” is none of s, d, c", "“{answer}” 不是 s、d、c 之一"),
    "run.ended_meanwhile": ("\n{id} has ended meanwhile", "\n{id} 已经结束"),
    "run.taken": (
        "{id} submitted. See it: yard logs -f {id}   Stop it: yard stop {id}",
        "{id} 已提交。查看：yard logs -f {id}   停止：yard stop {id}",
    ),
    "run.detached": (
        "{id} goes on. See it: yard logs -f {id}   Stop it: yard stop {id}",
        "{id} 仍在继续。查看：yard logs -f {id}   停止：yard stop {id}",
    ),
    "run.shipping": ("shipping {path}: {sent} of {size}", "上传 {path}：{sent} / {size}"),
    "run.no_log": ("the log cannot be shown: {problem}", "无法显示日志：{problem}"),
    "logs.not_started": ("{id} has no output yet: {reason}", "{id} 还没有输出：{reason}"),
    "logs.gap": ("[{size} of the log were not kept here]", "[此处有 {size} 日志未保留]"),
    "logs.failed_replica": (
        "{id} has {count} replicas, this is the one that failed: {shown}; choose with --replica: {names}",
        "{id} 有 {count} 个副本，当前显示失败的 {shown}；用 --replica 选择：{names}",
    ),
    "logs.replicas": (
        "{id} has {count} replicas, this is {shown}; choose with --replica: {names}",
        "{id} 有 {count} 个副本，当前显示 {shown}；用 --replica 选择：{names}",
    ),
    "wait.server": ("{problem}; trying again …", "{problem}；正在重试……"),
    # Short confirmations
    "import.from": (
        "from {file}, {dialect}; what is not used here is named below",
        "来自 {file}（{dialect}）；在这里不起作用的内容列在下面",
    ),
    "import.several": (
        "{count} jobs: a job file holds one, so save each of them by itself before submitting it",
        "共 {count} 个任务：一个任务文件只含一个任务，请分别保存后再提交",
    ),
    "dialect.native": ("a job file of gpuyard", "gpuyard 自己的任务文件"),
    "dialect.dlc": ("a params file of dlc", "dlc 的参数文件"),
    "dialect.volcano": ("a job of Volcano (vcctl)", "Volcano（vcctl）的作业"),
    "done.rm": (
        "{job} is off the lists; `yard ls --all` still shows it",
        "{job} 已从列表中移除；`yard ls --all` 仍可看到",
    ),
    "done.stop": ("{job} is asked to stop", "已请求停止 {job}"),
    "done.pause": (
        "{id} is asked to pause; resume it with: yard resume {id}",
        "已请求暂停 {id}；恢复：yard resume {id}",
    ),
    "done.resume": ("{id} goes on: back in the queue", "{id} 已恢复，重新排队"),
    "done.priority": ("{id} has priority {priority} now", "{id} 的优先级现在是 {priority}"),
    "done.cordon": ("{node} gets no new work", "{node} 不再接收新任务"),
    "done.label": ("labels of {node}: {labels}", "{node} 的标签：{labels}"),
    "done.no_labels": ("{node} has no labels now", "{node} 现在没有标签"),
    "done.uncordon": ("{node} takes work again", "{node} 重新接收任务"),
    "done.created": ("{name} is created", "已创建 {name}"),
    "done.changed": ("{name} is changed", "已修改 {name}"),
    "done.removed": ("{name} is removed", "已删除 {name}"),
    "done.password": ("one-time password, shown once: {password}", "一次性密码（只显示一次）：{password}"),
    "done.token": ("keep it safe, it is not shown again; id {id}", "请妥善保存，之后不再显示；编号 {id}"),
    "done.backup": ("{file}: {size}", "{file}：{size}"),
    "done.restore": ("restored from {file}; start the server with: yard up", "已从 {file} 恢复；启动服务：yard up"),
    "ls.none": ("nothing yet. Start something: yard run -- echo hello", "还没有任务。试试：yard run -- echo hello"),
    "short.never": ("can never start: see yard why", "永远无法启动，见 yard why"),
    "short.waiting.busy": ("waits for running work", "等正在运行的任务结束"),
    "short.waiting.clearing": ("room is being made for it", "正在为它腾位置"),
    "short.waiting.moving": ("others move for it", "正在为它移动别的任务"),
    "short.waiting.over_quota": ("waits for quota", "等配额"),
    "short.waiting.borrow": ("waits for quota", "等配额"),
    "short.waiting.order": ("waits its turn", "在排队"),
    "short.waiting.fifo": ("waits its turn", "在排队"),
    "short.waiting.back_off": ("failed; is tried again", "失败后等待重试"),
    "short.waiting.card_held": ("waits: a card is still held", "等卡被释放"),
    "short.waiting.no_nodes": ("waits: no machine available", "等机器恢复"),
    "short.waiting.broken_input": ("cannot be placed: broken input", "内容有问题，无法安排"),
    "short.story.requeued": ("made room; back in the queue", "已让位，回到队列"),
    "short.story.preempted": ("makes room for another", "正在让位"),
    "short.story.moves": ("moves to other cards", "正在换到别的卡上"),
    "short.story.retry": ("failed; is tried again", "失败后等待重试"),
    "ls.more": ("the newest {count}; more with --limit", "仅显示最新 {count} 条；用 --limit 查看更多"),
    "why.state": ("{who} is {state}: {reason}", "{who} 状态：{state}。{reason}"),
    "why.waits": ("{who} is queued. {sort}.", "{who} 正在等待：{sort}。"),
    "why.more": ("{count} more: yard why -o json", "另有 {count} 条：yard why -o json"),
    "why.first": ("Queue: nobody is before it.", "队列：前面没有别的任务。"),
    "why.behind": ("Queue: {count} before it. Closest:", "队列：前面有 {count} 个，最近的是："),
    "why.ahead": ("{who} (group {group}): {rule}", "{who}（{group} 组）：{rule}"),
    "why.start": ("Start: {when}", "预计启动：{when}"),
    "why.end": ("End: {when}", "预计结束：{when}"),
    "expected.start.short": ("starts ~{middle} (by {late})", "约 {middle} 启动（一般不晚于 {late}）"),
    "expected.end.short": ("ends ~{middle} (by {late})", "约 {middle} 结束（一般不晚于 {late}）"),
    "expected.unknown": ("unknown", "未知"),
    "expected.start.soon": ("starts any moment", "随时可能启动"),
    "expected.end.soon": ("ends any moment", "随时可能结束"),
    "expected.any_moment": ("at any moment", "随时"),
    "expected.words": (
        "about {middle} (in {away}); nine times out of ten by {late}",
        "约 {middle}（{away} 后），九成可能不晚于 {late}",
    ),
    "expected.rough": ("(only a rough sum: much is before it)", "（前面任务很多，仅为粗略估算）"),
    "why.remedies": ("What would start it now:", "这样改可以马上启动："),
    "why.before": ("{first} comes before {other}:", "{first} 先于 {other}："),
    "why.reversed": (
        "It is the other way round: {first} is the one that comes first.",
        "情况相反：先的是 {first}。",
    ),
    "preview.starts": ("it would start now on {nodes}", "现在提交会立即在 {nodes} 上启动"),
    "preview.waits": ("it would wait: {reason}", "现在提交会等待：{reason}"),
    "preview.never": ("it can never start as it is: {reason}", "按现在的要求永远无法启动：{reason}"),
    "never.words": ("never start", "永远无法启动"),
    "simulated.note": ("* simulated", "* 模拟"),
    "retry.exit": ("exit", "出错退出"),
    "retry.oom": ("oom", "内存不足"),
    "retry.lost": ("lost", "失联"),
    "retry.launch": ("launch", "启动失败"),
    "retry.time": ("time", "超时"),
    "show.fair_share": ("{amount} (its fair share)", "{amount}（公平份额）"),
    "show.step": ("(step {step})", "（第 {step} 步）"),
    "show.will_share": ("a fair share of the machine", "机器的公平份额"),
    "top.quit": ("q quits", "按 q 退出"),
    "preview.position": ("{count} before it in the queue", "队列中前面有 {count} 个"),
    "quota.none": ("no quotas are set", "没有设置配额"),
    "none": ("none", "无"),
    # Login
    "login.name": ("Name", "用户名"),
    "login.password": ("Password", "密码"),
    "login.must_change": ("The password must be changed now.", "必须先修改密码。"),
    "login.old_password": ("Old password", "旧密码"),
    "done.own_password": (
        "the password is changed; other logins and tokens of yours have ended",
        "密码已修改；你的其他登录和令牌均已失效",
    ),
    "login.two_lines": (
        "two lines are needed: the old password, then the new one",
        "需要两行：先是旧密码，再是新密码",
    ),
    "login.no_terminal": (
        "there is no terminal to type a password on; give it with --password-stdin",
        "没有终端可供输入密码；请用 --password-stdin",
    ),
    "login.new_password": ("New password", "新密码"),
    "login.again": ("New password again", "再次输入新密码"),
    "login.differ": ("the two new passwords differ", "两次输入的新密码不一致"),
    "login.done": ("logged in at {url} as {name}; saved in {file}", "已登录 {url}，用户 {name}；保存于 {file}"),
    "login.none": ("not logged in", "未登录"),
    "logout.done": ("logged out of {url}", "已退出 {url}"),
    "logout.kept": (
        "the login is forgotten here, but the server could not take the token back: {problem}",
        "本地登录已删除，但服务器未能吊销令牌：{problem}",
    ),
    "whoami.line": ("{name} ({role}) at {url}", "{name}（{role}）{url}"),
    "whoami.by.token": ("a token", "令牌"),
    "whoami.by.session": ("a password", "密码"),
    "whoami.by.owner": ("owning the data folder", "数据目录所有者"),
    "whoami.may.read": ("look at things, change nothing (read)", "只能查看（read）"),
    "whoami.may.write": ("look, and start and steer work (write)", "查看、提交和控制任务（write）"),
    "whoami.may.admin": ("all that {name} may ({role})", "{name} 的全部权限（{role}）"),
    # Server
    "up.ready": ("gpuyard is ready at {url}", "gpuyard 已就绪：{url}"),
    "up.first": (
        "First start. Here you need no login; from elsewhere, `yard login` as admin with this one-time password, "
        "shown once: {password}",
        "首次启动。在本机无需登录；在别处请用 `yard login` 以 admin 和以下一次性密码登录（只显示一次）：{password}",
    ),
    "up.failed": ("the server did not start; the end of {log}:", "服务未能启动；{log} 末尾："),
    "up.slow": (
        "the server has not answered within {seconds} s; see {log}",
        "服务在 {seconds} 秒内没有响应；请查看 {log}",
    ),
    "up.stop_with": ("stop it with: yard down", "停止：yard down"),
    "up.already": (
        "a server (process {pid}) already runs on {data}, at {url}. Use it, stop it with `yard down`, or choose "
        "another folder with --data",
        "已有服务（进程 {pid}）在 {data} 上运行，地址 {url}。请直接使用，或用 `yard down` 停止，或用 --data 另选目录",
    ),
    "up.foreground": (
        "Ctrl-C stops the server (running jobs go on); `yard up --detach` leaves it in the background",
        "按 Ctrl-C 停止服务（运行中的任务会继续）；`yard up --detach` 让它在后台运行",
    ),
    "up.no_server_part": (
        'the server part is not installed; in a clone of the repository: pip install ".[server]" ({detail})',
        '未安装服务端；请在仓库目录中执行：pip install ".[server]"（{detail}）',
    ),
    "up.tls_pair": ("--tls-cert and --tls-key go together", "--tls-cert 与 --tls-key 必须同时给出"),
    "usage.label": (
        "{text} is neither KEY=VALUE (set a label) nor KEY- (take it away)",
        "{text} 既不是 KEY=VALUE（设置标签），也不是 KEY-（去掉标签）",
    ),
    "usage.pair": ("{pair}: expected {form}", "{pair}：应写成 {form}"),
    "usage.not_set": ("{name} is not set here; write {name}=VALUE", "当前环境没有设置 {name}；请写成 {name}=值"),
    "usage.no_change": ("say what to change: {options}", "请指定要修改的内容：{options}"),
    "usage.which_group": (
        "{name} is in these groups: {groups}; say which with --group",
        "{name} 所属的组：{groups}；请用 --group 指定",
    ),
    "done.key": ("{name} is added: {fingerprint}", "已添加 {name}：{fingerprint}"),
    "key.no_file": (
        "there is no public key in {folder}; make one with: ssh-keygen -t ed25519",
        "{folder} 中没有公钥；生成一个：ssh-keygen -t ed25519",
    ),
    "key.private": (
        "{file} is a private key; it stays with you and was not sent. Give {file}.pub",
        "{file} 是私钥，只能由你自己保管，没有发送。请给出 {file}.pub",
    ),
    "key.several": (
        "several of your keys are named {name}; say which by its id: {ids}",
        "你有多个名为 {name} 的公钥；请用编号指定：{ids}",
    ),
    "token.none": ("there is no token {id} among yours", "你没有令牌 {id}"),
    "token.several": (
        "several of your tokens are named {name}; say which by its id: {ids}",
        "你有多个名为 {name} 的令牌；请用编号指定：{ids}",
    ),
    "down.none": ("no server runs on {data}", "{data} 上没有运行中的服务"),
    "down.not_ours": (
        "process {pid}, named in {data}, is not this server; nothing was stopped",
        "{data} 中记录的进程 {pid} 不是本服务；未停止任何进程",
    ),
    "down.done": (
        "the server is stopped; start it again with `make run`, or `yard up --detach` and the options it had",
        "服务已停止；再次启动：`make run`，或 `yard up --detach` 加上原来的选项",
    ),
    "down.goes_on": (
        "what runs goes on (jobs and dev environments: {count}); the next `yard up` finds it again",
        "运行中的任务和开发环境（{count} 个）会继续；下次 `yard up` 会重新接管",
    ),
    "down.stuck": ("process {pid} has not ended after {seconds} s", "进程 {pid} 在 {seconds} 秒后仍未结束"),
    "restore.running": (
        "a server runs on {data}; stop it first: yard down",
        "{data} 上有服务在运行；请先停止：yard down",
    ),
    "restore.no_file": ("{file} cannot be read: {problem}", "无法读取 {file}：{problem}"),
    # Doctor
    "doctor.server": ("the server at {url} answers in {took} ms", "服务 {url} 有响应，{took} 毫秒"),
    "doctor.version": ("client and server are both {server}", "客户端与服务器版本均为 {server}"),
    "doctor.version_differs": (
        "this client is {client}, the server is {server}",
        "客户端 {client}，服务器 {server}，版本不同",
    ),
    "doctor.clock": ("the clocks agree", "时钟一致"),
    "doctor.clock_off": (
        "the clocks are {seconds} s apart; set the time by NTP",
        "时钟相差 {seconds} 秒；请用 NTP 校时",
    ),
    "doctor.login": ("you are {name} there", "当前身份：{name}"),
    "doctor.cards": ("{count:card|cards} found: {kinds}", "发现 {count} 张卡：{kinds}"),
    "doctor.no_cards": ("no cards were found: only CPU work can run", "未发现卡：只能运行 CPU 任务"),
    "doctor.data": ("the data folder {data} is private", "数据目录 {data} 权限正确"),
    "doctor.data_open": ("{path} can be read by others: chmod go-rw it", "{path} 可被他人读取：请 chmod go-rw"),
    "doctor.disk": ("{free} of disk are free", "磁盘剩余 {free}"),
    "doctor.holes": ("the middle of long logs can be given back to the disk", "长日志的中段可以释放"),
    "doctor.no_holes": (
        "the file system cannot punch holes: long logs keep all their disk",
        "文件系统不支持打洞：长日志会占用全部空间",
    ),
    "doctor.cgroups": ("cgroups {kind} keep the limits of jobs", "cgroup {kind} 可限制任务资源"),
    "doctor.no_cgroups": (
        "there are no cgroups: memory and process limits cannot be kept",
        "没有 cgroup：无法限制内存与进程数",
    ),
    "doctor.foreign_cgroups": (
        "cgroups {kind} are not yours to use: limits are not kept",
        "无权使用 cgroup {kind}：资源限制不生效",
    ),
    "doctor.open_devices": ("the server sees whoever holds a card", "服务能看到是谁占用了卡"),
    "doctor.own_open_devices": (
        "not as root, the server sees only what this user's ordinary processes hold: a card that another user's "
        "process, or one that hides, has open is given out all the same",
        "服务不以 root 运行，只能看到本用户普通进程占用的卡：被其他用户的进程或隐藏的进程打开的卡仍会被分配",
    ),
    "doctor.database": ("the database is sound; a backup takes {size}", "数据库完好；备份大小 {size}"),
    "doctor.database_broken": (
        "the database cannot be read whole: {problem}; bring a backup back: yard restore FILE --force",
        "数据库无法完整读取：{problem}；请恢复备份：yard restore FILE --force",
    ),
    # Errors
    "error.line": ("yard: {message}", "yard：{message}"),
    "error.bug": (
        "something unexpected happened: {problem}. YARD_DEBUG=1 shows where",
        "发生了意外错误：{problem}。设置 YARD_DEBUG=1 可查看详情",
    ),
    "error.next.login": ("log in with: yard login URL", "登录：yard login URL"),
    "error.next.ls": ("see what there is with: yard ls", "查看现有任务：yard ls"),
    "error.next.up": (
        "start one here: yard up --detach    or use one elsewhere: yard login URL",
        "在本机启动：yard up --detach    或使用别处的服务：yard login URL",
    ),
    "error.next.trust": (
        "name the file with its certificate, or with its authority's: YARD_CA_FILE=FILE",
        "请指定其证书或签发机构证书文件：YARD_CA_FILE=文件",
    ),
    "error.next.stranger": (
        "if the server does run as that user: YARD_SERVER_USER=USER, or `yard login URL --server-user USER`; "
        "if not, start it with `yard up`, which frees its port from jobs",
        "若服务确实以该用户运行：YARD_SERVER_USER=用户，或 `yard login URL --server-user 用户`；"
        "否则用 `yard up` 启动服务，它会收回被任务占用的端口",
    ),
    "error.next.doctor": ("look into it with: yard doctor", "检查问题：yard doctor"),
    "error.next.insecure": (
        "use https, or --insecure-http if the network is trusted",
        "请使用 https；若网络可信，可加 --insecure-http",
    ),
    "client.no_server": ("no server runs on the data folder {data}", "数据目录 {data} 上没有运行中的服务"),
    "client.unreachable": ("the server at {url} does not answer: {detail}", "服务 {url} 没有响应：{detail}"),
    "client.stranger": (
        "port {port} of this machine is served by {user}, not by the gpuyard server; nothing was sent there",
        "本机端口 {port} 由 {user} 占用，不是 gpuyard 服务；没有向其发送任何内容",
    ),
    "client.no_such_user": ("there is no user {user} on this machine", "本机没有用户 {user}"),
    "client.untrusted": ("the certificate of {url} is not trusted: {detail}", "不信任 {url} 的证书：{detail}"),
    "client.not_owner": ("the data folder {data} belongs to someone else", "数据目录 {data} 属于其他人"),
    "client.bad_url": ("not an address of a server: {url}", "不是有效的服务地址：{url}"),
    "client.bad_name": ("not a name: “{name}”", "不是有效的名称：“{name}”"),
    "client.bad_token": ("the token has characters no token has", "令牌中有无效字符"),
    "client.bad_ca_file": ("YARD_CA_FILE {file} cannot be read: {detail}", "无法读取 YARD_CA_FILE {file}：{detail}"),
    "client.odd_answer": (
        "the server gave an answer that is not gpuyard's (status {status})",
        "服务器返回了非 gpuyard 的响应（状态码 {status}）",
    ),
    "client.insecure_http": (
        "{url} is not encrypted: a password sent there can be read by others on the way",
        "{url} 未加密：密码在传输途中可能被他人读取",
    ),
    "client.workdir_missing": ("{path} is not a folder", "{path} 不是目录"),
    "client.workdir_unreadable": ("cannot read {path}: {detail}", "无法读取 {path}：{detail}"),
    "client.workdir_link_outside": (
        "the link {path} leads out of the folder, to {target}; copy what it points at, or name it in .yardignore",
        "链接 {path} 指向目录之外的 {target}；请复制其内容，或写入 .yardignore",
    ),
    "client.workdir_too_large": (
        "{path} is too large to ship: {size} or more in {entries:entry|entries}, the limit is {limit}. Biggest: "
        "{biggest}. Name what is not needed in .yardignore",
        "{path} 太大，无法上传：{entries} 项共 {size} 以上，上限 {limit}。最大的：{biggest}。"
        "请把不需要的写入 .yardignore",
    ),
}


def say(key: str, **facts: object) -> str:
    """The phrase in the chosen language, with its facts filled in and its words bent by their number."""
    english, chinese = _TABLE.get(key) or HELP[key]
    phrase = chinese if LANGUAGE == "zh" else english
    return phrase.format(**{name: Counted(value) for name, value in facts.items()})


def knows(key: str) -> bool:
    return key in _TABLE
