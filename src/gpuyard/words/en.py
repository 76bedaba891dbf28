"""English: what is wrong, where, and what to do next, for people who never saw a scheduler."""

from __future__ import annotations

from collections.abc import Mapping

from gpuyard.domain.problems import Problem
from gpuyard.domain.reasons import Code
from gpuyard.domain.workload import State
from gpuyard.words import en_queue as queue
from gpuyard.words.en_cards import CARDS
from gpuyard.words.en_doors import DOOR_NOUNS, DOORS
from gpuyard.words.en_images import IMAGE_NOUNS, IMAGES
from gpuyard.words.en_inside import INSIDE, INSIDE_NOUNS
from gpuyard.words.en_workplaces import WORKPLACES
from gpuyard.words.facts import in_rough
from gpuyard.words.language import Facts, Language, Template
from gpuyard.words.policy_en import POLICY_NOUNS, POLICY_PROBLEMS, POLICY_SENTENCES
from gpuyard.words.ssh_en import SSH_NOUNS, SSH_PROBLEMS, SSH_SENTENCES


def _cards_simulated(facts: Facts) -> str:
    if facts.get("cards") == 1:
        return "The card is simulated: nothing is computed on it."
    return "The {cards} cards are simulated: nothing is computed on them."


def _placed(facts: Facts) -> str:
    found = "A place was found[ on {nodes:list}][ for attempt {attempt}][, with {images:list} at hand]"
    return f"{found}; it is about to start."


def _exit_code(facts: Facts) -> str:
    if facts.get("exit_code") in (126, 127):
        return (
            "The command could not be run[ in {replica}]: exit code {exit_code} means it was not found or is not "
            "executable. Check the spelling, the path and the image."
        )
    return "The command[ of {replica}] ended with exit code {exit_code}. Its last log lines usually say why."


def _pull_failed(facts: Facts) -> str:
    why = {
        "denied": "its registry does not let us have it. Ask an admin to log in there, or take another image",
        "not_found": "its registry has no such image. Check the name and the tag",
        "unreachable": "its registry cannot be reached. `yard image ls` shows what is here already",
        "disk_full": "the machine's disk is full",
    }
    said = why.get(str(facts.get("why")), "something went wrong")
    return "The image {image} could not be fetched[ for {replica}]: " + said + "[ ({detail})]."


def _too_large(facts: Facts) -> str:
    if facts.get("what") == "password":
        return "The password is too long: {size} characters, at most {limit} are possible."
    return "The {what:noun} is too large[: {size:memory}, and at most {limit:memory} are taken]. Make it smaller."


def _not_allowed(facts: Facts) -> str:
    if facts.get("whom") == "token":
        return (
            "This token does not allow it[: {action:noun}]. Use one with a wider scope, or log in with your password."
        )
    whom = "an admin" if facts.get("whom") == "admin" else "the group's lead or an admin"
    return f"You may not do this[: {{action:noun}}]. Ask {whom}."


def _not_found(facts: Facts) -> str:
    what, there = facts.get("what"), facts.get("there")
    if what == "attempt" and isinstance(there, int):
        if there == 0:
            return "There is no attempt {name}: it has not been started yet."
        has = "attempt 1 only" if there == 1 else "attempts 1 to {there}"
        return f"There is no attempt {{name}}; it has {has}."
    if what == "replica" and isinstance(there, list) and there:
        have = "only replica is" if len(there) == 1 else "replicas are"
        return f"There is no replica `{{name}}`; its {have} {{there:list}}."
    if what == "workload" and isinstance(there, list) and there:
        return "No {what:noun} of yours is called `{name}`, but of others there is {there:list}. Write the id."
    return "There is no {what:noun}[ called `{name}`], or it is not yours to see."


