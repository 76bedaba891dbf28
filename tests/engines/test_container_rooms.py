"""What a workload sees and may do inside its container; two tenants against each other and against the machine."""

from __future__ import annotations

import copy
import os
import subprocess
import tarfile
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest
from tests.engines.containers import UID, ContainerYard, Podman
from tests.engines.places import replica, wait_for

from gpuyard.domain.errors import EngineError
from gpuyard.domain.people import BLOCK
from gpuyard.domain.workload import Life, Mount
from gpuyard.engines.container.client import about
from gpuyard.engines.container.finding import find_engine

OTHER = UID + BLOCK


def home(yard: ContainerYard, owner: str = "ann") -> Path:
    return yard.data / "files" / "user" / owner


def test_one_is_root_inside_and_nobody_but_oneself_outside(container_yard: ContainerYard) -> None:
    seen, log = container_yard.run("id -u; echo mine > $HOME/file; cat /proc/self/uid_map", replica())
    assert seen.exit_code == 0
    assert log.split() == ["0", "0", str(UID), str(BLOCK)]
    assert (home(container_yard) / "file").stat().st_uid == UID


def test_packages_can_be_unpacked_for_other_numbers_and_stay_in_ones_own_block(container_yard: ContainerYard) -> None:
    script = "mkdir /var/pkg && chown 100:65534 /var/pkg && touch $HOME/b && chown 1000:1000 $HOME/b && echo ok"
    assert container_yard.run(script, replica())[1] == "ok\n"
    assert (home(container_yard) / "b").stat().st_uid == UID + 1000


def test_another_tenants_files_are_out_of_reach(container_yard: ContainerYard) -> None:
    container_yard.run("echo told > $HOME/bobs-file", replica(0), owner="bob", uid=OTHER)
    script = "ls /mnt/user; cat /mnt/user/bob/bobs-file; ls -R / 2>/dev/null | grep -c bobs-file"
    _, log = container_yard.run(script, replica(1))
    assert log.splitlines()[0] == "ann"
    assert log.splitlines()[-1] == "0"
    assert "told" not in log


def test_a_file_handed_over_in_the_groups_folder_keeps_its_owner(container_yard: ContainerYard) -> None:
    share = container_yard.data / "files" / "share" / "vision"
    container_yard.run("true", replica(0))
    os.chmod(share, 0o2777)
    container_yard.run(
        "echo data > $YARD_SHARE_DIR/set; chmod 600 $YARD_SHARE_DIR/set", replica(1), owner="bob", uid=OTHER
    )
    seen, _ = container_yard.run("cat $YARD_SHARE_DIR/set", replica(2))
    assert seen.exit_code != 0
    assert (share / "set").stat().st_uid == OTHER


@pytest.mark.parametrize(
    "attempt",
    [
        "mknod /dev/nvidia0 c 195 0",
        "mknod /tmp/disk b 254 0",
        "mount -t tmpfs none /mnt",
        "mount -t proc none /proc",
        "unshare -U true",
        "unshare -n true",
        "ping -c 1 -w 1 127.0.0.1",
        "echo 1 > /proc/sys/kernel/core_pattern",
        "echo b > /proc/sysrq-trigger",
        "echo x > /opt/yard/x",
        "echo x > /run/yard/inside/porter.py",
        "echo x > /run/yard/request.json",
        "cat /proc/kcore",
        "ip link add dummy0 type dummy",
        "ls /var/run/docker.sock /run/podman/podman.sock /run/gpuyard-*",
    ],
)
def test_what_would_widen_ones_rights_is_refused(container_yard: ContainerYard, attempt: str) -> None:
    seen, log = container_yard.run(attempt, replica())
    assert seen.exit_code not in (0, None), log


@pytest.fixture
def machines_own(tmp_path: Path, podman: Podman) -> Iterator[ContainerYard]:
    """On a podman that an admin has started, with settings that are not ours."""
    settings, socket = tmp_path / "containers.conf", f"{Path(podman.socket).parent}/machine.sock"
    written = Path(podman.environment()["CONTAINERS_CONF"]).read_text().splitlines()
    settings.write_text("\n".join(line for line in written if "seccomp" not in line))
    environment = os.environ | podman.environment() | {"CONTAINERS_CONF": str(settings)}
    command = [podman.program, "system", "service", "--time=0", f"unix://{socket}"]
    with subprocess.Popen(command, env=environment) as service:
        try:
            wait_for(lambda: about(socket) is not None, "its first word")
            host = copy.copy(podman)
            host.socket, host.facts = socket, find_engine(tmp_path / "data", socket).facts
            yard = ContainerYard(host, tmp_path / "data")
            yield yard
            yard.close()
        finally:
            service.terminate()


