"""The first schema."""

from __future__ import annotations

from typing import Any

import sqlalchemy as sa
from alembic import op

revision = "0001"
down_revision = None

TEXT = sa.Text().with_variant(sa.Text(collation="C"), "postgresql")
SEQUENCE = sa.BigInteger().with_variant(sa.Integer(), "sqlite")
LIVE = "state NOT IN ('succeeded', 'failed', 'stopped')"


def _text(name: str, *more: Any, null: bool = False) -> sa.Column[Any]:
    return sa.Column(name, TEXT, *more, nullable=null)


def _long(name: str, null: bool = False) -> sa.Column[Any]:
    return sa.Column(name, sa.Text(), nullable=null)


def _time(name: str, null: bool = True) -> sa.Column[Any]:
    return sa.Column(name, sa.Double(), nullable=null)


def _whole(name: str, type_: Any = sa.BigInteger, null: bool = False) -> sa.Column[Any]:
    return sa.Column(name, type_(), nullable=null)


def _flag(name: str) -> sa.Column[Any]:
    return sa.Column(name, sa.Boolean(), nullable=False)


def _key(table: str, *columns: str) -> sa.PrimaryKeyConstraint:
    return sa.PrimaryKeyConstraint(*columns, name=f"pk_{table}")


def _of(table: str, columns: list[str], other: str, theirs: list[str]) -> sa.ForeignKeyConstraint:
    targets = [f"{other}.{column}" for column in theirs]
    return sa.ForeignKeyConstraint(columns, targets, name=f"fk_{table}_{other}", ondelete="CASCADE")


def upgrade() -> None:
    _create_workloads()
    _create_what_workloads_leave()
    _create_memory()
    _create_people()
    _create_logins()
    _create_audit()


def _create_workloads() -> None:
    op.create_table(
        "workloads",
        _text("id"),
        _text("owner"),
        _text("group_name"),
        _text("name"),
        _text("kind"),
        _long("spec"),
        _time("submitted_at", null=False),
        _text("state"),
        _text("wanted"),
        _text("wanted_by"),
        _time("wanted_at"),
        _long("reason"),
        _whole("version"),
        _time("not_before", null=False),
        _long("retries_used"),
        _whole("attempt", sa.Integer),
        _time("started_at"),
        _time("ended_at"),
        _whole("exit_code", null=True),
        _text("idempotency_key", null=True),
        _text("request_digest", null=True),
        _key("workloads", "id"),
        sa.UniqueConstraint("owner", "idempotency_key", name="uq_workloads_owner_idempotency_key"),
    )
    live = sa.text(LIVE)
    op.create_index("ix_workloads_live", "workloads", ["submitted_at", "id"], sqlite_where=live, postgresql_where=live)
    op.create_index("ix_workloads_newest", "workloads", ["submitted_at", "id"])
    op.create_index("ix_workloads_owner", "workloads", ["owner", "submitted_at", "id"])
    op.create_index("ix_workloads_group", "workloads", ["group_name", "submitted_at", "id"])
    op.create_index("ix_workloads_name", "workloads", ["name", "submitted_at", "id"])
    op.create_index("ix_workloads_state", "workloads", ["state", "submitted_at", "id"])
    op.create_index("ix_workloads_ended", "workloads", ["ended_at"])


