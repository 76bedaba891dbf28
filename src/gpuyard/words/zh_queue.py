"""中文：为什么在等、用哪些事实说明、按什么规则谁先谁后。"""

from __future__ import annotations

from collections.abc import Mapping

from gpuyard.domain.reasons import Code
from gpuyard.words.facts import all_end_with
from gpuyard.words.language import Facts, Template


def _never_fits(facts: Facts) -> str:
    if facts.get("resource") == "nodes":
        return (
            "按现在的要求永远无法启动：它要 {asked} 台机器，每个副本一台，而符合条件的只有 {largest} 台。"
            "请减少副本数，或去掉 `together`。"
        )
    if facts.get("node"):
        return (
            "按现在的要求永远无法启动：每个副本要 {asked:amount}，而最大的机器 {node} 只有 {largest:amount}"
            "[（所有机器加起来有 {total:amount}）]。请减少申请量。"
        )
    where = "所有机器加起来"
    if facts.get("together") == "one_node":
        where = "最大的机器"
    elif facts.get("pools"):
        where = "对它开放的机器（资源池 {pools:list}）加起来"
    return (
        f"按现在的要求永远无法启动：[{{replicas}} 个副本]一共要 {{asked:amount}}，而{where}只有 {{largest:amount}}。"
        "请减少申请量或副本数。"
    )


def _no_such_device(facts: Facts) -> str:
    if "known" in facts and not facts["known"]:
        return (
            "这里没有 {device} 卡，也没有其他卡。想在没有卡的机器上试用，可以用 `yard up --simulate-cards 8` 启动服务；"
            "或者写 `cards: 0`。"
        )
    return "这里没有 {device} 卡[，现有的是：{known:list}]。请换一种 `device`，或者写 `cards: 0`。"


def _over_quota(facts: Facts) -> str:
    used, limit = facts.get("used"), facts.get("limit")
    full = not isinstance(used, int) or not isinstance(limit, int) or used >= limit
    state = "已用满" if full else "剩余不够"
    if facts.get("scope") == "user":
        return (
            f"{{who}} [在 {{group}} 组]的配额{state}：上限 {{limit:amount}}，已用 {{used:amount}}，"
            "这个任务还要 {asked:amount}。"
            "等 {who} 的其他任务结束后会自动启动；也可以停掉一些任务、减少申请量，或请组长提高配额。"
        )
    return (
        f"{{who}} 组的配额{state}：上限 {{limit:amount}}，已用 {{used:amount}}，这个任务还要 {{asked:amount}}。"
        "等组内其他任务结束后会自动启动；也可以停掉一些任务、减少申请量，或请管理员提高配额。"
    )


def _quota_never(facts: Facts) -> str:
    personal = facts.get("scope") == "user"
    who = "{who} [在 {group} 组]" if personal else "{who} 组"
    whom = "组长" if personal else "管理员"
    return (
        f"按现在的要求永远无法启动：它要 {{asked:amount}}，而 {who}的配额上限只有 {{limit:amount}}。"
        f"请减少申请量，或请{whom}提高配额。"
    )


_LENDS = (
    "没人知道要等到什么时候：{without_end:list} 比它先来，而且结束时间未知。在那之前，为它留出的 CPU 核和内存"
    "有一半开放给排在后面的任务；那之后不再放新的任务进来。"
)


