"""`batch.volcano.sh/v1alpha1` Job files as people have them: templates, plugins, policies, queues, what is denied."""

from __future__ import annotations

import json
import re
from typing import Any

import pytest

from gpuyard import words
from gpuyard.dialects import native
from gpuyard.dialects.brought import Brought, guess
from gpuyard.dialects.volcano.reading import read
from gpuyard.domain.errors import BadInput
from gpuyard.domain.workload import Cause, Port, Spec
from gpuyard.sdk import documents

MPI = """\
apiVersion: batch.volcano.sh/v1alpha1
kind: Job
metadata:
  name: lm-mpi-job
  labels:
    "volcano.sh/job-type": "MPI"
spec:
  minAvailable: 3
  schedulerName: volcano
  queue: vision
  priorityClassName: high
  maxRetry: 5
  ttlSecondsAfterFinished: 3600
  plugins:
    ssh: []
    svc: ["--disable-network-policy"]
  policies:
    - event: PodEvicted
      action: RestartJob
    - events: [PodFailed, Unknown]
      action: RestartJob
  tasks:
    - replicas: 1
      name: mpimaster
      policies:
        - event: TaskCompleted
          action: CompleteJob
      template:
        spec:
          containers:
            - command:
                - /bin/sh
                - -c
                - |
                  HOSTS=`cat /etc/volcano/mpiworker.host | tr "\\n" ","`;
                  mpiexec --host ${HOSTS} -np 2 mpi_hello_world > /home/re
              image: example/openmpi-hello:3.28
              name: mpimaster
              ports:
                - containerPort: 22
                  name: mpijob-port
              workingDir: /home
          restartPolicy: OnFailure
          imagePullSecrets:
            - name: default-secret
    - replicas: 2
      name: mpiworker
      template:
        spec:
          containers:
            - command: ["/bin/sh", "-c", "mkdir -p /var/run/sshd; /usr/sbin/sshd -D;"]
              image: example/openmpi-hello:3.28
              name: mpiworker
              resources:
                limits: {cpu: "2", memory: 4Gi, nvidia.com/gpu: 1}
                requests: {cpu: "1", memory: 4Gi}
              volumeMounts:
                - {name: shm, mountPath: /dev/shm}
                - {name: data, mountPath: /data}
          volumes:
            - {name: shm, emptyDir: {medium: Memory, sizeLimit: 1Gi}}
            - {name: data, persistentVolumeClaim: {claimName: data}}
          nodeSelector:
            accelerator: a100
            kubernetes.io/hostname: node-1
          tolerations: [{key: gpu, operator: Exists}]
          terminationGracePeriodSeconds: 60
          restartPolicy: OnFailure
"""


def job(spec: dict[str, Any] | None = None, **task: Any) -> dict[str, Any]:
    pod = {"containers": [{"name": "c", "image": "busybox", "command": ["true"]}]}
    tasks = [{"name": "worker", "replicas": 2, "template": {"spec": pod}, **task}]
    return {"apiVersion": "batch.volcano.sh/v1alpha1", "kind": "Job", "metadata": {"name": "j"}} | {
        "spec": {"minAvailable": 2, "tasks": tasks, **(spec or {})}
    }


def pod(container: dict[str, Any] | None = None, **keys: Any) -> dict[str, Any]:
    usual = {"name": "c", "image": "busybox", "command": ["true"], **(container or {})}
    return job(template={"spec": {"containers": [usual], **keys}})


def brought(data: dict[str, Any]) -> Brought:
    return read(json.dumps(data, indent=1))


def spec_of(data: dict[str, Any]) -> Spec:
    return native.read_job(brought(data).job).spec


def unused(found: Brought) -> dict[str, str]:
    return {one.at: one.why for one in found.unused}


def denied(data: dict[str, Any]) -> str:
    with pytest.raises(BadInput) as caught:
        brought(data)
    assert caught.value.reason.facts.get("line")
    return str(caught.value.reason.facts["text"])


