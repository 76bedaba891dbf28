"""The daily work with dlc, word for word, on this very machine."""

from __future__ import annotations

import json
import os
import re
import signal
import stat
from collections.abc import Iterator
from datetime import datetime, timedelta
from pathlib import Path

import pytest
from tests.cli.yard import Yard, wait_until
from tests.doors import dlc as words
from tests.doors.dlc import Dlc, add_people, configured, endpoint_of, fitting, job_id

from gpuyard import Client
from gpuyard.dialects.dlc import ids


@pytest.fixture(scope="module")
def yard(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Yard]:
    folder = tmp_path_factory.mktemp("dlc")
    (folder / "home").mkdir()
    yard = Yard(folder / "home", folder / "data")
    yard.data.mkdir(mode=0o700)
    (yard.data / "settings.toml").write_text('[doors.dlc]\nmounts = {"/mnt2/user/{user}" = "home"}\n')
    yard.up("--engine", "process", "--simulate-cards", "2")
    add_people(yard)
    yield yard
    yard.run("down", "--all")


@pytest.fixture(scope="module")
def dlc(yard: Yard, tmp_path_factory: pytest.TempPathFactory) -> Dlc:
    return configured(yard, tmp_path_factory.mktemp("person"))


# --- the guide ----------------------------------------------------------------------------------------------------


def test_the_guide_works_from_login_to_output(yard: Yard, tmp_path: Path) -> None:
    dlc = Dlc(tmp_path / "new")
    configured = dlc.shell(words.CONFIGURE.format(endpoint=endpoint_of(yard)))
    assert configured.out == f"[OK] Configuration was saved to {dlc.folder}/.dlc/config\n"
    assert words.WORKSPACE in dlc.shell(words.LIST_WORKSPACES).out
    made = dlc.shell(fitting(words.WRITE_PARAMS) + words.CREATE)
    assert made.code == 0
    id = job_id(made.out)
    assert dlc.wait_for(id)["Status"] == "Succeeded"
    assert dlc.good("logs", id, f"{id}-master-0").splitlines()[2:] == ["hello world"]


def test_a_password_is_never_kept_and_the_token_is_readable_by_its_owner_alone(dlc: Dlc) -> None:
    file = dlc.folder / ".dlc" / "config"
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert words.PASSWORD not in file.read_text()


def test_the_answer_to_create_is_a_table_of_job_and_request(dlc: Dlc) -> None:
    (dlc.folder / "table.params").write_text("name=t\nkind=BatchJob\nworker_count=1\nworker_cpu=0.1\ncommand=true\n")
    lines = dlc.good("create", "job", "--params_file", "table.params").splitlines()
    assert lines[1] == "|      JobId       |              RequestId               |"
    assert re.fullmatch(r"\| dlc[0-9a-z]{13} \| [0-9A-F]{8}(-[0-9A-F]{4}){3}-[0-9A-F]{12} \|", lines[3])
    assert len(lines) == 5


def test_config_asks_for_what_is_not_given(yard: Yard, tmp_path: Path) -> None:
    dlc = Dlc(tmp_path / "asked")
    answers = "\n".join([words.NAME, words.PASSWORD, "cn-beijing", endpoint_of(yard)]) + "\n"
    assert dlc.run("config", stdin=answers).code == 0
    assert words.WORKSPACE in dlc.good("get", "workspace")


def test_the_configuration_may_be_elsewhere_and_named_anywhere(dlc: Dlc, tmp_path: Path) -> None:
    other = Dlc(tmp_path / "other")
    file = str(dlc.folder / ".dlc" / "config")
    for typed in (
        ("--config", file, "get", "workspace"),
        ("get", "-c", file, "workspace"),
        ("get", "workspace", "-c", file),
        ("get", "workspace", f"--config={file}"),
        (f"-c{file}", "get", "workspace"),
    ):
        assert words.WORKSPACE in other.good(*typed)
    assert not (other.folder / ".dlc").exists()


