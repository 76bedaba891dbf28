"""What the client reads is what the server promises: the same fields, by the same names."""

from __future__ import annotations

from dataclasses import fields

import pytest
from pydantic import BaseModel

from gpuyard.api import audit_models, models, policy_models, why_models
from gpuyard.sdk import results
from gpuyard.sdk.job import Job

PAIRS: list[tuple[type, type[BaseModel]]] = [
    (Job, models.WorkloadDetail),
    (results.Estimate, models.EstimateOut),
    (results.Replica, models.ReplicaOut),
    (results.Attempt, models.AttemptOut),
    (results.Event, models.EventOut),
    (results.Why, why_models.WhyOut),
    (results.Fact, why_models.ReasonOut),
    (results.Ahead, why_models.AheadOut),
    (results.Remedy, why_models.RemedyOut),
    (results.Before, why_models.BeforeOut),
    (results.Problem, models.ProblemOut),
    (results.Preview, models.PreviewOut),
    (results.Imported, models.ReadOut),
    (results.Card, models.CardOut),
    (results.Node, models.NodeOut),
    (results.QuotaLine, models.QuotaOut),
    (results.ReplicaUse, models.TopReplica),
    (results.Top, models.TopOut),
    (results.Membership, models.MembershipOut),
    (results.User, models.UserMade),
    (results.Member, models.MemberOut),
    (results.Group, models.GroupOut),
    (results.Merge, policy_models.MergeOut),
    (results.Token, models.TokenMade),
    (results.AuditLine, audit_models.AuditOut),
]


@pytest.mark.parametrize(("ours", "theirs"), PAIRS, ids=lambda side: side.__name__)
def test_every_field_the_client_reads_is_sent(ours: type, theirs: type[BaseModel]) -> None:
    assert {field.name for field in fields(ours)} - {"raw", "client"} <= theirs.model_fields.keys()


@pytest.mark.parametrize(("ours", "theirs"), PAIRS[1:], ids=lambda side: side.__name__)
def test_every_field_sent_is_read(ours: type, theirs: type[BaseModel]) -> None:
    assert theirs.model_fields.keys() <= {field.name for field in fields(ours)}
