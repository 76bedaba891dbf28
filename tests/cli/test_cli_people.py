"""Users, groups, tokens, logins: who may what, by hand."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from tests.cli.yard import Yard

from gpuyard import Client

PASSWORD = "correct horse battery"


@pytest.fixture(scope="module")
def team(simulated: Yard) -> Yard:
    """A group with a lead and two members, as the admin sees it."""
    simulated.good("group", "create", "vision", "--quota", "nvidia=8,cpu=64")
    for name, role in (("lea", "lead"), ("ana", "member"), ("bob", "member")):
        simulated.good("user", "create", name, "--password", PASSWORD, "--group", "vision", "--role", role)
    return simulated


def as_user(yard: Yard, name: str, scope: str = "write") -> Yard:
    return yard.as_user(yard.good("token", "create", f"for {name}", "--user", name, "--scope", scope))


def test_a_group_shows_its_members_and_quota(team: Yard) -> None:
    shown = team.json("group", "show", "vision")
    assert {member["user"]: member["role"] for member in shown["members"]} == {
        "lea": "lead",
        "ana": "member",
        "bob": "member",
    }
    assert "nvidia" in team.good("group", "show", "vision")
    assert {line["resource"] for line in team.json("quota") if line["group"] == "vision"} >= {"nvidia", "cpu"}


def test_quotas_are_set_for_a_group_and_for_one_user(team: Yard) -> None:
    team.good("group", "set", "vision", "--quota", "memory=256G,cpu=none")
    team.good("user", "set", "ana", "--quota", "nvidia=2")
    lines = {(line["user"], line["resource"]): line["limit"] for line in team.json("group", "show", "vision")["quotas"]}
    assert lines[None, "memory"] == 256 << 30
    assert (None, "cpu") not in lines
    assert lines["ana", "nvidia"] == 2
    assert team.run("group", "set", "vision", "--quota", "pears=2").code == 2
    assert team.run("group", "set", "vision", "--quota", "nvidia").code == 2


def test_a_user_made_without_a_password_gets_one_to_change(team: Yard) -> None:
    made = team.json("user", "create", "carl")
    assert made["password"]
    assert made["must_change_password"]
    assert "one-time password" in team.good("user", "create", "dora")
    for name in ("carl", "dora"):
        team.good("user", "rm", name)
        assert team.run("user", "show", name).code == 3


def test_roles_and_places_are_changed(team: Yard) -> None:
    team.good("user", "create", "eva", "--password", PASSWORD, "--group", "vision")
    team.good("user", "set", "eva", "--role", "lead")
    assert team.json("user", "show", "eva")["memberships"] == [{"group": "vision", "role": "lead"}]
    team.good("user", "set", "eva", "--role", "admin")
    assert team.json("user", "show", "eva")["admin"]
    team.good("user", "set", "eva", "--role", "member")
    assert not team.json("user", "show", "eva")["admin"]
    team.good("user", "set", "eva", "--inactive")
    assert not team.json("user", "show", "eva")["active"]
    team.good("group", "set", "vision", "--remove", "eva")
    assert team.json("user", "show", "eva")["memberships"] == []
    assert team.run("user", "set", "eva", "--role", "lead").code == 2, "lead of which group?"
    assert team.run("user", "set", "eva").code == 2
    team.good("user", "rm", "eva")


def test_a_member_sees_their_own_and_is_kept_from_the_rest(team: Yard) -> None:
    ana, bob = as_user(team, "ana"), as_user(team, "bob")
    job = ana.good("run", "--detach", "--name", "anas", "--env", "YARD_SIM_SECONDS=3600", "--", "x")
    assert [item["id"] for item in ana.json("ls")] == [job]
    assert bob.json("ls") == []
    for command in (["show", job], ["logs", job], ["stop", job], ["why", "anas"]):
        assert bob.run(*command).code == 3
    for command in (["user", "create", "mallory"], ["audit"], ["nodes", "cordon", "sim-1"], ["backup", "stolen.gz"]):
        assert bob.run(*command).code in (3, 4)
    assert as_user(team, "lea").json("show", job)["owner"] == "ana"
    ana.good("stop", job)


def test_a_token_for_reading_cannot_start_anything(team: Yard) -> None:
    reader = as_user(team, "ana", scope="read")
    assert reader.run("ls").code == 0
    assert reader.run("run", "--detach", "--", "true").code == 4


def test_a_token_is_shown_once_listed_and_taken_back(team: Yard) -> None:
    made = team.json("token", "create", "ci", "--days", "7")
    user = team.as_user(made["token"])
    assert user.json("whoami")["via"] == "token"
    assert "ci" in [key["name"] for key in team.json("token", "ls")]
    assert team.json("token", "show", made["id"])["name"] == "ci"
    assert made["token"] not in team.good("token", "ls", "-o", "json")
    team.good("token", "rm", made["id"])
    assert user.run("whoami").code == 4
    assert team.run("token", "rm", made["id"]).code == 3
    assert team.run("token", "show", "nope").code == 3


def test_a_token_is_taken_back_by_its_name_when_only_one_has_it(team: Yard) -> None:
    team.good("token", "create", "by-name")
    assert team.json("token", "show", "by-name")["name"] == "by-name"
    team.good("token", "rm", "by-name")
    assert "by-name" not in [key["name"] for key in team.json("token", "ls")]
    made = [team.json("token", "create", "twice")["id"] for _ in range(2)]
    for command in ("rm", "show"):
        done = team.run("token", command, "twice")
        assert done.code == 2
        assert all(id in done.err for id in made)
    for id in made:
        team.good("token", "rm", id)
    assert team.run("token", "rm", "twice").code == 3


def test_whoami_tells_the_role_apart_from_what_the_token_may(team: Yard) -> None:
    told = as_user(team, "bob", scope="admin").good("whoami")
    assert told.startswith("bob (member) at ")
    assert "all that bob may (member)" in told
    assert "change nothing" in as_user(team, "bob", scope="read").good("whoami")
    assert as_user(team, "lea").good("whoami").startswith("lea (lead) at ")


def test_the_values_of_variables_are_shown_to_the_owner_alone(team: Yard) -> None:
    ana = as_user(team, "ana")
    job = ana.good("run", "--detach", "--env", "KEY=secret", "--", "sleep", "0")
    assert "KEY=secret" in ana.good("show", job)
    seen = as_user(team, "lea").good("show", job)
    assert "KEY" in seen
    assert "secret" not in seen


def test_a_wrong_token_is_not_logged_in(team: Yard) -> None:
    for token in ("yard_wrong", "x", "\u4e2d"):
        done = team.as_user(token).run("ls")
        assert done.code == 4
        assert done.err


def test_what_was_done_is_in_the_audit_trail(team: Yard) -> None:
    team.good("group", "create", "audited")
    team.good("group", "rm", "audited")
    lines = team.json("audit", "--limit", "5")
    assert [line["object"] for line in lines[:2]] == ["audited", "audited"]
    assert {line["who"] for line in lines[:2]} == {"admin"}


# --- logging in ---------------------------------------------------------------------------------------------------


def elsewhere(team: Yard, home: Path) -> tuple[Yard, str]:
    """Someone on another machine: another home, no data folder; and the server's address."""
    url = json.loads((team.data / "server.json").read_text())["url"]
    home.mkdir(exist_ok=True)
    return Yard(home, home / "none", {"YARD_DATA": ""}), url


