"""English: why something waits, the facts that show it, and the rules by which one comes before the other."""

from __future__ import annotations

from collections.abc import Mapping

from gpuyard.domain.reasons import Code
from gpuyard.words.facts import all_end_with
from gpuyard.words.language import Facts, Template


def _never_fits(facts: Facts) -> str:
    if facts.get("resource") == "nodes":
        return (
            "It can never start as it is: it wants {asked} machines, one for each replica, and only {largest} will do. "
            "Ask for fewer replicas, or leave `together` out."
        )
    if facts.get("node"):
        return (
            "It can never start as it is: each replica asks for {asked:amount}, and the largest machine ({node}) has "
            "{largest:amount}[; all machines together have {total:amount}]. Ask for less."
        )
    who = "it asks" if facts.get("replicas") in (None, "", 1) else "its {replicas} replicas together ask"
    where = "all machines together have"
    if facts.get("together") == "one_node":
        where = "the largest machine has"
    elif facts.get("pools"):
        where = "the machines open to it (pool {pools:list}) together have"
    return (
        f"It can never start as it is: {who} for {{asked:amount}}, and {where} "
        "{largest:amount}. Ask for less, or for fewer replicas."
    )


def _needs_replicas(facts: Facts) -> str:
    cards = "card" if facts.get("each") == 1 else "cards"
    machines = "machine is" if facts.get("nodes") == 1 else "machines are"
    return (
        "No single machine has {asked} {device} cards; the largest has {largest}. Split it over machines: ask for "
        f"{{replicas}} replicas with {{each}} {cards} each.[ {{nodes}} {machines} there.]"
    )


def _no_such_device(facts: Facts) -> str:
    if "known" in facts and not facts["known"]:
        return (
            "There are no {device} cards here, nor any others. To try a machine without cards, start the server with "
            "`yard up --simulate-cards 8`; or ask for `cards: 0`."
        )
    return "There are no {device} cards here[; there is: {known:list}]. Choose another `device`, or ask for `cards: 0`."


def _over_quota(facts: Facts) -> str:
    used, limit = facts.get("used"), facts.get("limit")
    full = not isinstance(used, int) or not isinstance(limit, int) or used >= limit
    state = "is used up" if full else "has not enough left"
    if facts.get("scope") == "user":
        return (
            f"The quota of {{who}}[ in group {{group}}] {state}: {{used:bare}} of {{limit:amount}} in use, this asks "
            "for {asked:bare}. It starts when some of {who}'s other work ends; stop something, ask for less, or ask "
            "the group's lead for more."
        )
    return (
        f"The quota of group {{who}} {state}: {{used:bare}} of {{limit:amount}} in use, this asks for {{asked:bare}}. "
        "It starts when some of the group's work ends; stop something, ask for less, or ask an admin for more."
    )


def _quota_never(facts: Facts) -> str:
    who = "{who}[ in group {group}]" if facts.get("scope") == "user" else "group {who}"
    whom = "the group's lead" if facts.get("scope") == "user" else "an admin"
    return (
        f"It can never start as it is: it asks for {{asked:amount}}, and the quota of {who} is {{limit:bare}} at most. "
        f"Ask for less, or ask {whom} to raise the quota."
    )


_LENDS = (
    " Nobody knows when that will be: {without_end:list} was there before it and has no known end. Until that is over, "
    "jobs behind it go on in half of the cores and memory kept for it; from then on nobody new does."
)


def _busy(facts: Facts) -> str:
    until = " Work that may be interrupted for it has to have run a while first: from {ripe_at:moment} on."
    end = (until if facts.get("ripe_at") else "") + (_LENDS if facts.get("without_end") else "")
    end += " It starts by itself."
    pool = " of those open to it (pool {pools:list})" if facts.get("pools") else ""
    if facts.get("fitting"):
        return (
            "Waiting for running work to end: just now there is room for {fitting} of its {replicas} replicas, and "
            f"they start together or not at all.{end}"
        )
    if facts.get("ring"):
        return (
            "Waiting for running work to end: a replica needs {asked:amount} of linked chips, and the best machine"
            f"{pool} ({{node}}) has enough free chips, but not in one ring.[ Running there: {{jobs:list}}.]{end}"
        )
    if facts.get("node"):
        return (
            "Waiting for running work to end: a replica needs {asked:amount}, and the best machine"
            f"{pool} ({{node}}) has {{free:amount}} free just now.[ Running there: {{jobs:list}}.]{end}"
        )
    return (
        "Waiting for running work to end: it needs {asked:amount}; free just now: {free:amount}."
        "[ Running: {jobs:list}.] It starts by itself."
    )


