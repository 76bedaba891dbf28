"""中文：哪里出了问题、在什么位置、接下来怎么办，写给没用过调度系统的人看。"""

from __future__ import annotations

from collections.abc import Mapping

from gpuyard.domain.problems import Problem
from gpuyard.domain.reasons import Code
from gpuyard.domain.workload import State
from gpuyard.words import zh_queue as queue
from gpuyard.words.facts import in_rough
from gpuyard.words.language import Facts, Language, Template
from gpuyard.words.policy_zh import POLICY_NOUNS, POLICY_PROBLEMS, POLICY_SENTENCES
from gpuyard.words.ssh_zh import SSH_NOUNS, SSH_PROBLEMS, SSH_SENTENCES
from gpuyard.words.zh_asides import ASIDES
from gpuyard.words.zh_cards import CARDS
from gpuyard.words.zh_doors import DOOR_NOUNS, DOORS
from gpuyard.words.zh_images import IMAGE_NOUNS, IMAGES
from gpuyard.words.zh_inside import INSIDE, INSIDE_NOUNS
from gpuyard.words.zh_workplaces import WORKPLACES


def _exit_code(facts: Facts) -> str:
    if facts.get("exit_code") in (126, 127):
        return (
            "命令没能运行起来[（{replica}）]：退出码 {exit_code} 表示找不到这个命令，或者它没有执行权限。"
            "请检查拼写、路径和镜像。"
        )
    return "命令[（{replica}）]以退出码 {exit_code} 结束，原因一般在日志的最后几行。"


def _pull_failed(facts: Facts) -> str:
    why = {
        "denied": "镜像仓库拒绝访问。请让管理员登录该仓库，或换一个镜像",
        "not_found": "镜像仓库里没有这个镜像。请检查名称和标签",
        "unreachable": "连不上镜像仓库。用 `yard image ls` 查看本机已有的镜像",
        "disk_full": "机器磁盘已满",
    }
    said = why.get(str(facts.get("why")), "出了问题")
    return "镜像 {image} 没能拉取[（{replica}）]：" + said + "[（{detail}）]。"


def _too_large(facts: Facts) -> str:
    if facts.get("what") == "password":
        return "密码太长：共 {size} 个字符，最多 {limit} 个。"
    return "{what:noun}太大[：{size:memory}，最多 {limit:memory}]。请缩小后再试。"


def _not_allowed(facts: Facts) -> str:
    if facts.get("whom") == "token":
        return "这个令牌的权限不够[：{action:noun}]。请换用权限更大的令牌，或用密码登录。"
    whom = "管理员" if facts.get("whom") == "admin" else "组长或管理员"
    return f"你没有权限[：{{action:noun}}]。请联系{whom}。"


def _not_found(facts: Facts) -> str:
    what, there = facts.get("what"), facts.get("there")
    if what == "attempt" and isinstance(there, int):
        if there == 0:
            return "没有第 {name} 次运行：它还没有启动过。"
        has = "只运行过 1 次" if there == 1 else "它有第 1 次到第 {there} 次运行"
        return f"没有第 {{name}} 次运行，{has}。"
    if what == "replica" and isinstance(there, list) and there:
        return "没有副本 `{name}`，它的副本是：{there:list}。"
    if what == "workload" and isinstance(there, list) and there:
        return "你没有叫 `{name}` 的{what:noun}；别人的同名任务有：{there:list}。请改用 id。"
    return "找不到{what:noun}[ `{name}`]，或者你无权查看。"


def _wrong_state(facts: Facts) -> str:
    who = "{name}（{id}）" if facts.get("name") and facts.get("id") else "它"
    if facts.get("action") == "instead":
        return f"{who}现在的状态是“{{state:noun}}”，而 `--instead` 只能用于排队中的任务。去掉它就会另外提交一个。"
    if facts.get("state") not in ("succeeded", "failed", "stopped"):
        return f"{who}现在的状态是“{{state:noun}}”，不能这样操作[：{{action:noun}}]。"
    if facts.get("action") == "stop":
        return f"{who}已经结束（{{state:noun}}），不需要再停止。"
    again = "[用 `yard rerun {id}` 可以再运行一次。]"
    return f"{who}已经结束（{{state:noun}}），不能这样操作[：{{action:noun}}]。{again}"


