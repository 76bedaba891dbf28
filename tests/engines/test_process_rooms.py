"""Who a replica is and what it can see, when the server is root: its own things, and nobody else's."""

from __future__ import annotations

import io
import os
import subprocess
import tarfile
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.engines.places import GID, IS_ROOT, UID, MakeYard, Yard, replica

from gpuyard.devices.simulated import SimulatedProbe
from gpuyard.domain.errors import EngineError
from gpuyard.domain.places import Root
from gpuyard.domain.reasons import Code
from gpuyard.domain.resources import MIB
from gpuyard.domain.workload import Cause, Mount
from gpuyard.engines.process.supervision import linux

pytestmark = pytest.mark.skipif(not IS_ROOT, reason="only root gives each user a room")


def test_work_never_runs_as_root(yard: Yard) -> None:
    _, log = yard.run("id -u; id -g; id -G; whoami; umask; grep NoNewPrivs /proc/self/status; ulimit -c")
    assert log.split() == [str(UID), str(GID), str(GID), "ann", "0027", "NoNewPrivs:", "1", "0"]


def test_work_that_would_run_as_root_is_refused(yard: Yard) -> None:
    with pytest.raises(EngineError) as refused:
        yard.engine.launch(yard.request(replica(), "true", uid=0))
    assert refused.value.reason.code is Code.ENGINE_CANNOT


def test_the_number_of_open_files_is_large_and_not_absurd(yard: Yard) -> None:
    _, log = yard.run("ulimit -Hn; ulimit -Sn")
    assert all(int(word) <= 65_536 for word in log.split())


def test_it_starts_in_its_home_which_is_its_own(yard: Yard) -> None:
    _, log = yard.run("pwd; echo $HOME; touch here && stat -c '%u %a' .")
    home = yard.data / "files" / "user" / "ann"
    assert log.splitlines() == [str(home), str(home), f"{UID} 700"]
    assert (home / "here").exists()


def test_other_peoples_homes_and_the_data_folder_are_not_there(yard: Yard) -> None:
    other = yard.data / "files" / "user" / "bob"
    other.mkdir(parents=True)
    (other / "diary").write_text("secret")
    (yard.data / "gpuyard.db").write_text("secret")
    yard.run("true", replica(1))
    _, log = yard.run(f"find {yard.data} -type f; cat {other}/diary {yard.data}/gpuyard.db; ls {yard.data}/replicas")
    assert "secret" not in log
    assert "gpuyard.db\n" not in log.replace("cat: ", "")
    assert str(replica(1).workload) in log
    _, log = yard.run(f"find {yard.data}/replicas -mindepth 3", replica(2))
    assert {line.split("/")[-1] for line in log.splitlines() if "worker-" in line.split("/")[-1]} == {"worker-2"}


def test_a_group_shares_a_folder(yard: Yard) -> None:
    share = yard.data / "files" / "share" / "vision"
    yard.run(f"echo from ann > {share}/note; chmod g+r {share}/note")
    _, log = yard.run(f"cat {share}/note; stat -c %g {share}/note", replica(1), owner="bob", uid=UID + 1)
    assert log.split("\n")[:2] == ["from ann", str(GID)]


def test_work_has_its_groups_number_and_its_own(yard: Yard) -> None:
    _, log = yard.run("id -g; id -G; id -Gn; stat -c %g $HOME", uid=UID + 9)
    assert log.split() == [str(GID), str(GID), str(UID + 9), "vision", "ann", str(UID + 9)]


def test_everyone_finds_their_own_and_their_groups_folder_below_mnt(yard: Yard) -> None:
    seen, log = yard.run(
        "echo mine > /mnt/user/ann/a; cat $HOME/a $YARD_USER_DIR/a; echo ours > $YARD_SHARE_DIR/s; "
        "ls -d /mnt/user/* /mnt/share/*; echo $YARD_USER_DIR $YARD_SHARE_DIR; stat -c %a /mnt/user"
    )
    folders = ["/mnt/share/vision", "/mnt/user/ann"]
    assert (seen.exit_code, log.split()) == (0, ["mine", "mine", *folders, *reversed(folders), "755"])
    assert (yard.data / "files" / "share" / "vision" / "s").read_text() == "ours\n"
    assert not Path("/mnt/user").exists()


def test_nothing_can_be_made_beside_them(yard: Yard) -> None:
    for number, path in enumerate(("/mnt/x", "/mnt/user/bob", "/mnt/share/speech")):
        assert yard.run(f"mkdir {path}", replica(number))[0].exit_code == 1


