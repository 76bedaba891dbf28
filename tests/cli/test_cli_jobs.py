"""Submitting, listing, looking and steering, on virtual nodes."""

from __future__ import annotations

import json
import time
from pathlib import Path

import pytest
from tests.cli.yard import Yard, wait_until

from gpuyard import Client

LISTED = {"id", "name", "state", "reason", "owner", "group"}
FOR_EVER = ["--env", "YARD_SIM_SECONDS=3600"]


def job_file(folder: Path, text: str) -> str:
    file = folder / "job.yaml"
    file.write_text(text, encoding="utf-8")
    return str(file)


def start(yard: Yard, *options: str) -> str:
    return yard.good("run", "--detach", *FOR_EVER, *options, "--", "train")


def test_detach_prints_the_id_and_nothing_else(simulated: Yard) -> None:
    done = simulated.run("run", "--detach", "--", "sleep", "0")
    assert done.code == 0
    assert done.err == ""
    assert len(done.out.strip()) == 10
    assert simulated.wait_for(done.out.strip())["state"] == "succeeded"


def test_a_listing_for_programs_is_an_array_with_everything_in_it(simulated: Yard) -> None:
    made = {simulated.good("run", "--detach", "--name", "many", "--", "sleep", "0") for _ in range(3)}
    listed = simulated.json("ls")
    assert all(item.keys() >= LISTED for item in listed)
    assert made <= {item["id"] for item in listed}
    assert made == {item["id"] for item in simulated.json("ls", "--name", "many", "--mine")}
    assert len(simulated.json("ls", "--limit", "2")) == 2
    newest = simulated.json("ls")[0]["submitted_at"]
    assert newest == max(item["submitted_at"] for item in listed)


def test_a_listing_for_people_is_a_table(simulated: Yard) -> None:
    job = simulated.good("run", "--detach", "--name", "table-job", "--", "sleep", "0")
    lines = simulated.good("ls", "--name", "table-job").splitlines()
    assert lines[0].split() == ["ID", "NAME", "STATE", "OWNER", "GROUP", "CARDS", "AGE", "REASON"]
    assert lines[1].startswith(job)


@pytest.mark.parametrize(
    "command",
    [["ls"], ["nodes"], ["quota"], ["user", "ls"], ["group", "ls"], ["token", "ls"], ["audit"]],
)
def test_every_listing_is_pure_json_when_asked(simulated: Yard, command: list[str]) -> None:
    done = simulated.run(*command, "-o", "json")
    assert done.code == 0
    assert done.err == ""
    assert isinstance(json.loads(done.out), list)
    assert simulated.run(*command).code == 0


def test_looking_at_one_job(simulated: Yard) -> None:
    job = simulated.good("run", "--detach", "--cards", "2", "--", "sleep", "0")
    ended = simulated.wait_for(job)
    assert ended.keys() >= LISTED
    assert ended["attempts"][0]["replicas"][0]["replica"]
    assert simulated.json("why", job)["state"] == "succeeded"
    story = simulated.json("events", job)
    assert [event["state"] for event in story][-1] == "succeeded"
    for command in ("show", "why", "events"):
        assert simulated.run(command, job).code == 0
    shown = simulated.good("show", job)
    assert job in shown
    assert "sleep 0" in shown


def test_show_tells_what_was_asked_for(simulated: Yard) -> None:
    asked = ["--cpu", "2", "--memory", "3G", "--shm", "1G", "--max-time", "90m", "--retries", "2", "--env", "LR=0.1"]
    job = simulated.good("run", "--detach", *asked, "--", "sleep", "0")
    simulated.wait_for(job)
    shown = dict(line.split(None, 1) for line in simulated.good("show", job).splitlines() if " " in line)
    assert (shown["cpu"], shown["memory"], shown["shm"], shown["env"]) == ("2", "3G", "1G", "LR=0.1")
    assert shown["max"] == "time      1h30m"
    assert "exit 0/2" in shown["retries"]
    assert "its fair share" in simulated.good("show", start_and_stop(simulated))


def start_and_stop(yard: Yard) -> str:
    job = start(yard)
    yard.wait_for(job, "running")
    yard.good("stop", job)
    yard.wait_for(job)
    return job


