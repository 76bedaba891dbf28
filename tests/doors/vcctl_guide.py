"""The guide that users of `vcctl` have, step by step and word for word; the same on every engine."""

from __future__ import annotations

import re
from pathlib import Path

from tests.doors.vcctl import FILES, PERSON, SMALL, Vcctl, filled

JOB_FOLDER = f"/nfs/testdata/code/{PERSON}/mnist"


def simplest_file(vcctl: Vcctl, image: str, home: Path) -> None:
    """Chapters 4 to 7: write the file, submit, look, read the output, delete."""
    command = "echo epoch 1; until [ -e go-on ]; do sleep 0.1; done; echo epoch 2"
    vcctl.write("job.yaml", filled("simplest.yaml", {"command": command, "image": image}))
    assert vcctl.shell("vcctl job create -f job.yaml\n").out == "submit job test-job1 successfully\n"
    again = vcctl.shell("vcctl job create -f job.yaml\n")
    assert (again.code, again.out) == (2, 'Failed to create job: jobs.batch.volcano.sh "test-job1" already exists\n')
    assert "test-job1" in vcctl.shell(" vcctl job list\n").out
    vcctl.wait_for("test-job1", "Running")
    (home / "go-on").touch()
    row = vcctl.wait_for("test-job1")
    assert (row["Phase"], row["Replicas"], row["Succeeded"]) == ("Completed", "1", "1")
    assert vcctl.shell("vcctl job logs -N test-job1\n").out == "epoch 1\nepoch 2\n"
    assert vcctl.shell("vcctl job logs -N test-job1 -L 1\n").out == "epoch 2\n"
    assert vcctl.shell("vcctl job logs -N test-job1 -L 20  >  filename\n").code == 0
    assert (vcctl.folder / "filename").read_text() == "epoch 1\nepoch 2\n"
    assert vcctl.shell("vcctl job delete -N test-job1\n").out == "delete job test-job1 successfully\n"
    assert vcctl.run("job", "logs", "-N", "test-job1").out == (
        'Failed to logs job: jobs.batch.volcano.sh "test-job1" not found\n'
    )


def whole_template(vcctl: Vcctl, image: str) -> None:
    """Chapter 4: the template with its comments and its TAB, filled in."""
    values = {"jobname": "sxh-mnist-1", "command": "echo", "args": "trained", "image": image}
    vcctl.write("template.yaml", filled("template.yaml", values))
    made = vcctl.shell("vcctl job create -f template.yaml\n")
    assert made.out == "submit job sxh-mnist-1 successfully\n"
    assert "Line 4: a tab is read as spaces" in made.err
    assert vcctl.wait_for("sxh-mnist-1")["Phase"] == "Completed"
    assert vcctl.good("job", "logs", "-N", "sxh-mnist-1") == "trained\n"


def both_ways_of_writing_a_command(vcctl: Vcctl, image: str, home: Path) -> None:
    """Chapter 4: a list with arguments, or a shell file. Chapter 7: the job's folder holds logs and models."""
    vcctl.create("prepare", f"mkdir -p {JOB_FOLDER}/bin", image)
    assert vcctl.wait_for("prepare")["Phase"] == "Completed"
    folder = home / "mnist"
    (folder / "run.sh").write_text((FILES / "conda.sh").read_text(encoding="utf-8"), encoding="utf-8")
    for name in ("python", "conda"):
        (folder / "bin" / name).write_text(f'#!/bin/sh\necho {name} "$@" | tee -a train.log\n')
        (folder / "bin" / name).chmod(0o755)
    (folder / "train.log").touch()
    (folder / "train.log").chmod(0o666)
    listed = {"args": '["-train", "-batch_size", "8"]', "workingDir": JOB_FOLDER}
    vcctl.create("listed", '["bin/python", "pytorch.py"]', image, **listed)
    assert vcctl.wait_for("listed")["Phase"] == "Completed"
    assert vcctl.good("job", "logs", "-N", "listed") == "python pytorch.py -train -batch_size 8\n"
    vcctl.create("shell", f"PATH={JOB_FOLDER}/bin:$PATH sh {JOB_FOLDER}/run.sh", image, workingDir=JOB_FOLDER)
    assert vcctl.wait_for("shell")["Phase"] == "Completed"
    expected = "conda activate work\npython pytorch.py -train -batch_size 8\n"
    assert vcctl.good("job", "logs", "-N", "shell") == expected
    assert (folder / "train.log").read_text() == f"python pytorch.py -train -batch_size 8\n{expected}"