def _already_there(facts: Facts) -> str:
    if facts.get("what") == "database":
        return "数据库[ {name} ]里已有数据。请换一个空的，或加上 `--force` 覆盖。"
    if facts.get("what") == "key":
        return "这个 SSH 公钥[（{name}）]已经登记过了。"
    return "已经有同名的{what:noun}[ `{name}`]，请换一个名字。"


def _missing_key(facts: Facts) -> str:
    if facts.get("key") == "image":
        return (
            "[{at:where}：]缺少 `{key}`：这里的任务在容器镜像中运行。请用 `--image` 指定，或在任务文件中写 `image:`；"
            "`yard image ls` 列出已有的镜像。"
        )
    return "[{at:where}：]缺少 `{key}`，请补上。"


SENTENCES: Mapping[Code, Template] = {
    **POLICY_SENTENCES,
    **SSH_SENTENCES,
    **INSIDE,
    **queue.QUEUE,
    **WORKPLACES,
    **DOORS,
    **CARDS,
    **IMAGES,
    Code.BROKEN_INPUT: "任务内容有问题，无法安排：{problem:problem}[（{detail}）]。请停掉它，改正后重新提交。",
    Code.SUBMITTED: "已提交[（{by}）]。",
    Code.REPLACED: "已由 {job} 代替，它的位置由对方继承[（由 {by} 操作）]。",
    Code.TAKES_PLACE: "代替 {job}，继承它在队列中的位置。",
    Code.PLACED: "已分到位置[：{nodes:list}][，已有镜像 {images:list}][，第 {attempt} 次运行]，即将启动。",
    Code.STARTING: "正在启动[（第 {attempt} 次运行）]。",
    Code.RUNNING: "正在运行[（第 {attempt} 次运行）]。",
    Code.STOP_ASKED: "正在停止[，由 {by} 发起]。",
    Code.PAUSE_ASKED: "正在暂停[，由 {by} 发起]，排队位置会保留。",
    Code.RESUMED: "已恢复排队[，由 {by} 发起]，位置与原来相同。",
    Code.RETRY: (
        "运行失败，[{seconds:seconds}后]自动重试[：第 {number} 次][，最多 {limit} 次]。[这次的情况：{cause:reason}]"
    ),
    Code.SAVED_IN_TIME: "它在让位时保存了工作[（第 {step} 步）]：最多只需重做 {lost_seconds:rough}的工作。",
    Code.ADOPTED: "服务重启过，任务没有受影响，继续运行[（第 {attempt} 次运行）]。",
    Code.CARDS_SIMULATED: "这 {cards} 张卡是模拟的，不会真正计算。",
    Code.SUCCEEDED: "运行成功。",
    Code.ROLE_COMPLETED: "`{role}` 已全部运行成功，整个任务随之完成，其余部分停止。",
    Code.STOPPED: "已停止[（由 {by} 发起）]。",
    Code.PAUSED: "已暂停[（由 {by} 发起）]。用 `yard resume` 可以回到队列中原来的位置。",
    Code.EXIT_CODE: _exit_code,
    Code.SIGNALLED: "命令[（{replica}）]被信号 {signal} 终止。",
    Code.OUT_OF_MEMORY: (
        "内存不够：[{replica} ]用量超过了申请的内存[（{memory:memory}）]，已被终止。"
        "请加大 `memory`，或者减少用量（更小的 batch、更少的数据加载进程）。"
    ),
    Code.TIME_UP: "已到最长运行时间[（{seconds:seconds}）]。如果需要更久，请调大 `max_time`。",
    Code.SUPERVISOR_LOST: "看护进程[（{replica}）]被杀，任务随之结束。这不是任务本身的问题。",
    Code.NODE_LOST: "机器[ {node} ]失去联系[，{replica} 当时在上面运行]。这不是任务本身的问题。",
    Code.REBOOTED: "机器[ {node} ]重启过[，{replica} 当时在上面运行]。这不是任务本身的问题。",
    Code.PORT_TAKEN: "没有启动[（{replica}）]：它要监听的端口 {port} 在机器上已被占用。请在 `ports` 中换一个。",
    Code.LAUNCH_FAILED: "没能启动[（{replica}）][：{detail}]。",
    Code.PULLING: "正在拉取镜像 {image}[（{replica}）]。",
    Code.PULL_FAILED: _pull_failed,
    Code.SIBLING_ENDED: "同一任务的另一部分[（{replica}）]失败，所以一起结束。",
    Code.BAD_VALUE: "[{at:where}：][`{value}` 不行，]{problem:problem}。",
    Code.UNKNOWN_KEY: "[{at:where}：]没有 `{key}` 这个字段[，是不是想写 `{nearest}`？][，可用的有：{known:list}]",
    Code.MISSING_KEY: _missing_key,
    Code.BAD_YAML: "[{at:where}：]{problem:problem}。",
    Code.TOO_LARGE: _too_large,
    Code.NOT_FOUND: _not_found,
    Code.AMBIGUOUS: "`{name}` 对应不止一个[：{matches:list}]。请把 id 写得更完整。",
    Code.ALREADY_THERE: _already_there,
    Code.NOT_ALLOWED: _not_allowed,
    Code.OWNERS_ALONE: (
        "只有环境的所有者[ {owner} ]可以修改这些项[：{keys:list}]，因为改动会以所有者的身份运行。"
        "其他人可以修改它申请的资源和位置、优先级、停止时间，以及是否运行。"
    ),
    Code.OWNERS_BELONGINGS: (
        "这个任务带有环境变量或上传的目录，它们属于任务所有者[（{owner}）]。请让所有者重新运行，"
        "或向所有者索取任务文件。"
    ),
    Code.OWNER_LEFT_GROUP: (
        "所有者[ {owner} ]已不在用户组[ {group} ]中，因此不能在该组启动。请管理员将其重新加入，"
        "或在其他组中重新运行：`yard rerun[ {name}] --set group=...`。"
    ),
    Code.LOGIN_NEEDED: "请先登录：`yard login URL`，或设置 YARD_TOKEN。",
    Code.COOKIE_ALONE: "只有 Cookie 不算登录。请刷新页面并重新登录；程序请使用令牌。",
    Code.WRONG_PASSWORD: "用户名或密码不对。",
    Code.PASSWORD_CHANGE_NEEDED: (
        "还在使用一次性密码，请先改成自己的密码：`yard password`；尚未登录时用 `yard login URL`。"
    ),
    Code.WEAK_PASSWORD: "密码太容易猜到。[至少 {least} 个字符，]不要用自己的名字，也不要用常见密码。",
    Code.SAME_PASSWORD: "新密码与现在的密码相同，请换一个。",
    Code.TOO_MANY_TRIES: "尝试次数太多，请[等 {seconds:seconds}]稍后再试。",
    Code.TOO_MANY_LIVE: "你未结束的任务太多了[（最多 {limit} 个）]。请等一些任务结束，或停掉一些。",
    Code.BAD_CSRF: "发出这个请求的页面不在服务器自己的地址上。请用服务器自己的地址打开控制台，然后重试。",
    Code.WRONG_STATE: _wrong_state,
    Code.IN_USE: "{what:noun}[ {name} ]正在被使用[（{by}）]。",
    Code.NO_NUMBERS: "每个用户和每个组都有自己的系统编号，{limit} 个已全部用完。",
    Code.SINGLE_USER: (
        "这个服务不是以 root 启动的，所有任务都会用同一个系统用户运行，所以只能有一个用户。需要多个用户请以 root 启动。"
    ),
    Code.ENGINE_CANNOT: "{engine} 引擎做不到[：{what:noun}]。",
    Code.BUSY_STORE: "数据库繁忙[，等了 {seconds:seconds}仍未成功]。没有做任何改动，请稍后再试。",
    Code.STORE_FULL: "服务器磁盘已满，没有做任何改动。请清理空间，或联系管理员。",
    Code.STORE_CORRUPT: "数据库[ {path} ]已损坏[（{detail}）]，没有做任何改动。请恢复最近的备份[：`{command}`]。",
    Code.STORE_NEWER: ("数据库是更新版本的 gpuyard 写的[（数据结构 {found}，当前版本只认识 {known}）]。请安装新版本。"),
    Code.NO_JOURNAL: (
        "这里没有保存调度日志：settings.toml 中 `journal_megabytes` 为 0。请设置后重启服务；之前的决定无法查看。"
    ),
    Code.BAD_BACKUP: "备份[ {path} ]无法使用[：{problem:problem}]。没有做任何改动。",
    Code.GENERATION_MOVED: "{what:noun}刚刚被别人改过，请重新查看后再操作。",
    Code.SAME_KEY_OTHER_JOB: "幂等键[ `{key}` ]已经用在另一个不同的任务上，请换一个新的。",
}