def test_tables_speak_chinese_when_asked(simulated: Yard) -> None:
    simulated.wait_for(simulated.good("run", "--detach", "--name", "chinese", "--", "sleep", "0"))
    listed = simulated.good("ls", "--name", "chinese", YARD_LANG="zh")
    assert listed.split()[:3] == ["编号", "名称", "状态"]
    assert "成功" in listed
    assert "succeeded" not in listed
    assert "就绪" in simulated.good("nodes", YARD_LANG="zh")


def test_a_star_in_a_table_is_explained_under_it(simulated: Yard) -> None:
    simulated.wait_for(simulated.good("run", "--detach", "--name", "starred", "--cards", "1", "--", "sleep", "0"))
    done = simulated.run("ls", "--name", "starred")
    assert "1 nvidia*" in done.out
    assert done.err.strip() == "* simulated"


def test_nodes_tell_what_is_free_of_how_much(simulated: Yard) -> None:
    (_, first, *_) = simulated.good("nodes").splitlines()
    node = simulated.json("nodes")[0]
    assert f"{node['cpu'] - node['cpu_used']}/{node['cpu']}" in first


def test_a_job_that_cannot_start_says_why(simulated: Yard) -> None:
    job = start(simulated, "--cards", "100")
    wait_until(lambda: simulated.json("why", job)["reason_code"] != "waiting.new")
    told = simulated.json("why", job)
    assert told["state"] == "queued"
    assert told["reason"] in simulated.good("why", job)
    chinese = simulated.good("why", job, YARD_LANG="zh")
    assert any("\u4e00" <= sign <= "\u9fff" for sign in chinese)
    simulated.good("stop", job)


def test_preview_tells_what_would_happen_and_changes_nothing(simulated: Yard, tmp_path: Path) -> None:
    before = simulated.number_of_jobs()
    fits = job_file(tmp_path, "command: sleep 0\ncards: 1\n")
    assert simulated.json("preview", fits)["starts"] is True
    never = simulated.run("preview", job_file(tmp_path, "command: sleep 0\ncards: 64\n"))
    assert never.code == 1
    assert "can never start as it is" in never.out
    assert simulated.number_of_jobs() == before


def test_a_preview_of_what_has_to_wait_is_no_failure(simulated: Yard, tmp_path: Path) -> None:
    jobs = [start(simulated, "--cards", "4") for _ in range(2)]
    for job in jobs:
        simulated.wait_for(job, "running")
    assert "it would wait" in simulated.good("preview", job_file(tmp_path, "command: x\ncards: 1\n"))
    simulated.good("stop", *jobs)
    for job in jobs:
        simulated.wait_for(job)


def test_a_job_that_can_never_start_is_stopped_when_one_waits_for_it(simulated: Yard) -> None:
    done = simulated.run("run", "--name", "too-large", "--cards", "64", "--", "x")
    assert done.code == 1
    assert done.err.count("can never start") == 1
    assert simulated.wait_for("too-large")["state"] == "stopped"


def test_a_job_that_can_never_start_is_warned_of_when_one_leaves_it(simulated: Yard, tmp_path: Path) -> None:
    file = job_file(tmp_path, "command: x\ncards: 64\n")
    for command in (["run", "--detach", "--cards", "64", "--", "x"], ["submit", file], ["submit", file, "-o", "json"]):
        done = simulated.run(*command)
        assert done.code == 0
        assert "warning: It can never start" in done.err
    waiting = [job["id"] for job in simulated.json("ls", "--state", "queued")]
    simulated.good("stop", *waiting)


def test_what_the_server_warns_of_is_told(machine: Yard, tmp_path: Path) -> None:
    file = job_file(tmp_path, "name: with-image\ncommand: 'true'\nimage: pytorch:2\n")
    for command in (["submit", file], ["rerun", "with-image"], ["run", "--image", "pytorch:2", "--", "true"]):
        done = machine.run(*command)
        assert done.code == 0
        assert "warning: The image pytorch:2" in done.err


def test_a_job_file_is_submitted_from_a_file_or_standard_input(simulated: Yard, tmp_path: Path) -> None:
    text = "name: from-file\ncommand: sleep 0\ncards: 1\n"
    first = simulated.good("submit", job_file(tmp_path, text))
    second = simulated.good("submit", "-", stdin=text)
    assert first != second
    assert simulated.json("show", "from-file")["id"] == second
    assert "submitted" in simulated.run("submit", "-", stdin=text).err