def _order(facts: Facts) -> str:
    who = "{ahead_name} ({ahead})" if facts.get("ahead_name") else "{ahead}"
    quota = "[ for the same {quota} quota]" if facts.get("quota") else ""
    lends = ""
    if facts.get("without_end"):
        lends = (
            " Nobody knows when that one can start: {without_end:list} came before it and has no known end. Until then "
            "jobs go on in half of the cores and memory kept for it, "
        )
        lends += (
            "but a {kind:noun} does not, since it has no end."
            if facts.get("kind") == "env"
            else "and what is left of that half does not do for this[ {kind:noun}]."
        )
    return (
        f"Waiting its turn[, number {{position}} in the queue]: {who} stands before it and is waiting"
        f"{quota} too.{lends} It starts by itself after that."
    )


def _card_held(facts: Facts) -> str:
    process = "[, process {pid}]" if facts.get("pid") else ""  # 0: not known
    return (
        f"Card {{card}} on {{node}} is free on paper, but something still holds it[ ({{holder}})]{process}. "
        "It is given out once that lets go; its owner or an admin can end that process."
    )


def _no_nodes(facts: Facts) -> str:
    if all_end_with(facts.get("nodes"), "(disk_full)"):
        return (
            "The disk of the machines that could take it is nearly full: {nodes:list}. It starts when there is room "
            "again: remove what you do not need, or ask an admin."
        )
    if facts.get("nodes"):
        return (
            "The machines that could take it are not available: {nodes:list}. It starts when one of them is back; "
            "ask an admin."
        )
    return "No machine is available just now. It starts when one is back; ask an admin, or see `yard nodes`."


def _no_such_node(facts: Facts) -> str:
    if facts.get("nodes") and not facts.get("labels"):
        return (
            "It can never start as it is: there is no machine {nodes:list} that has what it asks for. "
            "See `yard nodes`, and change or leave out `where`."
        )
    named = "[ called {nodes:list}]" if facts.get("nodes") else ""
    labelled = "[ with the label {labels:list}]" if facts.get("labels") else ""
    return (
        f"It can never start as it is: it insists on a machine{named}{labelled}, and no machine that has what it asks "
        "for is one. See `yard nodes`, and change or leave out `where`."
    )


def _clearing(facts: Facts) -> str:
    return (
        "Room is being made for it: preemptible work goes back into the queue[ ({jobs:list})]. It starts by itself as "
        "soon as that has let go of its cards."
    )


def _fifo(facts: Facts) -> str:
    who = "{ahead_name} ({ahead})" if facts.get("ahead_name") else "{ahead}"
    return (
        f"Group {{group}} runs strictly in the order of submission: {who} came earlier and still waits. "
        "It starts by itself after that."
    )


def _preempted(facts: Facts) -> str:
    who = "{by_name} ({by})" if facts.get("by_name") else "{by}"
    if not facts.get("by"):
        who = "more urgent work"
    rules = {
        "guarantee": ", which takes back what is guaranteed to its group",
        "priority": ", which has a higher priority",
        "turn": ", whose turn is earlier: it had less card-time so far, or has less left to run",
    }
    rule = rules.get(str(facts.get("rule")), "")
    lost = "[ At most {lost_seconds:rough} of work is lost: what it did since its last checkpoint.]"
    if facts.get("saved") is False:
        lost = (
            " It had saved nothing by then: unless it did while it was ending, all of that is lost. To lose less, let "
            "it save now and then and name the folder with `checkpoint:` (docs/tutorials/preemption.md)."
        )
    return (
        f"Made room for {who}[ of {{by_owner}}][, group {{by_group}}]{rule}."
        f"[ It had run for {{ran_seconds:rough}}.]{lost} It keeps its place in the queue and starts again by itself."
    )