@pytest.mark.parametrize("attempt", ["unshare -U true", "unshare -n true"])
def test_nor_are_they_on_a_podman_with_settings_of_its_own(machines_own: ContainerYard, attempt: str) -> None:
    seen, log = machines_own.run(attempt, replica())
    assert seen.exit_code not in (0, None), log


def test_new_rights_cannot_be_had_by_any_program(container_yard: ContainerYard) -> None:
    _, log = container_yard.run("grep -E 'NoNewPrivs|Seccomp:|CapBnd' /proc/1/status /proc/self/status", replica())
    assert log.count("NoNewPrivs:\t1") == 2
    assert log.count("Seccomp:\t2") == 2
    assert log.count("CapBnd:\t00000000800405fb") == 2


def test_only_its_own_processes_are_seen(container_yard: ContainerYard) -> None:
    other = container_yard.launch("sleep 600", replica(0))
    _, log = container_yard.run("ls -d /proc/[0-9]* | wc -l; cat /proc/*/cmdline", replica(1))
    assert int(log.split()[0]) <= 6
    assert "600" not in log
    assert container_yard.look(other).life is Life.RUNNING


def test_the_servers_own_variables_do_not_come_in(container_yard: ContainerYard) -> None:
    _, log = container_yard.run("env; cat /proc/1/environ", replica())
    assert "PYTEST_CURRENT_TEST" not in log
    assert "CONTAINERS_CONF" not in log


def test_hostile_variables_reach_the_command_and_nobody_else(container_yard: ContainerYard) -> None:
    env = [("LD_PRELOAD", "/nothing.so"), ("PYTHONPATH", "/evil"), ("BASH_ENV", "/evil"), ("PATH", "/bin")]
    _, log = container_yard.run("cat /proc/1/environ; echo; echo $BASH_ENV", replica(), env=env)
    first, last = log.split("\n")[0], log.split("\n")[-2]
    assert "evil" not in first
    assert "LD_PRELOAD" not in first
    assert last == "/evil"


def test_only_the_cards_given_are_there(container_yard: ContainerYard) -> None:
    script = (
        'ls "$YARD_CARD_PATHS" && echo $CUDA_VISIBLE_DEVICES && ls $(echo "$YARD_CARD_PATHS" | sed s/nvidia1/nvidia0/)'
    )
    seen, log = container_yard.run(script, replica(), cards=[1])
    assert seen.exit_code != 0
    assert "\n1\n" in log


def test_two_replicas_of_one_owner_run_side_by_side(container_yard: ContainerYard) -> None:
    first, second = (container_yard.launch("sleep 600", replica(number)) for number in range(2))
    assert container_yard.look(first).life is container_yard.look(second).life is Life.RUNNING


# --- mounts ---------------------------------------------------------------------------------------------------------


def test_a_folder_of_ones_own_is_mounted_where_asked_read_only_if_wished(container_yard: ContainerYard) -> None:
    container_yard.run("mkdir -p $HOME/data/in && echo hello > $HOME/data/in/a", replica(0))
    mounts = (Mount("home", "/data", "data/in", read_only=True), Mount("home", "/w", "data"))
    script = "cat /data/a; touch /w/b && touch /data/c"
    seen, log = container_yard.run(script, replica(1), mounts=mounts)
    assert log.startswith("hello\n")
    assert seen.exit_code != 0
    assert (home(container_yard) / "data" / "b").exists()
    assert not (home(container_yard) / "data" / "in" / "c").exists()


@pytest.mark.parametrize(
    "link", ["/etc", "../../../..", "/", "/proc/1/root", "../bob", "/mnt/user/bob", "../../share/../user/bob"]
)
def test_links_lead_nowhere_outside_of_ones_own_folders(container_yard: ContainerYard, link: str) -> None:
    container_yard.run("echo secret > $HOME/secret", replica(0), owner="bob", uid=OTHER)
    container_yard.run("true", replica(1))
    os.symlink(link, home(container_yard) / "way")
    log = ""
    with suppress(EngineError):  # inside of one's own folder there is no such place
        _, log = container_yard.run("ls /data", replica(2), mounts=(Mount("home", "/data", "way"),))
    assert not {"secret", "passwd", "bob", "etc"} & set(log.split())


@contextmanager
def swapping(inner: Path, outer: Path, place: Path) -> Iterator[None]:
    """Somebody exchanges a folder for a link to elsewhere, and back, as fast as they can."""
    is_over = threading.Event()

    def swap() -> None:
        part = place.with_name("part")
        while not is_over.is_set():
            for target in (inner, outer):
                part.symlink_to(target)
                part.rename(place)

    thread = threading.Thread(target=swap)
    thread.start()
    try:
        yield
    finally:
        is_over.set()
        thread.join()