def _create_what_workloads_leave() -> None:
    op.create_table(
        "attempts",
        _text("workload_id"),
        _whole("number", sa.Integer),
        _time("created_at", null=False),
        _time("started_at"),
        _time("ended_at"),
        _long("ending", null=True),
        _key("attempts", "workload_id", "number"),
        _of("attempts", ["workload_id"], "workloads", ["id"]),
    )
    op.create_table(
        "replicas",
        _text("workload_id"),
        _whole("attempt", sa.Integer),
        _whole("place", sa.Integer),
        _text("role"),
        _whole("role_index", sa.Integer),
        _long("allotment"),
        _text("handle", null=True),
        _long("seen"),
        _key("replicas", "workload_id", "attempt", "place"),
        _of("replicas", ["workload_id", "attempt"], "attempts", ["workload_id", "number"]),
    )
    op.create_table(
        "story",
        sa.Column("id", SEQUENCE, nullable=False, autoincrement=True),
        _text("workload_id"),
        _time("at", null=False),
        _text("state"),
        _whole("attempt", sa.Integer),
        _text("by_whom"),
        _long("reason"),
        _key("story", "id"),
        _of("story", ["workload_id"], "workloads", ["id"]),
    )
    op.create_index("ix_story_workload", "story", ["workload_id", "id"])


def _create_memory() -> None:
    op.create_table(
        "changes",
        sa.Column("seq", SEQUENCE, nullable=False, autoincrement=True),
        _text("kind"),
        _text("object_id"),
        _key("changes", "seq"),
        sqlite_autoincrement=True,
    )
    op.create_table("facts", _text("name"), _long("value"), _key("facts", "name"))
    op.create_table(
        "nodes",
        _text("name"),
        _whole("cpu_milli"),
        _whole("memory"),
        _long("cards"),
        _text("state"),
        _time("changed_at", null=False),
        _key("nodes", "name"),
    )
    op.create_table("cordons", _text("node"), _key("cordons", "node"))


def _create_people() -> None:
    op.create_table(
        "users",
        _text("name"),
        _long("password_hash", null=True),
        _flag("admin"),
        _whole("uid"),
        _flag("active"),
        _flag("must_change_password"),
        _time("created_at", null=False),
        _key("users", "name"),
    )
    own = sa.text("uid <> 0")
    op.create_index("ix_users_uid", "users", ["uid"], unique=True, sqlite_where=own, postgresql_where=own)
    op.create_table("groups", _text("name"), _whole("gid"), _time("created_at", null=False), _key("groups", "name"))
    op.create_table(
        "memberships",
        _text("group_name"),
        _text("user_name"),
        _text("role"),
        _key("memberships", "group_name", "user_name"),
        _of("memberships", ["group_name"], "groups", ["name"]),
        _of("memberships", ["user_name"], "users", ["name"]),
    )
    op.create_index("ix_memberships_user", "memberships", ["user_name"])
    op.create_table(
        "quotas",
        _text("group_name"),
        _text("user_name"),
        _text("resource"),
        _whole("most"),
        _key("quotas", "group_name", "user_name", "resource"),
        _of("quotas", ["group_name"], "groups", ["name"]),
    )


def _create_logins() -> None:
    op.create_table(
        "tokens",
        _text("id"),
        _text("secret_hash"),
        _text("user_name"),
        _text("name"),
        _text("scope"),
        _time("created_at", null=False),
        _time("expires_at"),
        _time("last_used_at"),
        _time("revoked_at"),
        _key("tokens", "id"),
        sa.UniqueConstraint("secret_hash", name="uq_tokens_secret_hash"),
        _of("tokens", ["user_name"], "users", ["name"]),
    )
    op.create_index("ix_tokens_user", "tokens", ["user_name"])
    op.create_table(
        "sessions",
        _text("secret_hash"),
        _text("user_name"),
        _text("csrf"),
        _time("created_at", null=False),
        _time("expires_at", null=False),
        _key("sessions", "secret_hash"),
        _of("sessions", ["user_name"], "users", ["name"]),
    )
    op.create_index("ix_sessions_user", "sessions", ["user_name"])
    op.create_index("ix_sessions_expires", "sessions", ["expires_at"])


def _create_audit() -> None:
    op.create_table(
        "audit",
        sa.Column("id", sa.BigInteger(), nullable=False, autoincrement=False),
        _time("at", null=False),
        _text("who"),
        _text("action"),
        _text("object"),
        _text("address"),
        _text("outcome"),
        _long("facts"),
        _text("digest"),
        _key("audit", "id"),
    )
