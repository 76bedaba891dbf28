"""The tables, as the newest migration leaves them. A test compares the two on both databases."""

from __future__ import annotations

from typing import Any

import sqlalchemy as sa
from sqlalchemy.types import TypeDecorator

LIVE = "state NOT IN ('succeeded', 'failed', 'stopped')"
"""Which workloads are live, in the very words of the partial index: a database uses it only when they are the same."""


def plain_text(value: str | None) -> str | None:
    """NUL and lone surrogates, which one of the databases refuses, become U+FFFD."""
    if value is None or (value.isascii() and "\0" not in value):
        return value
    return value.replace("\0", "\ufffd").encode("utf-8", "surrogatepass").decode("utf-8", "replace")


class PlainText(TypeDecorator[str]):
    """Text that both databases can hold.

    Sorted by code point on both (`C`), so that prefixes and pages mean the same.
    """

    impl = sa.Text
    cache_ok = True

    def load_dialect_impl(self, dialect: sa.Dialect) -> Any:
        return sa.Text(collation="C") if dialect.name == "postgresql" else sa.Text()

    def process_bind_param(self, value: str | None, dialect: sa.Dialect) -> str | None:
        return plain_text(value)


metadata = sa.MetaData(
    naming_convention={
        "pk": "pk_%(table_name)s",
        "fk": "fk_%(table_name)s_%(referred_table_name)s",
        "uq": "uq_%(table_name)s_%(column_0_N_name)s",
    }
)

Seconds = sa.Double  # epoch seconds, as the caller's clock told them
Sequence = sa.BigInteger().with_variant(sa.Integer(), "sqlite")  # SQLite numbers only INTEGER keys by itself


def _numbered(name: str) -> sa.Column[Any]:
    return sa.Column(name, Sequence, primary_key=True, autoincrement=True)


workloads = sa.Table(
    "workloads",
    metadata,
    sa.Column("id", PlainText, primary_key=True),
    sa.Column("owner", PlainText, nullable=False),
    sa.Column("group_name", PlainText, nullable=False),
    sa.Column("name", PlainText, nullable=False),
    sa.Column("kind", PlainText, nullable=False),
    sa.Column("spec", sa.Text, nullable=False),
    sa.Column("submitted_at", Seconds, nullable=False),
    sa.Column("state", PlainText, nullable=False),
    sa.Column("wanted", PlainText, nullable=False),
    sa.Column("wanted_by", PlainText, nullable=False),
    sa.Column("wanted_at", Seconds),
    sa.Column("reason", sa.Text, nullable=False),
    sa.Column("version", sa.BigInteger, nullable=False),
    sa.Column("not_before", Seconds, nullable=False),
    sa.Column("retries_used", sa.Text, nullable=False),
    sa.Column("attempt", sa.Integer, nullable=False),  # number of the newest attempt, 0 before the first
    sa.Column("started_at", Seconds),
    sa.Column("ended_at", Seconds),
    sa.Column("exit_code", sa.BigInteger),
    sa.Column("idempotency_key", PlainText),
    sa.Column("request_digest", PlainText),
    sa.Column("removed_at", Seconds),  # taken off the lists then
    sa.UniqueConstraint("owner", "idempotency_key"),
)
sa.Index(
    "ix_workloads_live",
    workloads.c.submitted_at,
    workloads.c.id,
    sqlite_where=sa.text(LIVE),
    postgresql_where=sa.text(LIVE),
)
sa.Index("ix_workloads_live_owner", workloads.c.owner, sqlite_where=sa.text(LIVE), postgresql_where=sa.text(LIVE))
sa.Index("ix_workloads_newest", workloads.c.submitted_at, workloads.c.id)
sa.Index("ix_workloads_owner", workloads.c.owner, workloads.c.submitted_at, workloads.c.id)
sa.Index("ix_workloads_group", workloads.c.group_name, workloads.c.submitted_at, workloads.c.id)
sa.Index("ix_workloads_name", workloads.c.name, workloads.c.submitted_at, workloads.c.id)
sa.Index("ix_workloads_state", workloads.c.state, workloads.c.submitted_at, workloads.c.id)
sa.Index("ix_workloads_ended", workloads.c.ended_at)