def test_an_mpi_job_is_read_whole() -> None:
    found = read(MPI)
    file = native.read_job(found.job, priorities={"normal": 500, "high": 700})
    master, worker = file.spec.roles
    assert (file.group, file.spec.priority, file.spec.name) == ("vision", 700, "lm-mpi-job")
    assert (master.name, master.completes, master.ports) == ("mpimaster", True, (Port(22, "mpijob-port"),))
    assert master.command[:2] == ("sh", "-c")
    assert master.command[2].startswith("cd /home || exit 1\nexec /bin/sh -c '")
    assert (worker.name, worker.completes, worker.replicas) == ("mpiworker", False, 2)
    asked = worker.resources
    assert (asked.cpu_milli, asked.memory, asked.shm) == (2000, 4 << 30, 1 << 30)
    assert asked.cards is not None
    assert (asked.cards.device, asked.cards.whole) == ("nvidia", 1)
    assert (worker.where.nodes, dict(worker.where.labels)) == (("node-1",), {"accelerator": "a100"})
    assert file.spec.grace_seconds == 60
    assert {cause: file.spec.retries[cause] for cause in (Cause.EXIT, Cause.OOM, Cause.LOST)} == dict.fromkeys(
        (Cause.EXIT, Cause.OOM, Cause.LOST), 5
    )
    origin = file.spec.origin
    assert origin is not None
    assert (origin.fact("job_type"), origin.fact("queue")) == ("MPI", "vision")
    assert guess(MPI) == "volcano"


def test_every_field_without_meaning_is_named_with_its_line() -> None:
    found = read(MPI)
    lines = MPI.split("\n")
    assert {one.at: lines[(one.line or 0) - 1].strip() for one in found.unused} == {
        "spec.plugins.svc[0]": 'svc: ["--disable-network-policy"]',
        "spec.policies[1]": "- events: [PodFailed, Unknown]",
        "spec.tasks[0].template.spec.imagePullSecrets": "imagePullSecrets:",
        "spec.tasks[1].template.spec.containers[0].resources.requests": 'requests: {cpu: "1", memory: 4Gi}',
        "spec.tasks[1].template.spec.containers[0].volumeMounts[1]./data": "- {name: data, mountPath: /data}",
        "spec.tasks[1].template.spec.tolerations": "tolerations: [{key: gpu, operator: Exists}]",
        "spec.ttlSecondsAfterFinished": "ttlSecondsAfterFinished: 3600",
    }


def test_a_job_that_says_little_gets_the_usual() -> None:
    found = brought(job())
    assert found.job["group"] == "default"
    assert found.unused == ()
    spec = native.read_job(found.job).spec
    assert (spec.roles[0].replicas, spec.retries[Cause.EXIT], spec.preemptible) == (2, 0, False)


def test_tasks_without_names_are_called_as_their_admission_calls_them() -> None:
    spec = spec_of(job(name=None))
    assert spec.origin is not None
    assert spec.origin.fact("tasks") == '{"default0": "default0"}'


@pytest.mark.parametrize(
    ("policy", "retried"),
    [
        ({"event": "PodFailed", "action": "RestartJob"}, {Cause.EXIT: 3, Cause.OOM: 3}),
        ({"event": "*", "action": "RestartJob"}, {Cause.EXIT: 3, Cause.OOM: 3, Cause.LOST: 3}),
        ({"exitCode": 3, "action": "RestartTask"}, {Cause.EXIT: 3, Cause.OOM: 3}),
        ({"event": "PodEvicted", "action": "RestartJob"}, {Cause.EXIT: 0, Cause.LOST: 3}),
        ({"event": "PodFailed", "action": "TerminateJob"}, {Cause.EXIT: 0}),
    ],
)
def test_policies_become_retries(policy: dict[str, Any], retried: dict[Cause, int]) -> None:
    for data in (job({"policies": [policy]}), job(policies=[policy])):
        retries = spec_of(data).retries
        assert {cause: retries[cause] for cause in retried} == retried