PROBLEMS: Mapping[str, str] = {
    **POLICY_PROBLEMS,
    **SSH_PROBLEMS,
    Problem.YAML_SYNTAX: "YAML 语法有误[（{detail}）]",
    Problem.TAB: "这里有制表符（Tab），YAML 只能用空格缩进",
    Problem.COLON_MISSING: "缺少冒号，请写成 `key: value`",
    Problem.COLON_IN_VALUE: "这里不能出现 `: `，请给值加上引号，或检查上一行是否少了冒号、缩进是否对齐",
    Problem.INDENT: "缩进与上面的行对不齐",
    Problem.UNCLOSED_QUOTE: "引号没有成对",
    Problem.UNCLOSED_BRACKET: "括号没有成对，或者括号里少了逗号",
    Problem.QUOTE_NEEDED: "值不能以[ `{character}` ]开头，请加上引号",
    Problem.ESCAPE: "双引号里没有 `\\{character}` 这种写法，请改用单引号，或写两个反斜杠",
    Problem.TAG: "任务文件里不用标签[（{tag}）]，请去掉",
    Problem.DUPLICATE_KEY: "`{key}` 写了两次[，第一次在第 {first_line} 行]，请只留一个",
    Problem.KEY_NOT_TEXT: "字段名必须是普通的词",
    Problem.SEVERAL_DOCUMENTS: "从这里开始是第二个文档（`---`），只能有一个",
    Problem.EMPTY: "文件是空的，要有 `key: value` 这样的行；任务至少要有 `command: python train.py`",
    Problem.TOP_NOT_MAPPING: "应当是 `key: value` 这样的行，任务例如 `command: python train.py`",
    Problem.NOT_UTF8: "文字不是 UTF-8 编码，请用 UTF-8 保存文件",
    Problem.TOO_DEEP: "嵌套太深[（最多 {limit} 层）]",
    Problem.TOO_MANY_NODES: "内容太多[（最多 {limit} 个值，别名每次引用都计算在内）]",
    Problem.UNKNOWN_ALIAS: "别名[ `*{alias}` ]在前面没有定义；如果是含 `*` 的文字，请加上引号",
    Problem.ALIAS_LOOP: "别名[ `*{alias}` ]引用了自己",
    Problem.JSON_SYNTAX: "JSON 语法有误[（{detail:problem}）]",
    Problem.JSON_NUMBER: "这不是可用的数字",
    Problem.NO_VALUE: "没有写值，请补上，或去掉这个字段",
    Problem.MAPPING: "应当是 `key: value` 形式的内容",
    Problem.LIST: "应当是列表，每项单独一行，以 `- ` 开头",
    Problem.TEXT: "应当是文字；如果是数字或 true/false，请加上引号",
    Problem.BLANK: "不能为空",
    Problem.BOOLEAN: "应当是 true 或 false",
    Problem.WHOLE_NUMBER: "应当是整数[，最小 {least}][，最大 {most}]",
    Problem.ONE_OF: "只能是其中之一：{allowed:list}[（是不是想写 `{nearest}`？）]",
    Problem.TOO_LONG: "太长[（最多 {limit} 字节）]",
    Problem.TOO_MANY: "太多[（最多 {limit} 个）]",
    Problem.REPEATED: "重复了，每个都必须不同",
    Problem.CONTROL_CHARACTER: "含有控制字符[（{character}）]，请去掉",
    Problem.ODD_CHARACTER: "含有[ {character}]，只能用英文字母、数字等普通字符，请重新输入",
    Problem.BYTES: "应当写成 512M、16G 或 1.5T 这样，最大 1024T",
    Problem.TOO_FEW_BYTES: "太小了[（至少 {least:memory}）]；不带单位的数字表示字节，16 GB 请写 16G",
    Problem.CPU: "应当写核数，如 4、0.5 或 500m，最多 10000",
    Problem.CARDS: "应当是整张卡，如 1、8；或一张卡的一部分，如 0.5；不用卡写 0；最多 100000",
    Problem.INSTANT: "应为时间，例如 2026-11-15T08:30Z",
    Problem.IN_FUTURE: "这是将来的时间，还没有数据",
    Problem.IDLE_TOO_SHORT: "这么短没法使用；至少 {least:seconds}，或写 `off`",
    Problem.DURATION: "应当写成 90s、30m、2h30m 或 1d 这样[，最长 {most:seconds}]",
    Problem.WORKPLACE_NAME: "应当是 1 到 27 个字母、数字或下划线",
    Problem.NOT_CHANGED: "这一项不能修改，请另外创建一个",
    Problem.NOT_A_JOB: "它是开发环境：用 `yard env start` 可以再次启动",
    Problem.JOB_NAME: "应当是 1 到 63 个字母、数字、点、短横线或下划线，以字母或数字开头",
    Problem.PERSON_NAME: "应当是 1 到 32 个小写字母、数字、短横线或下划线，以字母开头",
    Problem.ROLE_NAME: "应当是 1 到 16 个小写字母或数字，以字母开头，如 `worker`",
    Problem.FACT_NAME: "应当由字母、数字、`.`、`_` 和 `-` 组成，以字母开头",
    Problem.ENV_NAME: "应当由字母、数字和下划线组成，不能以数字开头，如 `MY_SETTING`",
    Problem.PORT_NAME: "应当是 1 到 31 个小写字母、数字或短横线，以字母开头",
    Problem.COMMAND: "应当是一行命令，或由各个词组成的列表",
    Problem.IMAGE: "应当是 `pytorch/pytorch:2.4` 或 `registry.example.com:5000/team/image@sha256:...` 这样的镜像名",
    Problem.DIGEST: "应当是 SHA-256 摘要：64 个 0-9、a-f 字符",
    Problem.MOUNT_PLACE: "应当是 `/data` 这样的绝对路径，由字母、数字和 `._+@=-` 组成，不含 `..`",
    Problem.MOUNT_RESERVED: "[{place} ]属于系统目录，请挂载到别处，例如 `/data`",
    Problem.MOUNT_INSIDE: "挂载点不能互相嵌套[（{place}）]，请分开放",
    Problem.RELATIVE_PATH: "应当是卷内的相对路径，如 `data/train`，不能以 / 开头，也不能含 `..`",
    Problem.WITH_ROLES: "使用 `roles` 时，这一项要写在每个角色里面",
    Problem.ABOUT_THE_JOB: "这一项对整个任务只写一次，请移出角色，写在最外层",
    Problem.TOTAL_REPLICAS: "所有角色的副本加起来太多[（最多 {most} 个）]",
    Problem.PRIORITY: (
        "应当是整数[，最小 {least}][，最大 {most}][，或以下之一：{allowed:list}][（是不是想写 `{nearest}`？）]"
    ),
    Problem.MODEL: "应当是卡的型号，由字母和数字组成，如 `A100` 或 `910B`",
    Problem.MODELS_WITHOUT_CARDS: "写了卡的型号，却没写要几张卡：请加上 `cards`，如 `cards: 1`",
    Problem.NODE_NAME: "应当是机器名，即 `yard nodes` 里显示的名字",
    Problem.LABEL_KEY: ("应当是标签名：由字母、数字、`.`、`_`、`/`、`-` 组成，首尾是字母或数字[，最多 {limit} 个字符]"),
    Problem.LABEL_VALUE: "应当是标签的值：单行文字[，最多 {limit} 个字符]",
    Problem.VIRTUAL_NODES: (
        "应当是“台数 x 卡数”[（每台最多 {limit} 张卡）]，后面可加 `:` 和型号或类型，"
        "如 `20x8`、`10x8:A100,4x8:P100` 或 `2x8:ascend/910B`"
    ),
    Problem.CHECKPOINT: "应当是任务保存进度的文件夹，如 `out/checkpoints`（在主目录中）或 `/data/run7`，不能含 `..`",
    **ASIDES,
}