def _wrong_state(facts: Facts) -> str:
    who = "{name} ({id})" if facts.get("name") and facts.get("id") else "It"
    if facts.get("action") == "instead":
        return f"{who} is {{state:noun}} now; `--instead` needs a job that is waiting. Without it a second one runs."
    if facts.get("state") not in ("succeeded", "failed", "stopped"):
        return f"{who} is {{state:noun}} now, so this is not possible[: {{action:noun}}]."
    if facts.get("action") == "stop":
        return f"{who} has already ended ({{state:noun}}); there is nothing to stop."
    again = "[ `yard rerun {id}` runs it once more.]"
    return f"{who} has already ended ({{state:noun}}), so this is not possible[: {{action:noun}}].{again}"


def _already_there(facts: Facts) -> str:
    if facts.get("what") == "database":
        return "The database[ {name}] is not empty. Take an empty one, or add `--force` to replace what is there."
    if facts.get("what") == "key":
        return "This SSH key[ ({name})] is registered already."
    return "There is already a {what:noun}[ called `{name}`]. Choose another name."


def _missing_key(facts: Facts) -> str:
    if facts.get("key") == "image":
        return (
            "[{at:where}: ]`{key}` is missing: work runs in container images here. Name one with `--image`, or "
            "`image:` in the job file; `yard image ls` shows those that are here."
        )
    return "[{at:where}: ]`{key}` is missing. Add it."


def _bad_value(facts: Facts) -> str:
    return "[{at:where}: ][`{value}` will not do; ]{problem:problem}."


