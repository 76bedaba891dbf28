"""The guide of a cluster with dlc, word for word, where work runs in images."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.doors import dlc as words
from tests.doors.dlc import Dlc, add_people, configured, endpoint_of, fitting, job_id
from tests.images import stage
from tests.platforms import Platform, a_platform

pytestmark = pytest.mark.skipif(bool(stage.missing()), reason=stage.missing())
IMAGE = "master0:5000/eflops/pytorch:v1"


@pytest.fixture(scope="module")
def platform(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Platform]:
    with a_platform(tmp_path_factory.mktemp("dlc"), "container") as platform:
        assert platform.podman("tag", platform.load(stage.busybox_image()), IMAGE).returncode == 0
        add_people(platform)
        yield platform


@pytest.fixture(scope="module")
def dlc(platform: Platform, tmp_path_factory: pytest.TempPathFactory) -> Dlc:
    return configured(platform, tmp_path_factory.mktemp("person"))


def test_the_guide_works_from_login_to_output_in_its_image(platform: Platform, tmp_path: Path) -> None:
    dlc = Dlc(tmp_path / "new")
    script = words.CONFIGURE.format(endpoint=endpoint_of(platform)) + words.LIST_WORKSPACES
    assert words.WORKSPACE in dlc.shell(script).out
    made = dlc.shell(fitting(words.WRITE_PARAMS) + words.CREATE)
    assert (made.code, made.err) == (0, "")
    id = job_id(made.out)
    job = dlc.wait_for(id)
    assert (job["Status"], job["JobSpecs"][0]["Image"]) == ("Succeeded", IMAGE)
    assert dlc.good("logs", id, f"{id}-master-0").splitlines()[2:] == ["hello world"]


def test_the_workers_of_a_pytorch_job_reach_its_master_by_name(dlc: Dlc) -> None:
    """The master listens on the port it is told; the worker calls until it hears it."""
    command = (
        'echo "$MASTER_PORT"; if [ "$RANK" = 0 ]; then echo hello from $(hostname) | nc -l -p $MASTER_PORT -w 60; '
        "else until nc -w 2 $MASTER_ADDR $MASTER_PORT < /dev/null | grep hello; do sleep 0.2; done; fi"
    )
    id = dlc.create(kind="PyTorchJob", worker_count="2", worker_image=IMAGE, command=command)
    job = dlc.wait_for(id)
    assert job["Status"] == "Succeeded", job
    port, hello = dlc.good("logs", id, f"{id}-worker-0").splitlines()[2:]
    assert port == "23456"
    assert hello.startswith("hello from")


def test_an_image_that_is_not_there_is_named(dlc: Dlc) -> None:
    text = "name=a\nkind=BatchJob\nworker_count=1\nworker_image=master0:5000/eflops/nothing:v1\ncommand=true\n"
    (dlc.folder / "image.params").write_text(text)
    refused = dlc.run("create", "job", "--params_file", "image.params")
    assert refused.code == 1
    assert "[FAILED] code: 400" in refused.err
    assert "master0:5000" in refused.err