def why_a_job_is_pending(vcctl: Vcctl, image: str) -> None:
    """Appendix A: the same command says why; then the job is deleted."""
    vcctl.create("jobname", "echo never", image, resources='{gpu: "8"}')
    said = vcctl.shell("vcctl job logs -N jobname   \n")
    assert said.code == 0
    assert said.out.startswith("job jobname is Pending: It can never start as it is: each replica asks for 8")
    assert vcctl.rows()["jobname"]["Phase"] == "Pending"
    assert vcctl.shell("vcctl job  delete -N jobname\n").out == "delete job jobname successfully\n"
    assert "jobname" not in vcctl.run("job", "list").out


def distributed_training(vcctl: Vcctl, image: str) -> None:
    """A Volcano job with a master that completes it, workers that would stay, and the plugins' variables and files."""
    master = "; ".join(
        [
            *("echo $RANK/$WORLD_SIZE at $MASTER_ADDR:$MASTER_PORT", "cat /etc/volcano/worker.host", "echo"),
            *("echo $VC_WORKER_NUM", "until [ -e w1 ] && [ -e w2 ]", "do sleep 0.1", "done"),
            "(getent hosts $MASTER_ADDR || nslookup $MASTER_ADDR) >/dev/null 2>&1 && echo found the master",
        ]
    )
    text = f"""\
apiVersion: batch.volcano.sh/v1alpha1
kind: Job
metadata: {{name: pytorch-job, labels: {{volcano.sh/job-type: PyTorch}}}}
spec:
  minAvailable: 3
  schedulerName: volcano
  plugins: {{pytorch: ["--master=master", "--worker=worker", "--port=23456"], env: [], svc: []}}
  tasks:
    - name: master
      policies: [{{event: TaskCompleted, action: CompleteJob}}]
      template:
        spec:
          restartPolicy: Never
          containers:
            - name: master
              image: {image}
              command: ["sh", "-c", "{master}"]
              resources: {{limits: {{{SMALL}}}}}
    - name: worker
      replicas: 2
      template:
        spec:
          containers:
            - name: worker
              image: {image}
              command: ["sh", "-c", "echo worker $RANK $VC_TASK_INDEX; touch w$RANK; exec sleep 1000"]
              resources: {{limits: {{{SMALL}}}}}
"""
    vcctl.write("pytorch.yml", text)
    assert vcctl.good("job", "run", "-f", "pytorch.yml") == "run job pytorch-job successfully\n"
    row = vcctl.wait_for("pytorch-job")
    told = vcctl.good("job", "logs", "-N", "pytorch-job")
    assert (row["Phase"], row["JobType"], row["Min"]) == ("Completed", "PyTorch", "3"), told
    expected = (
        "==> pytorch-job-master-0 <==\n"
        "0/3 at pytorch-job-master-0.pytorch-job:PORT\n"
        "pytorch-job-worker-0.pytorch-job\npytorch-job-worker-1.pytorch-job\n2\nfound the master\n"
        "==> pytorch-job-worker-0 <==\nworker 1 0\n"
        "==> pytorch-job-worker-1 <==\nworker 2 1\n"
    )
    assert re.sub(r":[12][0-9]{4}\n", ":PORT\n", told) == expected  # its own where jobs share the network