def test_logging_in_again_gives_the_old_token_back(yard: Yard, tmp_path: Path) -> None:
    dlc = configured(yard, tmp_path / "again")
    with Client(data=yard.data) as owner:
        before = len(owner.tokens(words.NAME))
        assert dlc.shell(words.CONFIGURE.format(endpoint=endpoint_of(yard))).code == 0
        assert len(owner.tokens(words.NAME)) == before


# --- other people's programs --------------------------------------------------------------------------------------


def test_a_caller_finds_the_id_in_the_output_and_polls_the_json(dlc: Dlc) -> None:
    """As evaluation runners do it: flags, a regular expression, and JSON until it is over."""
    made = dlc.good(
        *("create", "job", "--command", "echo out; exit 0", "--name", "eval", "--kind", "BatchJob"),
        *("-c", str(dlc.folder / ".dlc" / "config"), "--worker_count", "1", "--worker_cpu", "1", "--worker_gpu", "0"),
        *("--worker_memory", "1Gi", "--worker_image", "master0:5000/eflops/pytorch:v1"),
        f"--workspace_id={ids.workspace_id(words.WORKSPACE)}",
    )
    found = re.findall(r"\|\s+(dlc[0-9a-z]+)\s+\|", made)
    assert len(found) == 1
    end = dlc.wait_for(found[0])
    assert (end["Status"], end["WorkspaceName"], end["JobType"]) == ("Succeeded", words.WORKSPACE, "BatchJob")
    assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ", end["GmtCreateTime"])
    assert "out" in dlc.good("logs", found[0], f"{found[0]}-worker-0").splitlines()[2:]


def test_a_caller_finds_the_workspace_by_its_name(dlc: Dlc) -> None:
    match = re.search(rf"\|\s*{words.WORKSPACE}\s*\|\s*([\w]+)\s*\|", dlc.good("get", "workspace"))
    assert match
    assert re.fullmatch(r"ws[0-9a-z]{14}", match.group(1))


def test_an_admin_has_every_workspace(yard: Yard, tmp_path: Path) -> None:
    with Client(data=yard.data) as owner:
        owner.create_user("boss", password="a longer one", role="admin")
    dlc = Dlc(tmp_path / "boss")
    typed = ("--username", "boss", "--password", "a longer one", "--endpoint", endpoint_of(yard))
    assert dlc.run("config", *typed).code == 0
    assert {words.WORKSPACE, "default"} <= set(re.findall(r"\| ([a-z-]+) +\| ws", dlc.good("get", "workspace")))
    id = dlc.create(workspace_id=ids.workspace_id(words.WORKSPACE))
    assert dlc.job(id)["WorkspaceName"] == words.WORKSPACE


def test_a_caller_splits_the_list_at_white_space(dlc: Dlc) -> None:
    id = dlc.create(name="columns")
    dlc.wait_for(id, "Succeeded")
    lines = [line.split() for line in dlc.good("get", "job", "--display_name", "columns").splitlines()]
    assert [(line[0], line[1], line[7]) for line in lines[1:]] == [("columns", id, "Succeeded")]


# --- get ----------------------------------------------------------------------------------------------------------


def test_lists_are_chosen_from_by_name_kind_status_workspace_and_time(dlc: Dlc) -> None:
    good, bad = dlc.create(name="list-one", kind="PyTorchJob"), dlc.create(name="list-two", command="exit 3")
    dlc.wait_for(good)
    dlc.wait_for(bad)

    def listed(*flags: str) -> set[str]:
        return set(re.findall(r"dlc[0-9a-z]{13}", dlc.good("get", "jobs", "--page_size", "1000", *flags)))

    assert {good, bad} <= listed()
    assert listed("-n", "LIST-", "--status", "Failed,Running") == {bad}
    assert listed("--display_name_regex", "^list-o") == {good}
    assert listed("-n", "list-", "--job_type", "PyTorchJob") == {good}
    assert {good, bad} <= listed("--workspace_id", ids.workspace_id(words.WORKSPACE))
    assert listed("-n", "list-", "--start_time", "2020-01-01", "--end_time", "2999-01-01T00:00:00Z") == {good, bad}
    assert listed("-n", "list-", "--end_time", "2020-01-01T00:00:00Z") == set()
    assert listed("--status", "Bidding") == set()