def _moves(facts: Facts) -> str:
    who = "{by_name} ({by})" if facts.get("by_name") else "{by}"
    if not facts.get("by"):
        who = "another job"
    lost = "[ At most {lost_seconds:rough} of work is lost: what it did since its last checkpoint.]"
    if facts.get("saved") is False:
        lost = (
            "[ It had saved nothing by then: unless it did while it was ending, {lost_seconds:rough} of work is lost.] "
            "To lose less, let it save now and then and name the folder with `checkpoint:` "
            "(docs/tutorials/preemption.md)."
        )
    return (
        f"Moves to other cards, so that {who}[ of {{by_owner}}][, group {{by_group}},] has its cards together."
        f"[ It had run for {{ran_seconds:rough}}.]{lost} Its new place[ on {{nodes:list}}] is kept for it: it starts "
        "again there as soon as it has stopped."
    )


def _moves_fact(facts: Facts) -> str:
    beside = {"cpu": "without enough cores beside them", "memory": "without enough memory beside them"}
    free = f"Cards enough for it are free, but {beside.get(str(facts.get('lacks')), 'not together')}"
    if facts.get("mode") == "never":
        return f"{free}. Nobody is moved, by policy (`defragment.mode`)."
    if facts.get("moves") == 0:
        return (
            f"{free}, and no few moves of preemptible work that has run for long enough would start it (`defragment` "
            "in `yard policy show`)."
        )
    moves = "1 move" if facts.get("moves") == 1 else "[{moves} ]moves"
    end = " Nothing is moved by itself: an admin can allow it with `yard policy set defragment.mode=move`."
    if facts.get("mode") == "move":
        end = " They are carried out once it has waited long enough (`defragment.after` in `yard policy show`)."
    return f"{free}: {moves} of preemptible work would start it[ on {{nodes:list}}].{end}"


def _called(facts: Facts) -> str:
    return "{job_name} ({job})" if facts.get("job_name") not in (None, "", facts.get("job")) else "{job}"


def _move_fact(facts: Facts) -> str:
    who = _called(facts) if facts.get("job") else "A job"
    return (
        f"{who} could move[ from {{source:list}}][ to {{nodes:list}}][; it would lose {{lost_seconds:rough}} of work]."
    )


def _node_fact(facts: Facts) -> str:
    alike = "" if facts.get("nodes") in (None, "", 0, 1) else " ({nodes} machines alike)"
    trouble = "[; {trouble:noun}]"
    kept = "[; kept for {kept_for}, which comes first]"
    jobs = "[; running there: {jobs:list}]" if facts.get("jobs") else ""
    if not facts.get("resource"):
        return f"{{node}}{alike}{trouble}{kept}{jobs}."
    most = "at most " if facts.get("most") else ""
    return f"{{node}}{alike}: {{asked:bare}} asked, {most}{{free:amount}} free{trouble}{kept}{jobs}."


def _job_fact(facts: Facts) -> str:
    holds = "holds {cards:cards}" if facts.get("cards") else "runs"
    who = f"{_called(facts)}[ of {{owner}}][, group {{group}},]"
    return f"{who} {holds}[ on {{node}}][, until {{ends_by:moment}} at the latest]."


def _quota_fact(facts: Facts) -> str:
    who = "{who}[ in group {group}]" if facts.get("scope") == "user" else "group {who}"
    guaranteed = "[, {guaranteed:bare} guaranteed]" if facts.get("guaranteed") else ""
    limit = "[ of at most {limit:bare}]"
    return f"Quota of {who}: {{used:amount}} in use{limit}{guaranteed}; this asks for {{asked:bare}}."


def _rule_priority(facts: Facts) -> str:
    aged = ", {points} of it for having waited[ {waited:rough}]" if facts.get("points") else ""
    return f"Its priority is higher: {{theirs}} against {{mine}}{aged}."


def _rule_made_room(facts: Facts) -> str:
    rules = {
        "guarantee": ": it takes back what is guaranteed to group {group}",
        "priority": ": its priority is higher ({theirs} against {mine})",
        "turn": ": it had less card-time so far, or had less left to run",
        "defragment": ", by moving to a place that was kept for it",
    }
    rule = rules.get(str(facts.get("rule")), "")
    return f"The other had to make room for it[ ({{at:moment}})]{rule}."


def _rule_shortest(facts: Facts) -> str:
    if facts.get("mine") is None:
        return "It declares when it is over[: at most {theirs:rough} are left]; the other declares no `max_time`."
    return "It has less left to run[: at most {theirs:rough}, against {mine:rough} of the other]."