STATES: Mapping[State, str] = {
    State.QUEUED: "排队中",
    State.PLACED: "已分配",
    State.STARTING: "启动中",
    State.RUNNING: "运行中",
    State.STOPPING: "停止中",
    State.PAUSED: "已暂停",
    State.SUCCEEDED: "成功",
    State.FAILED: "失败",
    State.STOPPED: "已停止",
}

NOUNS: Mapping[str, str] = {
    **POLICY_NOUNS,
    **SSH_NOUNS,
    **INSIDE_NOUNS,
    **IMAGE_NOUNS,
    **DOOR_NOUNS,
    **{state.value: word for state, word in STATES.items()},
    "workload": "任务",
    "workplace": "开发环境",
    "start": "启动",
    "job": "任务",
    "workdir": "随任务上传的文件夹",
    "job_file": "文件",
    "command": "命令",
    "env": "环境变量",
    "user": "用户",
    "group": "组",
    "token": "令牌",
    "node": "机器",
    "image": "镜像",
    "quota": "配额",
    "file": "文件",
    "address": "地址",
    "body": "请求内容",
    "password": "密码",
    "run work as root": "以 root 运行任务",
    "mount folders unless it runs as root": "在不以 root 运行时挂载文件夹",
    "memory": "内存",
    "shm": "共享内存",
    "replica": "副本",
    "attempt": "运行记录",
    "log": "日志",
    "data folder": "数据目录",
    "database": "数据库",
    "stop": "停止",
    "pause": "暂停",
    "resume": "恢复",
    "priority": "修改优先级",
    "rerun": "重新运行",
    "exit": "命令运行失败",
    "oom": "内存不够",
    "lost": "机器或看护进程丢失",
    "launch": "没能启动",
    "time": "到了最长运行时间",
    "session.show": "查看登录信息",
    "session.end": "退出登录",
    "password.change": "修改密码",
    "token.list": "查看令牌",
    "token.create": "创建令牌",
    "token.revoke": "吊销令牌",
    "workload.show": "查看这个任务",
    "workload.submit": "在这个组里提交任务",
    "workload.control": "停止、暂停、恢复或重新运行这个任务",
    "workload.enter": "进入它；只有所有者和管理员可以",
    "workdir.upload": "上传文件夹",
    "image.list": "查看镜像",
    "image.pull": "拉取镜像",
    "image.change": "导入或删除镜像",
    "images": "在镜像中运行任务",
    "enter": "进入其中的任务",
    "cluster.show": "查看机器",
    "node.cordon": "暂停向机器分配任务",
    "node.label": "给机器加标签",
    "user.show": "查看这个用户",
    "user.create": "添加用户",
    "user.change": "修改用户",
    "user.password": "设置用户密码",
    "user.remove": "删除用户",
    "group.show": "查看这个组",
    "group.create": "添加组",
    "group.change": "修改组",
    "group.remove": "删除组",
    "group.member": "调整组成员",
    "group.quota": "设置这个配额",
    "audit.show": "查看审计记录",
    "ring": "但不在同一个环里",
    "empty": "即使上面什么都不运行",
    "cordoned": "管理员已暂停分配",
    "member": "组员",
    "lead": "组长",
    "admin": "管理员",
    "store.backup": "做备份",
    "journal.replay": "查看包含所有人任务的调度日志",
    "replay": "重放",
    "replays": "重放",
}