def test_a_home_left_by_an_earlier_user_of_that_name_is_not_the_new_ones(yard: Yard) -> None:
    yard.run("echo mine > secret")
    with pytest.raises(EngineError) as refused:
        yard.launch("cat secret", replica(1), uid=UID + 1)
    assert "an earlier user of that name" in refused.value.reason.facts["detail"]


def test_a_home_or_a_share_that_is_a_link_is_not_followed(yard: Yard, tmp_path: Path) -> None:
    for number, name in enumerate(("user/ann", "share/vision")):
        (yard.data / "files" / name).symlink_to(tmp_path)
        with pytest.raises(EngineError) as refused:
            yard.launch("true", replica(number))
        assert "is a link" in refused.value.reason.facts["detail"]
        (yard.data / "files" / name).unlink()


@pytest.mark.parametrize(("mode", "uid"), [(0o777, 0), (0o775, 0), (0o755, UID)])
def test_a_root_that_others_can_change_is_refused(tmp_path: Path, mode: int, uid: int) -> None:
    nas = tmp_path / "nas"
    (nas / "user").mkdir(parents=True)
    (nas / "user").chmod(mode)
    os.chown(nas / "user", uid, 0)
    with pytest.raises(EngineError) as refused:
        Yard(tmp_path / "data", options={"further_roots": [Root("/mnt2", str(nas))]})
    assert "others than root" in refused.value.reason.facts["what"]


@pytest.fixture
def without_lists(tmp_path: Path) -> Iterator[Path]:
    """A folder on a file system that keeps no access lists."""
    folder = tmp_path / "ramfs"
    folder.mkdir()
    if subprocess.run(["mount", "-t", "ramfs", "none", str(folder)], capture_output=True).returncode:
        pytest.skip("nothing can be mounted here")
    yield folder
    subprocess.run(["umount", str(folder)], check=True)


def test_without_access_lists_what_is_made_is_the_groups_by_its_number(tmp_path: Path, without_lists: Path) -> None:
    yard = Yard(without_lists / "data")
    try:
        yard.run("umask; echo ann > /mnt/share/vision/f")
        seen, log = yard.run(
            "echo bob >> $YARD_SHARE_DIR/f; cat $YARD_SHARE_DIR/f", replica(1), owner="bob", uid=UID + 1
        )
        assert (seen.exit_code, log) == (0, "ann\nbob\n")
    finally:
        yard.close()


@pytest.fixture
def host_folder() -> Iterator[Path]:
    folder = Path(tempfile.mkdtemp(prefix="gpuyard-test-", dir="/mnt"))
    folder.chmod(0o755)
    (folder / "host.txt").write_text("host")
    yield folder
    _remove(folder)


def test_what_the_machine_has_below_mnt_stays_beside_them(yard: Yard, host_folder: Path) -> None:
    _, log = yard.run(f"cat {host_folder}/host.txt; echo; touch /mnt/user/ann/x; ls {host_folder.parent}")
    assert set(log.split()) >= {"host", host_folder.name, "share", "user"}


def test_further_roots_are_there_too(tmp_path: Path, make_yard: MakeYard) -> None:
    nas = tmp_path / "nas2"
    before = set(os.listdir("/"))
    yard = make_yard(
        tmp_path / "data", further_roots=[Root("/mnt2", str(nas)), Root("/mnt/nas", str(tmp_path / "nas3"))]
    )
    seen, log = yard.run(
        "echo a > /mnt2/user/ann/f; echo b > /mnt2/share/vision/f; echo c > /mnt/nas/user/ann/f; "
        "cat /mnt2/share/*/f /mnt2/user/*/f; stat -c '%u %g %a' /mnt2/user/ann /mnt2/share/vision; ls -d /usr/bin"
    )
    assert (seen.exit_code, log) == (0, f"b\na\n{UID} {UID} 700\n0 {GID} 2770\n/usr/bin\n")
    assert (nas / "user" / "ann" / "f").read_text() == "a\n"
    assert (tmp_path / "nas3" / "user" / "ann" / "f").read_text() == "c\n"
    assert nas.stat().st_mode & 0o777 == 0o711
    assert set(os.listdir("/")) == before