def _rule_people(facts: Facts) -> str:
    who = "{who}" if facts.get("who") else "Its owner"
    return f"{who} is number {{place}} on the admin's list of people who come first."


COUNTED = "Older use counts less[, and running work counts for the next {ahead:rough} too]."


def _rule_user_share(facts: Facts) -> str:
    who = "{user}" if facts.get("user") else "Its owner"
    other = "of {other_user}" if facts.get("other_user") else "of the other's owner"
    return (
        f"{who} used less of late[ in group {{group}}]: {{use}} card-hours of counted use, against {{other_use}} "
        f"{other}. {COUNTED}"
    )


def _rule_share(facts: Facts) -> str:
    return (
        "Group {group} used less of late: {use} card-hours of counted use, against {other_use} of group {other_group}. "
        f"{COUNTED}[ The use of {{group}} is divided by its weight, {{weight}}.]"
        "[ The use of {other_group} is divided by its weight, {other_weight}.]"
    )


def _guess_history(facts: Facts) -> str:
    runs = {0: "no run has", 1: "1 run has"}.get(facts.get("runs", 0), "{runs} runs have")
    return (
        f"Nobody can tell yet: {runs} ended here so far, and {{least}} are needed to tell how long work runs. "
        "Jobs with a maximum duration can be told about sooner."
    )


def _strands(facts: Facts) -> str:
    cards = "1 card" if facts.get("cards") == 1 else "{cards} cards"
    return (
        f"It asks for much for its cards: {{asked:amount}}, where the fair share is {{share:bare}}. On {{node}} that "
        f"leaves {cards} that nobody can use. If it needs less, ask for less, or leave `{{resource}}` out: then it "
        "gets its fair share."
    )