SENTENCES: Mapping[Code, Template] = {
    **POLICY_SENTENCES,
    **SSH_SENTENCES,
    **INSIDE,
    **queue.QUEUE,
    **WORKPLACES,
    **DOORS,
    **CARDS,
    **IMAGES,
    Code.BROKEN_INPUT: (
        "It cannot be placed because something in it is broken: {problem:problem}[ ({detail})]. "
        "Stop it, correct that and submit it again."
    ),
    Code.SUBMITTED: "Submitted[ by {by}].",
    Code.REPLACED: "Replaced by {job}, which has its place in the queue now[ (asked for by {by})].",
    Code.TAKES_PLACE: "It takes the place of {job}.",
    Code.PLACED: _placed,
    Code.STARTING: "Starting[ attempt {attempt}].",
    Code.RUNNING: "Running[, attempt {attempt}].",
    Code.STOP_ASKED: "Being stopped[, asked for by {by}].",
    Code.PAUSE_ASKED: "Being paused[, asked for by {by}]; it keeps its place in the queue.",
    Code.RESUMED: "Back in the queue at its old place[, resumed by {by}].",
    Code.RETRY: (
        "It failed and is tried again[ in {seconds:seconds}][, retry {number}][ of {limit}].[ Before: {cause:reason}]"
    ),
    Code.SAVED_IN_TIME: (
        "It saved its work while it was making room[, at step {step}]: no more than {lost_seconds:rough} of it has to "
        "be done again."
    ),
    Code.ADOPTED: "The server was restarted; the work went on undisturbed[ (attempt {attempt})].",
    Code.CARDS_SIMULATED: _cards_simulated,
    Code.SUCCEEDED: "Finished well.",
    Code.ROLE_COMPLETED: "All of `{role}` has finished well, and with it the job; the rest is stopped.",
    Code.STOPPED: "Stopped[ by {by}].",
    Code.PAUSED: "Paused[ by {by}]. `yard resume` puts it back at its old place in the queue.",
    Code.EXIT_CODE: _exit_code,
    Code.SIGNALLED: "The command[ of {replica}] was ended by signal {signal:noun}.",
    Code.OUT_OF_MEMORY: (
        "It needed more memory than it asked for[ ({memory:memory})][ in {replica}] and was ended. "
        "Ask for more `memory`, or use less (smaller batches, fewer loader workers)."
    ),
    Code.TIME_UP: "Its maximum time[ of {seconds:seconds}] is over. Raise `max_time` if it needs longer.",
    Code.SUPERVISOR_LOST: (
        "The process that looks after it[ ({replica})] was killed, so the work was ended. That is not the job's fault."
    ),
    Code.NODE_LOST: "The machine[ {node}] does not answer[; {replica} was running there]. That is not the job's fault.",
    Code.REBOOTED: "The machine[ {node}] was restarted[ while {replica} was running]. That is not the job's fault.",
    Code.PORT_TAKEN: (
        "It was not started[ ({replica})]: the port {port} it wants to listen on is in use on the machine. Choose "
        "another one in `ports`."
    ),
    Code.LAUNCH_FAILED: "It could not be started[ ({replica})][: {detail}].",
    Code.PULLING: "The image {image} is being fetched[ for {replica}].",
    Code.PULL_FAILED: _pull_failed,
    Code.SIBLING_ENDED: "Ended because another part of the same job[, {replica},] failed.",
    Code.BAD_VALUE: _bad_value,
    Code.UNKNOWN_KEY: "[{at:where}: ]there is no key `{key}`[; did you mean `{nearest}`?][; there is: {known:list}]",
    Code.MISSING_KEY: _missing_key,
    Code.BAD_YAML: "[{at:where}: ]{problem:problem}.",
    Code.TOO_LARGE: _too_large,
    Code.NOT_FOUND: _not_found,
    Code.AMBIGUOUS: "`{name}` means more than one[: {matches:list}]. Write more of the id.",
    Code.ALREADY_THERE: _already_there,
    Code.NOT_ALLOWED: _not_allowed,
    Code.OWNERS_ALONE: (
        "Only its owner[, {owner},] may change this of the environment[: {keys:list}]: it would run in their name. "
        "Others change how much it asks for and where, its priority, when it is stopped, and whether it runs."
    ),
    Code.OWNERS_BELONGINGS: (
        "This job has variables or a shipped folder, and those are its owner's[ ({owner})]. Ask them to run it again "
        "or to give you its file."
    ),
    Code.OWNER_LEFT_GROUP: (
        "Its owner[, {owner},] is not in the group[ {group}] any more, so it does not start there. An admin can bring "
        "them back; or run it once more in another group: `yard rerun[ {name}] --set group=...`."
    ),
    Code.LOGIN_NEEDED: "Please log in: `yard login URL`, or set YARD_TOKEN.",
    Code.COOKIE_ALONE: "A cookie alone is no login. Reload the page and log in again; programs use a token.",
    Code.WRONG_PASSWORD: "Name or password is wrong.",
    Code.PASSWORD_CHANGE_NEEDED: (
        "You still have a one-time password. Choose your own first: `yard password`, or `yard login URL` where you "
        "have not logged in yet."
    ),
    Code.WEAK_PASSWORD: (
        "The password is too easy to guess. Choose another[ of at least {least} characters], not your name."
    ),
    Code.SAME_PASSWORD: "That is the password you already have. Choose another.",
    Code.TOO_MANY_TRIES: "Too many tries. Wait[ {seconds:seconds}] and try again.",
    Code.TOO_MANY_LIVE: (
        "You have too many workloads that have not ended[ (at most {limit})]. Wait until some end, or stop some."
    ),
    Code.BAD_CSRF: (
        "This was sent by a page that is not at the server's own address. Open the console there and try again."
    ),
    Code.WRONG_STATE: _wrong_state,
    Code.IN_USE: "The {what:noun}[ {name}] is in use[ by {by}].",
    Code.NO_NUMBERS: "Every user and every group has system numbers of its own, and all {limit} are given out.",
    Code.SINGLE_USER: (
        "This server does not run as root, so all work would run as the same system user: it can only have one user. "
        "Start it as root to have several."
    ),
    Code.ENGINE_CANNOT: "The {engine} engine cannot do this[: {what:noun}].",
    Code.BUSY_STORE: "The database is busy[ since {seconds:seconds}]. Nothing was changed; try again.",
    Code.STORE_FULL: "The server's disk is full. Nothing was changed. Make room, or ask an admin to.",
    Code.STORE_CORRUPT: (
        "The database[ {path}] is damaged[ ({detail})]. Nothing was changed. Restore the newest backup[: `{command}`]."
    ),
    Code.STORE_NEWER: (
        "The database was written by a newer gpuyard[ (schema {found}; this one knows {known})]. "
        "Install the newer gpuyard."
    ),
    Code.NO_JOURNAL: (
        "No journal of decisions is kept here: `journal_megabytes` in settings.toml is 0. Set it, and start the server "
        "anew; what was decided before cannot be looked at."
    ),
    Code.BAD_BACKUP: "The backup[ {path}] cannot be used[: {problem:problem}]. Nothing was changed.",
    Code.GENERATION_MOVED: "The {what:noun} was changed by somebody else in the meantime. Look again and repeat it.",
    Code.SAME_KEY_OTHER_JOB: "The idempotency key[ `{key}`] was already used for a different job. Use a new key.",
}

