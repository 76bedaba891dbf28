"""Who gets in by SSH, where to, and for how long (A04, A07, A42)."""

from __future__ import annotations

import asyncio
import contextlib
import shutil
import socket
import subprocess
from dataclasses import replace
from pathlib import Path

import asyncssh
import pytest
from tests.gateway.ssh_house import PASSWORD, QUICK_HASH, SshHouse, replicas_of, wait_until

from gpuyard.domain.workload import State, Workload
from gpuyard.gateway.ssh.door import keep_host_key
from gpuyard.gateway.ssh.names import Address, Place, read_address, read_place
from gpuyard.store import people, ssh_keys

pytestmark = pytest.mark.skipif(shutil.which("ssh") is None, reason="needs the OpenSSH client")


# --- in -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("means", ["password", "keyboard-interactive"])
def test_the_platform_password_opens(house: SshHouse, dev: Workload, means: str) -> None:
    options = ["-o", f"PreferredAuthentications={means}"]
    assert house.ssh("ann+dev", "echo $USER", options=options).text == "ann\n"


@pytest.mark.parametrize("kind", ["ed25519", "ecdsa", "rsa"])
def test_a_public_key_opens(house: SshHouse, dev: Workload, kind: str) -> None:
    assert house.ssh("ann+dev", "echo $USER", key=house.key("ann", kind)).text == "ann\n"


def test_a_login_is_in_the_trail_with_how_and_where(house: SshHouse, dev: Workload, key: Path) -> None:
    house.ssh("ann+dev", "true", key=key)
    login = house.trail("session.begin")[0]
    assert (login.who, login.outcome, login.address) == ("ann", "done", "127.0.0.1")
    assert (login.facts["via"], login.facts["by"], login.facts["place"]) == ("ssh", "key", "dev")
    entry = house.trail("workload.enter")[0]
    assert (entry.who, entry.object, entry.facts["via"]) == ("ann", dev.id, "ssh")


def test_a_key_that_was_used_tells_when(house: SshHouse, dev: Workload) -> None:
    file = house.key("ann")
    house.ssh("ann+dev", "true", key=file)
    with house.database.read() as conn:
        used = {row.name: row.last_used_at for row in ssh_keys.of_user(conn, "ann")}
    assert used[file.name] is not None


def test_a_wrong_password_and_an_unknown_person_are_told_the_same(house: SshHouse, dev: Workload) -> None:
    known = house.ssh("ann+dev", "true", password="wrong password")
    unknown = house.ssh("zoe+dev", "true", password="wrong password")
    assert known.code == unknown.code == 255
    assert known.err.replace("ann", "zoe") == unknown.err
    failed = house.trail("session.begin")[0]
    assert (failed.who, failed.outcome) == ("zoe", "failed")


def test_an_unknown_key_does_not_open_and_another_persons_neither(house: SshHouse, dev: Workload) -> None:
    assert house.ssh("ann+dev", "true", key=house.key("ann", known=False)).code == 255
    assert house.ssh("ann+dev", "true", key=house.key("ben")).code == 255


def test_a_one_time_password_has_to_be_changed_first(house: SshHouse) -> None:
    house.person("new", must_change=True)
    told = house.ssh("new", "true", options=["-o", "LogLevel=INFO"])
    assert told.code == 255
    assert "password" in told.err.split("Permission denied")[0].lower()
    assert house.ssh("new", "true", key=house.key("new")).code == 255


def test_the_host_key_is_made_once_and_is_its_owners_alone(tmp_path: Path) -> None:
    first = keep_host_key(tmp_path / "key")
    again = keep_host_key(tmp_path / "key")
    assert first.public_data == again.public_data
    assert (tmp_path / "key").stat().st_mode & 0o777 == 0o600
    assert sorted(path.name for path in tmp_path.iterdir()) == ["key", "key.pub"]


def test_a_broken_host_key_is_not_silently_replaced(tmp_path: Path) -> None:
    (tmp_path / "key").write_text("no key")
    with pytest.raises(OSError, match="not a usable host key"):
        keep_host_key(tmp_path / "key")
    assert (tmp_path / "key").read_text() == "no key"


# --- where to -----------------------------------------------------------------------------------------------------


def test_without_a_name_the_only_running_environment_is_meant(own: SshHouse) -> None:
    key = own.key("ann")
    nothing = own.ssh("ann", "true", key=key)
    assert (nothing.code, "no running environment" in nothing.err) == (255, True)
    own.environment("ann", "resting", runs=False)
    assert "resting" in own.ssh("ann", "true", key=key).err
    own.environment("ann", "one")
    assert own.ssh("ann", "echo here", key=key).text == "here\n"
    own.environment("ann", "two")
    which = own.ssh("ann", "true", key=key)
    assert which.code == 255
    assert "one, two" in which.err
    assert "ssh ann+NAME@" in which.err