def test_names_that_evaluation_runners_make_are_taken_and_found_again(dlc: Dlc) -> None:
    name = "OpenICLInfer[opt125m/siqa,winograd]"
    made = dlc.run(
        *("create", "job", "--name", name, "--kind", "BatchJob", "--worker_count", "1", "--worker_cpu", "0.1"),
        *("--command", "true"),
    )
    assert made.code == 0
    id = job_id(made.out)
    assert dlc.wait_for(id)["DisplayName"] == name
    assert dlc.good("get", "job", "-n", "[opt125m/").split()[-9:-7] == [name, id]
    assert id in dlc.good("get", "job", "--display_name_regex", r"\[opt125m/siqa")


def test_lists_have_pages_newest_first(dlc: Dlc) -> None:
    made = [dlc.create(name=f"page-{number}") for number in range(3)]
    pages = [
        re.findall(r"dlc[0-9a-z]{13}", dlc.good("get", "job", "-n", "page-", "--page_size", "2", "--page_num", page))
        for page in ("1", "2", "3")
    ]
    assert pages == [[made[2], made[1]], [made[0]], []]


def test_a_list_may_also_be_a_table_or_json(dlc: Dlc) -> None:
    id = dlc.create(name="forms")
    assert re.search(rf"\| {id} \|", dlc.good("get", "job", "-n", "forms", "-o", "table"))
    assert json.loads(dlc.good("get", "job", "-n", "forms", "--show_detail"))[0]["JobId"] == id


def test_pods_and_events_are_shown(dlc: Dlc) -> None:
    id = dlc.create(worker_count="2")
    dlc.wait_for(id)
    table = dlc.good("get", "pod", id)
    assert f"{id}-worker-0" in table
    assert f"{id}-worker-1" in table
    pod = json.loads(dlc.good("get", "pod", id, f"{id}-worker-1", "--max_events_num", "2"))
    told = (pod["PodId"], pod["Type"], pod["Status"], len(pod["Events"]))
    assert told == (f"{id}-worker-1", "Worker", "Succeeded", 2)
    assert json.loads(dlc.good("get", "job", id, "--events"))["Events"]
    assert json.loads(dlc.good("get", "job", id, "--events_only", "--max_events_num", "1"))[0]["Message"]


def test_quotas_and_cards_are_shown(yard: Yard, dlc: Dlc) -> None:
    with Client(data=yard.data) as owner:
        owner.set_quota(words.WORKSPACE, {"nvidia": 2, "memory": "64G"})
    assert re.search(r"\| memory +\| 64Gi", dlc.good("get", "quota"))
    assert words.WORKSPACE in dlc.good("get", "quota", "--workspace_id", words.WORKSPACE)
    assert re.search(r"\| nvidia +\| 2 ", dlc.good("get", "specs"))


# --- what runs ----------------------------------------------------------------------------------------------------


def test_a_pytorch_job_has_a_master_that_its_workers_find(dlc: Dlc) -> None:
    command = (
        'echo "$RANK/$WORLD_SIZE $MASTER_ADDR:$MASTER_PORT $NPROC_PER_NODE"; getent hosts "$MASTER_ADDR" || exit 7'
    )
    id = dlc.create(kind="PyTorchJob", worker_count="2", worker_gpu="1", command=command)
    end = dlc.wait_for(id)
    assert end["Status"] == "Succeeded", end
    assert [pod["PodId"] for pod in end["Pods"]] == [f"{id}-master-0", f"{id}-worker-0"]
    for rank, pod in enumerate(("master-0", "worker-0")):
        lines = dlc.good("logs", id, f"{id}-{pod}").splitlines()[2:]
        assert re.fullmatch(rf"{rank}/2 {id}-master-0:[12][0-9]{{4}} 1", lines[0])