PROBLEMS: Mapping[str, str] = {
    **POLICY_PROBLEMS,
    **SSH_PROBLEMS,
    Problem.YAML_SYNTAX: "this is not valid YAML[ ({detail})]",
    Problem.TAB: "there is a tab; YAML is indented with spaces only",
    Problem.COLON_MISSING: "a colon is missing; write `key: value`",
    Problem.COLON_IN_VALUE: (
        "a `: ` is not possible here; put the value in quotes, or look for a missing colon in the line above"
    ),
    Problem.INDENT: "the indentation does not match the lines above",
    Problem.UNCLOSED_QUOTE: "a quote is opened and never closed",
    Problem.UNCLOSED_BRACKET: "a bracket is not closed, or a comma is missing inside it",
    Problem.QUOTE_NEEDED: "a value cannot begin with[ `{character}`] here; put it in quotes",
    Problem.ESCAPE: "`\\{character}` means nothing in double quotes; use single quotes, or write two backslashes",
    Problem.TAG: "tags[ like {tag}] are not used in job files; remove it",
    Problem.DUPLICATE_KEY: "the key `{key}` is written twice[; the first is on line {first_line}]; keep one",
    Problem.KEY_NOT_TEXT: "a key must be a plain word",
    Problem.SEVERAL_DOCUMENTS: "a second document begins here (`---`); there may be only one",
    Problem.EMPTY: "the file is empty; it needs lines like `key: value`, for a job at least `command: python train.py`",
    Problem.TOP_NOT_MAPPING: "expected lines like `key: value`, for a job `command: python train.py`",
    Problem.NOT_UTF8: "the text is not UTF-8; save the file as UTF-8",
    Problem.TOO_DEEP: "it is nested too deeply[ (at most {limit} levels)]",
    Problem.TOO_MANY_NODES: "it has too many values[ (at most {limit}, aliases counted each time)]",
    Problem.UNKNOWN_ALIAS: "the alias[ `*{alias}`] refers to nothing written above; put a text with `*` in quotes",
    Problem.ALIAS_LOOP: "the alias[ `*{alias}`] contains itself",
    Problem.JSON_SYNTAX: "this is not valid JSON[ ({detail:problem})]",
    Problem.JSON_NUMBER: "this is not a usable number",
    Problem.NO_VALUE: "it has no value; write one, or remove the key",
    Problem.MAPPING: "expected keys with values, like `key: value`",
    Problem.LIST: "expected a list: each item on a line of its own, beginning with `- `",
    Problem.TEXT: "expected text; put a number or true/false in quotes",
    Problem.BLANK: "it must not be empty",
    Problem.BOOLEAN: "expected true or false",
    Problem.WHOLE_NUMBER: "expected a whole number[ from {least}][ to {most}]",
    Problem.ONE_OF: "expected one of: {allowed:list}[ (did you mean `{nearest}`?)]",
    Problem.TOO_LONG: "it is too long[ (at most {limit} bytes)]",
    Problem.TOO_MANY: "there are too many[ (at most {limit})]",
    Problem.REPEATED: "it is there twice; each must be different",
    Problem.CONTROL_CHARACTER: "it contains a control character[ ({character})]; remove it",
    Problem.ODD_CHARACTER: "it contains[ {character}], which is not a plain letter or digit; type the name anew",
    Problem.BYTES: "expected an amount like 512M, 16G or 1.5T, at most 1024T",
    Problem.TOO_FEW_BYTES: (
        "that is too little[ (at least {least:memory})]; a number without a unit means bytes, so write 16G for 16 GB"
    ),
    Problem.CPU: "expected cores like 4, 0.5 or 500m, at most 10000",
    Problem.CARDS: "expected whole cards like 1 or 8, a share of one card like 0.5, or 0 for none; at most 100000",
    Problem.INSTANT: "expected a time like 2026-11-15T08:30Z",
    Problem.IN_FUTURE: "that is in the future, and nothing is known of it yet",
    Problem.IDLE_TOO_SHORT: "nobody could work in it; expected at least {least:seconds}, or `off`",
    Problem.DURATION: "expected a time like 90s, 30m, 2h30m or 1d[, at most {most:seconds}]",
    Problem.WORKPLACE_NAME: "expected 1 to 27 letters, digits or underscores",
    Problem.NOT_CHANGED: "this cannot be changed; create another one instead",
    Problem.NOT_A_JOB: "it is a dev environment: `yard env start` starts it again",
    Problem.JOB_NAME: "expected 1 to 63 letters, digits, dots, dashes or underscores, beginning with a letter or digit",
    Problem.PERSON_NAME: "expected 1 to 32 small letters, digits, dashes or underscores, beginning with a letter",
    Problem.ROLE_NAME: "expected 1 to 16 small letters or digits, beginning with a letter, like `worker`",
    Problem.FACT_NAME: "expected letters, digits, `.`, `_` and `-`, beginning with a letter",
    Problem.ENV_NAME: "expected letters, digits and underscores, not beginning with a digit, like `MY_SETTING`",
    Problem.PORT_NAME: "expected 1 to 31 small letters, digits or dashes, beginning with a letter",
    Problem.COMMAND: "expected a command as text, or as a list of words",
    Problem.IMAGE: "expected an image like `pytorch/pytorch:2.4` or `registry.example.com:5000/team/image@sha256:...`",
    Problem.DIGEST: "expected a SHA-256 digest: 64 characters of 0-9 and a-f",
    Problem.MOUNT_PLACE: ("expected an absolute path like `/data`, of letters, digits and `._+@=-`, without `..`"),
    Problem.MOUNT_RESERVED: "[{place} ]belongs to the system; mount it elsewhere, for example at `/data`",
    Problem.MOUNT_INSIDE: "one mount cannot be inside another[ ({place})]; choose places side by side",
    Problem.RELATIVE_PATH: "expected a path inside the volume like `data/train`, not absolute and without `..`",
    Problem.WITH_ROLES: "a file with `roles` says this inside each role; move it there",
    Problem.ABOUT_THE_JOB: "this is said once for the whole job; move it out of the role, to the top",
    Problem.TOTAL_REPLICAS: "all roles together have too many replicas[ (at most {most})]",
    Problem.PRIORITY: (
        "expected a whole number[ from {least}][ to {most}][, or one of {allowed:list}][ (did you mean `{nearest}`?)]"
    ),
    Problem.MODEL: "expected the name of a card model like `A100` or `910B`, with letters and digits",
    Problem.MODELS_WITHOUT_CARDS: "models are of cards, but `cards` is missing: say how many, like `cards: 1`",
    Problem.NODE_NAME: "expected the name of a machine, as `yard nodes` shows it",
    Problem.LABEL_KEY: (
        "expected the name of a label: letters, digits, `.`, `_`, `/` and `-`, with a letter or digit at both ends"
        "[, at most {limit} characters]"
    ),
    Problem.LABEL_VALUE: "expected the value of a label: text on one line[, at most {limit} characters]",
    Problem.VIRTUAL_NODES: (
        "expected COUNTxCARDS[ with at most {limit} cards], then perhaps `:` and a model or a type, like `20x8`, "
        "`10x8:A100,4x8:P100` or `2x8:ascend/910B`"
    ),
    Problem.CHECKPOINT: (
        "expected the folder where the job saves its work, like `out/checkpoints` (in its home) or `/data/run7`, "
        "without `..`"
    ),
    "expected a number": "expected a number[ above {above}][ below {below}][ from {least}][ to {most}]",
}