def test_a_stopped_environment_says_how_to_start_it(house: SshHouse, key: Path) -> None:
    house.environment("ann", "resting", runs=False)
    told = house.ssh("ann+resting", "true", key=key)
    assert (told.code, told.err) == (255, "The environment resting is stopped. Start it with: yard env start resting\n")
    chinese = house.ssh("ann+resting", "true", key=key, options=["-o", "SendEnv=LANG"], env={"LANG": "zh_CN.UTF-8"})
    assert chinese.err == "开发环境 resting 已停止。启动它：yard env start resting\n"
    forward = house.ssh("ann+resting", key=key, options=["-o", "LogLevel=INFO", "-W", "localhost:80"])
    assert "yard env start resting" in forward.err


def test_a_stopped_environment_can_be_entered_again_over_the_same_connection(own: SshHouse, tmp_path: Path) -> None:
    key, dev = own.key("ann"), own.environment("ann", "dev")

    async def visit() -> list[int | None]:
        codes = []
        async with asyncssh.connect("127.0.0.1", own.port, **login("ann+dev", key)) as connection:
            for state in (State.RUNNING, State.PAUSED, State.RUNNING):
                own.set_state(dev, state)
                codes.append((await connection.run("true")).exit_status)
        return codes

    assert asyncio.run(visit()) == [0, 255, 0]


def test_others_work_is_as_if_it_were_not_there_also_for_admins(house: SshHouse, dev: Workload) -> None:
    house.person("root-ann", admin=True)
    for who in ("ben", "root-ann"):
        file = house.key(who)
        for place in ("dev", dev.id, f"{dev.id}.main-0"):
            told = house.ssh(f"{who}+{place}", "true", key=file)
            nothing = house.ssh(f"{who}+{'x' * len(place)}", "true", key=file)
            assert told.code == nothing.code == 255
            assert told.err.replace(place, "PLACE") == nothing.err.replace("x" * len(place), "PLACE")
    refused = [entry for entry in house.trail("workload.enter") if entry.outcome == "refused"]
    assert {entry.who for entry in refused} == {"ben", "root-ann"}


def test_two_people_with_environments_of_one_name_each_enter_their_own(house: SshHouse, dev: Workload) -> None:
    mine = house.environment("ben", "dev")
    assert house.ssh("ben+dev", "pwd", key=house.key("ben")).text.strip() == str(house.home(mine))


def test_any_running_workload_is_entered_by_id_and_replica(house: SshHouse, key: Path) -> None:
    job = house.job("ann", replicas=3)
    first, _, last = replicas_of(job)
    assert house.ssh(f"ann+{job.id}", "pwd", key=key).text.strip() == str(house.home(job, first))
    assert house.ssh(f"ann+{job.id}.worker-2", "pwd", key=key).text.strip() == str(house.home(job, last))
    nothing = house.ssh(f"ann+{job.id}.worker-3", "true", key=key)
    assert nothing.code == 255
    assert "worker-0, worker-1, worker-2" in nothing.err
    house.set_state(job, State.SUCCEEDED)
    over = house.ssh(f"ann+{job.id}", "true", key=key)
    assert (over.code, "not running" in over.err) == (255, True)


NAMES = [
    ("ann", Address("ann", None)),
    ("ann+dev", Address("ann", "dev")),
    ("ann+", Address("ann", "")),
    ("+", Address("", "")),
    ("+dev", Address("", "dev")),
    ("ann+ben's", Address("ann", "ben's")),
    ("ann+ben+dev", Address("ann", "ben+dev")),
    ("ann++dev", Address("ann", "+dev")),
    ("ann dev", Address("ann dev", None)),
]


@pytest.mark.parametrize(("text", "address"), NAMES)
def test_the_first_plus_ends_who_it_is(text: str, address: Address) -> None:
    assert read_address(text) == address


def test_what_stands_after_the_plus_is_a_name_or_an_id() -> None:
    assert read_place("dev_1") == Place("dev_1", None)
    assert read_place("w123456789") == Place("w123456789", "w123456789")
    assert read_place("w123456789.worker-1") == Place(None, "w123456789", "worker-1")
    for text in ("", "a" * 28, "../x", "w123456789.", "w123456789.worker-01", "w123456789.x/y", "dév", "dev\n"):
        assert read_place(text) == Place(None, None)


