"""Files of other systems shown as ours, and work taken off the lists."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import yaml
from tests.cli.yard import Yard

from gpuyard.dialects.dlc.ids import workspace_id

PARAMS = """\
name=hello
kind=PyTorchJob
worker_count=2
worker_cpu=1
worker_memory=4
worker_image=debian:12
command=echo "a = b"
"""
VOLCANO = """\
apiVersion: batch.volcano.sh/v1alpha1
kind: Job
metadata:
  name: imported
  labels: {team: vision}
spec:
  schedulerName: volcano
  minAvailable: 1
  tasks:
    - name: worker
      replicas: 1
      template:
        spec:
          containers:
            - name: main
              image: debian:12
              command: [sh, -c, "echo hi"]
              tty: true
"""


@pytest.mark.parametrize(("text", "name"), [(PARAMS, "hello"), (VOLCANO, "imported")])
def test_what_is_shown_can_be_saved_and_submitted(simulated: Yard, tmp_path: Path, text: str, name: str) -> None:
    file = tmp_path / "theirs"
    file.write_text(text, encoding="utf-8")
    shown = simulated.good("import", str(file))
    assert yaml.safe_load(shown)["name"] == name
    (tmp_path / "ours.yaml").write_text(shown, encoding="utf-8")
    id = simulated.good("submit", str(tmp_path / "ours.yaml"))
    assert simulated.json("show", id)["name"] == name


def test_a_workspace_is_the_group_whose_id_it_is_and_a_foreign_one_is_left_out(simulated: Yard, tmp_path: Path) -> None:
    own = simulated.good("import", "-", stdin=f"{PARAMS}workspace_id={workspace_id('default')}\n")
    assert yaml.safe_load(own)["group"] == "default"
    assert "workspace_id" not in own
    foreign = simulated.good("import", "-", stdin=f"{PARAMS}workspace_id=ws1lu4iyv5yjjyvp\n")
    assert "group" not in yaml.safe_load(foreign)
    assert "workspace_id" in foreign


def test_several_jobs_of_one_file_are_shown_one_after_the_other(simulated: Yard) -> None:
    both = f"{VOLCANO}---\n{VOLCANO.replace('imported', 'second')}"
    shown = simulated.good("import", "-", stdin=both)
    assert [job["name"] for job in yaml.safe_load_all(shown)] == ["imported", "second"]
    told = json.loads(simulated.good("import", "-", "-o", "json", stdin=both))
    assert [one["job"]["name"] for one in told["items"]] == ["imported", "second"]
    line = both.splitlines().index("              tty: true", len(VOLCANO.splitlines())) + 1
    assert str(line) in str(told["items"][1]["notes"])


def test_every_field_without_meaning_is_named_with_its_line(simulated: Yard) -> None:
    comments = [line for line in simulated.good("import", "-", stdin=VOLCANO).splitlines() if line.startswith("#")]
    line = VOLCANO.splitlines().index("              tty: true") + 1
    assert any(".tty" in comment and str(line) in comment for comment in comments)
    in_chinese = simulated.good("import", "-", stdin=VOLCANO, YARD_LANG="zh")
    assert f"第 {line} 行" in in_chinese


def test_programs_get_it_as_json_and_nothing_is_created(simulated: Yard) -> None:
    before = len(simulated.json("ls"))
    told = json.loads(simulated.good("import", "-", "--from", "volcano", "-o", "json", stdin=VOLCANO))
    assert told["dialect"] == "volcano"
    assert told["job"]["origin"]["door"] == "volcano"
    assert all(note["message"] for note in told["notes"])
    assert len(simulated.json("ls")) == before


@pytest.mark.parametrize(
    ("arguments", "text"),
    [(("--from", "volcano"), PARAMS), (("--from", "dlc"), "kind=Nothing\n"), ((), "jobname: [a\n"), ((), "")],
)
def test_what_cannot_be_read_fails_in_words(simulated: Yard, arguments: tuple[str, ...], text: str) -> None:
    done = simulated.run("import", "-", *arguments, stdin=text)
    assert done.code != 0
    assert done.err.strip()
    assert done.out == ""


@pytest.mark.parametrize(
    ("language", "told"),
    [
        (
            "en",
            "This cannot be taken, line 15: `spec.tasks[0].template.spec.containers[0].image`: it must not be empty.",
        ),
        ("zh", "无法接受，第 15 行：`spec.tasks[0].template.spec.containers[0].image`：不能为空。"),
    ],
)
def test_what_is_refused_is_told_in_words_of_ours(simulated: Yard, language: str, told: str) -> None:
    without_image = VOLCANO.replace("              image: debian:12\n", "")
    done = simulated.run("import", "-", stdin=without_image, YARD_LANG=language)
    assert told in done.err
    assert "webhook" not in done.err
    nowhere = simulated.run("import", "-", stdin=VOLCANO.replace("  minAvailable: 1", "  queue: No.Such"))
    assert "there is no group `No.Such` here that you may use" in nowhere.err


def test_work_taken_off_the_list_is_stopped_and_shown_on_request(simulated: Yard) -> None:
    id = simulated.good("run", "--detach", "--name", "off", "--env", "YARD_SIM_SECONDS=3600", "--", "train")
    assert id in simulated.run("rm", "off").err
    assert id not in {job["id"] for job in simulated.json("ls")}
    assert id in {job["id"] for job in simulated.json("ls", "--all")}
    assert simulated.wait_for(id)["state"] == "stopped"
    assert simulated.run("rm", "off").code != 0