LISTEN = (
    "import os, pathlib, socket; s = socket.create_server(('', int(os.environ['MASTER_PORT'])));"
    " pathlib.Path.home().joinpath(os.environ['YARD_WORKLOAD'] + '-on').touch(); s.accept()"
)
CALL = "import os, socket; socket.create_connection((os.environ['MASTER_ADDR'], int(os.environ['MASTER_PORT'])), 5)"


def test_two_trainings_at_once_on_one_machine_do_not_meet_on_one_port(dlc: Dlc) -> None:
    """No worker calls its master before both masters listen."""
    worker = f'cd; until [ $(ls | grep -c -e -on) = 2 ]; do sleep 0.1; done; python3 -c "{CALL}"'
    command = f'if [ $RANK = 0 ]; then python3 -c "{LISTEN}"; else {worker}; fi'
    ids = [dlc.create(name=name, kind="PyTorchJob", worker_count="2", command=command) for name in ("one", "other")]
    assert [dlc.wait_for(id)["Status"] for id in reversed(ids)] == ["Succeeded", "Succeeded"], dlc.good("logs", ids[1])


@pytest.mark.skipif(os.geteuid() != 0, reason="folders are shown elsewhere by root only")
def test_files_are_where_scripts_have_always_looked_for_them(dlc: Dlc) -> None:
    command = f"cd /mnt2/user/{words.NAME} && echo kept > note && cat /mnt/user/{words.NAME}/note"
    id = dlc.create(kind="PyTorchJob", command=command)
    assert dlc.wait_for(id)["Status"] == "Succeeded"
    assert dlc.good("logs", id, f"{id}-worker-0").splitlines()[2:] == ["kept"]


def test_a_tensorflow_job_ends_with_its_workers(dlc: Dlc) -> None:
    command = 'echo "$TF_CONFIG"; case "$TF_CONFIG" in *\'"type":"ps"\'*) sleep 600;; esac'
    id = dlc.create(kind="TFJob", ps_count="1", ps_cpu="0.1", ps_memory="64Mi", command=command)
    assert dlc.wait_for(id)["Status"] == "Succeeded"
    cluster = json.loads(dlc.good("logs", id, f"{id}-worker-0").splitlines()[2])["cluster"]
    hosts = {role: [host.partition(":")[0] for host in there] for role, there in cluster.items()}
    assert hosts == {"ps": [f"{id}-ps-0"], "worker": [f"{id}-worker-0"]}


def test_an_mpi_job_runs_its_command_once_and_knows_all_hosts(dlc: Dlc) -> None:
    id = dlc.create(kind="MPIJob", worker_count="2", command='echo "$MPI_HOST"')
    assert dlc.wait_for(id)["Status"] == "Succeeded"
    assert dlc.good("logs", id, f"{id}-master-0").splitlines()[2:] == [f"{id}-master-0,{id}-worker-0"]


def test_a_command_of_several_lines_can_be_given_as_a_flag(dlc: Dlc) -> None:
    script = 'set -e\nfor i in 1 2; do\n\techo "line $i"\ndone'
    made = dlc.good(
        *("create", "job", "--name", "lines", "--kind", "ElasticBatchJob", "--worker_count", "1"),
        *("--worker_cpu", "0.1", "--worker_memory", "64Mi", "--command", script),
    )
    id = job_id(made)
    assert dlc.wait_for(id)["UserCommand"] == script
    assert dlc.good("logs", id).splitlines()[2:] == ["line 1", "line 2"]


def test_what_the_file_says_wins_over_flags(dlc: Dlc) -> None:
    (dlc.folder / "wins.params").write_text("name=from-file\nkind=BatchJob\nworker_count=1\nworker_cpu=0.1\n")
    flags = ("--name", "from-flag", "--command", "true", "--priority", "9")
    id = job_id(dlc.good("create", "job", "--params_file", "wins.params", *flags))
    job = dlc.wait_for(id)
    assert (job["DisplayName"], job["UserCommand"], job["Priority"]) == ("from-file", "true", 9)


