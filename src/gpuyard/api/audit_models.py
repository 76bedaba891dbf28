"""The shape of the audit: who did what, when, from where, and whether the chain of lines is whole."""

from __future__ import annotations

from pydantic import Field

from gpuyard.api.models import Facts, Instant, Out


class AuditOut(Out):
    id: int
    at: Instant
    who: str
    action: str
    object: str
    address: str
    outcome: str
    facts: Facts


class AuditPage(Out):
    items: list[AuditOut]
    next: str | None


class AuditCheck(Out):
    intact: bool
    broken_at: int | None = Field(description="number of the first line that was changed, or is missing")
    lines: int
