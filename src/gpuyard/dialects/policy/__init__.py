"""The rules of order, sharing and placement as an admin reads and writes them: nested data, with units people write.

    YAML or JSON ──native.parse_*──> plain data ──read_policy──> Policy ──write_policy──> plain data
    plain data ──set_value("order.half_life", "3d")──> plain data with one value changed

`to_text` and `from_text` are how a policy is kept. Every problem of a document is found in one go, with its place.
"""

from __future__ import annotations

from gpuyard.dialects.policy.changing import differences, set_value
from gpuyard.dialects.policy.forgetting import forget_group, forget_person, merge_groups
from gpuyard.dialects.policy.noting import notes_on
from gpuyard.dialects.policy.reading import NORMAL, Known, read_policy
from gpuyard.dialects.policy.writing import from_text, to_text, write_policy

__all__ = [
    "NORMAL",
    "Known",
    "differences",
    "forget_group",
    "forget_person",
    "from_text",
    "merge_groups",
    "notes_on",
    "read_policy",
    "set_value",
    "to_text",
    "write_policy",
]