def test_what_is_not_used_here_is_said_beside_the_output(dlc: Dlc) -> None:
    (dlc.folder / "extra.params").write_text(
        "name=a\nkind=BatchJob\nworker_count=1\nworker_cpu=0.1\ncommand=true\ndata_sources=d1\n"
    )
    made = dlc.run("create", "job", "--params_file", "extra.params")
    assert made.code == 0
    assert "data_sources" in made.err
    assert made.err.startswith("[WARN]")
    assert "data_sources" not in made.out


# --- logs ---------------------------------------------------------------------------------------------------------


def test_logs_show_the_last_lines_after_two_of_their_own(dlc: Dlc) -> None:
    id = dlc.create(command="seq 3000")
    dlc.wait_for(id)
    assert dlc.good("logs", id, f"{id}-worker-0").splitlines()[2:] == [str(n) for n in range(1001, 3001)]
    last = dlc.good("logs", id, f"{id}-worker-0", "--max_events_num", "2").splitlines()[2:]
    assert last == ["2999", "3000"]


def test_a_pod_without_output_is_told_as_callers_expect_it(dlc: Dlc) -> None:
    id = dlc.create()
    dlc.wait_for(id)
    assert "[WARN] No logs found for the pod" in dlc.good("logs", id, f"{id}-worker-0")
    loud = dlc.create(command="echo hi")
    dlc.wait_for(loud)
    ended_before = ("--end_time", "2020-01-01T00:00:00Z")
    assert "[WARN] No logs found for the pod" in dlc.good("logs", loud, f"{loud}-worker-0", *ended_before)


def test_a_caller_that_asks_window_after_window_gets_every_line_once(dlc: Dlc) -> None:
    """As evaluation runners do it: from the end of the last window that held something until now."""
    id = dlc.create(command="for i in 1 2 3 4 5 6; do echo $i; sleep 0.5; done; sleep 600")
    since = str(dlc.wait_for(id, "Running")["GmtCreateTime"])
    moment = datetime.strptime(since, "%Y-%m-%dT%H:%M:%S%z")
    got: list[str] = []

    def asked() -> bool:
        nonlocal since, moment
        moment += timedelta(seconds=1)
        until = moment.strftime("%Y-%m-%dT%H:%M:%SZ")
        said = dlc.good("logs", id, f"{id}-worker-0", "--start_time", since, "--end_time", until)
        if "[WARN] No logs found for the pod" not in said:
            since = until
            got.extend(said.splitlines()[2:])
        return len(got) >= 6

    wait_until(asked, 60, lambda: f"only {got}")
    asked()
    assert got == ["1", "2", "3", "4", "5", "6"]
    dlc.good("stop", "job", id, "-f")


def test_a_job_that_waits_says_why(dlc: Dlc) -> None:
    id = dlc.create(worker_gpu="64")
    job = dlc.wait_for(id, "Queuing")
    assert job["ReasonMessage"]
    said = dlc.run("logs", id)
    assert "[WARN] No logs found for the pod" in said.out
    assert job["ReasonMessage"] in said.err
    dlc.good("stop", "job", id, "-f")


# --- stop ---------------------------------------------------------------------------------------------------------


def test_stopping_asks_unless_told_not_to(dlc: Dlc) -> None:
    id = dlc.create(command="sleep 600")
    dlc.wait_for(id, "Running")
    refused = dlc.run("stop", "job", id, stdin="n\n")
    assert refused.code == 1
    assert id in refused.err
    assert dlc.job(id)["Status"] == "Running"
    assert dlc.run("stop", "job", id).code == 1  # nobody there to ask
    assert dlc.good("stop", "job", id, stdin="y\n") == f"[OK] Job [{id}] was stopped successfully\n"
    job = dlc.wait_for(id)
    assert (job["Status"], job["ReasonCode"]) == ("Stopped", "JobStoppedByUser")
    assert job["GmtStoppedTime"] == job["GmtFinishTime"] != ""


