"""Installing things in a dev environment as the guides write it: apt and pip by name, from where this machine has its
own packages, sudo, and conda. Without such a place within reach these tests are skipped, and say so."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.cli.yard import Ran
from tests.images import stage
from tests.platforms import Platform, a_platform

MISSING = stage.missing("iptables", "debootstrap")
pytestmark = [pytest.mark.skipif(bool(MISSING), reason=MISSING), pytest.mark.timeout(1500), pytest.mark.outside]
OWN_CERTIFICATES = Path("/usr/local/share/ca-certificates")  # where Debian has those an admin added
SMALL_PACKAGE = "six"
SECONDS = 300.0

# Seed 002 writes it so. No package by name from PyPI, Debian or npm is a conda of these days (PyPI's own were all
# withdrawn), so a stand-in does what its `profile.d/conda.sh` does to a shell; the environment it activates is real.
CONDA_HOME = "/home/user/miniconda/envs/work"
CONDA = f"""
conda() {{
    [ "$1" = activate ] || return 1
    export CONDA_DEFAULT_ENV="$2" CONDA_PREFIX={CONDA_HOME} PATH="{CONDA_HOME}/bin:$PATH"
}}
"""
SCRIPT = (Path(__file__).parents[1] / "doors" / "volcano" / "conda.sh").read_text()


@pytest.fixture(scope="module")
def package_index(tmp_path_factory: pytest.TempPathFactory) -> str:
    """Where this machine's pip fetches packages: asked of pip itself, by fetching one."""
    plain = {name: value for name, value in os.environ.items() if name != "PIP_FIND_LINKS"}
    folder = tmp_path_factory.mktemp("fetched")
    command = [sys.executable, "-m", "pip", "download", "-vv", "--no-deps", "--no-cache-dir", "--retries", "0"]
    command += ["--timeout", "20", "-d", str(folder), SMALL_PACKAGE]
    done = subprocess.run(command, capture_output=True, text=True, env=plain, timeout=SECONDS)
    found = re.search(rf"^\s*\* (https?://\S+)/{SMALL_PACKAGE}/$", done.stdout, re.MULTILINE)
    if found is None or "Found link http" not in done.stdout:  # what it has on disk does not count
        pytest.skip(f"pip of this machine cannot reach a package index: {done.stderr[-300:]}")
    return found[1]


@pytest.fixture(scope="module")
def yard(tmp_path_factory: pytest.TempPathFactory, package_index: str) -> Iterator[Platform]:
    """With one environment called `deb`, in which packages can be had: an admin has named the index for all workloads,
    and the environment's owner trusts whom this machine trusts."""
    with a_platform(tmp_path_factory.mktemp("yard"), "container", with_toolbox=True) as yard:
        yard.down()
        (yard.data / "settings.toml").write_text(f'pip_index_url = "{package_index}"\n')
        yard.start_server()
        image = yard.load(stage.debian_image())
        yard.good("env", "create", "deb", "--image", image, "--cpu", "1", "--memory", "1G")
        trust_whom_this_machine_trusts(yard)
        fetched = tried(yard, "sudo apt update")
        if fetched.code != 0 or re.search("^(E|Err|W):?", fetched.out, re.MULTILINE):
            pytest.skip(f"apt cannot reach its packages from here: {fetched.out[-300:]}")
        typed(yard, "sudo apt install -y --no-install-recommends python3-venv")
        yield yard


def trust_whom_this_machine_trusts(yard: Platform) -> None:
    home = yard.data / "files" / "user" / typed(yard, "basename $HOME")
    for certificate in OWN_CERTIFICATES.glob("*.crt"):
        shutil.copy(certificate, home)
        (home / certificate.name).chmod(0o644)
        typed(yard, f"sudo cp $HOME/{certificate.name} {OWN_CERTIFICATES}/")
    typed(yard, "sudo update-ca-certificates")


def tried(yard: Platform, line: str) -> Ran:
    return yard.run("shell", "deb", "--", "sh", "-c", line, timeout=SECONDS)


def typed(yard: Platform, line: str) -> str:
    """What a shell in the environment prints. It must end well."""
    done = tried(yard, line)
    assert done.code == 0, f"{line}: {done.out[-2000:]}{done.err[-500:]}"
    return done.out.replace("\r\n", "\n").strip()


def test_a_package_is_installed_with_apt_by_its_name_and_stays(yard: Platform) -> None:
    assert tried(yard, "hello").code == 127
    typed(yard, "apt update && sudo apt install -y --no-install-recommends hello")
    assert typed(yard, "hello") == "Hello, world!"
    yard.good("env", "restart", "deb")
    assert typed(yard, "hello") == "Hello, world!"


def test_a_package_is_installed_with_pip_by_its_name_from_the_index_an_admin_named(
    yard: Platform, package_index: str
) -> None:
    typed(yard, "python3 -m venv ~/tools")
    assert tried(yard, f"~/tools/bin/python -c 'import {SMALL_PACKAGE}'").code == 1
    assert typed(yard, "echo $PIP_INDEX_URL") == package_index
    assert f"Successfully installed {SMALL_PACKAGE}-" in typed(yard, f"~/tools/bin/pip install {SMALL_PACKAGE}")
    assert "tools" in typed(yard, f"~/tools/bin/python -c 'import {SMALL_PACKAGE}; print({SMALL_PACKAGE}.__file__)'")


def test_sudo_with_the_environment_kept_as_the_guide_for_training_writes_it(yard: Platform) -> None:
    folder = "/data/code/mindspore/example/resnet50_cifar10"
    program = "#!/bin/bash\\necho rank $RANK_ID of $RANK_SIZE as $(id -u) at $PWD\\n"
    typed(yard, f"sudo mkdir -p {folder} && printf '{program}' > {folder}/run_8p.sh && chmod +x {folder}/run_8p.sh")
    line = f"sudo -E bash -c ' cd {folder}/ && ./run_8p.sh &&sleep 0'"
    assert typed(yard, f"export RANK_ID=3 RANK_SIZE=16; {line}") == f"rank 3 of 16 as 0 at {folder}"


def test_conda_activate_in_a_script_as_the_guide_for_jobs_writes_it(yard: Platform) -> None:
    """The environment is a real one, with a package of its own that only it has."""
    typed(yard, f"sudo mkdir -p {CONDA_HOME} && python3 -m venv {CONDA_HOME} && mkdir -p {CONDA_HOME}/etc/profile.d")
    typed(yard, f"{CONDA_HOME}/bin/pip install -q {SMALL_PACKAGE}")
    home = yard.data / "files" / "user" / typed(yard, "basename $HOME")
    program = f"import os, sys, {SMALL_PACKAGE}\nprint(sys.prefix, os.environ['CONDA_DEFAULT_ENV'], *sys.argv[1:])\n"
    for name, text in {"conda.sh": CONDA, "run.sh": SCRIPT, "pytorch.py": program}.items():
        (home / name).write_text(text)
        (home / name).chmod(0o755)
    typed(yard, f"cp ~/conda.sh {CONDA_HOME}/etc/profile.d/")
    assert typed(yard, "cd ~ && ./run.sh") == f"{CONDA_HOME} work -train -batch_size 8"