def _busy(facts: Facts) -> str:
    until = "可以为它中断的任务要先运行一段时间：{ripe_at:moment} 以后才行。"
    end = (until if facts.get("ripe_at") else "") + (_LENDS if facts.get("without_end") else "")
    end += "有空位后会自动启动。"
    pool = "对它开放的（资源池 {pools:list}）" if facts.get("pools") else ""
    if facts.get("fitting"):
        return f"正在等别的任务结束：目前放得下 {{replicas}} 个副本中的 {{fitting}} 个，而副本要一起启动。{end}"
    if facts.get("ring"):
        return (
            f"正在等别的任务结束：每个副本要 {{asked:amount}} 且要在同一个环里，目前{pool}最合适的机器 {{node}} "
            f"空闲的芯片够多，但不在同一个环里。[那里正在运行：{{jobs:list}}。]{end}"
        )
    if facts.get("node"):
        return (
            f"正在等别的任务结束：每个副本要 {{asked:amount}}，目前{pool}最合适的机器 {{node}} 空闲 {{free:amount}}。"
            f"[那里正在运行：{{jobs:list}}。]{end}"
        )
    return (
        "正在等别的任务结束：需要 {asked:amount}，目前空闲 {free:amount}。[正在运行：{jobs:list}。]有空位后会自动启动。"
    )


def _order(facts: Facts) -> str:
    who = "{ahead_name}（{ahead}）" if facts.get("ahead_name") else "{ahead} "
    quota = "，等的是同一份 {quota} 配额" if facts.get("quota") else ""
    lends = ""
    if facts.get("without_end"):
        lends = (
            "没人知道前者何时能启动：{without_end:list} 来得更早，而且结束时间未知。在那之前，"
            "为前者留出的 CPU 核和内存有一半开放给任务，"
        )
        lends += (
            "{kind:noun}没有结束时间，所以不在其中。"
            if facts.get("kind") == "env"
            else "但那一半剩下的不够这个[{kind:noun}]用。"
        )
    return f"正在排队[，目前第 {{position}} 位]：{who}排在它前面，也在等待{quota}。{lends}轮到后会自动启动。"


def _card_held(facts: Facts) -> str:
    process = "[，进程号 {pid}]" if facts.get("pid") else ""  # 0 表示未知
    return (
        f"{{node}} 上的 {{card}} 号卡已经释放，但仍被占用[（{{holder}}）]{process}。"
        "占用解除后才会分配；可以由进程的主人或管理员结束它。"
    )


def _no_nodes(facts: Facts) -> str:
    if all_end_with(facts.get("nodes"), "(disk_full)"):
        return "能运行它的机器磁盘快满了：{nodes:list}。有了空间就会启动：请删除不需要的文件，或联系管理员。"
    if facts.get("nodes"):
        return "能运行它的机器目前不可用：{nodes:list}。机器恢复后会自动启动，可以联系管理员。"
    return "目前没有可用的机器。机器恢复后会自动启动；可以用 `yard nodes` 查看，或联系管理员。"


def _no_such_node(facts: Facts) -> str:
    if facts.get("nodes") and not facts.get("labels"):
        return (
            "按现在的要求永远无法启动：没有名为 {nodes:list} 且有它要的资源的机器。"
            "请用 `yard nodes` 查看，修改或去掉 `where`。"
        )
    named = "[（{nodes:list}）]" if facts.get("nodes") else ""
    labelled = "[（标签 {labels:list}）]" if facts.get("labels") else ""
    return (
        f"按现在的要求永远无法启动：它指定了机器{named}{labelled}，但没有一台符合条件的机器有它要的资源。"
        "请用 `yard nodes` 查看，修改或去掉 `where`。"
    )


def _fifo(facts: Facts) -> str:
    who = "{ahead_name}（{ahead}）" if facts.get("ahead_name") else "{ahead} "
    return f"{{group}} 组严格按提交顺序运行：{who}提交更早，还在等待。轮到后会自动启动。"


def _whose(facts: Facts, owner: str, group: str) -> str:
    """用户和组写在同一个括号里；看不到用户时只写组。"""
    if facts.get(owner) and facts.get(group):
        return f"（用户 {{{owner}}}，{{{group}}} 组）"
    return f"[（用户 {{{owner}}}）][（{{{group}}} 组）]"