@pytest.mark.parametrize("flag", ["--force", "-f", "--quiet"])
def test_stopping_what_has_ended_is_refused_in_dlc_s_words(dlc: Dlc, flag: str) -> None:
    id = dlc.create(command="sleep 600")
    assert dlc.run("stop", "job", id, flag).code == 0
    dlc.wait_for(id)
    refused = dlc.run("stop", "job", id, flag)
    assert refused.code == 1
    said = r"\[FAILED\] code: 400, Job can't be stopped, because it is Stopped request id: [0-9A-F-]{36}\n"
    assert re.fullmatch(said, refused.err)


# --- interactive --------------------------------------------------------------------------------------------------


def test_an_interactive_job_shows_its_output_and_ends_as_the_job_ends(dlc: Dlc) -> None:
    flags = ("--name", "live", "--kind", "BatchJob", "--worker_count", "1", "--worker_cpu", "0.1", "--interactive")
    done = dlc.run("create", "job", *flags, "--command", "echo one; sleep 1; echo two; exit 7")
    id = job_id(done.out)
    assert done.code == 7
    lines = done.out.splitlines()
    assert any(re.search(r"Job .* is \[Running\]", line) for line in lines)
    assert [line for line in lines if line in ("one", "two")] == ["one", "two"]
    assert lines[-1] == f"Job {id} is [Failed]"


def test_an_interactive_job_that_is_over_at_once_was_running_too(dlc: Dlc) -> None:
    flags = ("--name", "short", "--kind", "BatchJob", "--worker_count", "1", "--worker_cpu", "0.1", "--interactive")
    done = dlc.run("create", "job", *flags, "--command", "echo a")
    lines = done.out.splitlines()
    running = next(place for place, line in enumerate(lines) if re.search(r"Job .* is \[Running\]", line))
    assert lines.index("a") > running
    assert lines[-1].endswith("is [Succeeded]")


def test_an_interactive_job_that_waits_says_why(dlc: Dlc) -> None:
    flags = ("--name", "waits", "--kind", "BatchJob", "--worker_count", "1", "--worker_gpu", "500", "--interactive")
    watching = dlc.start("create", "job", *flags, "--command", "true")
    assert watching.stderr is not None
    assert "500" in watching.stderr.readline()
    watching.send_signal(signal.SIGINT)
    said, _ = watching.communicate(timeout=30)
    assert "is [Queuing]" in said
    dlc.good("stop", "job", job_id(said), "--force")


def test_ctrl_c_leaves_an_interactive_job_running(dlc: Dlc) -> None:
    flags = ("--name", "left", "--kind", "BatchJob", "--worker_count", "1", "--worker_cpu", "0.1", "--interactive=true")
    watching = dlc.start("create", "job", *flags, "--command", "echo ready; sleep 600")
    assert watching.stdout is not None
    said = ""
    while "ready" not in said:
        line = watching.stdout.readline()
        assert line, said
        said += line
    watching.send_signal(signal.SIGINT)
    _, complaint = watching.communicate(timeout=30)
    id = job_id(said)
    assert watching.returncode == 130
    assert f"dlc stop job {id}" in complaint
    assert dlc.job(id)["Status"] == "Running"
    dlc.good("stop", "job", id, "--force")


# --- the rest -----------------------------------------------------------------------------------------------------


def test_jobs_of_other_doors_are_there_too(yard: Yard, dlc: Dlc) -> None:
    made = yard.good("run", "--detach", "--name", "ours", "--", "true")
    yard.wait_for(made, "succeeded")
    token = (yard.data / "owner.token").read_text().strip()
    admin = Dlc(dlc.folder / "admin", {"YARD_URL": yard.url, "YARD_TOKEN": token})
    id = ids.job_id(made)
    assert json.loads(admin.good("get", "job", id))["JobType"] == "BatchJob"
    assert dlc.run("get", "job", id).code == 1  # in a group of somebody else
