"""The published JSON schema of the job file (draft 2020-12), for editors and other programs.

It is a little more lenient than `read_job`, which also knows amounts, images and places; what it refuses, we refuse.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from gpuyard.dialects.native.fields import (
    JOB_FIELDS,
    MAX_ROLES,
    ROLE_FIELDS,
    ROLE_NAME_PATTERN,
    ROLES_ABOUT,
    Field,
)


def job_schema() -> dict[str, Any]:
    """A fresh copy each time: the caller may change it."""
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "gpuyard job file",
        "description": "One job: what to run, what it needs, and how it is treated.",
        "type": "object",
        "properties": {
            **_properties(JOB_FIELDS),
            **_properties(ROLE_FIELDS),
            "roles": {
                "description": ROLES_ABOUT,
                "type": "object",
                "minProperties": 1,
                "maxProperties": MAX_ROLES,
                "propertyNames": {"pattern": ROLE_NAME_PATTERN},
                "additionalProperties": {"$ref": "#/$defs/role"},
            },
        },
        "additionalProperties": False,
        "oneOf": [{"required": ["command"]}, {"required": ["roles"]}],
        "dependentSchemas": {"roles": {"properties": dict.fromkeys(ROLE_FIELDS, False)}},
        "$defs": {
            "role": {
                "description": "Replicas that are alike: same command, same resources.",
                "type": "object",
                "properties": _properties(ROLE_FIELDS),
                "required": ["command"],
                "additionalProperties": False,
            }
        },
    }


def _properties(fields: Mapping[str, Field]) -> dict[str, Any]:
    return {key: {"description": field.about, **field.schema} for key, field in fields.items()}