@pytest.fixture
def silent(host_folder: Path) -> Iterator[Path]:
    """A disk below /mnt that does not answer, as a NAS that is gone: whoever asks it anything waits for ever."""
    folder = host_folder.parent / f"{host_folder.name}-silent"
    folder.mkdir()
    try:
        device = os.open("/dev/fuse", os.O_RDWR | os.O_CLOEXEC)
    except OSError:
        pytest.skip("there is no /dev/fuse")
    try:
        linux.mount("none", str(folder), "fuse", data=f"fd={device},rootmode=40000,user_id=0,group_id=0")
        yield folder
    finally:
        os.close(device)  # whoever still waits gets an error now
        subprocess.run(["umount", "--lazy", str(folder)], check=True)
        folder.rmdir()


def test_a_disk_below_mnt_that_does_not_answer_keeps_nothing_from_starting(yard: Yard, silent: Path) -> None:
    _, log = yard.run("echo hello > /mnt/user/ann/f; cat /mnt/user/ann/f")
    assert log == "hello\n"


@pytest.mark.parametrize("kind", ["closed", "open to all", "a link", "a file", "somebody's"])
def test_whatever_is_in_the_way_of_a_root_is_covered(
    tmp_path: Path, make_yard: MakeYard, host_folder: Path, kind: str
) -> None:
    users = host_folder / "user"
    if kind == "closed":
        host_folder.chmod(0o700)
    elif kind == "open to all":
        host_folder.chmod(0o1777)
    elif kind == "a link":
        users.symlink_to("/etc")
    elif kind == "a file":
        users.write_text("host")
    else:
        os.chown(host_folder, UID, UID)
    yard = make_yard(tmp_path / "data", further_roots=[Root(str(host_folder), str(tmp_path / "nas"))])
    seen, log = yard.run(f"echo a > {users}/ann/f; cat {users}/ann/f; ls {host_folder}; ls /etc/passwd")
    assert (seen.exit_code, log) == (0, "a\nshare\nuser\n/etc/passwd\n")
    assert (tmp_path / "nas" / "user" / "ann" / "f").read_text() == "a\n"
    assert sorted(os.listdir(host_folder)) in (["host.txt"], ["host.txt", "user"])


@pytest.mark.parametrize("at", ["/mnt", "/mnt/user", "/mnt/user/ann/x", "/mnt/share/vision"])
def test_a_mount_cannot_hide_the_folders_everyone_finds(yard: Yard, at: str) -> None:
    with pytest.raises(EngineError) as refused:
        yard.launch("true", mounts=(Mount("home", at),))
    assert "everyone's own" in refused.value.reason.facts["what"]


def test_python_is_there_whatever_the_servers_path_was(tmp_path: Path, make_yard: MakeYard) -> None:
    for number, path in enumerate(("", "/nowhere", os.environ["PATH"], "/root/.pyenv/shims:/usr/bin:/bin")):
        yard = make_yard(tmp_path / f"data{number}", server_path=path)
        seen, log = yard.run("""python3 -c "print('hello')" """)
        assert (seen.exit_code, log) == (0, "hello\n")


@pytest.mark.parametrize("place", ["/root", "/var/tmp", "/opt"])
def test_the_data_folder_may_lie_anywhere(place: str, tmp_path: Path) -> None:
    data = Path(place) / f"gpuyard-test-{os.getpid()}-{tmp_path.name[-8:]}"
    yard = Yard(data)
    try:
        seen, log = yard.run("""echo hi > file; cat file; pwd; python3 -c "print('hello')"; ls /root""")
        assert seen.exit_code in (0, 2)
        assert log.startswith(f"hi\n{data}/files/user/ann\nhello\n")
        assert ".bashrc" not in log
        yard.close()
        yard.engine.forget(replica().workload)
    finally:
        _remove(data)


def _remove(folder: Path) -> None:
    from gpuyard.engines.process.supervision.removal import remove_tree

    remove_tree(str(folder))


def test_the_machines_temporary_files_are_not_seen_and_its_own_are_gone_afterwards(yard: Yard) -> None:
    _, log = yard.run("ls -A /tmp /var/tmp; echo mine > /tmp/mine; cat /var/tmp/mine; echo $TMPDIR")
    assert "pytest" not in log.replace(str(yard.data), "").replace("pytest-of", "")
    assert log.endswith("mine\n/tmp\n")
    assert not Path("/tmp/mine").exists()