def test_a_policy_for_failures_names_the_phase_they_end_in() -> None:
    for action, phase in (("AbortJob", "Aborted"), ("TerminateJob", "Terminated"), ("CompleteJob", "Completed")):
        origin = spec_of(job({"policies": [{"event": "PodFailed", "action": action}]})).origin
        assert origin is not None
        assert origin.fact("fails_as") == phase


def test_policies_that_nothing_here_answers_to_are_named() -> None:
    found = brought(job({"policies": [{"event": "PodPending", "action": "AbortJob", "timeout": "10m"}]}))
    assert unused(found) == {
        "spec.policies[0]": "door.unused.policy",
        "spec.policies[0].timeout": "door.unused.at_once",
    }


def test_restarting_containers_is_retrying_the_job() -> None:
    assert spec_of(pod(restartPolicy="OnFailure")).retries[Cause.EXIT] == 3
    assert spec_of(pod(restartPolicy="Never")).retries[Cause.EXIT] == 0
    found = brought(pod(restartPolicy="Always"))
    assert [note.facts["what"] for note in found.warnings] == ["door.read.always"]


@pytest.mark.parametrize("key", ["huawei.com/Ascend910", "huawei.com/Ascend310P", "huawei.com/npu"])
def test_cards_of_huawei_are_ascend_cards(key: str) -> None:
    cards = spec_of(pod({"resources": {"limits": {key: "2"}}})).roles[0].resources.cards
    assert cards is not None
    assert (cards.device, cards.whole) == ("ascend", 2)


def test_requests_count_where_there_are_no_limits() -> None:
    asked = spec_of(pod({"resources": {"requests": {"cpu": "250m", "memory": "64Mi"}}})).roles[0].resources
    assert (asked.cpu_milli, asked.memory) == (250, 64 << 20)


def test_variables_that_a_replica_is_told_reach_a_command_without_a_shell() -> None:
    told = spec_of(pod({"command": ["python", "a.py", "--rank=$(VC_TASK_INDEX)", "it's"]})).roles[0]
    assert told.command == ("sh", "-c", "exec python a.py --rank=\"${VC_TASK_INDEX}\" 'it'\"'\"'s'")


def test_env_is_taken_and_what_comes_from_elsewhere_is_named() -> None:
    env = [{"name": "A", "value": "1"}, {"name": "B", "valueFrom": {"secretKeyRef": {"name": "s", "key": "k"}}}]
    found = brought(pod({"env": env, "command": ["echo", "$(A)"]}))
    role = native.read_job(found.job).spec.roles[0]
    assert (role.env, role.command) == ((("A", "1"),), ("echo", "1"))
    assert list(unused(found).values()) == ["door.unused.secrets"]


def test_hosts_of_very_many_replicas_are_not_listed_and_that_is_said() -> None:
    found = brought(job({"plugins": {"svc": []}, "minAvailable": 1001}, replicas=1001))
    assert unused(found) == {"spec.plugins.svc": "door.unused.many_hosts"}


def test_what_the_platform_decides_is_named_unless_it_says_what_happens_anyway() -> None:
    said = {"imagePullPolicy": "IfNotPresent", "ports": [{"containerPort": 80, "protocol": "TCP"}]}
    assert brought(pod(said, schedulerName="volcano")).unused == ()
    other = {"imagePullPolicy": "Always", "ports": [{"containerPort": 80, "protocol": "UDP", "hostPort": 80}]}
    found = brought(pod(other, schedulerName="default-scheduler", hostNetwork=True))
    assert [at.rpartition(".")[2] for at in unused(found)] == [
        *("hostNetwork", "schedulerName", "imagePullPolicy", "hostPort", "protocol")
    ]


