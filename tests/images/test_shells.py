"""What people type in a workload: conda, sudo, and what the other end of a copy starts."""

from __future__ import annotations

import os
import pty
import select
import subprocess
import time
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest
from tests.images import stage

from gpuyard.images.toolbox.base import AT
from gpuyard.images.toolbox.recipes import shell_environment

pytestmark = pytest.mark.timeout(1500)  # the first test of a run may have to build the toolbox

_CONDA = 'conda() { [ "$1" = activate ] && export CONDA_DEFAULT_ENV="$2" PATH="$HOME/miniconda3/envs/$2/bin:$PATH"; }\n'


@pytest.fixture
def debian_container(debian: str, toolbox: Path, tmp_path: Path) -> Iterator[stage.Container]:
    container = stage.Container(debian, toolbox, tmp_path, [f"{AT}/bin/busybox", "sleep", "1000"], shell_environment())
    yield container
    container.end()


@pytest.fixture
def busybox_container(busybox: str, toolbox: Path, tmp_path: Path) -> Iterator[stage.Container]:
    container = stage.Container(busybox, toolbox, tmp_path, [f"{AT}/bin/busybox", "sleep", "1000"], shell_environment())
    yield container
    container.end()


def typed(container: stage.Container, shell: list[str], lines: str, env: Mapping[str, str] | None = None) -> str:
    """What a shell in a terminal shows for these lines."""
    told = [word for name, value in (env or {}).items() for word in ("--env", f"{name}={value}")]
    master, slave = pty.openpty()
    command = ["podman", "exec", "-it", *told, container.name, *shell]
    environment = os.environ | stage.store().environment()
    process = subprocess.Popen(command, stdin=slave, stdout=slave, stderr=slave, close_fds=True, env=environment)
    os.close(slave)
    os.write(master, f"{lines}\nexit\n".encode())
    shown = b""
    deadline = time.monotonic() + stage.PATIENCE_SECONDS
    while time.monotonic() < deadline:
        if select.select([master], [], [], 0.2)[0]:
            try:
                piece = os.read(master, 65536)
            except OSError:  # the other side is closed
                break
            shown += piece
        elif process.poll() is not None:
            break
    process.wait(10)
    os.close(master)
    return shown.decode(errors="replace")


@pytest.mark.parametrize("shell", [["/bin/bash", "-l"], ["/bin/bash"], ["/bin/sh", "-l"], ["/bin/bash", "-c", "bash"]])
def test_conda_activate_works_in_every_kind_of_shell(debian_container: stage.Container, shell: list[str]) -> None:
    conda = debian_container.home / "miniconda3" / "etc" / "profile.d"
    conda.mkdir(parents=True)
    (conda / "conda.sh").write_text(_CONDA)
    said = typed(debian_container, shell, 'conda activate work\necho "env=$CONDA_DEFAULT_ENV"; echo "path=$PATH"')
    assert "env=work" in said
    assert f"path={stage.HOME}/miniconda3/envs/work/bin:" in said


def test_conda_that_was_set_up_by_its_owner_is_left_alone(debian_container: stage.Container) -> None:
    (debian_container.home / ".bashrc").write_text("conda() { echo my own conda; }\n")
    conda = debian_container.home / "miniconda3" / "etc" / "profile.d"
    conda.mkdir(parents=True)
    (conda / "conda.sh").write_text(_CONDA)
    assert "my own conda" in typed(debian_container, ["/bin/bash"], "conda activate work")


def test_a_login_does_not_lose_the_images_path(debian_container: stage.Container) -> None:
    said = typed(debian_container, ["/bin/bash", "-l"], 'echo "path=$PATH"', {"YARD_PATH": "/opt/conda/bin:/usr/bin"})
    assert "path=/opt/conda/bin:/usr/local/sbin:" in said


def test_a_workload_without_conda_is_told_so_by_its_shell(debian_container: stage.Container) -> None:
    assert "conda: command not found" in typed(debian_container, ["/bin/bash"], "conda activate work")


def test_sudo_runs_what_the_guides_write(debian_container: stage.Container) -> None:
    lines = (
        "sudo -E bash -c ' cd /tmp/ && echo at $PWD && echo as $(id -u)'\n"
        "sudo apt-get --version | head -n 1\n"
        "sudo -u www-data id\n"
    )
    said = typed(debian_container, ["/bin/bash"], lines)
    assert "at /tmp" in said
    assert "as 0" in said
    assert "apt 2." in said
    assert "sudo: only root can be taken on here, not www-data" in said


def test_packages_are_installed_with_apt_as_root(debian_container: stage.Container, tmp_path: Path) -> None:
    """dpkg unpacks, changes owners and drops to its own user: all of it inside the container's own numbers."""
    package = tmp_path / "package"
    (package / "DEBIAN").mkdir(parents=True)
    (package / "usr" / "bin").mkdir(parents=True)
    (package / "usr" / "bin" / "hello").write_text("#!/bin/sh\necho hello from apt\n")
    (package / "usr" / "bin" / "hello").chmod(0o755)
    control = (
        "Package: hello-yard\nVersion: 1\nArchitecture: all\nMaintainer: none <none@example.org>\nDescription: x\n"
    )
    (package / "DEBIAN" / "control").write_text(control)
    target = debian_container.home / "hello.deb"
    subprocess.run(["dpkg-deb", "--root-owner-group", "-b", str(package), str(target)], check=True, capture_output=True)
    done = debian_container.run(f"{AT}/shims/sudo", "apt-get", "install", "-y", f"{stage.HOME}/hello.deb")
    assert done.returncode == 0, done.stderr.decode()
    assert debian_container.run("hello").stdout == b"hello from apt\n"


def test_what_the_other_end_of_a_copy_starts_runs_in_any_image(busybox_container: stage.Container) -> None:
    path = f"/bin:{AT}/shims"
    version = busybox_container.run("/bin/sh", "-c", "rsync --version", env={"PATH": path})
    assert version.stdout.startswith(b"rsync  version"), version.stderr.decode()
    copied = busybox_container.run(
        "/bin/sh", "-c", f"echo x >{stage.HOME}/a && rsync {stage.HOME}/a {stage.HOME}/b", env={"PATH": path}
    )
    assert copied.returncode == 0, copied.stderr.decode()
    assert (busybox_container.home / "b").read_text() == "x\n"
    assert busybox_container.run(f"{AT}/libexec/sftp-server", "-Q", "requests").stdout.startswith(b"open")
    assert b"usage: scp" in busybox_container.run(f"{AT}/bin/scp").stderr
    assert b"OpenSSH" in busybox_container.run(f"{AT}/bin/sshd", "-V").stderr