def _rough(seconds: float) -> str:
    return in_rough(seconds, (" 秒", " 分钟", " 小时", " 天"), " ")


def _seconds(seconds: float) -> str:
    if seconds < 1:
        return f"{seconds:.1f} 秒"
    parts = []
    rest = round(seconds)
    for size, name in ((86400, "天"), (3600, "小时"), (60, "分钟"), (1, "秒")):
        count, rest = divmod(rest, size)
        if count:
            parts.append(f"{count} {name}")
    return " ".join(parts[:2])


CHINESE = Language(
    sentences=SENTENCES,
    problems=PROBLEMS,
    states=STATES,
    nouns=NOUNS,
    comma="、",
    more=" 等（另有 {count} 个）",
    core="1 核",
    cores="{count} 核",
    card="1 张 {device} 卡",
    cards="{count} 张 {device} 卡",
    seconds=_seconds,
    rough=_rough,
    sorts=queue.SORTS,
    changes=queue.CHANGES,
    change_of_role=queue.CHANGE_OF_ROLE,
    changes_and=queue.CHANGES_AND,
    change_starts=queue.CHANGE_STARTS,
    change_starts_somewhere=queue.CHANGE_STARTS_SOMEWHERE,
    at_line="第 {line} 行第 {column} 列",
    at_path="{path}",
    at_both="第 {line} 行第 {column} 列（{path}）",
)
