"""Every key of a job file: how it is read, what the published schema says of it, and the words that explain it.

Reading, the schema and `set_value` all go by this table, so that they cannot disagree about which keys there are.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from gpuyard.dialects.native import origin, parts, places, values
from gpuyard.dialects.native.image_name import image
from gpuyard.dialects.native.marks import Found, nearest
from gpuyard.dialects.native.parts import Reader, read_keys
from gpuyard.domain.images import LONGEST_REFERENCE
from gpuyard.domain.people import NAME_RULE
from gpuyard.domain.policy import Policy
from gpuyard.domain.problems import Problem
from gpuyard.domain.resources import DEVICE_TYPES
from gpuyard.domain.workload import (
    DEFAULT_RETRIES,
    DOORS,
    JOB_NAME_RULE,
    MAX_ORIGIN_FACTS,
    MAX_PRIORITY,
    MAX_REPLICAS,
    MIN_PRIORITY,
    Cause,
    Together,
)

MAX_RETRIES = 100
MAX_GRACE_SECONDS = 3600.0
DIGEST_RULE = re.compile(r"[0-9a-f]{64}")

Schema = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Field:
    """One key. `is_text`: what `--set` gives is taken as it is, and `name=123` is the name 123."""

    read: Reader
    schema: Schema
    about: str
    is_text: bool = False


def retries(found: Found) -> Mapping[Cause, int]:
    """A number counts for failing commands; a mapping sets each cause. What is left out keeps its default."""
    one = values.whole_number(0, MAX_RETRIES)
    if not isinstance(found.value, Mapping):
        return {**DEFAULT_RETRIES, Cause.EXIT: one(found)}
    read = read_keys(found, {cause.value: one for cause in Cause})
    return {**DEFAULT_RETRIES, **{Cause(key): number for key, number in read.items()}}


def priority(classes: Mapping[str, int]) -> Reader:
    """A number, or the name of one of these classes."""

    def read(found: Found) -> int:
        value = found.value
        if isinstance(value, int) and not isinstance(value, bool) and MIN_PRIORITY <= value <= MAX_PRIORITY:
            return value
        if isinstance(value, str) and value in classes:
            return classes[value]
        if value is None:
            raise found.wrong(Problem.NO_VALUE)
        close = nearest(value, classes) if isinstance(value, str) else ""
        facts = {"least": MIN_PRIORITY, "most": MAX_PRIORITY, "allowed": list(classes)}
        raise found.wrong(Problem.PRIORITY, facts | ({"nearest": close} if close else {}))

    return read


def _whole(least: int, most: int) -> Schema:
    return {"type": "integer", "minimum": least, "maximum": most}


_RETRY_COUNT = _whole(0, MAX_RETRIES)
_AMOUNT: Schema = {"type": ["string", "number"]}
_WORD: Schema = {"type": ["string", "number", "boolean"]}


def _names(most: int) -> Schema:
    """One text, with commas when it names several, or a list."""
    return {"oneOf": [_WORD, {"type": "array", "items": _WORD, "minItems": 1, "maxItems": most}]}


ROLE_FIELDS: Mapping[str, Field] = {
    "command": Field(
        parts.command,
        {
            "oneOf": [
                {"type": "string", "minLength": 1},
                {"type": "array", "items": _WORD, "minItems": 1, "maxItems": parts.MAX_COMMAND_WORDS},
            ]
        },
        "What to run. Text is run by `sh -c`; a list is run as it is, without a shell.",
        is_text=True,
    ),
    "replicas": Field(
        values.whole_number(1, MAX_REPLICAS),
        {**_whole(1, MAX_REPLICAS), "default": 1},
        "How many alike processes are started, all at once or not at all.",
    ),
    "cards": Field(
        values.cards,
        {**_AMOUNT, "minimum": 0, "default": 0},
        "Cards for each replica: whole ones (1, 8) or a share of one (0.5). 0 means none.",
    ),
    "device": Field(
        values.one_of(DEVICE_TYPES),
        {"type": "string", "enum": list(DEVICE_TYPES)},
        "The type of card. Left out, the type this platform has.",
        is_text=True,
    ),
    "models": Field(
        places.models,
        _names(places.MAX_MODELS),
        "The models of card that will do, any of them: A100, or [A100, H100]. Left out, every model.",
        is_text=True,
    ),
    "where": Field(
        places.where,
        {
            "type": "object",
            "properties": {
                "nodes": {
                    "description": "Only on one of these machines.",
                    **_names(places.MAX_WHERE_NODES),
                },
                "labels": {
                    "description": "Only on machines that carry all of these labels.",
                    "type": "object",
                    "additionalProperties": _WORD,
                    "maxProperties": places.MAX_WHERE_LABELS,
                },
            },
            "additionalProperties": False,
        },
        "Which machines will do: some by name, or those with certain labels. Left out, every machine.",
    ),
    "cpu": Field(
        values.cpu,
        {**_AMOUNT, "exclusiveMinimum": 0},
        "Cores for each replica: 4, 0.5 or 500m. Left out, a fair share of the machine.",
    ),
    "memory": Field(
        values.memory,
        {**_AMOUNT, "minimum": values.LEAST_MEMORY},
        "Memory for each replica: 512M, 16G. Left out, a fair share of the machine.",
        is_text=True,
    ),
    "shm": Field(
        values.memory,
        {**_AMOUNT, "minimum": values.LEAST_MEMORY},
        "Shared memory (/dev/shm) for each replica: 8G. Data loaders need it.",
        is_text=True,
    ),
    "image": Field(
        image,
        {"type": "string", "minLength": 1, "maxLength": LONGEST_REFERENCE},
        "The container image, like `pytorch/pytorch:2.4`.",
        is_text=True,
    ),
    "env": Field(
        parts.env,
        {
            "type": "object",
            "propertyNames": {"pattern": "^[A-Za-z_][A-Za-z0-9_]{0,127}$"},
            "additionalProperties": _WORD,
            "maxProperties": parts.MAX_ENV_NAMES,
        },
        "Environment variables. Numbers are taken as written.",
    ),
    "mounts": Field(
        parts.mounts,
        {
            "type": "array",
            "maxItems": parts.MAX_MOUNTS,
            "items": {
                "type": "object",
                "properties": {
                    "volume": {"enum": list(parts.VOLUMES), "description": "Your own files, or your group's."},
                    "path": {"type": "string", "default": "", "description": "A folder inside the volume."},
                    "at": {"type": "string", "pattern": "^/.", "description": "Where the job sees it: /data."},
                    "read_only": {"type": "boolean", "default": False},
                },
                "required": ["volume", "at"],
                "additionalProperties": False,
            },
        },
        "Folders the job sees.",
    ),
    "ports": Field(
        parts.ports,
        {
            "type": "array",
            "maxItems": parts.MAX_PORTS,
            "items": {
                "oneOf": [
                    _whole(1, 65535),
                    {
                        "type": "object",
                        "properties": {
                            "number": _whole(1, 65535),
                            "name": {"type": "string", "pattern": "^[a-z][a-z0-9-]{0,30}$"},
                        },
                        "required": ["number"],
                        "additionalProperties": False,
                    },
                ]
            },
        },
        "Ports the job listens on, like 6006 for TensorBoard.",
    ),
    "completes": Field(
        values.yes_or_no,
        {"type": "boolean", "default": False},
        "Whether the whole job is done once all replicas of this role have ended well; the others are stopped then.",
    ),
}

JOB_FIELDS: Mapping[str, Field] = {
    "name": Field(
        values.name(JOB_NAME_RULE, Problem.JOB_NAME),
        {"type": "string", "pattern": "^[A-Za-z0-9][A-Za-z0-9._-]{0,62}$"},
        "A name to find it by. It need not be unique. Left out, the first word of the command.",
        is_text=True,
    ),
    "group": Field(
        values.name(NAME_RULE, Problem.PERSON_NAME),
        {"type": "string", "pattern": "^[a-z][a-z0-9_-]{0,31}$"},
        "The group whose quota it uses. Left out, your only group.",
        is_text=True,
    ),
    "priority": Field(
        priority(Policy().priorities),
        {**_whole(MIN_PRIORITY, MAX_PRIORITY), "type": ["integer", "string"], "default": 500},
        "Larger goes first. A number, or a class that the platform has, such as low, normal, high or urgent.",
    ),
    "preemptible": Field(
        values.yes_or_no,
        {"type": "boolean", "default": False},
        "Whether more urgent work may take its place. It goes back into the queue then.",
    ),
    "retries": Field(
        retries,
        {
            "oneOf": [
                _RETRY_COUNT,
                {
                    "type": "object",
                    "properties": {cause.value: {**_RETRY_COUNT, "default": DEFAULT_RETRIES[cause]} for cause in Cause},
                    "additionalProperties": False,
                },
            ]
        },
        "How often it is tried again: a number for failing commands, or a number for each cause.",
    ),
    "max_time": Field(
        values.duration(),
        {**_AMOUNT, "exclusiveMinimum": 0},
        "How long one attempt may run: 90s, 30m, 2h30m, 1d.",
        is_text=True,
    ),
    "grace": Field(
        values.duration(MAX_GRACE_SECONDS),
        {**_AMOUNT, "exclusiveMinimum": 0, "default": "10s"},
        "How long it may take to end after it was asked to, at most 1h.",
        is_text=True,
    ),
    "together": Field(
        values.one_of([choice.value for choice in Together]),
        {"type": "string", "enum": [choice.value for choice in Together], "default": Together.ANY.value},
        "Where the replicas are, seen from each other: all on one machine, or each on a machine of its own.",
        is_text=True,
    ),
    "checkpoint": Field(
        places.checkpoint,
        {"type": "string", "minLength": 1, "maxLength": parts.MAX_PATH_BYTES},
        "The folder, as the job sees it, where it saves its work; relative means in its home. "
        "Its newest file tells how much would be lost if the job had to make room.",
        is_text=True,
    ),
    "origin": Field(
        origin.origin,
        {
            "type": "object",
            "properties": {
                "door": {"enum": list(DOORS), "description": "Whose file it was."},
                "facts": {
                    "description": "What that system calls its parts.",
                    "type": "object",
                    "propertyNames": {"pattern": "^[A-Za-z][A-Za-z0-9_.-]{0,127}$"},
                    "additionalProperties": _WORD,
                    "maxProperties": MAX_ORIGIN_FACTS,
                },
            },
            "required": ["door"],
            "additionalProperties": False,
        },
        "The system whose file this was, for a job that came from one; it is told in that system's words there.",
    ),
    "workdir": Field(
        values.name(DIGEST_RULE, Problem.DIGEST),
        {"type": "string", "pattern": "^[0-9a-f]{64}$"},
        "The SHA-256 digest of a folder shipped with the job.",
        is_text=True,
    ),
}

ROLE_NAME_PATTERN = "^[a-z][a-z0-9]{0,15}$"
ROLES_ABOUT = "Several kinds of replicas in one job, by name. The keys of a role then stand inside each role."
MAX_ROLES = 20