def test_labels_of_pods_are_named() -> None:
    meta = {"labels": {"app": "x"}, "annotations": {"volcano.sh/preemptable": "true"}}
    data = job()
    data["spec"]["tasks"][0]["template"]["metadata"] = meta
    found = brought(data)
    assert list(unused(found)) == ["spec.tasks[0].template.metadata.labels.app"]
    assert found.job["preemptible"] is True


def test_fewer_than_all_is_named_because_a_job_starts_whole() -> None:
    assert unused(brought(job({"minAvailable": 1}))) == {"spec.minAvailable": "door.unused.all_or_nothing"}


def test_work_that_says_it_can_be_preempted_can_be() -> None:
    data = job()
    data["metadata"]["annotations"] = {"volcano.sh/preemptable": "true"}
    assert spec_of(data).preemptible


def test_a_time_limit_of_pods_is_the_jobs() -> None:
    assert spec_of(pod(activeDeadlineSeconds=90)).max_seconds == 90


def test_a_namespace_is_remembered() -> None:
    data = job()
    data["metadata"]["namespace"] = "team-a"
    origin = spec_of(data).origin
    assert origin is not None
    assert origin.fact("namespace") == "team-a"


def test_plugins_bring_along_what_they_need() -> None:
    def plugins(given: dict[str, Any]) -> Any:
        origin = spec_of(job({"plugins": given})).origin
        assert origin is not None
        return json.loads(origin.fact("plugins") or "{}")

    assert plugins({"pytorch": ["--worker=worker"]}) == {"pytorch": ["--worker=worker"], "svc": []}
    assert plugins({"env": None, "svc": []}) == {"env": [], "svc": []}


DENIED: list[tuple[dict[str, Any], str]] = [
    (job({"tasks": []}), "No task specified in job spec"),
    (job({"minAvailable": 3}), "job 'minAvailable' should not be greater than total replicas in tasks;"),
    (job({"minAvailable": -1}), "job 'minAvailable' must be >= 0."),
    (job({"maxRetry": -1}), "'maxRetry' cannot be less than zero."),
    (job({"ttlSecondsAfterFinished": -1}), "'ttlSecondsAfterFinished' cannot be less than zero."),
    (job({"plugins": {"gpu-share": []}}), "unable to find job plugin: gpu-share;"),
    (job({"plugins": {"mpi": []}}), "The specified mpi master task was not found"),
    (job({"queue": "No.Such"}), 'unable to find job queue: queues.scheduling.volcano.sh "No.Such" not found;'),
    (job({"volumes": [{"volumeClaimName": "a"}]}), "mountPath is required;"),
    (job({"volumes": [{"mountPath": "/a"}, {"mountPath": "/a"}]}), "duplicated mountPath: /a;"),
    (job(name="Worker"), "a DNS-1123 label must consist of"),
    (job(replicas=-1), "'replicas' < 0 in task: worker, job: j;"),
    (job(minAvailable=3), "'minAvailable' is greater than 'replicas' in task: worker"),
    (job(template={}), "spec.task[0].template.spec.containers: Required value."),
    (pod({"image": None}), "spec.task[0].template.spec.containers[0].image: Required value."),
    (pod(activeDeadlineSeconds=-1), "activeDeadlineSeconds: Invalid value: -1: must be greater than or equal to 0"),
    (job({"policies": [{"event": "Sneeze", "action": "RestartJob"}]}), '"Sneeze": invalid policy event'),
    (job({"policies": [{"event": "PodFailed", "action": "Dance"}]}), '"Dance": invalid policy action'),
    (
        job({"policies": [{"event": "PodFailed", "exitCode": 1, "action": "AbortJob"}]}),
        "must not specify event and exitCode simultaneously",
    ),
    (job({"policies": [{"action": "AbortJob"}]}), "either event and exitCode should be specified"),
    (job({"policies": [{"exitCode": 0, "action": "AbortJob"}]}), "0 is not a valid error code"),
    (
        job({"policies": [{"event": event, "action": "AbortJob"} for event in ("*", "PodFailed")]}),
        "if there's * here, no other policy should be here",
    ),
    (
        job({"policies": [{"event": "PodFailed", "action": action} for action in ("AbortJob", "RestartJob")]}),
        "duplicate event PodFailed  across different policy",
    ),
]