def _preempted(facts: Facts) -> str:
    who = " {by_name}（{by}）" if facts.get("by_name") else " {by} "
    if not facts.get("by"):
        who = "更紧急的任务"
    rules = {
        "guarantee": "，因为对方要收回本组保证配额内的卡",
        "priority": "，因为对方优先级更高",
        "turn": "，因为按顺序对方在前：对方已用的卡时更少，或剩余时间更短",
    }
    rule = rules.get(str(facts.get("rule")), "")
    whose = _whose(facts, "by_owner", "by_group")
    if facts.get("by_name") and whose.startswith("（"):  # 与编号写在同一个括号里
        who, whose = " {by_name}（{by}", "，" + whose[1:]
    lost = "[最多丢失最近一次检查点之后 {lost_seconds:rough}的工作。]"
    if facts.get("saved") is False:
        lost = (
            "当时它还没有保存过任何进度：如果结束时也没有保存，之前的工作会全部丢失。"
            "请让程序定期保存，并用 `checkpoint:` 写明检查点目录（见 docs/tutorials/preemption.zh.md）。"
        )
    return (
        f"已让位给{who.rstrip()}{whose}{rule}。"
        f"[此前已运行 {{ran_seconds:rough}}。]{lost}它保留队列中原来的位置，会自动再次启动。"
    )


def _moves(facts: Facts) -> str:
    who = " {by_name}（{by}）" if facts.get("by_name") else " {by} "
    if not facts.get("by"):
        who = "另一个任务"
    whose = _whose(facts, "by_owner", "by_group")
    if facts.get("by_name") and whose.startswith("（"):  # 与编号写在同一个括号里
        who, whose = " {by_name}（{by}", "，" + whose[1:]
    lost = "[最多丢失最近一次检查点之后 {lost_seconds:rough}的工作。]"
    if facts.get("saved") is False:
        lost = (
            "[当时它还没有保存过任何进度：如果结束时也没有保存，会丢失 {lost_seconds:rough}的工作。]"
            "请让程序定期保存，并用 `checkpoint:` 写明检查点目录（见 docs/tutorials/preemption.zh.md）。"
        )
    return (
        f"正在换到别的卡上，好让{who.rstrip()}{whose}的卡凑在一起。"
        f"[此前已运行 {{ran_seconds:rough}}。]{lost}新位置[（{{nodes:list}}）]已为它留好，停下后马上在那里再次启动。"
    )


def _moves_fact(facts: Facts) -> str:
    beside = {"cpu": "旁边没有足够的 CPU 核", "memory": "旁边没有足够的内存"}
    free = f"空闲的卡够它用，但{beside.get(str(facts.get('lacks')), '不在一起')}"
    if facts.get("mode") == "never":
        return f"{free}。按策略不移动任何任务（`defragment.mode`）。"
    if facts.get("moves") == 0:
        return f"{free}；移动少数运行够久的可中断任务也不能让它启动（见 `yard policy show` 里的 `defragment`）。"
    end = "平台不会自动移动；管理员可以用 `yard policy set defragment.mode=move` 允许。"
    if facts.get("mode") == "move":
        end = "它等待够久之后会自动进行（见 `yard policy show` 里的 `defragment.after`）。"
    return f"{free}：移动[ {{moves}} 个]可中断的任务，它就能启动[（在 {{nodes:list}} 上）]。{end}"


def _is_named(facts: Facts) -> bool:
    return facts.get("job_name") not in (None, "", facts.get("job"))


def _move_fact(facts: Facts) -> str:
    who = "一个任务"
    if facts.get("job"):
        who = "{job_name}（{job}）" if _is_named(facts) else "{job} "
    return f"{who}可以[从 {{source:list}} ]移走[，移到 {{nodes:list}}][；会丢失 {{lost_seconds:rough}}的工作]。"