attempts = sa.Table(
    "attempts",
    metadata,
    sa.Column("workload_id", PlainText, sa.ForeignKey("workloads.id", ondelete="CASCADE"), primary_key=True),
    sa.Column("number", sa.Integer, primary_key=True, autoincrement=False),
    sa.Column("created_at", Seconds, nullable=False),
    sa.Column("started_at", Seconds),
    sa.Column("ended_at", Seconds),
    sa.Column("ending", sa.Text),
    sa.Column("saved_at", Seconds),
    sa.Column("saved_step", sa.BigInteger),
    sa.Column("served_before", Seconds, nullable=False, server_default="0"),
    sa.Column("kept_before", Seconds, nullable=False, server_default="0"),
)

replicas = sa.Table(
    "replicas",
    metadata,
    sa.Column("workload_id", PlainText, primary_key=True),
    sa.Column("attempt", sa.Integer, primary_key=True, autoincrement=False),
    sa.Column("place", sa.Integer, primary_key=True, autoincrement=False),  # its place in the attempt's order
    sa.Column("role", PlainText, nullable=False),
    sa.Column("role_index", sa.Integer, nullable=False),
    sa.Column("allotment", sa.Text, nullable=False),
    sa.Column("handle", PlainText),
    sa.Column("seen", sa.Text, nullable=False),
    sa.ForeignKeyConstraint(
        ["workload_id", "attempt"], ["attempts.workload_id", "attempts.number"], ondelete="CASCADE"
    ),
)

story = sa.Table(
    "story",
    metadata,
    _numbered("id"),
    sa.Column("workload_id", PlainText, sa.ForeignKey("workloads.id", ondelete="CASCADE"), nullable=False),
    sa.Column("at", Seconds, nullable=False),
    sa.Column("state", PlainText, nullable=False),
    sa.Column("attempt", sa.Integer, nullable=False),
    sa.Column("by_whom", PlainText, nullable=False),
    sa.Column("reason", sa.Text, nullable=False),
)
sa.Index("ix_story_workload", story.c.workload_id, story.c.id)

changes = sa.Table(
    "changes",
    metadata,
    _numbered("seq"),
    sa.Column("kind", PlainText, nullable=False),
    sa.Column("object_id", PlainText, nullable=False),
    sqlite_autoincrement=True,  # a number is never given twice, even after the newest rows were pruned
)

facts = sa.Table(
    "facts",
    metadata,
    sa.Column("name", PlainText, primary_key=True),
    sa.Column("value", sa.Text, nullable=False),
)

nodes = sa.Table(
    "nodes",
    metadata,
    sa.Column("name", PlainText, primary_key=True),
    sa.Column("cpu_milli", sa.BigInteger, nullable=False),
    sa.Column("memory", sa.BigInteger, nullable=False),
    sa.Column("cards", sa.Text, nullable=False),  # and the images it holds, if any
    sa.Column("state", PlainText, nullable=False),  # as the engine sees it
    sa.Column("changed_at", Seconds, nullable=False),
)

cordons = sa.Table("cordons", metadata, sa.Column("node", PlainText, primary_key=True))

node_labels = sa.Table(
    "node_labels",
    metadata,
    sa.Column("node", PlainText, primary_key=True),
    sa.Column("key", PlainText, primary_key=True),
    sa.Column("value", PlainText, nullable=False),
)

users = sa.Table(
    "users",
    metadata,
    sa.Column("name", PlainText, primary_key=True),
    sa.Column("password_hash", sa.Text),
    sa.Column("admin", sa.Boolean, nullable=False),
    sa.Column("uid", sa.BigInteger, nullable=False),
    sa.Column("active", sa.Boolean, nullable=False),
    sa.Column("must_change_password", sa.Boolean, nullable=False),
    sa.Column("created_at", Seconds, nullable=False),
)
sa.Index(
    "ix_users_uid",
    users.c.uid,
    unique=True,
    sqlite_where=sa.text("uid <> 0"),
    postgresql_where=sa.text("uid <> 0"),
)