CONFUSED = [
    "ann+",
    "ann+ben+dev",
    "ann+ben's",
    "ann+$(reboot)",
    "ann+`id`",
    "ann+;ls",
    "ann+../../etc",
    "ann+dev/../dev",
    "ann+dev%00",
    "ann+DEV",
    "ann+dev ",
    "ann+dév",
    "ann+开发环境",
    "ann+" + "d" * 500,
    "ann+dev.main-0",
]


@pytest.mark.parametrize("name", CONFUSED)
def test_confused_names_lead_nowhere(house: SshHouse, dev: Workload, key: Path, name: str) -> None:
    told = house.ssh_as(name, "echo inside", key=key)
    assert told.code == 255
    assert "inside" not in told.text
    assert "\x1b" not in told.err


STRANGERS = [
    "+",
    "+dev",
    "",
    " ann+dev",
    "ann\x00+dev",
    "ANN+dev",
    "root",
    "ann@dev",
    "a" * 2000,
    "ａｎｎ+dev",
    "ann\u200b+dev",
]


@pytest.mark.parametrize("name", STRANGERS)
def test_names_nobody_has_open_nothing(house: SshHouse, dev: Workload, name: str) -> None:
    """What is the same person in another spelling of Unicode is that person, and needs the same password."""

    async def visit() -> bool:
        options = {**login(name, None), "password": "not the password", "preferred_auth": "password"}
        try:
            async with asyncssh.connect("127.0.0.1", house.port, **options):
                return True
        except (asyncssh.Error, OSError, ValueError):
            return False

    assert not asyncio.run(visit())


def test_a_name_changed_between_tries_changes_who_it_is(house: SshHouse, dev: Workload) -> None:
    """The protocol lets a client try first as one, then as another: only the last counts, with its own proof."""
    ben = house.key("ben")

    async def visit() -> tuple[str, int | None]:
        options = {**login("ann+dev", ben), "password": PASSWORD}
        async with asyncssh.connect("127.0.0.1", house.port, **options) as connection:
            done = await connection.run("echo $USER")
            return str(done.stdout), done.exit_status

    assert asyncio.run(visit()) == ("ann\n", 0)  # ben's key was no good for ann, ann's password was
    assert house.trail("session.begin")[0].facts["by"] == "password"


# --- for how long -------------------------------------------------------------------------------------------------


def login(name: str, key: Path | None) -> dict[str, object]:
    return {
        "username": name,
        "client_keys": [str(key)] if key else None,
        "known_hosts": None,
        "config": None,
        "agent_path": None,
    }


def lasting(house: SshHouse, key: Path | None = None) -> subprocess.Popen[bytes]:
    """Someone who is in."""
    visit = house.start(house.command("ann+dev", "echo in; cat", key=key, options=["-o", "LogLevel=INFO"]))
    assert visit.stdout is not None
    assert visit.stdout.readline() == b"in\n"
    return visit


def sent_out(visit: subprocess.Popen[bytes]) -> str:
    """What they were told. Their own end stays open until then."""
    assert visit.wait(20) == 255
    return visit.communicate()[1].decode()


def test_whoever_is_deactivated_is_sent_out(own: SshHouse) -> None:
    own.environment("ann", "dev")
    visits = [lasting(own), lasting(own, own.key("ann"))]
    with own.database.write() as conn:
        user = people.get_user(conn, "ann")
        assert user is not None
        people.set_user(conn, replace(user, active=False))
    for visit in visits:
        assert "This login is over" in sent_out(visit)
    assert own.ssh("ann+dev", "true").code == 255
    assert own.ssh("ann+dev", "true", key=own.key("ann")).code == 255


def test_a_new_password_ends_the_logins_by_the_old_one_only(own: SshHouse) -> None:
    own.environment("ann", "dev")
    by_password, by_key = lasting(own), lasting(own, own.key("ann"))
    with own.database.write() as conn:
        people.set_password(conn, "ann", QUICK_HASH.hash("another long secret"), must_change=False)
    assert "This login is over" in sent_out(by_password)
    assert by_key.poll() is None
    out, _ = by_key.communicate(b"still here", timeout=20)
    assert (out, by_key.returncode) == (b"still here", 0)


def test_a_removed_key_ends_the_logins_by_it_only(own: SshHouse) -> None:
    own.environment("ann", "dev")
    gone, kept = own.key("ann"), own.key("ann")
    visits = lasting(own, gone), lasting(own, kept)
    with own.database.write() as conn:
        row = next(row for row in ssh_keys.of_user(conn, "ann") if row.name == gone.name)
        ssh_keys.remove(conn, row.id)
    assert "This login is over" in sent_out(visits[0])
    out, _ = visits[1].communicate(b"still here", timeout=20)
    assert (out, visits[1].returncode) == (b"still here", 0)