@pytest.mark.parametrize(("data", "says"), DENIED)
def test_what_admission_denies_is_denied_in_its_words(data: dict[str, Any], says: str) -> None:
    told = denied(data)
    assert told.startswith('admission webhook "validatejob.volcano.sh" denied the request: ')
    assert says in told


def test_two_tasks_of_one_name_are_denied() -> None:
    data = job()
    data["spec"]["tasks"] *= 2
    assert denied(data).endswith("duplicated task name worker;")


REFUSED: list[tuple[dict[str, Any], str]] = [
    (job() | {"kind": "Queue"}, 'no matches for kind "Queue"'),
    (job() | {"apiVersion": "batch/v1"}, 'no matches for kind "Job" in version "batch/v1"'),
    (pod(initContainers=[{"name": "i"}]), "initContainers are not run here"),
    (job(template={"spec": {"containers": [{}, {}]}}), "2 containers: one is run per pod here"),
    (pod({"command": None}), "a command is needed"),
    (pod({"resources": {"limits": {"cpu": "lots"}}}), "quantities must match the regular expression"),
    (pod({"resources": {"limits": {"amd.com/gpu": 1}}}), "Insufficient amd.com/gpu"),
    (job(replicas="many"), "cannot unmarshal string into Go struct field Job.spec.tasks.replicas of type int32"),
    (job({"tasks": {"a": 1}}), "cannot unmarshal object into Go struct field Job.spec.tasks of type"),
]


@pytest.mark.parametrize(("data", "says"), REFUSED)
def test_what_cannot_be_run_is_refused_in_words(data: dict[str, Any], says: str) -> None:
    assert says in denied(data)


@pytest.mark.parametrize("data", [data for data, _ in (*DENIED, *REFUSED)])
def test_who_asks_with_a_program_of_ours_is_told_in_words_of_ours(data: dict[str, Any]) -> None:
    with pytest.raises(BadInput) as caught:
        read(json.dumps(data, indent=1))
    (reason,) = caught.value.problems
    english, chinese = words.say(reason, "en"), words.say(reason, "zh")
    assert english.startswith("This cannot be taken, line ")
    assert re.search(r"[\u4e00-\u9fff]", chinese.removeprefix("无法接受，第 ").partition("：")[2])
    for told in (english, chinese):
        assert reason.facts["text"] not in told
        assert not re.search(r"webhook|Go struct|regular expression|door\.|\?$|`\?`", told), told


def test_what_is_no_yaml_is_told_in_words_of_ours_too() -> None:
    with pytest.raises(BadInput) as caught:
        read("jobname: 'a\n")
    told = words.say(caught.value.reason, "en")
    assert told == "This cannot be taken, line 1, column 10: a quote is opened and never closed."


def test_a_job_needs_a_name() -> None:
    data = job()
    data["metadata"] = {"generateName": "j-"}
    assert denied(data) == "job name cannot be left blank"


def test_documents_of_one_file_are_taken_apart_and_keep_their_lines() -> None:
    text = "# two\n---\njobname: a\n--- # second\njobname: b\nx: |\n  ---\n...\n---\n# nothing\n"
    first, second = documents.split(text)
    assert first.split("\n")[2] == "jobname: a"
    assert second.split("\n")[4] == "jobname: b"
    assert "  ---" in second
    assert documents.split("jobname: a\n") == ["jobname: a\n"]
    assert documents.split("# nothing\n") == ["# nothing\n"]


def test_what_is_wrong_in_a_later_document_is_told_with_its_line_in_the_file() -> None:
    _, second = documents.split("jobname: a\n---\njobname: b\ntasks: [\n  {image: c}]\n")
    with pytest.raises(BadInput) as caught:
        read(second)
    assert caught.value.reason.facts["line"] == 5