groups = sa.Table(
    "groups",
    metadata,
    sa.Column("name", PlainText, primary_key=True),
    sa.Column("gid", sa.BigInteger, nullable=False),
    sa.Column("created_at", Seconds, nullable=False),
    sa.Column("weight", sa.Double, nullable=False, server_default=sa.text("1")),
    sa.Column("fifo", sa.Boolean, nullable=False, server_default=sa.false()),
)

memberships = sa.Table(
    "memberships",
    metadata,
    sa.Column("group_name", PlainText, sa.ForeignKey("groups.name", ondelete="CASCADE"), primary_key=True),
    sa.Column("user_name", PlainText, sa.ForeignKey("users.name", ondelete="CASCADE"), primary_key=True),
    sa.Column("role", PlainText, nullable=False),
)
sa.Index("ix_memberships_user", memberships.c.user_name)

quotas = sa.Table(
    "quotas",
    metadata,
    sa.Column("group_name", PlainText, sa.ForeignKey("groups.name", ondelete="CASCADE"), primary_key=True),
    sa.Column("user_name", PlainText, primary_key=True),  # empty: the whole group
    sa.Column("resource", PlainText, primary_key=True),
    sa.Column("most", sa.BigInteger),  # null: no limit
    sa.Column("guaranteed", sa.BigInteger, nullable=False, server_default=sa.text("0")),
)

past_use = sa.Table(
    "past_use",
    metadata,
    sa.Column("group_name", PlainText, primary_key=True),
    sa.Column("user_name", PlainText, primary_key=True),  # empty: the whole group
    sa.Column("amount", sa.Double, nullable=False),
    sa.Column("at", Seconds, nullable=False),
)

run_times = sa.Table(
    "run_times",
    metadata,
    sa.Column("owner", PlainText, primary_key=True),
    sa.Column("name", PlainText, primary_key=True),
    sa.Column("seconds", sa.Text, nullable=False),
)

LEDGER_AMOUNTS = (
    *("capacity", "used", "idle", "fragmented", "quota", "reserved", "unhealthy", "draining", "free"),
    "untold",  # of what is used: where the device does not tell whether it is busy
)

# Thousandths of cards times milliseconds, from `at` (epoch milliseconds) on, for one hour or for 24.
ledger = sa.Table(
    "ledger",
    metadata,
    sa.Column("at", sa.BigInteger, primary_key=True, autoincrement=False),
    sa.Column("hours", sa.Integer, primary_key=True, autoincrement=False),
    sa.Column("node", PlainText, primary_key=True),
    sa.Column("model", PlainText, primary_key=True),
    *(sa.Column(name, sa.BigInteger, nullable=False) for name in LEDGER_AMOUNTS),
)

# Thousandths of cards as they are known to be; accounted up to `since` (epoch milliseconds).
ledger_now = sa.Table(
    "ledger_now",
    metadata,
    sa.Column("node", PlainText, primary_key=True),
    sa.Column("model", PlainText, primary_key=True),
    sa.Column("since", sa.BigInteger, nullable=False),
    *(sa.Column(name, sa.BigInteger, nullable=False) for name in LEDGER_AMOUNTS),
)

guesses = sa.Table(
    "guesses",
    metadata,
    sa.Column("workload_id", PlainText, primary_key=True),
    sa.Column("at", Seconds, nullable=False),
    sa.Column("middle", sa.Double, nullable=False),  # seconds from then, as seen
    sa.Column("late", sa.Double, nullable=False),
    sa.Column("told", sa.Double, nullable=False),  # the late one after correction
    sa.Column("waited", sa.Double),  # null: it still waits
)

tokens = sa.Table(
    "tokens",
    metadata,
    sa.Column("id", PlainText, primary_key=True),
    sa.Column("secret_hash", PlainText, nullable=False, unique=True),
    sa.Column("user_name", PlainText, sa.ForeignKey("users.name", ondelete="CASCADE"), nullable=False),
    sa.Column("name", PlainText, nullable=False),
    sa.Column("scope", PlainText, nullable=False),
    sa.Column("created_at", Seconds, nullable=False),
    sa.Column("expires_at", Seconds),
    sa.Column("last_used_at", Seconds),
    sa.Column("revoked_at", Seconds),
    sa.Column("parent", PlainText),  # the token it was made with, if it was made with one
)
sa.Index("ix_tokens_user", tokens.c.user_name)
sa.Index("ix_tokens_parent", tokens.c.parent)