def _node_fact(facts: Facts) -> str:
    alike = "" if facts.get("nodes") in (None, "", 0, 1) else "（这样的机器共 {nodes} 台）"
    trouble = "[；{trouble:noun}]"
    kept = "[；留给排在前面的 {kept_for}]"
    jobs = "[；正在运行：{jobs:list}]" if facts.get("jobs") else ""
    if not facts.get("resource"):
        return f"{{node}}{alike}{trouble}{kept}{jobs}。"
    most = "最多" if facts.get("most") else ""
    return f"{{node}}{alike}：要 {{asked:amount}}，{most}空闲 {{free:amount}}{trouble}{kept}{jobs}。"


def _job_fact(facts: Facts) -> str:
    holds = "占用 {cards:cards}" if facts.get("cards") else "正在运行"
    who, whose = "{job}", _whose(facts, "owner", "group")
    if _is_named(facts):  # 编号与用户写在同一个括号里
        who, whose = "{job_name}（{job}", f"，{whose[1:]}" if whose.startswith("（") else f"）{whose}"
    return f"{who}{whose}：{holds}[，在 {{node}} 上][，最晚 {{ends_by:moment}} 结束]。"


def _quota_fact(facts: Facts) -> str:
    who = "{who} [在 {group} 组]" if facts.get("scope") == "user" else "{who} 组"
    guaranteed = "[，保证 {guaranteed:amount}]" if facts.get("guaranteed") else ""
    return f"{who}的配额：已用 {{used:amount}}[，上限 {{limit:amount}}]{guaranteed}；这个任务要 {{asked:amount}}。"


def _rule_priority(facts: Facts) -> str:
    aged = "，其中 {points} 点来自等待时间[（{waited:rough}）]" if facts.get("points") else ""
    return f"它的优先级更高：{{theirs}}，对方是 {{mine}}{aged}。"


def _rule_made_room(facts: Facts) -> str:
    rules = {
        "guarantee": "：它要收回保证给 {group} 组的卡",
        "priority": "：它的优先级更高（{theirs}，对方是 {mine}）",
        "turn": "：它已用的卡时更少，或剩余时间更短",
        "defragment": "：换到了为它留好的位置",
    }
    rule = rules.get(str(facts.get("rule")), "")
    return f"另一个任务[在 {{at:moment}} ]给它让了位{rule}。"


def _rule_shortest(facts: Facts) -> str:
    if facts.get("mine") is None:
        return "它声明了最长运行时间[，最多还剩 {theirs:rough}]；另一个没有声明 `max_time`。"
    return "它剩余的时间更短[：最多 {theirs:rough}，另一个是 {mine:rough}]。"


def _rule_people(facts: Facts) -> str:
    who = "{who} " if facts.get("who") else "它的主人"
    return f"{who}在管理员设定的优先名单上排第 {{place}} 位。"


COUNTED = "（越早的用量折算得越少[，正在运行的任务还要计入之后 {ahead:rough}的用量]。）"


def _rule_user_share(facts: Facts) -> str:
    who = "{user} " if facts.get("user") else "它的主人"
    other = "{other_user} 是" if facts.get("other_user") else "另一个任务的主人是"
    return f"{who}[在 {{group}} 组]最近用得更少：计入用量 {{use}} 卡时，{other} {{other_use}} 卡时。{COUNTED}"


def _rule_share(facts: Facts) -> str:
    return (
        "{group} 组最近用得更少：计入用量 {use} 卡时，{other_group} 组是 {other_use} 卡时。"
        f"{COUNTED}[{{group}} 组的用量按权重 {{weight}} 折算。][{{other_group}} 组的用量按权重 {{other_weight}} 折算。]"
    )


