"""Users, groups, quotas, tokens and sessions."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest
import sqlalchemy as sa

from gpuyard.domain.errors import Conflict, NotFound
from gpuyard.domain.people import BLOCK, FIRST_BLOCK, MOST_BLOCKS, Group, Membership, Quota, Role, User
from gpuyard.domain.reasons import Code
from gpuyard.store import logins, people
from gpuyard.store.database import Database
from gpuyard.store.feed import changes_since
from gpuyard.store.logins import SessionRow, TokenRow


@pytest.fixture
def house(database: Database) -> Database:
    """Ann leads vision, bob is in vision and speech, eve is nobody's."""
    with database.write() as conn:
        people.create_group(conn, Group("vision", (Quota("vision", "nvidia", 8000),), gid=70001), 1.0)
        people.create_group(conn, Group("speech"), 1.0)
        people.create_user(conn, User("ann", memberships=(Membership("vision", Role.LEAD),), uid=70002), "hash", 1.0)
        both = (Membership("speech", Role.MEMBER), Membership("vision", Role.MEMBER))
        people.create_user(conn, User("bob", memberships=both), None, 1.0)
        people.create_user(conn, User("eve", admin=True, must_change_password=True), None, 1.0)
    return database


def test_people_are_read_back_as_they_were_written(house: Database) -> None:
    with house.read() as conn:
        assert people.get_user(conn, "ann") == User("ann", False, (Membership("vision", Role.LEAD),), 70002)
        assert [user.name for user in people.all_users(conn)] == ["ann", "bob", "eve"]
        assert people.get_user(conn, "bob\x00") is None
        assert people.password_hash(conn, "ann") == "hash"
        assert people.members(conn, "vision") == [("ann", Role.LEAD), ("bob", Role.MEMBER)]
        assert people.get_group(conn, "vision") == Group("vision", (Quota("vision", "nvidia", 8000),), 70001)
        assert [group.name for group in people.all_groups(conn)] == ["speech", "vision"]
        assert people.count_users(conn) == 3


def test_a_user_can_be_changed_and_a_password_set(house: Database) -> None:
    with house.write() as conn:
        ann = people.get_user(conn, "ann")
        assert ann is not None
        people.set_user(conn, replace(ann, active=False, admin=True))
        people.set_password(conn, "ann", "new", must_change=True)
    with house.read() as conn:
        assert people.get_user(conn, "ann") == replace(ann, active=False, admin=True, must_change_password=True)
        assert people.password_hash(conn, "ann") == "new"


def test_names_and_uids_are_unique(house: Database) -> None:
    with pytest.raises(Conflict), house.write() as conn:
        people.create_user(conn, User("ann"), None, 2.0)
    with pytest.raises(Conflict), house.write() as conn:
        people.create_user(conn, User("dan", uid=70002), None, 2.0)
    with pytest.raises(Conflict), house.write() as conn:
        people.create_group(conn, Group("vision"), 2.0)
    with house.read() as conn:
        assert people.get_user(conn, "dan") is None


def test_a_uid_is_never_given_twice_even_after_its_user_is_gone(house: Database) -> None:
    with house.write() as conn:
        first = people.next_uid(conn, 70000)
        people.create_user(conn, User("dan", uid=first), None, 2.0)
    with house.write() as conn:
        people.remove_user(conn, "dan")
        second = people.next_uid(conn, 70000)
        far = people.next_uid(conn, 900_000)
    assert (first, second, far) == (70000 + BLOCK, 70000 + 2 * BLOCK, 900_000)


def test_blocks_of_numbers_do_not_overlap_and_numbers_of_older_versions_are_below_them(house: Database) -> None:
    with house.write() as conn:
        given = [people.next_uid(conn, FIRST_BLOCK) for _ in range(3)]
    assert given == [FIRST_BLOCK, FIRST_BLOCK + BLOCK, FIRST_BLOCK + 2 * BLOCK]


def test_when_all_blocks_are_given_out_the_next_one_is_refused_in_words(house: Database) -> None:
    last = FIRST_BLOCK + (MOST_BLOCKS - 1) * BLOCK
    with house.write() as conn:
        people.create_user(conn, User("last", uid=last), None, 2.0)
    assert last + BLOCK - 1 == 2**31 - 1
    with pytest.raises(Conflict) as refused, house.write() as conn:
        people.next_uid(conn, FIRST_BLOCK)
    assert refused.value.reason.code is Code.NO_NUMBERS


def test_removing_a_user_removes_what_proves_and_limits_it(house: Database) -> None:
    with house.write() as conn:
        people.set_quota(conn, Quota("vision", "nvidia", 1000, "ann"))
        logins.add_token(conn, TokenRow("t1", "h1", "ann", "laptop", "write", 1.0))
        logins.add_session(conn, SessionRow("s1", "ann", "k1", 1.0, 9.0))
        people.remove_user(conn, "ann")
    with house.read() as conn:
        assert people.members(conn, "vision") == [("bob", Role.MEMBER)]
        assert logins.token_by_hash(conn, "h1") is None
        assert logins.session_by_hash(conn, "s1") is None
        vision = people.get_group(conn, "vision")
    assert vision is not None
    assert vision.quotas == (Quota("vision", "nvidia", 8000),)


def test_removing_a_group_removes_its_memberships_and_quotas(house: Database) -> None:
    with house.write() as conn:
        people.remove_group(conn, "vision")
        bob = people.get_user(conn, "bob")
        assert people.get_group(conn, "vision") is None
    assert bob is not None
    assert bob.groups == ("speech",)