STATES: Mapping[State, str] = {state: state.value for state in State}

NOUNS: Mapping[str, str] = {
    **POLICY_NOUNS,
    **SSH_NOUNS,
    **INSIDE_NOUNS,
    **IMAGE_NOUNS,
    **DOOR_NOUNS,
    "workload": "job",
    "workplace": "dev environment",
    "start": "start",
    "workdir": "shipped folder",
    "job_file": "file",
    "command": "command",
    "env": "environment",
    "body": "request",
    "memory": "of memory",
    "shm": "of shared memory",
    "exit": "the command failed",
    "oom": "it ran out of memory",
    "lost": "the machine or its supervisor was lost",
    "launch": "it could not be started",
    "time": "its maximum time was over",
    "session.show": "see who is logged in",
    "session.end": "log out",
    "password.change": "change the password",
    "token.list": "see tokens",
    "token.create": "make a token",
    "token.revoke": "revoke a token",
    "workload.show": "see this job",
    "workload.submit": "submit work in this group",
    "workload.control": "stop, pause, resume or rerun this job",
    "workload.enter": "enter it; only its owner and admins do",
    "workdir.upload": "ship a folder",
    "image.list": "see the images",
    "image.pull": "fetch an image",
    "image.change": "load or remove images",
    "images": "run work in images",
    "enter": "let anybody into its work",
    "image": "image",
    "cluster.show": "see the machines",
    "node.cordon": "take a machine out of use",
    "node.label": "label a machine",
    "user.show": "see this user",
    "user.create": "add a user",
    "user.change": "change a user",
    "user.password": "set a user's password",
    "user.remove": "remove a user",
    "group.show": "see this group",
    "group.create": "add a group",
    "group.change": "change a group",
    "group.remove": "remove a group",
    "group.member": "change who is in the group",
    "group.quota": "set this quota",
    "audit.show": "read the audit trail",
    "ring": "but not in one ring",
    "empty": "even when nothing runs there",
    "cordoned": "an admin has taken it out of use",
    "store.backup": "make a backup",
    "journal.replay": "look into the journal, which holds everybody's work",
    "replay": "replay",
    "replays": "replays",
}