def test_what_is_swapped_while_it_starts_does_not_lead_out_either(container_yard: ContainerYard) -> None:
    container_yard.run("mkdir $HOME/fine && touch $HOME/fine/inside", replica(0))
    place = home(container_yard) / "way"
    with swapping(Path("fine"), Path("/etc"), place):
        for number in range(1, 9):
            try:
                _, log = container_yard.run("ls /data", replica(number), mounts=(Mount("home", "/data", "way"),))
            except EngineError:
                continue
            assert log == "inside\n"


@pytest.mark.parametrize("at", ["/etc", "/", "/opt/yard", "/opt", "/mnt/user", "/run/yard/door", "data", "/a/../etc"])
def test_mounts_do_not_cover_what_is_needed(container_yard: ContainerYard, at: str) -> None:
    container_yard.run("mkdir $HOME/d", replica(0))
    with pytest.raises(EngineError):
        container_yard.launch("true", replica(1), mounts=(Mount("home", at, "d"),))


def test_a_folder_that_is_not_there_is_refused_and_not_made(container_yard: ContainerYard) -> None:
    with pytest.raises(EngineError) as refused:
        container_yard.launch("true", replica(), mounts=(Mount("home", "/data", "gone"),))
    assert "home/gone" in str(refused.value.reason.facts)
    assert not (home(container_yard) / "gone").exists()


def test_nothing_stays_mounted_on_the_machine(container_yard: ContainerYard) -> None:
    container_yard.run("mkdir $HOME/d", replica(0))
    container_yard.run("true", replica(1), mounts=(Mount("home", "/data", "d"),))
    assert str(container_yard.data) not in Path("/proc/mounts").read_text()


def test_a_shipped_folder_is_where_work_begins(container_yard: ContainerYard, tmp_path: Path) -> None:
    shipped = tmp_path / "shipped.tar"
    (tmp_path / "train.sh").write_text("echo trained in $PWD")
    with tarfile.open(shipped, "w") as archive:
        archive.add(tmp_path / "train.sh", "train.sh")
    shipped.chmod(0o600)
    _, log = container_yard.run("sh train.sh; touch here && echo writable", replica(), workdir=shipped)
    assert log == "trained in /run/yard/work\nwritable\n"


# --- images that want to be more ----------------------------------------------------------------------------------


def test_an_images_word_on_user_entry_labels_volumes_and_health_does_not_count(container_yard: ContainerYard) -> None:
    mark = container_yard.engine._mark
    container_yard.host.load(
        "localhost/hostile:1",
        "USER 12345",
        'ENTRYPOINT ["/bin/sh", "-c", "echo hijacked"]',
        "LABEL yard.data=other",
        "LABEL yard.workload=wzzzzzzzzz",
        f"LABEL yard.attempt={mark}",
        "VOLUME /mnt/user/ann",
        "VOLUME /stuff",
        "WORKDIR /nowhere",
        "ENV NVIDIA_VISIBLE_DEVICES=all",
        "ENV YARD_ROLE=boss",
        "ENV FROM_IMAGE=yes",
    )
    id = replica()
    script = "id -u; echo $NVIDIA_VISIBLE_DEVICES $YARD_ROLE $FROM_IMAGE; echo kept > $HOME/kept; sleep 600"
    container_yard.launch(script, id, image="localhost/hostile:1")
    container_yard.says(id, "yes")
    assert container_yard.log(id) == "0\nvoid worker yes\n"
    assert container_yard.containers() == [f"yard-{id}"]
    container_yard.wait_for((home(container_yard) / "kept").exists, "a file in the real home")
    container_yard.engine.stop(id, None, 0.0)
    container_yard.ended(id)
    container_yard.wait_for(lambda: not container_yard.host.command("volume", "ls", "-q"), "the volumes' removal")


def test_an_image_without_a_shell_or_anything_else_runs_nothing_and_says_so(container_yard: ContainerYard) -> None:
    container_yard.host.command("import", "-", "localhost/bare:1", input=_empty_archive())
    seen, _ = container_yard.run("true", replica(), image="localhost/bare:1")
    assert seen.life is Life.ENDED
    assert seen.reason is not None
    assert seen.reason.code.value in ("ended.no_such_command", "ended.launch_failed")


def _empty_archive() -> bytes:
    import io

    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w") as archive:
        entry = tarfile.TarInfo("nothing")
        archive.addfile(entry, io.BytesIO())
    return packed.getvalue()