def test_dev_has_only_what_every_program_needs(yard: Yard) -> None:
    _, log = yard.run("ls /dev")
    names = "fd full null ptmx pts random shm stderr stdin stdout tty urandom zero"
    assert log.split() == names.split()
    _, log = yard.run(
        "head -c 3 /dev/zero | wc -c; echo x > /dev/null; python3 -c 'import pty; print(pty.openpty()[0])'", replica(1)
    )
    assert log.split()[0] == "3"
    assert "Error" not in log


def test_shared_memory_is_as_large_as_asked_for(yard: Yard) -> None:
    _, log = yard.run("df -B1 --output=size /dev/shm | tail -1; head -c 9000000 /dev/zero > /dev/shm/x", shm=8 * MIB)
    assert log.split()[0] == str(8 * MIB)
    assert "No space left" in log


def test_writing_to_dev_stderr_by_name_does_not_truncate_the_log(yard: Yard) -> None:
    seen, log = yard.run("echo one; echo two > /dev/stderr; sleep 0.5; echo three; echo four > /dev/stdout")
    assert seen.exit_code == 0
    assert sorted(log.split()) == ["four", "one", "three", "two"]


def test_a_flood_through_dev_stderr_is_complete_and_does_not_keep_it_from_stopping(yard: Yard) -> None:
    _, log = yard.run("seq 1 200000 > /dev/stderr")
    assert log.splitlines() == [str(n) for n in range(1, 200_001)]
    id = yard.launch("yes > /dev/stderr", replica(1))
    yard.says(id, "y\ny\n")
    yard.engine.stop(id, None, 0.0)
    assert yard.ended(id)[0].cause is None


def test_only_processes_of_the_same_user_are_seen(yard: Yard) -> None:
    _, log = yard.run("ls -d /proc/[0-9]* | wc -l; ls /proc/1; cat /proc/1/environ")
    assert int(log.split()[0]) < 10
    assert "cmdline" not in log


def test_mounts_show_parts_of_home_and_share(yard: Yard) -> None:
    yard.run("mkdir -p sets/faces; echo face > sets/faces/1")
    before = set(os.listdir("/"))
    mounts = (
        Mount("home", "/data/faces", "sets/faces", read_only=True),
        Mount("share", "/workspace"),
        Mount("home", "/mnt/home/all"),
        Mount("home", "/data/sets", "sets"),
    )
    seen, log = yard.run(
        "cat /data/faces/1; touch /data/faces/2; echo shared > /workspace/s; "
        "cat /mnt/home/all/sets/faces/1 /data/sets/faces/1; ls /usr/bin/env",
        replica(1),
        mounts=mounts,
    )
    assert seen.exit_code == 0
    assert [line for line in log.splitlines() if "Read-only" not in line] == ["face", "face", "face", "/usr/bin/env"]
    assert "Read-only file system" in log
    assert (yard.data / "files" / "share" / "vision" / "s").read_text() == "shared\n"
    assert set(os.listdir("/")) == before
    assert not Path("/mnt/home").exists()


def test_a_mount_cannot_lead_out_of_its_volume(yard: Yard) -> None:
    yard.run("ln -s /etc etc; ln -s ../../../.. up; mkdir inside; ln -s /inside absolute")
    for number, path in enumerate(("etc", "up/run", "../bob", "/../../etc")):
        seen, _ = yard.run("ls /data", replica(10 + number), mounts=(Mount("home", "/data", path),))
        assert seen.cause is Cause.LAUNCH, path
        assert seen.reason is not None
        assert "cannot be mounted at /data" in seen.reason.facts["detail"]
    seen, _ = yard.run("ls /data", replica(1), mounts=(Mount("home", "/data", "absolute"),))
    assert seen.exit_code == 0


@pytest.fixture
def closed_folder() -> Iterator[Path]:
    folder = Path(tempfile.mkdtemp(prefix="gpuyard-test-", dir="/opt"))
    (folder / "notes").write_text("secret")
    (folder / "notes").chmod(0o644)
    yield folder
    _remove(folder)


@pytest.mark.parametrize("below", ["x", "x/y"])
def test_a_mount_below_a_folder_closed_to_the_user_does_not_open_it(
    yard: Yard, closed_folder: Path, below: str
) -> None:
    seen, log = yard.run(f"cat {closed_folder}/notes", mounts=(Mount("home", f"{closed_folder}/{below}"),))
    assert seen.cause is Cause.LAUNCH
    assert seen.reason is not None
    assert f"{closed_folder} is not open to you" in seen.reason.facts["detail"]
    assert "secret" not in log