QUEUE: Mapping[Code, Template] = {
    Code.NEW: "刚刚提交，正在处理。",
    Code.NEVER_FITS: _never_fits,
    Code.NEEDS_REPLICAS: (
        "没有一台机器有 {asked} 张 {device} 卡，最多的一台只有 {largest} 张。请改用分布式：申请 {replicas} 个副本，"
        "每个 {each} 张卡。[目前共有 {nodes} 台机器。]"
    ),
    Code.NO_SUCH_DEVICE: _no_such_device,
    Code.OVER_QUOTA: _over_quota,
    Code.QUOTA_NEVER: _quota_never,
    Code.BUSY: _busy,
    Code.ORDER: _order,
    Code.BACK_OFF: "上次运行失败，[将在 {until:moment} ]自动重试，中间特意停一会儿。[上次的情况：{cause:reason}]",
    Code.CARD_HELD: _card_held,
    Code.NO_NODES: _no_nodes,
    Code.NO_SUCH_MODEL: (
        "按现在的要求永远无法启动：没有机器有型号为 {models:list} 的 {device} 卡[，现有的型号是：{known:list}]。"
        "请在 `models` 里写现有的型号，或去掉 `models`。"
    ),
    Code.NO_SUCH_NODE: _no_such_node,
    Code.POOL_CLOSED: (
        "按现在的要求永远无法启动：{group} 组的{kind:noun}只能使用集群的一部分[（{pools:list}）]，而那里没有它要的资源"
        "[，那里有的是：{open:list}]。请按现有的资源申请，或联系管理员（用 `yard policy show` 查看规则）。"
    ),
    Code.RING: (
        "按现在的要求永远无法启动：{device} 芯片按环互联，一个副本只能用 {allowed:list} 张，多个副本时每个必须用 "
        "{whole} 张；而它有 {replicas} 个副本，每个要 {asked} 张。请修改 `cards`。"
    ),
    Code.BORROW: (
        "{group} 组的保证配额是 {guaranteed:amount}，已用 {used:amount}。超出保证的部分，不可中断的任务只能用没有保证给"
        "任何组的卡：还剩 {common:amount}，而它要 {asked:amount}[，其中 {needs:amount}出自这里]。"
        "写上 `preemptible: true` 就可以先用别组闲置的卡；也可以等占用这部分的任务结束。"
    ),
    Code.BORROW_NEVER: (
        "照现在的写法永远无法启动：{group} 组的保证配额是 {guaranteed:amount}，没有保证给任何组的有 {common:amount}，"
        "不可中断的任务最多只能用这两部分，而它要 {asked:amount}。写上 `preemptible: true` 就可以先用别组闲置的卡；"
        "也可以请管理员提高保证配额。"
    ),
    Code.CLEARING: "正在为它腾位置：可中断的任务[ {jobs:list} ]正在退回队列。卡一释放就会自动启动。",
    Code.MOVING: "正在为它把空闲的卡凑到一起：可中断的任务[ {jobs:list} ]正在换位置。卡一释放就会自动启动。",
    Code.FIFO: _fifo,
    Code.PREEMPTED: _preempted,
    Code.MOVES: _moves,
    Code.REQUEUED: "[让位给 {by} 之后，]已回到队列中原来的位置，会自动再次启动。",
    Code.GROUP_MERGED: "{source} 组已并入 {target} 组[（由 {by} 操作）]，任务不受影响，继续进行。",
    Code.NODE_FACT: _node_fact,
    Code.QUOTA_FACT: _quota_fact,
    Code.GANG_FACT: "它的 {replicas} 个副本要么全部启动，要么都不启动；现在只有 {fit} 个有位置。",
    Code.JOB_FACT: _job_fact,
    Code.MOVES_FACT: _moves_fact,
    Code.MOVE_FACT: _move_fact,
    Code.RULE_GUARANTEE: "{group} 组没有超出它的保证配额[（{guaranteed:amount}）]，保证配额最优先。",
    Code.RULE_PEOPLE: _rule_people,
    Code.RULE_PRIORITY: _rule_priority,
    Code.RULE_SHARE: _rule_share,
    Code.RULE_USER_SHARE: _rule_user_share,
    Code.RULE_SHORTEST: _rule_shortest,
    Code.RULE_LEAST_SERVED: (
        "它自身已用的卡时更少[：{theirs} 卡时，另一个是 {mine} 卡时]。"
        "各次尝试都计入，并按级别比较；同一级中提交早的在前。"
    ),
    Code.RULE_AGE: "它提交更早：{theirs:moment}，另一个是 {mine:moment}。",
    Code.RULE_MADE_ROOM: _rule_made_room,
    Code.RULE_PASSED: "另一个任务当时[（{at:moment}）]还不能启动[。{reason:reason}]",
    Code.RULE_BACKFILL: (
        "它只是利用空档，不会耽误任何任务：它最晚 {ends_by:moment} 结束，"
        "而另一个任务在 {starts_at:moment} 之前无法启动。"
    ),
    Code.RULE_NOT_THERE: (
        "另一个任务当时还没有提交：它在 {submitted_at:moment} 才提交，而这个任务 {at:moment} 已经分到位置。"
    ),
    Code.RULE_UNKNOWN: "已经没有记录能说明 {job} 为什么先运行。",
    Code.GUESS_HISTORY: (
        "暂时无法预计：至今只有 {runs} 次运行结束，至少要有 {least} 次才能判断任务一般运行多久。"
        "设置了最长运行时间的任务可以更早预计。"
    ),
    Code.GUESS_NEVER: "按现在的申请，等多久都无法启动。",
    Code.GUESS_TROUBLE: "无法预计：要先修复故障或恢复机器，它才能启动。",
    Code.GUESS_ENDLESS: "无法预计：它所等待的资源看不到何时释放。",
    Code.GUESS_PAUSED: "它已暂停：恢复后才会启动。",
    Code.GUESS_BUSY: "同时询问何时启动的人太多，请几秒后再试。",
    Code.STRANDS: (
        "按卡数来看它要得太多：要 {asked:amount}，而合理的份额是 {share:amount}。"
        "在 {node} 上会有 {cards} 张卡因此没人能用。"
        "如果用不了这么多，请少要一些，或不写 `{resource}`，平台会按份额分配。"
    ),
    Code.PRIORITY_CHANGED: "优先级由 {before} 改为 {after}[（由 {by} 修改）]。",
    Code.PRIORITY_CEILING: (
        "优先级 {asked} 超出了{role:noun}可以使用的上限 {ceiling}。请降低优先级，或请有权限的人提交。"
    ),
}

