"""What the command says of fragments and moves, in English and Chinese."""

from __future__ import annotations

FRAGMENTS: dict[str, tuple[str, str]] = {
    "opt.fragments": (
        "free cards that few can use, who waits for that reason, and moves that would help",
        "显示难以使用的空闲卡、因此等待的任务，以及可行的移动方案",
    ),
    "usage.fragments": (
        "--fragments only shows something: it does not go with `{command}`",
        "--fragments 只用于查看，不能与 `{command}` 一起使用",
    ),
    "fragments.free": ("{free:card is|cards are} free.", "空闲 {free} 张卡。"),
    "fragments.total": (
        "{free:card is|cards are} free; {none} of them in places where not even one typical request fits (NO FIT, the"
        " mean over all kinds of requests).",
        "空闲 {free} 张卡，其中 {none} 张所在之处连一个常见请求也放不下（“放不下”一栏，对各种请求取平均）。",
    ),
    "fragments.closed": (
        "{count:machine with cards is|machines with cards are} left out: no new work goes there (see: yard nodes).",
        "另有 {count} 台带卡的机器不接收新任务，未列入（见 yard nodes）。",
    ),
    "fragments.no_requests": (
        "No request for cards is known yet, so nobody can say what would fit.",
        "还没有人请求过卡，无法说明还能放下什么。",
    ),
    "fragments.learned": (
        "Typical requests, by what was submitted of late:",
        "常见请求，根据近期提交的任务得出：",
    ),
    "fragments.asked_now": (
        "Too few submissions are known yet to say what is typical; these are the requests that run or wait now:",
        "提交的任务还太少，无法判断哪些是常见请求；这里列出正在运行或等待的请求：",
    ),
    "fragments.left_over": (
        "LEFT OVER: free cards that remain once as many of that request as fit are placed; each line by itself.",
        "“余下”：这种请求放满之后还剩的空闲卡；每行单独计算。",
    ),
    "fragments.none_waits": (
        "No job waits only because free cards are not together.",
        "没有任务仅仅因为空闲的卡不在一起而等待。",
    ),
    "fragments.card": ("{count} {device} card", "{count} 张 {device} 卡"),
    "fragments.cards": ("{count} {device} cards", "{count} 张 {device} 卡"),
    "fragments.waits": ("{who} (group {group}) asks for {asked}. {words}", "{who}（{group} 组）要 {asked}。{words}"),
    "fragments.move": (
        "{who} (group {group}): {source} -> {nodes}; loses {lost} s of work",
        "{who}（{group} 组）：{source} → {nodes}；会丢失 {lost} 秒的工作",
    ),
}