def test_login_saves_a_token_and_logout_takes_it_back(team: Yard, tmp_path: Path) -> None:
    person, url = elsewhere(team, tmp_path / "home")
    person.good("login", url, "--name", "ana", "--password-stdin", stdin=PASSWORD + "\n")
    saved = person.home / ".config/gpuyard/login.json"
    assert saved.stat().st_mode & 0o777 == 0o600
    token = json.loads(saved.read_text())["token"]
    assert person.json("whoami")["user"]["name"] == "ana"
    person.good("logout")
    assert not saved.exists()
    assert person.run("whoami", YARD_URL=url, YARD_TOKEN=token).code == 4
    assert person.run("logout").code == 0


def test_a_wrong_password_is_refused_and_nothing_is_saved(team: Yard, tmp_path: Path) -> None:
    person, url = elsewhere(team, tmp_path / "home")
    for name in ("bob", "nobody-of-that-name"):
        done = person.run("login", url, "--name", name, "--password-stdin", stdin="wrong\n")
        assert done.code == 4
    assert not (person.home / ".config").exists()


def test_a_one_time_password_is_changed_while_logging_in(team: Yard, tmp_path: Path) -> None:
    one_time = team.json("user", "create", "finn", "--group", "vision")["password"]
    person, url = elsewhere(team, tmp_path / "home")
    weak = person.run("login", url, "--name", "finn", "--password-stdin", stdin=f"{one_time}\nshort\n")
    assert weak.code == 2
    person.good("login", url, "--name", "finn", "--password-stdin", stdin=f"{one_time}\n{PASSWORD}\n")
    assert person.json("whoami")["user"]["must_change_password"] is False


def test_a_password_is_not_sent_over_plain_http_to_another_machine(yard: Yard) -> None:
    done = yard.run("login", "http://192.0.2.1:8470", "--name", "ana", "--password-stdin", stdin="secret\n")
    assert done.code == 2
    assert "--insecure-http" in done.err
    assert yard.run("login", "ftp://x", "--name", "a", "--password-stdin", stdin="x").code == 2


def test_an_admin_sets_a_new_password_for_someone(team: Yard, tmp_path: Path) -> None:
    team.good("user", "set", "bob", "--password-stdin", stdin="another good one\n")
    person, url = elsewhere(team, tmp_path / "home")
    person.good("login", url, "--name", "bob", "--password-stdin", stdin="another good one\n")


def test_someone_changes_their_own_password(team: Yard) -> None:
    with Client(data=team.data) as owner:
        owner.create_user("pia", password="her first long secret", group="default")
        token = owner.create_token("pia", user="pia", scope="admin").raw["token"]
    pia = team.as_user(token)
    wrong = pia.run("password", "--password-stdin", stdin="no\nher second long secret\n")
    assert wrong.code != 0
    changed = pia.run("password", "--password-stdin", stdin="her first long secret\nher second long secret\n")
    assert changed.code == 0, changed
    again = pia.run("password", "--password-stdin", stdin="her second long secret\nher third long secret\n")
    assert again.code == 0, again
