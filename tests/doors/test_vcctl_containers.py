"""The same guide in containers."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from tests.doors import vcctl_guide as guide
from tests.doors.vcctl import PERSON, SMALL, Vcctl, newcomer
from tests.images import stage
from tests.platforms import Platform, a_platform

pytestmark = pytest.mark.skipif(bool(stage.missing("iptables")), reason=stage.missing("iptables"))


@pytest.fixture(scope="module")
def yard(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Platform]:
    with a_platform(tmp_path_factory.mktemp("yard"), "container", "--simulate-cards", "2", with_toolbox=True) as yard:
        yard.load(stage.busybox_image())
        yield yard


@pytest.fixture(scope="module")
def vcctl(yard: Platform, tmp_path_factory: pytest.TempPathFactory) -> Vcctl:
    return newcomer(yard, tmp_path_factory.mktemp("person"))


@pytest.fixture(scope="module")
def image() -> str:
    return stage.busybox_image()


def test_the_simplest_file_from_submit_to_delete(yard: Platform, vcctl: Vcctl, image: str) -> None:
    guide.simplest_file(vcctl, image, yard.data / "files" / "user" / PERSON)


def test_the_template_as_it_is_copied(vcctl: Vcctl, image: str) -> None:
    guide.whole_template(vcctl, image)


def test_commands_as_lists_and_as_shell_files_in_the_jobs_folder(yard: Platform, vcctl: Vcctl, image: str) -> None:
    guide.both_ways_of_writing_a_command(vcctl, image, yard.data / "files" / "user" / PERSON)


def test_logs_of_a_pending_job_say_why_it_waits(vcctl: Vcctl, image: str) -> None:
    guide.why_a_job_is_pending(vcctl, image)


def test_a_distributed_job_of_volcano(vcctl: Vcctl, image: str) -> None:
    guide.distributed_training(vcctl, image)


def test_a_replica_is_called_as_its_pod(vcctl: Vcctl, image: str) -> None:
    vcctl.create("ea-exp", "nslookup ea-exp-task-0-0 >/dev/null && echo found", image)
    assert vcctl.wait_for("ea-exp")["Phase"] == "Completed", vcctl.run("job", "logs", "-N", "ea-exp")
    assert vcctl.good("job", "logs", "-N", "ea-exp") == "found\n"


MASTER = "until ssh -p 2222 $MPI_HOST 'echo $SSH_CONNECTION' >there; do sleep 0.2; done; wc -w <there"
WORKER = (
    "ssh-keygen -q -t ed25519 -N '' -f host && mkdir -p /run/sshd"
    " && exec /opt/yard/bin/sshd -D -e -f /dev/null -p 2222 -h $PWD/host"
)
MPI = """\
apiVersion: batch.volcano.sh/v1alpha1
kind: Job
metadata: {{name: mpi-job}}
spec:
  minAvailable: 2
  plugins: {{mpi: ["--master=mpimaster", "--worker=mpiworker"]}}
  tasks:
    - name: mpimaster
      policies: [{{event: TaskCompleted, action: CompleteJob}}]
      template: {{spec: {{containers: [{{image: {image}, command: ["sh", "-c", "{master}"], resources: {small}}}]}}}}
    - name: mpiworker
      template: {{spec: {{containers: [{{image: {image}, command: ["sh", "-c", "{worker}"], resources: {small}}}]}}}}
"""


def test_replicas_reach_each_other_by_ssh_with_keys_of_their_own(yard: Platform, vcctl: Vcctl) -> None:
    image = yard.load(stage.ssh_image())
    vcctl.write("mpi.yaml", MPI.format(image=image, master=MASTER, worker=WORKER, small=f"{{limits: {{{SMALL}}}}}"))
    vcctl.good("job", "run", "-f", "mpi.yaml")
    assert vcctl.wait_for("mpi-job")["Phase"] == "Completed", vcctl.run("job", "logs", "-N", "mpi-job")
    assert "\n4\n" in vcctl.good("job", "logs", "-N", "mpi-job")