def test_a_folder_that_may_be_passed_and_not_read_is_not_opened_by_a_mount(yard: Yard, closed_folder: Path) -> None:
    closed_folder.chmod(0o711)
    seen, _ = yard.run("true", mounts=(Mount("home", f"{closed_folder}/x"),))
    assert seen.cause is Cause.LAUNCH
    closed_folder.chmod(0o744)
    seen, _ = yard.run("true", replica(1), mounts=(Mount("home", f"{closed_folder}/x"),))
    assert seen.cause is Cause.LAUNCH


def test_a_mount_does_not_go_where_others_could_put_a_link_in_its_way(yard: Yard, closed_folder: Path) -> None:
    closed_folder.chmod(0o1777)
    seen, _ = yard.run("true", mounts=(Mount("home", f"{closed_folder}/x"),))
    assert seen.reason is not None
    assert f"others than root can change {closed_folder}" in seen.reason.facts["detail"]
    closed_folder.chmod(0o755)
    (closed_folder / "link").symlink_to("/etc")
    seen, _ = yard.run("true", replica(1), mounts=(Mount("home", f"{closed_folder}/link"),))
    assert seen.reason is not None
    assert "is a link or a file" in seen.reason.facts["detail"]


def test_a_folder_rebuilt_for_a_mount_keeps_its_rights(yard: Yard, closed_folder: Path) -> None:
    closed_folder.chmod(0o555)
    os.chown(closed_folder, 0, 12)
    seen, log = yard.run(
        f"stat -c '%a %u %g' {closed_folder}; cat {closed_folder}/notes", mounts=(Mount("home", f"{closed_folder}/x"),)
    )
    assert (seen.exit_code, log) == (0, "555 0 12\nsecret")


def test_folders_of_the_system_that_anyone_may_write_to_are_each_replicas_own(yard: Yard) -> None:
    meeting = Path(tempfile.mkdtemp(prefix="gpuyard-test-", dir="/run"))
    meeting.chmod(0o1777)
    try:
        seen, log = yard.run(f"echo hello > {meeting}/note && cat {meeting}/note; ls /run/lock")
        assert (seen.exit_code, log) == (0, "hello\n")
        assert not list(meeting.iterdir())
    finally:
        meeting.rmdir()


def test_a_folder_closed_to_the_user_cannot_be_mounted_through_the_share(yard: Yard) -> None:
    share = yard.data / "files" / "share" / "vision"
    yard.run(f"mkdir -p {share}/private/inner; chmod 700 {share}/private; chmod 777 {share}/private/inner")
    seen, _ = yard.run(
        "ls /data", replica(1), owner="bob", uid=UID + 1, mounts=(Mount("share", "/data", "private/inner"),)
    )
    assert seen.cause is Cause.LAUNCH


@pytest.mark.parametrize(
    "at", ["/etc", "/usr/local/x", "/", "relative", "/data/../etc", "/proc/x", "/dev/shm", "/root"]
)
def test_mounts_over_parts_of_the_machine_are_refused(yard: Yard, at: str) -> None:
    with pytest.raises(EngineError) as refused:
        yard.launch("true", mounts=(Mount("home", at),))
    assert refused.value.reason.code is Code.ENGINE_CANNOT


def test_mounts_inside_each_other_or_over_the_data_folder_are_refused(yard: Yard) -> None:
    for mounts in (
        (Mount("home", "/data"), Mount("home", "/data/x")),
        (Mount("home", "/data/x"), Mount("home", "/data")),
        (Mount("elsewhere", "/data"),),
    ):
        with pytest.raises(EngineError):
            yard.launch("true", mounts=mounts)


def test_a_shipped_folder_is_unpacked_as_the_user_and_is_where_the_work_starts(yard: Yard, tmp_path: Path) -> None:
    shipped = tmp_path / "shipped.tar.gz"
    with tarfile.open(shipped, "w:gz") as tar:
        _add(tar, "train.py", "print('training')")
    seen, log = yard.run("python3 train.py; stat -c %u train.py; touch result; pwd", workdir=shipped)
    assert seen.exit_code == 0
    assert log.splitlines()[:2] == ["training", str(UID)]
    assert log.splitlines()[2].endswith("/worker-0/work")


