"""Group folders in real containers, where each user is root of a block of numbers and the group's is not among them."""

from __future__ import annotations

import io
import os
import shutil
import subprocess
import tarfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.files.sharing import ANN, BOB, CAT, OLD, can, shared

from gpuyard.domain.people import BLOCK
from gpuyard.files.shares import Shares

BUSYBOX = "/bin/busybox"
pytestmark = [
    pytest.mark.skipif(os.geteuid() != 0, reason="numbers of their own need root"),
    pytest.mark.skipif(shutil.which("podman") is None, reason="podman is not installed"),
    pytest.mark.skipif(not Path(BUSYBOX).exists(), reason="busybox is not installed"),
]


@pytest.fixture(scope="module")
def image() -> Iterator[str]:
    """Nothing but busybox."""
    name = f"localhost/gpuyard-test-shares:{os.getpid()}"
    with io.BytesIO() as packed:
        with tarfile.open(fileobj=packed, mode="w") as tar:
            tar.add(BUSYBOX, "bin/busybox")
            for folder in ("mnt", "tmp"):
                info = tarfile.TarInfo(folder)
                info.type, info.mode = tarfile.DIRTYPE, 0o755
                tar.addfile(info)
        done = subprocess.run(["podman", "import", "-", name], input=packed.getvalue(), capture_output=True)
    if done.returncode:
        pytest.skip(f"podman cannot be used here: {done.stderr.decode()[-300:]}")
    yield name
    subprocess.run(["podman", "rmi", "--force", name], capture_output=True, check=True)


@pytest.fixture
def root(tmp_path: Path) -> Path:
    root = tmp_path / "share"
    root.mkdir()
    for folder in [root, *list(root.parents)[:-1]]:
        folder.chmod(folder.stat().st_mode | 0o011)
    if Shares(root).without_lists():
        pytest.skip("this file system keeps no access lists")
    return root


def inside(image: str, share: Path, uid: int, script: str) -> tuple[int, str]:
    """As root of a container of this user, in the share."""
    blocks = [word for which in ("--uidmap", "--gidmap") for word in (which, f"0:{uid}:{BLOCK}")]
    limits = ["--ulimit", "nofile=1024:1024", "--ulimit", "nproc=1024:1024", "--network", "none", "--cap-drop", "mknod"]
    mount = ["--volume", f"{share}:/mnt/share/vision", "--workdir", "/mnt/share/vision"]
    command = ["podman", "run", "--rm", *blocks, *limits, *mount, image, BUSYBOX, "sh", "-c", f"umask 077; {script}"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120)
    return done.returncode, done.stdout + done.stderr


B = BUSYBOX


def test_members_write_each_others_files_and_someone_else_cannot(image: str, root: Path) -> None:
    shared(root, [ANN, BOB])
    share = root / "vision"
    assert inside(image, share, ANN, f"{B} id -u; {B} mkdir -p d/e && echo ann > d/e/f") == (0, "0\n")
    assert inside(image, share, BOB, f"echo bob >> d/e/f && {B} mkdir d/b && echo b > d/b/f && {B} cat d/e/f") == (
        0,
        "ann\nbob\n",
    )
    assert inside(image, share, ANN, f"{B} rm -r d/b && {B} mv d/e/f g && {B} cat g") == (0, "ann\nbob\n")
    code, said = inside(image, share, CAT, f"{B} ls . || {B} cat g || echo x > n")
    assert code != 0
    assert "denied" in said
    assert ((share / "g").stat().st_uid, (share / "g").stat().st_gid) == (ANN, ANN)


def test_containers_and_processes_share_the_same_folder(image: str, root: Path) -> None:
    shared(root, [ANN, BOB])
    share = root / "vision"
    assert inside(image, share, ANN, f"{B} mkdir d && echo ann > d/f")[0] == 0
    assert can(BOB, "open('f', 'a').write('bob')", share / "d", OLD)
    assert can(BOB, "os.mkdir('p'); open('p/f', 'w').write('bob')", share, OLD)
    assert inside(image, share, ANN, f"echo ann >> p/f && {B} rm d/f")[0] == 0


def test_a_folder_whose_mode_is_changed_in_a_container_stays_everybodys(image: str, root: Path) -> None:
    shared(root, [ANN, BOB])
    share = root / "vision"
    assert inside(image, share, ANN, f"{B} mkdir d && {B} chmod 775 d && echo a > d/f && {B} mkdir d/e")[0] == 0
    assert inside(image, share, BOB, f"echo b >> d/f && echo b > d/e/f && {B} cat d/f") == (0, "a\nb\n")
    assert can(BOB, "open('d/f', 'a').write('x')", share, OLD)


def test_archives_with_owners_of_their_own_are_unpacked_and_stay_everybodys(image: str, root: Path) -> None:
    """As root, tar gives files to the numbers in the archive; so do cp -a and rsync."""
    shared(root, [ANN, BOB])
    share = root / "vision"
    pack = f"{B} mkdir d && echo a > d/f && {B} chown -R 1000:1000 d && {B} tar cf a.tar d && {B} rm -r d"
    assert inside(image, share, ANN, f"{pack} && {B} tar xf a.tar && {B} stat -c %u d/f") == (0, "1000\n")
    assert (share / "d" / "f").stat().st_uid == ANN + 1000
    assert inside(image, share, BOB, f"echo b >> d/f && {B} touch d/g && {B} rm a.tar && {B} cat d/f") == (0, "a\nb\n")
    assert inside(image, share, CAT, f"{B} cat d/f")[0] != 0


def test_what_its_owner_closes_is_closed_and_who_left_is_out(image: str, root: Path) -> None:
    shared(root, [ANN, BOB])
    share = root / "vision"
    assert inside(image, share, ANN, f"echo a > f && echo s > secret && {B} chmod 600 secret")[0] == 0
    assert inside(image, share, BOB, f"{B} cat secret")[0] != 0
    shared(root, [ANN])
    assert inside(image, share, BOB, f"{B} cat f")[0] != 0
    assert inside(image, share, ANN, f"{B} cat f secret") == (0, "a\ns\n")
