"""Which kernel calls a container may make: the engine's own list without the ways to new namespaces. Pure.

A user namespace of one's own would give back, inside it, every right that was taken away, and with them those parts of
the kernel that are attacked most. Nobody needs that to work in a container.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

_REFUSED = ("unshare", "setns")
_NEW_NAMESPACES = 0x7E020000  # every flag of clone() that asks for one
_NOT_PERMITTED, _NO_SUCH_CALL = 1, 38


def tightened(profile: Mapping[str, Any]) -> dict[str, Any]:
    """`clone3` hides its flags from such lists: whoever hears that there is none uses `clone`."""
    away = {*_REFUSED, "clone", "clone3"}
    kept = [{**rule, "names": [name for name in rule["names"] if name not in away]} for rule in profile["syscalls"]]
    flags = {"index": 0, "value": _NEW_NAMESPACES, "valueTwo": 0, "op": "SCMP_CMP_MASKED_EQ"}
    own = [
        {"names": list(_REFUSED), "action": "SCMP_ACT_ERRNO", "errnoRet": _NOT_PERMITTED},
        {"names": ["clone"], "action": "SCMP_ACT_ALLOW", "args": [flags]},
        {"names": ["clone3"], "action": "SCMP_ACT_ERRNO", "errnoRet": _NO_SUCH_CALL},
    ]
    return {**profile, "syscalls": [*(rule for rule in kept if rule["names"]), *own]}