QUEUE: Mapping[Code, Template] = {
    Code.NEW: "Just submitted; it is being looked at.",
    Code.NEVER_FITS: _never_fits,
    Code.NEEDS_REPLICAS: _needs_replicas,
    Code.NO_SUCH_DEVICE: _no_such_device,
    Code.OVER_QUOTA: _over_quota,
    Code.QUOTA_NEVER: _quota_never,
    Code.BUSY: _busy,
    Code.ORDER: _order,
    Code.BACK_OFF: "It failed and is tried again[ at {until:moment}], after a short pause.[ Before: {cause:reason}]",
    Code.CARD_HELD: _card_held,
    Code.NO_NODES: _no_nodes,
    Code.NO_SUCH_MODEL: (
        "It can never start as it is: no machine has {device} cards of the model {models:list}[; there is: "
        "{known:list}]. Name one of those in `models`, or leave `models` out."
    ),
    Code.NO_SUCH_NODE: _no_such_node,
    Code.POOL_CLOSED: (
        "It can never start as it is: a {kind:noun} of group {group} may only use a part of the cluster"
        "[ ({pools:list})], and that part has not got what it asks for[; it has: {open:list}]. Ask for what is there, "
        "or ask an admin (`yard policy show` tells the rules)."
    ),
    Code.RING: (
        "It can never start as it is: {device} chips are linked in rings, so a replica takes {allowed:list} of them, "
        "and several replicas take {whole} each; this asks for {asked} in each of {replicas}. Change `cards`."
    ),
    Code.BORROW: (
        "Group {group} is guaranteed {guaranteed:amount} and uses {used:bare}. Beyond that, work that may not be "
        "interrupted gets only what is guaranteed to nobody: of that {common:amount} are left, and this asks for "
        "{asked:bare}[, {needs:bare} of them from there]. With `preemptible: true` it may use what others leave idle; "
        "or wait until work ends that uses it."
    ),
    Code.BORROW_NEVER: (
        "It can never start as it is: group {group} is guaranteed {guaranteed:amount}, {common:bare} are guaranteed to "
        "nobody, and work that may not be interrupted gets no more than these; this asks for {asked:bare}. With "
        "`preemptible: true` it may use what others leave idle; or ask an admin for a larger guarantee."
    ),
    Code.CLEARING: _clearing,
    Code.MOVING: (
        "Its cards are being brought together: preemptible work moves elsewhere[ ({jobs:list})]. It starts by itself "
        "as soon as that has let go of its cards."
    ),
    Code.FIFO: _fifo,
    Code.PREEMPTED: _preempted,
    Code.MOVES: _moves,
    Code.REQUEUED: "Back in the queue at its old place[, after making room for {by}]; it starts again by itself.",
    Code.GROUP_MERGED: "Group {source} was merged into group {target}[ by {by}]; it goes on there unchanged.",
    Code.NODE_FACT: _node_fact,
    Code.QUOTA_FACT: _quota_fact,
    Code.GANG_FACT: "Its {replicas} replicas start together or not at all; there is room for {fit} of them now.",
    Code.JOB_FACT: _job_fact,
    Code.MOVES_FACT: _moves_fact,
    Code.MOVE_FACT: _move_fact,
    Code.RULE_GUARANTEE: (
        "Group {group} stays within what is guaranteed to it[ ({guaranteed:amount})], and that comes before all else."
    ),
    Code.RULE_PEOPLE: _rule_people,
    Code.RULE_PRIORITY: _rule_priority,
    Code.RULE_SHARE: _rule_share,
    Code.RULE_USER_SHARE: _rule_user_share,
    Code.RULE_SHORTEST: _rule_shortest,
    Code.RULE_LEAST_SERVED: (
        "It had less card-time itself so far[: {theirs} card-hours, against {mine} of the other]. All its attempts "
        "count, in levels; on the same level the older comes first."
    ),
    Code.RULE_AGE: "It came first: submitted {theirs:moment}; the other {mine:moment}.",
    Code.RULE_MADE_ROOM: _rule_made_room,
    Code.RULE_PASSED: "The other could not start just then[ ({at:moment})][. {reason:reason}]",
    Code.RULE_BACKFILL: (
        "It only fills a gap and delays nobody: it is over by {ends_by:moment}, and the other cannot start before "
        "{starts_at:moment}."
    ),
    Code.RULE_NOT_THERE: (
        "The other was not there yet: it was submitted {submitted_at:moment}, when this one already had its place "
        "({at:moment})."
    ),
    Code.RULE_UNKNOWN: "Nothing is written down any more that would tell why {job} came first.",
    Code.GUESS_HISTORY: _guess_history,
    Code.GUESS_NEVER: "It will not start as it is, however long it waits.",
    Code.GUESS_TROUBLE: "Nobody can tell: something has to be repaired, or brought back, before it can start.",
    Code.GUESS_ENDLESS: "Nobody can tell: it waits for something of which no end is in sight.",
    Code.GUESS_PAUSED: "It is paused: it starts when somebody resumes it.",
    Code.GUESS_BUSY: "Too many ask at once when work would start. Ask again in some seconds.",
    Code.STRANDS: _strands,
    Code.PRIORITY_CHANGED: "Its priority is {after} now; it was {before}[ (changed by {by})].",
    Code.PRIORITY_CEILING: (
        "Priority {asked} is more than your role ({role:noun}) may ask for; the most is {ceiling}. Ask for less, or "
        "ask someone who may."
    ),
}

SORTS: Mapping[str, str] = {
    "never": "It can never start as it is: no waiting will help",
    "quota": "It waits for quota",
    "busy": "It waits for running work to end",
    "order": "It waits its turn: others come first",
    "trouble": "It waits because something is broken",
    "taken_out": "It waits because machines were taken out by an admin",
}

# What to change, by the key of the job file; an empty value takes the key out.
CHANGES: Mapping[str, str] = {
    "cards": "ask for {value} cards",
    "cards.one": "ask for 1 card",
    "cards.share": "ask for a part of one card ({value})",
    "cards.split": "split it into {replicas} replicas with {value} each, if your program can run distributed",
    "replicas": "ask for {value} replicas",
    "replicas.one": "ask for 1 replica",
    "device": "use {value} cards",
    "models": "take the model {value}",
    "models.none": "take cards of any model",
    "cpu": "ask for {value} cores",
    "cpu.one": "ask for 1 core",
    "memory": "ask for {value} of memory",
    "shm": "ask for {value} of shared memory",
    "group": "submit it in group {value}",
    "preemptible": "let it be interrupted when others need the cards",
    "max_time": "promise that it is over within {value}, so that it delays nobody",
    "where.none": "do not insist on certain machines",
    "together": "let its replicas be on any machines",
}
CHANGE_OF_ROLE = "for {role}: {change}"
CHANGES_AND = " and "
CHANGE_STARTS = "{change}: it would start on {nodes}."
CHANGE_STARTS_SOMEWHERE = "{change}: it would start now."
