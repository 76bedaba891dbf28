"""What `yard replay` and `yard what-if` say, in English and Chinese."""

from __future__ import annotations

REPLAY: dict[str, tuple[str, str]] = {
    "replay": (
        "Decide once more what was decided, from the journal, and say where it differs (admins)",
        "按调度日志把过去的决定重新做一遍，并指出不同之处（管理员）",
    ),
    "replay.examples": (
        "\b\nExamples:\n  yard replay --last 1000\n  yard replay --since 2h\n"
        "  yard replay --job train-7    (each decision over it, and why)",
        "\b\n示例：\n  yard replay --last 1000\n  yard replay --since 2h\n"
        "  yard replay --job train-7    （关于它的每次决定及原因）",
    ),
    "what_if": (
        "Replay this platform's own history under another policy (admins)",
        "用另一套策略重放本平台的历史（管理员）",
    ),
    "what_if.examples": (
        "\b\nExamples:\n  yard policy show -o yaml > other.yaml    (edit it, then)\n"
        "  yard what-if --policy other.yaml --since 7d",
        "\b\n示例：\n  yard policy show -o yaml > other.yaml    （修改后）\n"
        "  yard what-if --policy other.yaml --since 7d",
    ),
    "opt.replay_last": (
        "only the last N cycles; with --job, of those that tell of it",
        "仅最近 N 轮；与 --job 同用时，只数涉及该任务的轮次",
    ),
    "opt.replay_since": (
        "from then on: 2h, 7d, 2026-11-15 or 2026-11-15T08:30",
        "从此时起：2h、7d、2026-11-15 或 2026-11-15T08:30",
    ),
    "opt.replay_until": ("until then, written likewise", "到此时为止，写法相同"),
    "opt.replay_job": (
        "only cycles that decided over this job, with what they said",
        "仅涉及此任务的轮次，并显示当时的说明",
    ),
    "opt.whatif_policy": (
        "the other policy, as `yard policy show -o yaml` writes it (what it leaves out is at its default); - reads it "
        "from the input",
        "另一套策略，格式同 `yard policy show -o yaml`（没写的项取默认值）；- 表示从标准输入读取",
    ),
    "usage.when": (
        "“{text}” is no time to look back to: write 2h, 7d (at most 366d), 2026-11-15 or 2026-11-15T08:30",
        "“{text}” 不是时间：请写 2h、7d（最多 366d）、2026-11-15 或 2026-11-15T08:30",
    ),
    "usage.span": ("--since {since} is not before --until {until}", "--since {since} 不早于 --until {until}"),
    "replay.progress": ("{done} of {of} parts", "已完成 {done}/{of}"),
    "replay.nothing": (
        "nothing was decided in that time, as far as the journal tells",
        "调度日志中，这段时间没有任何决定",
    ),
    "replay.period": (
        "{cycles:cycle|cycles}, {first} to {last}: {placements:placement|placements}, "
        "{evictions:preemption|preemptions}, {reasons:reason|reasons} told",
        "{first} 至 {last} 共 {cycles} 轮：{placements} 次放置，{evictions} 次抢占，{reasons} 次说明原因",
    ),
    "replay.nothing_of_job": (
        "nothing was decided over {job} in that time, as far as the journal tells",
        "调度日志中，这段时间没有关于 {job} 的决定",
    ),
    "replay.period_of_job": (
        "{cycles:cycle tells|cycles tell} of {job}, {first} to {last}: it has {placements:placement|placements}, "
        "{evictions:preemption|preemptions}, {reasons:reason|reasons} told",
        "{first} 至 {last} 共 {cycles} 轮涉及 {job}：它被放置 {placements} 次，被抢占 {evictions} 次，"
        "说明原因 {reasons} 次",
    ),
    "replay.same_as_far": (
        "what could be read was decided again, to the last bit the same; the rest could not be read",
        "能读出的部分重新决定，结果逐位相同；其余部分无法读出",
    ),
    "replay.same": ("decided again, to the last bit the same", "重新决定，结果逐位相同"),
    "replay.differs": (
        "{count:decision differs|decisions differ}; the first {shown}:",
        "{count} 个决定不同；前 {shown} 个：",
    ),
    "replay.versions": (
        "they were made by gpuyard {versions}; another version may decide otherwise",
        "它们由 gpuyard {versions} 作出；其他版本的决定可能不同",
    ),
    "replay.lost": (
        "{count:cycle in between was|cycles in between were} never written down (the disk was full, or the server "
        "too busy)",
        "其间有 {count} 轮没有记录（磁盘已满或服务过忙）",
    ),
    "replay.torn": (
        "{segment} ends early at byte {at}: the server was killed there, or writes it now",
        "{segment} 在字节 {at} 处中断：服务在此被终止，或正在写入",
    ),
    "replay.damaged": (
        "{segment} is damaged from byte {at} on and was read up to there{problem}",
        "{segment} 从字节 {at} 起损坏，只读到该处{problem}",
    ),
    "replay.problem": (" ({problem})", "（{problem}）"),
    "replay.failed": ("the replay could not be finished: {problem}", "重放未能完成：{problem}"),
    "replay.what.placement": ("placement", "放置"),
    "replay.what.eviction": ("preemption", "抢占"),
    "replay.what.waiting": ("reason", "原因"),
    "replay.what.order": ("order", "顺序"),
    "replay.moment.placed": ("starts", "启动"),
    "replay.moment.evicted": ("makes room", "让出资源"),
    "replay.moment.makes_room": ("gets room", "获得资源"),
    "replay.moment.waits": ("waits", "等待"),
    "whatif.nothing": ("the journal holds no work of that time", "调度日志中，这段时间没有任何任务"),
    "whatif.period": ("{jobs:job|jobs} from {begin} to {until}", "{begin} 至 {until} 共 {jobs} 个任务"),
    "whatif.guessed": (
        "{count} of them never ran; how long they would have run is a guess",
        "其中 {count} 个从未运行，其运行时间为估计值",
    ),
    "whatif.so_far": (
        "the wait of those that never started is counted until the end of that time",
        "从未启动的任务，等待时间算到这段时间结束为止",
    ),
    "whatif.damaged": (
        "what only the damaged part tells of is missing in all numbers below",
        "只记在损坏部分里的内容，不在下面的数字中",
    ),
    "whatif.row.really": ("as it was", "实际"),
    "whatif.row.present": ("present policy", "当前策略"),
    "whatif.row.other": ("other policy", "另一策略"),
    "whatif.groups": ("Mean wait of each group:", "各组平均等待："),
    "whatif.users": ("Of each person:", "各人平均等待："),
    "whatif.gaining": ("{count:job|jobs} would start sooner, such as:", "{count} 个任务会更早启动，例如："),
    "whatif.losing": ("{count:job|jobs} would start later, such as:", "{count} 个任务会更晚启动，例如："),
    "whatif.same": ("nobody would start sooner or later", "没有任务会提前或推迟启动"),
    "doctor.journal": ("the journal of decisions is written: {size}", "调度日志正常写入：{size}"),
    "doctor.journal_off": (
        "no journal of decisions is kept (journal_megabytes = 0)",
        "未保存调度日志（journal_megabytes = 0）",
    ),
    "doctor.journal_damaged": (
        "the journal of decisions is written, but damaged: {segments} could not be read to the end; only `yard replay` "
        "and `yard what-if` miss it",
        "调度日志正常写入，但有损坏：{segments} 无法读到末尾；只影响 `yard replay` 和 `yard what-if`",
    ),
    "doctor.journal_broken": (
        "the journal of decisions is not written: {problem}; work goes on without it",
        "调度日志无法写入：{problem}；任务不受影响",
    ),
}