def test_quotas_are_set_changed_and_removed_for_groups_and_users(house: Database) -> None:
    with house.write() as conn:
        people.set_quota(conn, Quota("vision", "nvidia", 4000))
        people.set_quota(conn, Quota("vision", "memory", 1 << 45, "bob"))
        vision = people.get_group(conn, "vision")
        assert vision is not None
        assert set(vision.quotas) == {Quota("vision", "nvidia", 4000), Quota("vision", "memory", 1 << 45, "bob")}
        assert people.remove_quota(conn, "vision", "nvidia")
        assert not people.remove_quota(conn, "vision", "nvidia")
        assert people.remove_quota(conn, "vision", "memory", "bob")


def test_a_guarantee_needs_no_limit_and_a_group_keeps_its_weight_and_order(house: Database) -> None:
    with house.write() as conn:
        people.set_quota(conn, Quota("vision", "nvidia", None, guaranteed=6000))
        people.set_quota(conn, Quota("vision", "ascend", 8000, guaranteed=4000))
        people.set_group(conn, Group("vision", gid=70001, weight=2.5, fifo=True))
        kept = (Quota("vision", "ascend", 8000, guaranteed=4000), Quota("vision", "nvidia", guaranteed=6000))
        assert people.get_group(conn, "vision") == Group("vision", kept, 70001, 2.5, True)
        made = Group("robots", (Quota("robots", "nvidia", guaranteed=1000),), weight=0.5, fifo=True)
        people.create_group(conn, made, 1.0)
        assert people.get_group(conn, "robots") == made


def test_roles_change_and_members_leave(house: Database) -> None:
    with house.write() as conn:
        people.set_member(conn, "vision", "bob", Role.LEAD)
        assert people.members(conn, "vision") == [("ann", Role.LEAD), ("bob", Role.LEAD)]
        assert people.remove_member(conn, "vision", "bob")
        assert not people.remove_member(conn, "vision", "bob")


def test_the_unknown_are_named(house: Database) -> None:
    asked: list[Callable[[sa.Connection], None]] = [
        lambda conn: people.set_user(conn, User("dan")),
        lambda conn: people.set_password(conn, "dan", "x", must_change=False),
        lambda conn: people.remove_user(conn, "dan"),
        lambda conn: people.remove_group(conn, "dan"),
        lambda conn: people.set_group(conn, Group("dan")),
        lambda conn: people.set_member(conn, "vision", "dan", Role.MEMBER),
        lambda conn: people.set_member(conn, "dan", "ann", Role.MEMBER),
        lambda conn: people.set_quota(conn, Quota("dan", "nvidia", 1)),
        lambda conn: logins.add_token(conn, TokenRow("t", "h", "dan", "n", "read", 1.0)),
        lambda conn: logins.add_session(conn, SessionRow("s", "dan", "c", 1.0, 2.0)),
    ]
    for ask in asked:
        with house.write() as conn, pytest.raises(NotFound) as caught:
            ask(conn)
        assert caught.value.reason.facts["name"] == "dan"


def test_changes_to_people_and_groups_are_told_to_the_feed(house: Database) -> None:
    position = house.feed.position()
    with house.write() as conn:
        people.set_quota(conn, Quota("speech", "cpu", 1))
        people.set_member(conn, "speech", "ann", Role.MEMBER)
    with house.read() as conn:
        told = [(change.kind, change.id) for change in changes_since(conn, position)]
    assert told == [("group", "speech"), ("user", "ann")]


def test_tokens_are_found_by_their_hash_used_and_revoked_once(house: Database) -> None:
    token = TokenRow("t1", "h1", "ann", "laptop", "write", 1.0, expires_at=50.0)
    other = TokenRow("t2", "h2", "bob", "desk", "read", 2.0)
    with house.write() as conn:
        logins.add_token(conn, token)
        logins.add_token(conn, other)
        logins.token_used(conn, "t1", 3.0)
    with house.write() as conn:
        assert logins.revoke_token(conn, "t1", 4.0)
        assert not logins.revoke_token(conn, "t1", 5.0)
        assert not logins.revoke_token(conn, "t9", 5.0)
    with house.read() as conn:
        assert logins.token_by_hash(conn, "h1") == replace(token, last_used_at=3.0, revoked_at=4.0)
        assert logins.get_token(conn, "t2") == other
        assert [row.id for row in logins.tokens_of(conn)] == ["t1", "t2"]
        assert logins.tokens_of(conn, "bob") == [other]
    with pytest.raises(Conflict), house.write() as conn:
        logins.add_token(conn, replace(other, id="t3"))


def test_sessions_last_until_they_expire_or_are_ended(house: Database) -> None:
    with house.write() as conn:
        for number in range(4):
            logins.add_session(conn, SessionRow(f"s{number}", "ann", "c", 1.0, 10.0 + number))
        logins.extend_session(conn, "s0", 99.0)
        assert logins.remove_expired_sessions(conn, 11.0) == 1
        assert logins.remove_session(conn, "s2")
        assert not logins.remove_session(conn, "s2")
        assert logins.remove_sessions_of(conn, "ann", but="s0") == 1
        assert logins.session_by_hash(conn, "s0") == SessionRow("s0", "ann", "c", 1.0, 99.0)
        assert logins.remove_sessions_of(conn, "ann") == 1