SORTS: Mapping[str, str] = {
    "never": "按现在的要求永远无法启动，等待没有用",
    "quota": "在等配额",
    "busy": "在等正在运行的任务结束",
    "order": "还没轮到，前面有别的任务",
    "trouble": "有故障，在等恢复",
    "taken_out": "能用的机器被管理员暂停分配，在等恢复分配",
}

# 要改什么：按任务文件的字段；空值表示去掉这个字段。
CHANGES: Mapping[str, str] = {
    "cards": "改用 {value} 张卡",
    "cards.one": "改用 1 张卡",
    "cards.share": "只用一张卡的一部分（{value}）",
    "cards.split": "改用分布式：{replicas} 个副本，每个 {value} 张卡（程序要支持分布式）",
    "replicas": "改用 {value} 个副本",
    "replicas.one": "改用 1 个副本",
    "device": "改用 {value} 卡",
    "models": "改用型号 {value}",
    "models.none": "不限定卡的型号",
    "cpu": "改用 {value} 核",
    "cpu.one": "改用 1 核",
    "memory": "改用 {value} 内存",
    "shm": "改用 {value} 共享内存",
    "group": "改在 {value} 组提交",
    "preemptible": "允许别人需要卡时中断它",
    "max_time": "声明它最长运行 {value}，这样不会耽误别人",
    "where.none": "不指定机器",
    "together": "不限定副本放在哪些机器上",
}
CHANGE_OF_ROLE = "{role}：{change}"
CHANGES_AND = "，并且"
CHANGE_STARTS = "{change}：可以在 {nodes} 上马上启动。"
CHANGE_STARTS_SOMEWHERE = "{change}：可以马上启动。"