@pytest.mark.parametrize("name", ["../../outside", "/etc/outside"])
def test_a_shipped_folder_cannot_write_outside(yard: Yard, tmp_path: Path, name: str) -> None:
    shipped = tmp_path / "shipped.tar"
    with tarfile.open(shipped, "w") as tar:
        _add(tar, name, "text")
    seen, _ = yard.run("true", workdir=shipped)
    inside = (Path(at) / name for at, _, names in os.walk(yard.data) for name in names)
    found = [path for path in [Path("/etc/outside"), *inside] if path.name == "outside" and path.exists()]
    assert not [path for path in found if "work" not in path.parts]
    if name.startswith(".."):
        assert seen.cause is Cause.LAUNCH


def test_a_small_file_does_not_unpack_into_one_that_fills_the_disk(yard: Yard, tmp_path: Path) -> None:
    shipped = tmp_path / "shipped.tar.gz"
    with tarfile.open(shipped, "w:gz") as tar:
        for number in range(3):
            info = tarfile.TarInfo(f"zeros{number}")
            info.size = 30 * MIB
            tar.addfile(info, io.BytesIO(bytes(info.size)))
    seen, _ = yard.run("true", workdir=shipped)
    assert seen.cause is Cause.LAUNCH
    assert seen.reason is not None
    assert seen.reason.facts["detail"] == "the shipped folder unpacks to more than 64 MiB"


def _add(tar: tarfile.TarFile, name: str, text: str) -> None:
    info = tarfile.TarInfo(name)
    info.size = len(text)
    tar.addfile(info, io.BytesIO(text.encode()))


def test_the_environment_is_clean_and_the_platforms_words_win(yard_with_cards: Yard) -> None:
    env = [("A", "b"), ("HOME", "/data"), ("YARD_WORKLOAD", "forged"), ("CUDA_VISIBLE_DEVICES", "0")]
    _, log = yard_with_cards.run("env", env=env, cards=[1, 3])
    seen = dict(line.partition("=")[::2] for line in log.splitlines())
    assert seen["A"] == "b"
    assert seen["HOME"] == "/data"
    assert seen["YARD_WORKLOAD"] == replica().workload
    assert seen["YARD_REPLICA"] == str(replica())
    assert (seen["YARD_ATTEMPT"], seen["YARD_ROLE"], seen["YARD_INDEX"]) == ("1", "worker", "0")
    assert seen["CUDA_VISIBLE_DEVICES"] == "1,3"
    assert seen["NVIDIA_VISIBLE_DEVICES"] == "1,3"
    assert set(seen) <= {*_BASICS, *(name for name, _ in env)}


_BASICS = {
    *("PATH", "HOME", "USER", "LOGNAME", "SHELL", "LANG", "PYTHONUNBUFFERED", "TMPDIR", "PWD", "CUDA_DEVICE_ORDER"),
    *("YARD_WORKLOAD", "YARD_ATTEMPT", "YARD_ROLE", "YARD_INDEX", "YARD_REPLICA", "YARD_CARD_PATHS", "YARD_BEACON"),
    *("CUDA_VISIBLE_DEVICES", "NVIDIA_VISIBLE_DEVICES", "OLDPWD", "_", "SHLVL", "YARD_USER_DIR", "YARD_SHARE_DIR"),
    *("YARD_DOOR", "YARD_TOOLBOX"),
}


def test_without_cards_frameworks_see_none(yard_with_cards: Yard) -> None:
    _, log = yard_with_cards.run('echo "[$CUDA_VISIBLE_DEVICES]"')
    assert log == "[]\n"


@pytest.fixture
def ascend_yard(tmp_path: Path, make_yard: MakeYard) -> Yard:
    return make_yard(tmp_path / "data", [SimulatedProbe(tmp_path / "data", 2, "ascend")])


def test_ascend_cards_have_their_own_variables(ascend_yard: Yard) -> None:
    from dataclasses import replace

    from gpuyard.domain.cluster import CardShare

    request = ascend_yard.request(replica(), "sh", "-c", "echo $ASCEND_VISIBLE_DEVICES $ASCEND_RT_VISIBLE_DEVICES")
    given = replace(request.allotment, device="ascend", cards=(CardShare(1, 1000),))
    ascend_yard.engine.launch(replace(request, allotment=given))
    assert ascend_yard.ended(replica())[1] == "1 1\n"


def test_only_the_given_stand_ins_are_visible(yard_with_cards: Yard) -> None:
    _, log = yard_with_cards.run(
        f"ls {yard_with_cards.data}/simulated; "
        "for p in $(echo $YARD_CARD_PATHS | tr : ' '); do echo > $p && echo ok; done",
        cards=[0, 2],
    )
    assert log.split() == ["nvidia0", "nvidia2", "ok", "ok"]
