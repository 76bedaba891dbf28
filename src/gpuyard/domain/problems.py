"""What can be wrong with a value somebody sent: the `problem` fact of `BAD_VALUE` and `BAD_YAML`.

A problem is a word, not a sentence, so that it can be told in any language. The comment names the further facts.
"""

from __future__ import annotations

from enum import StrEnum


class Problem(StrEnum):
    """Every way a value can be wrong. `words` has a phrase in each language for every one."""

    # The text itself cannot be read.
    YAML_SYNTAX = "yaml.syntax"  # detail
    TAB = "yaml.tab"
    COLON_MISSING = "yaml.colon_missing"
    COLON_IN_VALUE = "yaml.colon_in_value"
    INDENT = "yaml.indent"
    UNCLOSED_QUOTE = "yaml.unclosed_quote"
    UNCLOSED_BRACKET = "yaml.unclosed_bracket"
    QUOTE_NEEDED = "yaml.quote_needed"  # character
    ESCAPE = "yaml.escape"  # character
    TAG = "yaml.tag"  # tag
    DUPLICATE_KEY = "yaml.duplicate_key"  # key, first_line
    KEY_NOT_TEXT = "yaml.key_not_text"
    SEVERAL_DOCUMENTS = "yaml.several_documents"
    EMPTY = "yaml.empty"
    TOP_NOT_MAPPING = "yaml.top_not_mapping"
    NOT_UTF8 = "yaml.not_utf8"
    TOO_DEEP = "yaml.too_deep"  # limit
    TOO_MANY_NODES = "yaml.too_many_nodes"  # limit
    UNKNOWN_ALIAS = "yaml.unknown_alias"  # alias
    ALIAS_LOOP = "yaml.alias_loop"  # alias
    JSON_SYNTAX = "json.syntax"  # detail
    JSON_NUMBER = "json.number"

    # The value is of the wrong kind.
    NO_VALUE = "value.none"
    MAPPING = "value.mapping"
    LIST = "value.list"
    TEXT = "value.text"
    BLANK = "value.blank"
    BOOLEAN = "value.boolean"
    WHOLE_NUMBER = "value.whole_number"  # least, most
    NUMBER = "value.number"  # above, most
    ONE_OF = "value.one_of"  # allowed, nearest
    TOO_LONG = "value.too_long"  # limit
    TOO_MANY = "value.too_many"  # limit
    REPEATED = "value.repeated"
    CONTROL_CHARACTER = "value.control_character"  # character
    ODD_CHARACTER = "value.odd_character"  # character

    # The value breaks the rule of its key.
    BYTES = "rule.bytes"
    TOO_FEW_BYTES = "rule.too_few_bytes"  # least
    CPU = "rule.cpu"
    CARDS = "rule.cards"
    DURATION = "rule.duration"  # most
    INSTANT = "rule.instant"
    IN_FUTURE = "rule.in_future"
    IDLE_TOO_SHORT = "rule.idle_too_short"  # least
    JOB_NAME = "rule.job_name"
    WORKPLACE_NAME = "rule.workplace_name"
    NOT_CHANGED = "rule.not_changed"
    NOT_A_JOB = "rule.not_a_job"
    PERSON_NAME = "rule.person_name"
    ROLE_NAME = "rule.role_name"
    ENV_NAME = "rule.env_name"
    FACT_NAME = "rule.fact_name"
    PORT_NAME = "rule.port_name"
    COMMAND = "rule.command"
    IMAGE = "rule.image"
    DIGEST = "rule.digest"
    MOUNT_PLACE = "rule.mount_place"
    MOUNT_RESERVED = "rule.mount_reserved"  # place
    MOUNT_INSIDE = "rule.mount_inside"  # place
    RELATIVE_PATH = "rule.relative_path"
    WITH_ROLES = "rule.with_roles"
    ABOUT_THE_JOB = "rule.about_the_job"
    TOTAL_REPLICAS = "rule.total_replicas"  # most
    PRIORITY = "rule.priority"  # least, most, allowed, nearest
    MODEL = "rule.model"
    MODELS_WITHOUT_CARDS = "rule.models_without_cards"
    NODE_NAME = "rule.node_name"
    LABEL_KEY = "rule.label_key"  # limit
    LABEL_VALUE = "rule.label_value"  # limit
    CHECKPOINT = "rule.checkpoint"
    VIRTUAL_NODES = "rule.virtual_nodes"  # limit

    # A policy or a quota contradicts itself.
    POOL = "policy.pool"  # allowed, nearest
    CEILING_ORDER = "policy.ceiling_order"  # role, ceiling, above, its
    NORMAL_CEILING = "policy.normal_ceiling"  # normal, ceiling
    GUARANTEE_LIMIT = "quota.guarantee_limit"  # resource, guaranteed, limit
    USER_GUARANTEE = "quota.user_guarantee"
    SAME_GROUP = "group.same"
    SEVERAL_GROUPS = "group.several"  # allowed
    SAME_WORKLOAD = "workload.same"

    # A public key cannot be used.
    SSH_KEY = "key.none"
    SSH_KEY_BROKEN = "key.broken"
    SSH_KEY_KIND = "key.kind"  # kind, allowed
    SSH_KEY_OPTIONS = "key.options"
    SSH_SEVERAL_KEYS = "key.several"
    SSH_PRIVATE_KEY = "key.private"
    SSH_CERTIFICATE = "key.certificate"
    SSH_RSA_SHORT = "key.rsa_short"  # bits, least
