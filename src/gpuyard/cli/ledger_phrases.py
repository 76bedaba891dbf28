"""What the command says of the card ledger, in English and Chinese."""

from __future__ import annotations

LEDGER: dict[str, tuple[str, str]] = {
    "ledger": (
        "Where the cards' time went: every card-second in exactly one bucket.",
        "卡的时间都去了哪里：每一卡秒恰好归入一类。",
    ),
    "ledger.examples": (
        "\b\nExamples:\n"
        "  yard ledger --since 1d\n"
        "  yard ledger --since 2026-11-01 --until 2026-11-08 --by node\n"
        "  yard ledger --since 30d --by model -o json\n\n"
        "With -o json amounts are whole numbers, in millionths of a card-second, and sum to `capacity` exactly.",
        "\b\n示例：\n"
        "  yard ledger --since 1d\n"
        "  yard ledger --since 2026-11-01 --until 2026-11-08 --by node\n"
        "  yard ledger --since 30d --by model -o json\n\n"
        "-o json 中的数量都是整数，单位是百万分之一卡秒，各类之和恰好等于 `capacity`。",
    ),
    "opt.ledger_since": (
        "from then on: 7d is a week ago, or a date (usual: 7d); full hours, and full days once a week old",
        "起始时间：7d 表示一周前，也可写日期（默认 7d）；按整小时计，一周以前按整天计",
    ),
    "opt.ledger_until": (
        "up to then (usual: now); full hours, and full days once a week old",
        "截止时间（默认：现在）；按整小时计，一周以前按整天计",
    ),
    "opt.ledger_by": ("what the lines are told apart by (usual: day, in UTC)", "按什么分行（默认：day，按 UTC 日期）"),
    "ledger.period": (
        "{since} to {until}: {hours} card-hours",
        "{since} 至 {until}：共 {hours} 卡时",
    ),
    "ledger.wider": (
        "this is more than {since} to {until}: what is kept are full hours, and full days once a week old (UTC)",
        "所查的是 {since} 至 {until}，以上范围更大：账目按整小时记录，一周以前按整天（UTC）",
    ),
    "ledger.untold": (
        "of what is used, {share} was not measured: the devices did not tell, or it had only begun",
        "已用部分中有 {share} 没有测量数据：设备不提供，或刚刚开始",
    ),
    "ledger.none": ("there were no cards in that time", "这段时间内没有卡"),
    "ledger.capacity": ("capacity", "总容量"),
    "ledger.unhealthy": ("unhealthy", "异常"),
    "ledger.draining": ("closed for new work", "暂停分配"),
    "ledger.free": ("free", "空闲"),
    "ledger.quota": ("blocked by quota", "受配额阻挡"),
    "ledger.reserved": ("reserved", "预留"),
    "ledger.fragmented": ("fragmented", "碎片"),
    "ledger.idle": ("given out, but idle", "已分配但闲置"),
    "ledger.used": ("used", "已用"),
}