def test_a_variable_that_is_not_set_here_is_named(simulated: Yard) -> None:
    assert "NOT_SET_ANYWHERE is not set here" in simulated.run("run", "--env", "NOT_SET_ANYWHERE", "--", "x").err
    job = simulated.good("run", "--detach", "--env", "IS_SET", "--", "x", IS_SET="7")
    assert "IS_SET=7" in simulated.good("show", job)


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("command: x\ncrads: 2\n", "cards"),
        ("command: x\ncards: lots\n", "cards"),
        ("command: [unclosed\n", "line"),
        ("\tcommand: x\n", "line"),
        ("command: x\ncommand: y\n", "command"),
        ("", "command"),
        ("cards: 1\n", "command"),
    ],
)
def test_mistakes_in_a_job_file_are_bad_input_and_are_named(
    simulated: Yard, tmp_path: Path, text: str, told: str
) -> None:
    before = simulated.number_of_jobs()
    for command in ("submit", "preview"):
        done = simulated.run(command, job_file(tmp_path, text))
        assert done.code == 2
        assert told in done.err
        assert done.out == ""
    assert simulated.number_of_jobs() == before


def test_a_job_file_that_cannot_be_read_is_bad_input(simulated: Yard, tmp_path: Path) -> None:
    for path in (tmp_path / "missing.yaml", tmp_path):
        done = simulated.run("submit", str(path))
        assert done.code == 2
        assert str(path) in done.err


def _ran_for(yard: Yard, job: str, after: float = 0.0) -> str:
    time.sleep(after)
    return next(line for line in yard.good("show", job).splitlines() if line.startswith("ran for"))


def test_pause_frees_the_cards_and_resume_is_a_new_attempt(simulated: Yard) -> None:
    job = start(simulated, "--cards", "1")
    simulated.wait_for(job, "running")
    simulated.good("pause", job)
    simulated.wait_for(job, "paused")
    assert _ran_for(simulated, job) == _ran_for(simulated, job, after=1.2), "it does not run while it is paused"
    assert simulated.run("pause", job).code == 0
    simulated.good("resume", job)
    assert simulated.wait_for(job, "running")["attempt"] == 2
    simulated.good("stop", job)
    assert simulated.wait_for(job)["state"] == "stopped"
    assert simulated.run("resume", job).code == 1


def test_a_job_gets_another_priority_by_number_or_by_class(simulated: Yard) -> None:
    job = start(simulated, "--cards", "1")
    assert job in simulated.run("priority", job, "650").err
    assert simulated.json("show", job)["priority"] == 650
    simulated.good("priority", job, "low")
    assert simulated.json("show", job)["priority"] < 650
    assert "650" in simulated.good("events", job)
    refused = simulated.run("priority", job, "hihg")
    assert refused.code == 2
    assert "high" in refused.err
    simulated.good("stop", job)
    simulated.wait_for(job)
    assert simulated.run("priority", job, "650").code == 1


def test_rerun_is_a_new_job_with_changes(simulated: Yard) -> None:
    first = simulated.good("run", "--detach", "--cards", "1", "--env", "LR=0.1", "--", "sleep", "0")
    simulated.wait_for(first)
    second = simulated.good("rerun", first, "--set", "cards=2", "--set", "name=again")
    shown = simulated.wait_for(second)
    assert (shown["cards"], shown["name"]) == (2, "again")
    assert second != first
    assert simulated.run("rerun", first, "--set", "cards").code == 2
    assert simulated.run("rerun", first, "--set", "crads=2").code == 2


def test_several_jobs_are_stopped_at_once_and_a_wrong_one_does_not_save_the_others(simulated: Yard) -> None:
    jobs = [start(simulated) for _ in range(2)]
    done = simulated.run("stop", jobs[0], "not-there-at-all", jobs[1])
    assert done.code == 3
    assert "not-there-at-all" in done.err
    assert all(f"{job} is asked to stop" in done.err for job in jobs)
    assert [simulated.wait_for(job)["state"] for job in jobs] == ["stopped", "stopped"]
    again = simulated.run("stop", jobs[0])
    assert "already ended" in again.err
    assert "asked to stop" not in again.err


def test_an_id_may_be_a_beginning_or_a_name(simulated: Yard) -> None:
    job = simulated.good("run", "--detach", "--name", "by-name", "--", "sleep", "0")
    for ref in (job, job[:8], "by-name"):
        assert simulated.json("show", ref)["id"] == job