def _rough(seconds: float) -> str:
    return in_rough(seconds, (" s", " min", " h", " d"), " ")


def _seconds(seconds: float) -> str:
    if seconds < 1:
        return f"{seconds:.1f} seconds"
    parts = []
    rest = round(seconds)
    for size, name in ((86400, "day"), (3600, "hour"), (60, "minute"), (1, "second")):
        count, rest = divmod(rest, size)
        if count:
            parts.append(f"{count} {name}{'' if count == 1 else 's'}")
    return " ".join(parts[:2])


ENGLISH = Language(
    sentences=SENTENCES,
    problems=PROBLEMS,
    states=STATES,
    nouns=NOUNS,
    comma=", ",
    more=" and {count} more",
    core="1 core",
    cores="{count} cores",
    card="1 {device} card",
    cards="{count} {device} cards",
    seconds=_seconds,
    rough=_rough,
    sorts=queue.SORTS,
    changes=queue.CHANGES,
    change_of_role=queue.CHANGE_OF_ROLE,
    changes_and=queue.CHANGES_AND,
    change_starts=queue.CHANGE_STARTS,
    change_starts_somewhere=queue.CHANGE_STARTS_SOMEWHERE,
    at_line="line {line}, column {column}",
    at_path="{path}",
    at_both="line {line}, column {column} ({path})",
)