sessions = sa.Table(
    "sessions",
    metadata,
    sa.Column("secret_hash", PlainText, primary_key=True),
    sa.Column("user_name", PlainText, sa.ForeignKey("users.name", ondelete="CASCADE"), nullable=False),
    sa.Column("key_hash", PlainText, nullable=False),
    sa.Column("created_at", Seconds, nullable=False),
    sa.Column("expires_at", Seconds, nullable=False),
)
sa.Index("ix_sessions_user", sessions.c.user_name)
sa.Index("ix_sessions_expires", sessions.c.expires_at)

gate_codes = sa.Table(
    "gate_codes",
    metadata,
    sa.Column("code_hash", PlainText, primary_key=True),
    sa.Column("user_name", PlainText, sa.ForeignKey("users.name", ondelete="CASCADE"), nullable=False),
    sa.Column("workload_id", PlainText, nullable=False),  # empty: the gateway's own pages
    sa.Column("what", PlainText, nullable=False),
    sa.Column("parent", PlainText, nullable=False),  # the login it was made with, and ends with
    sa.Column("made_at", Seconds, nullable=False),
    sa.Column("expires_at", Seconds, nullable=False),
)

gate_sessions = sa.Table(
    "gate_sessions",
    metadata,
    sa.Column("secret_hash", PlainText, primary_key=True),
    sa.Column("user_name", PlainText, sa.ForeignKey("users.name", ondelete="CASCADE"), nullable=False),
    sa.Column("workload_id", PlainText, nullable=False),
    sa.Column("what", PlainText, nullable=False),
    sa.Column("parent", PlainText, nullable=False),
    sa.Column("created_at", Seconds, nullable=False),
    sa.Column("expires_at", Seconds, nullable=False),
)
sa.Index("ix_gate_sessions_expires", gate_sessions.c.expires_at)

ssh_keys = sa.Table(
    "ssh_keys",
    metadata,
    sa.Column("id", PlainText, primary_key=True),
    sa.Column("user_name", PlainText, sa.ForeignKey("users.name", ondelete="CASCADE"), nullable=False),
    sa.Column("name", PlainText, nullable=False),
    sa.Column("public_key", sa.Text, nullable=False),
    sa.Column("fingerprint", PlainText, nullable=False),
    sa.Column("created_at", Seconds, nullable=False),
    sa.Column("last_used_at", Seconds),
    sa.UniqueConstraint("user_name", "fingerprint"),
)

workplaces = sa.Table(
    "workplaces",
    metadata,
    sa.Column("workload_id", PlainText, sa.ForeignKey("workloads.id", ondelete="CASCADE"), primary_key=True),
    sa.Column("stop_at", Seconds),  # the timer its owner set
    sa.Column("used_at", Seconds),  # when somebody last worked in it, through browser or SSH
    sa.Column("warned_at", Seconds),  # when its owner was told that it will be stopped soon
    sa.Column("again", sa.Text),  # it is being stopped to be started again: with what
)

login_tries = sa.Table(
    "login_tries",
    metadata,
    sa.Column("key_hash", PlainText, primary_key=True),
    sa.Column("weight", sa.Double, nullable=False),
    sa.Column("at", Seconds, nullable=False),
)
sa.Index("ix_login_tries_at", login_tries.c.at)

audit = sa.Table(
    "audit",
    metadata,
    sa.Column("id", sa.BigInteger, primary_key=True, autoincrement=False),  # dense: a missing number is a missing row
    sa.Column("at", Seconds, nullable=False),
    sa.Column("who", PlainText, nullable=False),
    sa.Column("action", PlainText, nullable=False),
    sa.Column("object", PlainText, nullable=False),
    sa.Column("address", PlainText, nullable=False),
    sa.Column("outcome", PlainText, nullable=False),
    sa.Column("facts", sa.Text, nullable=False),
    sa.Column("digest", PlainText, nullable=False),
)
