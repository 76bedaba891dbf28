"""Access lists as Linux keeps them beside a file: who may do what, person by person. Pure; nothing is read or set here.

A group's folder names each member by number, because a container knows its user's numbers and nobody else's: the
group's own number would be unknown in it. Each list has a mask, what `chmod` calls the group's rights: nobody named has
more than that.
"""

from __future__ import annotations

import struct
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field, replace

ACCESS, DEFAULT = "system.posix_acl_access", "system.posix_acl_default"
ALL = 7  # read, write, and pass or execute
_OWNER, _USER, _GROUP, _NAMED_GROUP, _MASK, _OTHER = 0x01, 0x02, 0x04, 0x08, 0x10, 0x20
_NOBODY = 0xFFFFFFFF
_VERSION = 2
_HEAD, _ENTRY = struct.Struct("<I"), struct.Struct("<HHI")  # tag, rights, who


@dataclass(frozen=True, slots=True)
class AccessList:
    owner: int
    group: int
    other: int
    users: Mapping[int, int] = field(default_factory=dict)
    groups: Mapping[int, int] = field(default_factory=dict)
    mask: int | None = None  # None: nobody is named, and it says no more than the mode does


def encode(rights: AccessList) -> bytes:
    entries = [(_OWNER, _NOBODY, rights.owner), (_GROUP, _NOBODY, rights.group), (_OTHER, _NOBODY, rights.other)]
    entries += [(_USER, uid, right) for uid, right in rights.users.items()]
    entries += [(_NAMED_GROUP, gid, right) for gid, right in rights.groups.items()]
    if rights.mask is not None:
        entries.append((_MASK, _NOBODY, rights.mask))
    return _HEAD.pack(_VERSION) + b"".join(_ENTRY.pack(tag, right, who) for tag, who, right in sorted(entries))


def decode(written: bytes) -> AccessList:
    """Raises ValueError for what cannot be an access list."""
    if len(written) < _HEAD.size or (len(written) - _HEAD.size) % _ENTRY.size:
        raise ValueError("not an access list: its length is odd")
    if _HEAD.unpack_from(written)[0] != _VERSION:
        raise ValueError("not an access list of a known version")
    single: dict[int, int] = {}
    users: dict[int, int] = {}
    groups: dict[int, int] = {}
    for tag, right, who in _ENTRY.iter_unpack(written[_HEAD.size :]):
        if tag == _USER:
            users[who] = right
        elif tag == _NAMED_GROUP:
            groups[who] = right
        else:
            single[tag] = right
    try:
        return AccessList(single[_OWNER], single[_GROUP], single[_OTHER], users, groups, single.get(_MASK))
    except KeyError as missing:
        raise ValueError("not an access list: owner, group or others are missing") from missing


def of_mode(mode: int) -> AccessList:
    """What a file's mode says, where there is no list."""
    return AccessList(mode >> 6 & ALL, mode >> 3 & ALL, mode & ALL)


def open_to(gid: int, members: Collection[int]) -> AccessList:
    """A group's folder, and everything that is made in it: all rights for each member, none for others."""
    return AccessList(ALL, ALL, 0, dict.fromkeys(members, ALL), {gid: ALL}, ALL)


def open_to_all(gid: int) -> AccessList:
    """For a group with more members than a list can name, where strangers cannot come near the folder."""
    return AccessList(ALL, ALL, ALL, {}, {gid: ALL}, ALL)


def shared_with(now: AccessList, gid: int, members: Collection[int]) -> AccessList:
    """The same thing once these are the members. What its owner allowed the group stays what the members may."""
    users = {uid: now.users.get(uid, ALL) for uid in members}
    return _named(replace(now, users=users, other=0), gid, ALL)


def shared_with_all(now: AccessList, gid: int) -> AccessList:
    shared = _named(replace(now, users={}), gid, ALL)
    return replace(shared, other=shared.mask or 0)


def given(now: AccessList, old: int, new: int, *, keeps: bool) -> AccessList:
    """The same thing once another group has it. The old one's rights stay beside it where it keeps them."""
    rights = now.groups.get(old, now.group)
    passed_on = _named(now, new, rights)
    if keeps:
        return _named(passed_on, old, rights)
    return replace(passed_on, groups={gid: right for gid, right in passed_on.groups.items() if gid != old})


def _named(now: AccessList, gid: int, rights: int) -> AccessList:
    groups = {**now.groups, gid: now.groups.get(gid, rights)}
    return replace(now, groups=groups, mask=now.group if now.mask is None else now.mask)