@pytest.mark.parametrize("command", ["show", "why", "events", "logs", "stop", "pause", "resume", "rerun"])
def test_what_is_not_there_is_not_found(simulated: Yard, command: str) -> None:
    done = simulated.run(command, "no-such-name")
    assert done.code == 3
    assert "no-such-name" in done.err
    assert done.out == ""


@pytest.mark.parametrize("ref", ["zzzzzzzzzz", "../users/admin", "a b", "数据", "x" * 300, ""])
def test_odd_references_find_nothing_and_do_no_harm(simulated: Yard, ref: str) -> None:
    done = simulated.run("show", ref)
    assert done.code in (2, 3)
    assert done.err
    assert done.out == ""


def test_an_ambiguous_beginning_names_what_it_could_be(simulated: Yard) -> None:
    with Client(data=simulated.data) as client:
        ids = [client.submit(command=["sleep", "0"]).id for _ in range(150)]
    beginnings = [id[:2] for id in ids]
    twice = next(begin for begin in beginnings if beginnings.count(begin) > 1)
    done = simulated.run("show", twice)
    assert done.code == 2
    assert any(id in done.err for id in ids if id.startswith(twice))


def test_top_shows_what_runs(simulated: Yard) -> None:
    job = start(simulated, "--cards", "1")
    simulated.wait_for(job, "running")
    told = simulated.json("top")
    assert job in [replica["workload"] for replica in told["replicas"]]
    assert job in simulated.good("top")
    simulated.good("stop", job)


def test_a_cordoned_node_gets_no_new_work(simulated: Yard) -> None:
    names = [node["name"] for node in simulated.json("nodes")]
    for name in names:
        simulated.good("nodes", "cordon", name)
    wait_until(lambda: {node["state"] for node in simulated.json("nodes")} == {"cordoned"})
    job = start(simulated)
    wait_until(lambda: simulated.json("why", job)["reason_code"] == "waiting.no_nodes")
    for name in names:
        simulated.good("nodes", "uncordon", name)
    simulated.wait_for(job, "running")
    simulated.good("stop", job)
    assert simulated.run("nodes", "cordon", "nowhere").code == 3


@pytest.mark.parametrize(
    "arguments",
    [
        ["run"],
        ["run", "--cards"],
        ["run", "--replicas", "x", "--", "true"],
        ["run", "--env", "NOT_SET_ANYWHERE", "--", "true"],
        ["run", "--cards", "-1", "--", "true"],
        ["run", "--memory", "lots", "--", "true"],
        ["run", "--priority", "5000", "--", "true"],
        ["run", "--max-time", "soon", "--", "true"],
        ["run", "--name", "a/b", "--", "true"],
        ["run", "--group", "no-such-group", "--", "true"],
        ["run", "--workdir", "/nonexistent", "--", "true"],
        ["run", "--bogus", "--", "true"],
        ["ls", "--state", "flying"],
        ["ls", "-o", "xml"],
        ["logs"],
        ["logs", "x", "--tail", "-1"],
        ["nonsense"],
        ["stop"],
    ],
)
def test_bad_usage_is_told_and_starts_nothing(simulated: Yard, arguments: list[str]) -> None:
    before = simulated.number_of_jobs()
    done = simulated.run(*arguments)
    assert done.code == 2, done
    assert done.err
    assert simulated.number_of_jobs() == before


@pytest.mark.parametrize("command", [["ls"], ["nodes"], ["whoami"], ["show", "x"], ["top"], ["user", "ls"]])
def test_a_server_that_does_not_answer_is_unreachable(yard: Yard, command: list[str]) -> None:
    done = yard.run(*command, YARD_URL="http://127.0.0.1:9")
    assert done.code == 5
    assert "does not answer" in done.err
    assert done.out == ""


def test_where_no_server_is_found_both_ways_to_one_are_told(yard: Yard) -> None:
    done = yard.run("ls")
    assert done.code == 5
    assert "yard up" in done.err
    assert "yard login URL" in done.err


def test_a_submit_to_nowhere_tries_for_a_while_and_then_says_so(yard: Yard) -> None:
    done = yard.run("run", "--", "true", YARD_URL="http://127.0.0.1:9", YARD_RETRY_SECONDS="2")
    assert done.code == 5
    assert "trying again" in done.err
