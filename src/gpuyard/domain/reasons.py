"""Why something is as it is: a code with facts. The words, in Chinese and English, are made at the edge by `words`.

A reason is stored and sent as `{"code": ..., "facts": {...}}`. Facts are plain JSON and hold what a person needs to act
upon: the quota, node, job or line concerned.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any


class Code(StrEnum):
    """Every reason there is. The comment names its facts; `words` has a sentence in each language for every one."""

    # Waiting: why a queued workload has not started.
    NEW = "waiting.new"  # (none) nobody has looked at it yet
    NEVER_FITS = "waiting.never_fits"  # resource, asked, largest, node
    NEEDS_REPLICAS = "waiting.needs_replicas"  # asked, largest, device, nodes, replicas, each
    NO_SUCH_DEVICE = "waiting.no_such_device"  # device, known
    OVER_QUOTA = "waiting.over_quota"  # scope, who, group, resource, used, limit, asked
    QUOTA_NEVER = "waiting.quota_never"  # scope, who, group, resource, limit, asked
    BUSY = "waiting.busy"  # resource, asked, free, node, jobs, without_end
    ORDER = "waiting.order"  # ahead, ahead_name, position, without_end, kind
    BACK_OFF = "waiting.back_off"  # cause, until
    CARD_HELD = "waiting.card_held"  # node, card, pid, holder
    NO_NODES = "waiting.no_nodes"  # nodes
    NO_SUCH_MODEL = "waiting.no_such_model"  # device, models, known
    NO_SUCH_NODE = "waiting.no_such_node"  # nodes, labels
    POOL_CLOSED = "waiting.pool_closed"  # group, kind, pools, open
    RING = "waiting.ring"  # device, asked, replicas, allowed, whole
    BORROW = "waiting.borrow"  # group, resource, guaranteed, used, asked, common
    BORROW_NEVER = "waiting.borrow_never"  # group, resource, guaranteed, common, asked
    CLEARING = "waiting.clearing"  # jobs
    MOVING = "waiting.moving"  # jobs
    FIFO = "waiting.fifo"  # group, ahead, ahead_name
    BROKEN_INPUT = "waiting.broken_input"  # problem, detail

    # The way of a workload.
    SUBMITTED = "story.submitted"  # by
    PLACED = "story.placed"  # nodes, attempt, images
    STARTING = "story.starting"  # attempt
    RUNNING = "story.running"  # attempt
    STOP_ASKED = "story.stop_asked"  # by
    PAUSE_ASKED = "story.pause_asked"  # by
    RESUMED = "story.resumed"  # by
    ROLE_COMPLETED = "story.role_completed"  # role
    PREEMPTED = "story.preempted"  # by, by_name, by_owner, by_group, rule, lost_seconds, ran_seconds, saved
    MOVES = "story.moves"  # by, by_name, by_owner, by_group, rule, lost_seconds, ran_seconds, saved, nodes, to
    REQUEUED = "story.requeued"  # by
    SAVED_IN_TIME = "story.saved_in_time"  # step, lost_seconds
    REPLACED = "story.replaced"  # job, by
    TAKES_PLACE = "story.takes_place"  # job
    GROUP_MERGED = "story.group_merged"  # source, target, by
    IDLE_SOON = "story.idle_soon"  # idle_seconds, seconds, name
    TIMER_SOON = "story.timer_soon"  # seconds, name
    DISK_SOON = "story.disk_soon"  # used, limit, replica
    KEEPS_CARD = "story.keeps_card"  # device, cards, node, pid, command, seconds, replica
    ASKED_ANEW = "story.asked_anew"  # changes
    PRIORITY_CHANGED = "story.priority_changed"  # before, after, by
    START_ASKED = "story.start_asked"  # by
    REMOVED = "story.removed"  # by
    RETRY = "story.retry"  # cause, number, limit, seconds
    ADOPTED = "story.adopted"  # attempt
    IMAGE_NOT_USED = "story.image_not_used"  # image, engine
    CARDS_SIMULATED = "story.cards_simulated"  # cards
    PULLING = "story.pulling"  # image, replica
    PULL_WAITS = "story.pull_waits"  # image, replica

    # How an attempt or a workload ended.
    SUCCEEDED = "ended.succeeded"  # (none)
    STOPPED = "ended.stopped"  # by
    PAUSED = "ended.paused"  # by
    IDLE = "ended.idle"  # idle_seconds, name
    TIMER = "ended.timer"  # name
    RESTS = "ended.rests"  # by, name
    LEFT = "ended.left"  # name
    EXIT_CODE = "ended.exit_code"  # exit_code, replica
    SIGNALLED = "ended.signalled"  # signal, replica
    OUT_OF_MEMORY = "ended.out_of_memory"  # memory, replica
    TIME_UP = "ended.time_up"  # seconds
    DISK_OVER = "ended.disk_over"  # used, limit, replica
    KEPT_CARD = "ended.kept_card"  # device, cards, node, pid, command, seconds, replica
    SUPERVISOR_LOST = "ended.supervisor_lost"  # replica
    NODE_LOST = "ended.node_lost"  # node, replica
    REBOOTED = "ended.rebooted"  # node, replica
    PORT_TAKEN = "ended.port_taken"  # port, replica
    LAUNCH_FAILED = "ended.launch_failed"  # detail, replica
    SIBLING_ENDED = "ended.sibling_ended"  # replica

    # Seen just before the start: it cannot run.
    NO_START_FILE = "ended.no_start_file"  # path, replica
    NO_SUCH_COMMAND = "ended.no_such_command"  # name, replica
    START_FILE_IS_FOLDER = "ended.start_file_is_folder"  # path, replica
    NOT_READABLE = "ended.not_readable"  # path, replica
    NOT_EXECUTABLE = "ended.not_executable"  # path, replica
    NO_INTERPRETER = "ended.no_interpreter"  # path, interpreter, replica
    WINDOWS_LINES = "ended.windows_lines"  # path, replica
    NO_WORKING_FOLDER = "ended.no_working_folder"  # path, replica
    FOLDER_NOT_WRITABLE = "ended.folder_not_writable"  # path, replica
    UPLOAD_UNDER_WAY = "ended.upload_under_way"  # path, replica
    PULL_FAILED = "ended.pull_failed"  # image, why, detail, replica
    IMAGE_IN_THE_WAY = "ended.image_in_the_way"  # at, replica
    CONTAINER_FAILED = "ended.container_failed"  # why, replica
    REGISTRY_REFUSED = "ended.registry_refused"  # image, registry, allowed

    # Facts: the pieces of the proof in `why`.
    NODE_FACT = "fact.node"  # node, nodes, resource, asked, free, jobs, kept_for, trouble
    QUOTA_FACT = "fact.quota"  # scope, who, group, resource, used, limit, guaranteed, asked
    GANG_FACT = "fact.gang"  # replicas, fit
    JOB_FACT = "fact.job"  # job, job_name, owner, group, cards, device, node, ends_by
    MOVES_FACT = "fact.moves"  # moves, nodes, mode, lacks
    MOVE_FACT = "fact.move"  # job, job_name, source, nodes, lost_seconds

    # Rules: why one comes before the other, with the numbers of both (mine, theirs).
    RULE_GUARANTEE = "rule.guarantee"  # group, resource, guaranteed
    RULE_PEOPLE = "rule.people"  # who, place
    RULE_PRIORITY = "rule.priority"  # mine, theirs, waited, points
    RULE_SHARE = "rule.share"  # group, use, other_group, other_use, weight, other_weight, ahead
    RULE_USER_SHARE = "rule.user_share"  # group, user, use, other_user, other_use, ahead
    RULE_SHORTEST = "rule.shortest"  # mine, theirs
    RULE_LEAST_SERVED = "rule.least_served"  # mine, theirs
    RULE_AGE = "rule.age"  # mine, theirs
    RULE_MADE_ROOM = "rule.made_room"  # rule, group, mine, theirs, at
    RULE_PASSED = "rule.passed"  # reason, at
    RULE_BACKFILL = "rule.backfill"  # ends_by, starts_at
    RULE_NOT_THERE = "rule.not_there"  # submitted_at, at
    RULE_UNKNOWN = "rule.unknown"  # job

    # Guesses: why nobody can tell when it will start or end.
    GUESS_HISTORY = "guess.history"  # runs, least
    GUESS_NEVER = "guess.never"
    GUESS_TROUBLE = "guess.trouble"
    GUESS_ENDLESS = "guess.endless"
    GUESS_PAUSED = "guess.paused"
    GUESS_BUSY = "guess.busy"

    # Notes: said beside a good answer.
    STRANDS = "note.strands"  # resource, asked, share, cards, node
    NAMES_NOTHING = "note.names_nothing"  # at, what, name
    SERVERS_UNUSED = "note.servers_unused"  # placing
    OVER_GUARANTEED = "note.over_guaranteed"  # resource, guaranteed, there
    BELOW_USE = "note.below_use"  # resource, used, limit
    LEAD_NO_MORE = "note.lead_no_more"  # user, source, target
    SHARE_NOT_MOVED = "note.share_not_moved"  # source, target, detail
    SHARE_MOVED = "note.share_moved"  # source, target
    DOOR_UNUSED = "note.door_unused"  # at, line, why
    DOOR_READ_AS = "note.door_read_as"  # at, line, what

    # Refusals: bad input and things one may not do. `at` (line, column or path) says where.
    BAD_VALUE = "refused.bad_value"  # at, problem, value
    UNKNOWN_KEY = "refused.unknown_key"  # at, key, nearest
    MISSING_KEY = "refused.missing_key"  # at, key
    BAD_YAML = "refused.bad_yaml"  # line, column, problem
    TOO_LARGE = "refused.too_large"  # what, size, limit
    NOT_FOUND = "refused.not_found"  # what, name
    AMBIGUOUS = "refused.ambiguous"  # name, matches
    ALREADY_THERE = "refused.already_there"  # what, name
    NOT_ALLOWED = "refused.not_allowed"  # action, whom
    OWNERS_ALONE = "refused.owners_alone"  # owner, keys
    OWNERS_BELONGINGS = "refused.owners_belongings"  # owner
    OWNER_LEFT_GROUP = "refused.owner_left_group"  # owner, group, name
    LOGIN_NEEDED = "refused.login_needed"  # (none)
    COOKIE_ALONE = "refused.cookie_alone"  # (none)
    WRONG_PASSWORD = "refused.wrong_password"  # (none)  # noqa: S105
    PASSWORD_CHANGE_NEEDED = "refused.password_change_needed"  # (none)  # noqa: S105
    WEAK_PASSWORD = "refused.weak_password"  # least  # noqa: S105
    SAME_PASSWORD = "refused.same_password"  # (none)  # noqa: S105
    TOO_MANY_TRIES = "refused.too_many_tries"  # seconds
    TOO_MANY_LIVE = "refused.too_many_live"  # limit
    BAD_CSRF = "refused.bad_csrf"  # (none)
    WRONG_STATE = "refused.wrong_state"  # action, state
    IN_USE = "refused.in_use"  # what, name, by
    SINGLE_USER = "refused.single_user"  # (none)
    NO_NUMBERS = "refused.no_numbers"  # limit
    ENGINE_CANNOT = "refused.engine_cannot"  # engine, what
    IMAGE_REFUSED = "refused.image_refused"  # image, engine
    IMAGE_IN_USE = "refused.image_in_use"  # image, by
    NOT_AN_IMAGE = "refused.not_an_image"  # (none)
    TOO_MANY_PULLS = "refused.too_many_pulls"  # own
    BUSY_STORE = "refused.busy_store"  # seconds
    STORE_FULL = "refused.store_full"  # (none)
    STORE_CORRUPT = "refused.store_corrupt"  # path, detail, command
    STORE_NEWER = "refused.store_newer"  # found, known
    BAD_BACKUP = "refused.bad_backup"  # path, problem
    GENERATION_MOVED = "refused.generation_moved"  # what
    PRIORITY_CEILING = "refused.priority_ceiling"  # asked, ceiling, role
    SAME_KEY_OTHER_JOB = "refused.same_key_other_job"  # key
    NOT_RUNNING = "refused.not_running"  # what, name, state
    NO_TOOLBOX = "refused.no_toolbox"  # what, name
    WHICH_ENVIRONMENT = "refused.which_environment"  # user, names
    NO_ENVIRONMENT = "refused.no_environment"  # names
    NO_FORWARDING = "refused.no_forwarding"  # what, target
    NO_SFTP = "refused.no_sftp"  # (none)
    TOO_MANY_AT_ONCE = "refused.too_many_at_once"  # what, limit
    LOGIN_OVER = "refused.login_over"  # (none)
    GATEWAY_ENDS = "refused.gateway_ends"  # (none)
    DOOR_CLOSED = "refused.door_closed"  # detail
    NOBODY_LISTENS = "refused.nobody_listens"  # what, name
    TOO_MANY_INSIDE = "refused.too_many_inside"  # detail
    INSIDE_FAILED = "refused.inside_failed"  # detail
    BROKER_AWAY = "refused.broker_away"  # (none)
    GATEWAY_AWAY = "refused.gateway_away"  # (none)
    DOOR_REFUSED = "refused.door"  # text, line, column
    NAME_TAKEN = "refused.name_taken"  # name, id
    NO_JOURNAL = "refused.no_journal"  # (none)


NEVER_STARTS = frozenset(
    {
        Code.NEVER_FITS,
        Code.NEEDS_REPLICAS,
        Code.NO_SUCH_DEVICE,
        Code.NO_SUCH_MODEL,
        Code.NO_SUCH_NODE,
        Code.POOL_CLOSED,
        Code.RING,
        Code.QUOTA_NEVER,
        Code.BORROW_NEVER,
    }
)

# More than is guaranteed: as work that may be interrupted it could use what others leave idle.
BORROWS = frozenset({Code.BORROW, Code.BORROW_NEVER})

# Another try would end in the same way: somebody has to change something first.
NO_USE_RETRYING = frozenset(
    {
        Code.NO_START_FILE,
        Code.NO_SUCH_COMMAND,
        Code.START_FILE_IS_FOLDER,
        Code.NOT_READABLE,
        Code.NOT_EXECUTABLE,
        Code.NO_INTERPRETER,
        Code.WINDOWS_LINES,
        Code.NO_WORKING_FOLDER,
        Code.FOLDER_NOT_WRITABLE,
        Code.IMAGE_IN_THE_WAY,
        Code.DISK_OVER,
        Code.KEPT_CARD,
        Code.REGISTRY_REFUSED,
    }
)


@dataclass(frozen=True, slots=True)
class Reason:
    """A code and the facts that go with it."""

    code: Code
    facts: Mapping[str, Any] = field(default_factory=dict)

    def to_json(self) -> dict[str, Any]:
        return {"code": self.code.value, "facts": dict(self.facts)}

    @staticmethod
    def from_json(data: Mapping[str, Any]) -> Reason:
        return Reason(Code(data["code"]), dict(data["facts"]))


def because(code: Code, **facts: Any) -> Reason:
    """Write a reason the way it reads: `because(Code.OVER_QUOTA, who="vision", used=8, limit=8)`."""
    return Reason(code, facts)
