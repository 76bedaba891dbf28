"""SSH keys that the replicas of a job share."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest
from tests.control.test_telling_doors import a_workload, requests_of

from gpuyard.control.job_keys import JobKeys
from gpuyard.control.launching import tell
from gpuyard.domain.told import SmallFile

MPI = "name=a\nkind=MPIJob\nworker_count=2\nworker_image=debian:12\nworker_memory=1\nworker_cpu=1\ncommand=true\n"


def public(keys: JobKeys, workload: str) -> str:
    """The private one is written a little differently each time."""
    return texts(keys, workload)["id_rsa.pub"]


def texts(keys: JobKeys, workload: str) -> dict[str, str]:
    return {Path(file.path).name: file.text for file in keys.files(workload, "/root/.ssh")}


def test_a_job_has_the_same_whenever_they_are_asked_for_and_no_two_have_the_same(tmp_path: Path) -> None:
    first, later = JobKeys.kept_at(tmp_path / "secret"), JobKeys.kept_at(tmp_path / "secret")
    assert public(first, "jaaaaaaaaa") == public(later, "jaaaaaaaaa") != public(first, "jaaaaaaaab")
    assert (tmp_path / "secret").stat().st_mode & 0o777 == 0o600
    assert public(JobKeys.kept_at(tmp_path / "another"), "jaaaaaaaaa") != public(first, "jaaaaaaaaa")


@pytest.mark.skipif(shutil.which("ssh-keygen") is None, reason="needs ssh-keygen")
def test_they_are_a_pair_that_openssh_takes(tmp_path: Path) -> None:
    found = texts(JobKeys(b"test"), "jaaaaaaaaa")
    (tmp_path / "id_rsa").touch(0o600)
    (tmp_path / "id_rsa").write_text(found["id_rsa"])
    told = subprocess.run(["ssh-keygen", "-y", "-f", str(tmp_path / "id_rsa")], capture_output=True, text=True)
    assert told.stdout.split()[:2] == found["id_rsa.pub"].split()[:2] == found["authorized_keys"].split()[:2], told


def test_only_the_private_one_is_for_its_owner_alone() -> None:
    modes = {Path(file.path).name: file.mode for file in JobKeys(b"test").files("jaaaaaaaaa", "/root/.ssh")}
    assert modes == {"id_rsa": 0o400, "id_rsa.pub": 0o444, "authorized_keys": 0o444, "config": 0o444}


def test_they_are_shown_to_who_expects_them_and_to_nobody_else() -> None:
    def keys_at(workload: str, folder: str) -> tuple[SmallFile, ...]:
        return (SmallFile(f"{folder}/id_rsa", workload),)

    for text, expected in ((MPI, {"/root/.ssh/id_rsa"}), (MPI.replace("MPIJob", "PyTorchJob"), set[str]())):
        workload = a_workload(text)
        for request in tell(workload, requests_of(workload), keys_at, makes_rooms=True):
            assert {file.path for file in request.files} == expected