def test_a_removed_user_is_sent_out_and_one_of_the_same_name_is_someone_else(own: SshHouse) -> None:
    own.environment("ann", "dev")
    visit = lasting(own, own.key("ann"))
    with own.database.write() as conn:
        people.remove_user(conn, "ann")
    assert "This login is over" in sent_out(visit)


# --- how many, how often ------------------------------------------------------------------------------------------


def test_guessing_is_slowed_down_and_the_owner_still_gets_in_by_key(own: SshHouse) -> None:
    """A04: tries are counted before anything is hashed, and all of them are told the same."""
    own.environment("ann", "dev")
    own.clock.stop()
    tries = [own.ssh("ann+dev", "true", password=f"guess {n}", options=["-o", "LogLevel=INFO"]) for n in range(14)]
    assert all(one.code == 255 for one in tries)
    assert "Too many tries. Wait" in tries[-1].err
    failed = [entry for entry in own.trail("session.begin") if entry.outcome == "failed"]
    assert len(failed) <= 10
    refused = own.ssh("ann+dev", "true", options=["-o", "LogLevel=INFO"])
    assert refused.code == 255  # not even with the right one, from there
    assert own.ssh("ann+dev", "echo in", key=own.key("ann")).text == "in\n"


def test_one_connection_has_only_so_many_tries(own: SshHouse) -> None:
    own.environment("ann", "dev")
    asked = 0

    class Guesser(asyncssh.SSHClient):
        def password_auth_requested(self) -> str | None:
            nonlocal asked
            asked += 1
            return f"guess {asked}"

    async def visit() -> None:
        options = {**login("ann+dev", None), "preferred_auth": "password", "client_factory": Guesser}
        async with asyncssh.connect("127.0.0.1", own.port, **options):
            pass

    with pytest.raises((asyncssh.Error, OSError)):
        asyncio.run(visit())
    assert asked <= 8


def test_strangers_who_say_nothing_do_not_fill_the_door(own: SshHouse) -> None:
    own.environment("ann", "dev")
    key = own.key("ann")
    silent = [socket.create_connection(("127.0.0.1", own.port)) for _ in range(60)]
    try:
        wait_until(lambda: sum(1 for sock in silent if _is_closed(sock)) >= 12)
        for sock in silent[:30]:
            sock.close()
        wait_until(lambda: own.ssh("ann+dev", "echo in", key=key).text == "in\n")
    finally:
        for sock in silent:
            sock.close()


def _is_closed(sock: socket.socket) -> bool:
    sock.setblocking(False)
    try:
        while piece := sock.recv(4096):
            assert piece
        return True
    except BlockingIOError:
        return False
    except OSError:
        return True


def test_one_person_has_only_so_many_connections(own: SshHouse) -> None:
    own.environment("ann", "dev")
    key = own.key("ann")

    async def visit() -> tuple[int, int | None]:
        async with contextlib.AsyncExitStack() as leaving:

            async def come() -> asyncssh.SSHClientConnection:
                return await leaving.enter_async_context(
                    asyncssh.connect("127.0.0.1", own.port, **login("ann+dev", key))
                )

            there = [await come() for _ in range(32)]
            refused = 0
            try:
                await (await come()).run("true")
            except (asyncssh.Error, OSError):
                refused += 1
            return refused, (await there[0].run("echo in")).exit_status

    assert asyncio.run(visit()) == (1, 0)
    wait_until(lambda: own.ssh("ann+dev", "echo in", key=key).text == "in\n")


@pytest.mark.parametrize(
    "noise", [b"", b"GET / HTTP/1.1\r\n\r\n", b"SSH-1.5-old\r\n", b"SSH-2.0-x\r\n" + b"\xff" * 5000, b"A" * 100_000]
)
def test_noise_at_the_door_is_survived(house: SshHouse, dev: Workload, key: Path, noise: bytes) -> None:
    with socket.create_connection(("127.0.0.1", house.port), timeout=10) as sock:
        try:
            sock.sendall(noise)
            sock.shutdown(socket.SHUT_WR)
            while sock.recv(4096):
                pass
        except OSError:
            pass
    assert house.ssh("ann+dev", "echo in", key=key).text == "in\n"


def test_weak_ciphers_are_not_spoken(house: SshHouse, dev: Workload, key: Path) -> None:
    weak = ["Ciphers=3des-cbc", "Ciphers=aes128-cbc", "MACs=hmac-sha1", "KexAlgorithms=diffie-hellman-group1-sha1"]
    for option in weak:
        refused = house.ssh("ann+dev", "true", key=key, options=["-o", "Ciphers=aes128-ctr", "-o", option])
        refused = house.ssh("ann+dev", "true", key=key, options=["-o", option]) if "Ciphers" in option else refused
        assert refused.code == 255, option
