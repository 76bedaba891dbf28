"""What the command says of policies, guarantees and the merging of groups, in English and Chinese."""

from __future__ import annotations

POLICY: dict[str, tuple[str, str]] = {
    "policy": ("The rules of order, sharing and placement.", "排队、共享与放置的规则。"),
    "policy.show": ("Show the rules in force, and what each means.", "显示当前规则及其含义。"),
    "policy.set": (
        "Change some rules (KEY= brings the default back), or all of them from a file.",
        "修改部分规则（KEY= 恢复默认值），或用文件替换全部规则。",
    ),
    "policy.try": (
        "What a change would do on the present cluster, without making it.",
        "试算：这样修改会在当前集群上带来什么变化，不会真正修改。",
    ),
    "policy.reset": ("Bring all defaults back.", "恢复全部默认规则。"),
    "policy.reset_ask": ("Bring all defaults back?", "恢复全部默认规则？"),
    "policy.examples": (
        "\b\nExamples:\n"
        "  yard policy try order.half_life=3d backfill=false\n"
        "  yard policy set pools.p100.models=P100 groups.dev=p100\n"
        "  yard policy show -o yaml > policy.yaml    (edit it, then)    yard policy set -f policy.yaml",
        "\b\n示例：\n"
        "  yard policy try order.half_life=3d backfill=false\n"
        "  yard policy set pools.p100.models=P100 groups.dev=p100\n"
        "  yard policy show -o yaml > policy.yaml    （编辑后）    yard policy set -f policy.yaml",
    ),
    "policy.same": ("nothing differs from the rules in force", "与当前规则没有差别"),
    "opt.policy_file": (
        "the whole policy from this file (YAML or JSON; -: standard input)",
        "从文件读取全部规则（YAML 或 JSON；- 为标准输入）",
    ),
    "opt.policy_out": ("table, yaml to edit, or json for programs", "table，供编辑的 yaml，或供程序使用的 json"),
    "opt.guarantee": (
        "what the group can count on, as nvidia=4 (0: nothing)",
        "保证给该组的数量，如 nvidia=4（0 表示没有）",
    ),
    "opt.weight": ("its part under fair share; usual: 1", "公平共享中的权重，通常为 1"),
    "opt.fifo": ("inside the group nobody overtakes anybody", "组内严格先进先出，谁也不能超车"),
    "opt.yes": ("do it without asking", "不再询问，直接执行"),
    "usage.policy_nothing": (
        "nothing to change: give KEY=VALUE, or a file with -f; `yard policy show` lists the keys",
        "没有要修改的内容：请给出 KEY=VALUE，或用 -f 指定文件；可用的项目见 `yard policy show`",
    ),
    "usage.policy": (
        "give KEY=VALUE pairs, or a file with -f, not both",
        "请给出 KEY=VALUE，或用 -f 指定文件，二者选一",
    ),
    # Merging
    "merge": (
        "Merge one group into another: members, quotas, past use, files and all work.",
        "把一个组并入另一个组：成员、配额、历史用量、文件和全部任务。",
    ),
    "merge.members": ("members that come into {target}: {names}", "加入 {target} 组的成员：{names}"),
    "merge.leads": (
        "leads of {source} who are plain members of {target} afterwards: {names}",
        "原是 {source} 组组长，之后是 {target} 组普通成员：{names}",
    ),
    "merge.work": (
        "work that becomes {target}'s: {live} not ended ({running} of them run, and go on), {ended} ended",
        "归入 {target} 组的任务：未结束 {live} 个（其中 {running} 个在运行，不受影响），已结束 {ended} 个",
    ),
    "merge.rest": (
        "past use is added up; the shared files of {source} move into the share of {target}; {source} is removed",
        "历史用量相加；{source} 组的共享文件移入 {target} 组的共享目录；{source} 组将被删除",
    ),
    "merge.quotas": ("quotas of {target} afterwards:", "之后 {target} 组的配额："),
    "merge.ask": ("Merge {source} into {target}?", "把 {source} 组并入 {target} 组？"),
    "done.merged": ("{source} is merged into {target}", "{source} 组已并入 {target} 组"),
    # What a trial found
    "try.nothing": (
        "Now it would change nothing: the same work starts, waits and makes room.",
        "目前不会带来变化：启动、等待和让位的任务都与现在相同。",
    ),
    "try.starts": ("Would start now ({count}):", "会马上启动（{count} 个）："),
    "try.stays": ("Would no longer start now ({count}):", "不再马上启动（{count} 个）："),
    "try.evictions": ("Would be preempted ({count}):", "会被抢占（{count} 个）："),
    "try.after": ("Would start once those have made room: {ids}", "它们让位之后会启动：{ids}"),
    "try.spared": ("Would no longer be preempted ({count}):", "不再被抢占（{count} 个）："),
    "try.moves": (
        "Places in the queue that change ({count}, the first {shown} shown):",
        "排队位置的变化（{count} 个，显示前 {shown} 个）：",
    ),
    "try.groups": ("By group, now -> then:", "按组统计（现在 -> 之后）："),
    # What each rule means
    "policy.about.priorities": ("a priority class, 1 to 1000", "优先级等级，1 到 1000"),
    "policy.about.priorities.normal": ("the class of jobs that name none", "未指定优先级的任务所用的等级"),
    "policy.about.ceilings": ("the highest priority this role may ask for", "该角色可申请的最高优先级"),
    "policy.about.order.first": (
        "after priority: share (used less of late), shortest (least time left) or least_served (had least itself)",
        "优先级之后：share（近期用得少）、shortest（剩余时间最短）或 least_served（任务自身用得最少）",
    ),
    "policy.about.order.first_level": (
        "least_served: the first level is up to this much card-time ...",
        "least_served：第一级的卡时上限……",
    ),
    "policy.about.order.next_level": ("... and each next one so many times larger", "……之后每一级扩大的倍数"),
    "policy.about.order.oldest_first": (
        "shortest, least_served: whoever has waited longest comes before them all",
        "shortest、least_served：等待最久的任务排在它们之前",
    ),
    "policy.about.order.levels": ("... so many levels; the last has no end", "……共多少级，最后一级没有上限"),
    "policy.about.order.people": ("these persons come first, in this order", "这些人按此顺序优先"),
    "policy.about.order.fair_share": ("those who used less of late come first", "近期用得少的优先"),
    "policy.about.order.half_life": ("past use counts half after this long", "经过这么久，历史用量减半计算"),
    "policy.about.order.ahead": (
        "what runs counts as if it had run this much longer",
        "正在运行的任务按多运行这么久计算",
    ),
    "policy.about.order.tolerance": (
        "use that differs by less than this part counts as equal",
        "用量相差不到这个比例视为相等",
    ),
    "policy.about.order.cores_per_card": (
        "work without cards: so many cores count as a card",
        "不用卡的任务：多少核折算一张卡",
    ),
    "policy.about.order.age_every": ("waiting this long raises the priority ...", "每等待这么久，优先级提高……"),
    "policy.about.order.age_points": ("... by so much, again and again", "……这么多，可累加"),
    "policy.about.backfill": (
        "short jobs may pass a waiting one when surely over before it can start",
        "短任务若必定在排队者能启动前结束，可以先运行",
    ),
    "policy.about.keep_for_first": (
        "only the first that waits keeps what it gathers: more may pass those behind it",
        "只有排在最前的任务会留住凑到的卡，后面的更容易被超过",
    ),
    "policy.about.preempt.enabled": ("preemptible work may be put back into the queue", "可被抢占的任务可以退回队列"),
    "policy.about.preempt.for_priority": (
        "also for a higher priority, not only for guaranteed quota",
        "不仅为保证配额，也为更高优先级抢占",
    ),
    "policy.about.preempt.for_turn": (
        "also for one that comes first by order.first, where that is not share",
        "order.first 不是 share 时，也为按它排在前面的任务抢占",
    ),
    "policy.about.preempt.min_run": ("nobody is preempted before having run this long", "运行不到这么久不会被抢占"),
    "policy.about.defragment.mode": (
        "free cards that are not together: never, propose (show moves of preemptible work) or move (carry them out)",
        "空闲的卡不在一起时：never（不管）、propose（只提出移动方案）或 move（自动移动可被抢占的任务）",
    ),
    "policy.about.defragment.after": ("only for jobs that have waited this long", "只为等待了这么久的任务移动"),
    "policy.about.defragment.min_run": (
        "nobody is moved, or moved again, before having run this long",
        "运行不到这么久不会被移动，也不会再次被移动",
    ),
    "policy.about.defragment.max_lost": (
        "nobody is moved who would lose more than this of its work, counted with what it lost before",
        "被移动后累计丢失的工作（含之前丢失的）会超过这么久的任务不会被移动",
    ),
    "policy.about.defragment.moves": ("at most so many moves for one job", "为一个任务最多移动多少个"),
    "policy.about.placing": (
        "fragments (least loss to typical work), best_fit (tightest), in_order or spread",
        "fragments（对常见请求影响最小）、best_fit（最紧凑）、in_order（按服务器顺序）或 spread（最空闲）",
    ),
    "policy.about.servers": ("the order of the servers for in_order", "in_order 时的服务器顺序"),
    "policy.about.pools": (
        "a part of the cluster: models, nodes, labels (empty: all)",
        "集群的一部分：型号、节点、标签（空表示全部）",
    ),
    "policy.about.groups": ("pools this group may use (not named: all)", "该组可用的资源池（未列出：全部）"),
    "policy.about.kinds": ("pools this kind of work may use (not named: all)", "该类任务可用的资源池（未列出：全部）"),
    "policy.about.rings": ("chips that are linked to each other", "互相连接的芯片"),
}
