"""The daily work with vcctl, word for word, on this very machine."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.cli.yard import Yard, wait_until
from tests.doors import vcctl_guide as guide
from tests.doors.vcctl import PERSON, Vcctl, newcomer

from gpuyard import Client

IMAGE = "busybox"


@pytest.fixture(scope="module")
def yard(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Yard]:
    folder = tmp_path_factory.mktemp("vcctl")
    (folder / "home").mkdir()
    yard = Yard(folder / "home", folder / "data")
    yard.up("--engine", "process", "--simulate-cards", "2")
    yield yard
    yard.run("down", "--all")


@pytest.fixture(scope="module")
def vcctl(yard: Yard, tmp_path_factory: pytest.TempPathFactory) -> Vcctl:
    return newcomer(yard, tmp_path_factory.mktemp("person"))


# --- the guide ----------------------------------------------------------------------------------------------------


def test_before_anything_is_submitted_there_is_nothing(vcctl: Vcctl) -> None:
    assert vcctl.good("job", "list") == "No resources found\n"


def test_the_simplest_file_from_submit_to_delete(yard: Yard, vcctl: Vcctl) -> None:
    guide.simplest_file(vcctl, IMAGE, yard.data / "files" / "user" / PERSON)


def test_the_template_as_it_is_copied(vcctl: Vcctl) -> None:
    guide.whole_template(vcctl, IMAGE)


def test_commands_as_lists_and_as_shell_files_in_the_jobs_folder(yard: Yard, vcctl: Vcctl) -> None:
    guide.both_ways_of_writing_a_command(vcctl, IMAGE, yard.data / "files" / "user" / PERSON)


def test_logs_of_a_pending_job_say_why_it_waits(vcctl: Vcctl) -> None:
    guide.why_a_job_is_pending(vcctl, IMAGE)


def test_why_it_waits_is_said_in_the_readers_language(vcctl: Vcctl) -> None:
    vcctl.create("too-large", "true", IMAGE, resources='{gpu: "8"}')
    chinese = Vcctl(vcctl.folder, {**vcctl.env, "YARD_LANG": "zh"})
    assert chinese.good("job", "logs", "-N", "too-large").startswith("作业 too-large 处于 Pending：")
    vcctl.good("job", "delete", "-N", "too-large")


def test_a_distributed_job_of_volcano(vcctl: Vcctl) -> None:
    guide.distributed_training(vcctl, IMAGE)


# --- what scripts do ----------------------------------------------------------------------------------------------


def test_a_script_reads_the_phase_by_column(vcctl: Vcctl) -> None:
    vcctl.create("column", "true")
    vcctl.wait_for("column")
    read = "vcctl job list | awk '$1 == \"column\" {print $3, $5, $9, $12}'\n"
    assert vcctl.shell(read).out == "Completed 1 1 0\n"


def test_a_script_that_waits_for_the_end_and_deletes(vcctl: Vcctl) -> None:
    vcctl.create("script", "echo 42")
    script = """\
for try in $(seq 300); do
  phase=$(vcctl job list | grep '^script ' | awk '{print $3}')
  [ "$phase" = Completed ] && break
  sleep 0.1
done
vcctl job logs -N script
vcctl job delete -N script
"""
    assert vcctl.shell(script).out == "42\ndelete job script successfully\n"


def test_a_name_is_free_again_once_its_job_has_ended(vcctl: Vcctl) -> None:
    for _ in range(2):
        vcctl.create("again", "true")
        assert vcctl.wait_for("again")["Phase"] == "Completed"
    assert vcctl.shell("vcctl job list | grep -c '^again '\n").out == "1\n"
    assert vcctl.good("job", "delete", "-N", "again") == "delete job again successfully\n"
    assert "again" not in vcctl.good("job", "list")


def test_deleting_a_job_takes_those_along_that_it_replaced_and_nothing_of_other_doors(yard: Yard, vcctl: Vcctl) -> None:
    with Client(url=vcctl.env["YARD_URL"], token=vcctl.env["YARD_TOKEN"]) as person:
        others = [person.submit(command="true", name="thrice", cpu=0.1) for _ in range(2)]
        for job in others:
            job.wait()
        for _ in range(2):
            vcctl.create("thrice", "true", IMAGE)
            vcctl.wait_for("thrice", "Completed")
        assert vcctl.good("job", "list").count("thrice") == 3  # one of its own, both of the others
        assert vcctl.good("job", "delete", "-N", "thrice") == "delete job thrice successfully\n"
        assert {job.id for job in person.jobs(name="thrice")} == {job.id for job in others}


def test_which_of_several_live_jobs_is_meant_is_for_people_to_say(vcctl: Vcctl) -> None:
    with Client(url=vcctl.env["YARD_URL"], token=vcctl.env["YARD_TOKEN"]) as person:
        twins = [person.submit(command="sleep 1000", name="twins", cpu=0.1) for _ in range(2)]
        for verb in ("delete", "suspend", "resume"):
            done = vcctl.run("job", verb, "-N", "twins")
            assert done.code == 2
            assert 'several jobs are named "twins"' in done.out
            assert all(twin.id in done.out for twin in twins)
        vcctl.good("job", "delete", "-N", twins[0].id)
        assert vcctl.good("job", "delete", "-N", "twins") == "delete job twins successfully\n"
        assert not list(person.jobs(name="twins"))


def test_underscores_find_the_job_too(vcctl: Vcctl) -> None:
    vcctl.create("my-own", "echo mine")
    vcctl.wait_for("my-own")
    assert vcctl.good("job", "logs", "-N", "my_own") == "mine\n"


def test_whoever_reads_along_may_stop(vcctl: Vcctl) -> None:
    vcctl.create("long", "seq 1 200000")
    vcctl.wait_for("long")
    done = vcctl.shell("vcctl job logs -N long | head -n 2\n")
    assert (done.out, done.err) == ("1\n2\n", "")
    assert len(vcctl.good("job", "logs", "-N", "long", "-L", "150000").splitlines()) == 100_000


# --- upstream's commands ------------------------------------------------------------------------------------------


def test_run_makes_a_job_of_flags(vcctl: Vcctl) -> None:
    asked = "cpu=100m,memory=64Mi"
    made = vcctl.run("job", "run", "--name", "by-flags", "-r", "2", "-m", "2", "-R", asked, "-L", asked)
    assert made.out == "run job by-flags successfully\n", made
    row = vcctl.wait_for("by-flags")
    assert (row["Phase"], row["Replicas"], row["Min"], row["Succeeded"]) == ("Completed", "2", "2", "2")


def test_a_note_about_flags_speaks_of_no_line(vcctl: Vcctl) -> None:
    made = vcctl.run("job", "run", "-N", "noted", "-r", "2", "-R", "", "-L", "cpu=100m,memory=64Mi")
    assert "`spec.minAvailable` is not used here" in made.err
    assert "Line" not in made.err
    vcctl.wait_for("noted")


def test_words_after_two_dashes_are_the_command_of_a_run(vcctl: Vcctl) -> None:
    limits = ("-R", "", "-L", "cpu=100m,memory=64Mi")
    assert vcctl.good("job", "run", "-N", "said", "-i", "any", *limits, "--", "echo", "a b")
    vcctl.wait_for("said")
    assert vcctl.good("job", "logs", "-N", "said") == "a b\n"


def test_a_suspended_job_is_aborted_until_it_is_resumed(vcctl: Vcctl) -> None:
    vcctl.create("pausing", "sleep 1000")
    vcctl.wait_for("pausing", "Running")
    assert vcctl.good("job", "suspend", "-N", "pausing", "-n", "default") == ""
    assert vcctl.wait_for("pausing", "Aborted")["Pending"] == "0"
    assert vcctl.good("job", "resume", "-N", "pausing") == ""
    assert vcctl.wait_for("pausing", "Running")["RetryCount"] == "1"
    assert vcctl.good("job", "delete", "-N", "pausing") == "delete job pausing successfully\n"


def test_view_tells_all_of_a_job(vcctl: Vcctl) -> None:
    vcctl.create("viewed", '["sh", "-c", "echo a; exit 3"]', workingDir="/tmp", ports="{number: 6006, name: tb}")
    assert vcctl.wait_for("viewed")["Phase"] == "Failed"
    lines = vcctl.good("job", "view", "-N", "viewed").splitlines()
    for line in (
        *("Name:       \tviewed", "Namespace:  \tdefault", "Kind:       \tJob", "    Name:\ttask-0"),
        *("            sh", "            -c", "            echo a; exit 3"),
        *("            Container Port:\t6006", "              Cpu:   \t100m", "              Memory:\t64Mi"),
        *("            Working Dir:\t/tmp", "  Failed:       \t1", "    Phase:\tFailed", "Events:"),
    ):
        assert line in lines
    assert lines[-1].startswith("Warning        \tExitCode")


def test_a_failed_job_without_output_says_why(vcctl: Vcctl) -> None:
    vcctl.create("silent", "exit 4")
    vcctl.wait_for("silent")
    assert vcctl.good("job", "logs", "-N", "silent").startswith("job silent is Failed: ")


def test_lists_are_filtered_as_upstream_filters_them(vcctl: Vcctl) -> None:
    vcctl.create("filter-one", "true")
    vcctl.create("filter-two", "true")
    names = [line.split()[0] for line in vcctl.good("job", "list", "--selector", "ter-t").splitlines()]
    assert names == ["Name", "filter-two"]
    assert len(vcctl.good("job", "list", "-S", "default-scheduler").splitlines()) == 1
    assert vcctl.good("job", "list", "-n", "elsewhere") == "No resources found\n"
    everywhere = vcctl.good("job", "list", "--all-namespaces").splitlines()
    assert everywhere[0].split()[:2] == ["Namespace", "Name"]
    assert {line.split()[0] for line in everywhere[1:]} == {"default"}


def test_a_job_is_found_in_its_namespace_only(vcctl: Vcctl) -> None:
    vcctl.good("job", "run", "-N", "spaced", "-n", "team-a", "-L", "cpu=100m,memory=64Mi", "-R", "")
    missing = vcctl.run("job", "view", "-N", "spaced")
    assert (missing.code, missing.out) == (2, 'Failed to view job: jobs.batch.volcano.sh "spaced" not found\n')
    assert vcctl.good("job", "delete", "-N", "spaced", "-n", "team-a") == "delete job spaced successfully\n"


def test_several_documents_are_several_jobs(vcctl: Vcctl) -> None:
    one = "jobname: {0}\ntasks: [{{command: 'echo {0}', image: b, resources: {{cpu: 100m, memory: 64Mi}}}}]\n"
    vcctl.write("two.yaml", f"---\n{one.format('first')}---\n# the second\n{one.format('second')}")
    assert vcctl.good("job", "create", "-f", "two.yaml") == (
        "submit job first successfully\nsubmit job second successfully\n"
    )
    vcctl.wait_for("second")
    assert vcctl.good("job", "logs", "-N", "second") == "second\n"


def test_a_file_that_begins_with_the_mark_of_windows_editors_is_read(vcctl: Vcctl) -> None:
    task = "command: 'true', image: b, resources: {cpu: 100m, memory: 64Mi}"
    vcctl.write("marked.yaml", f"\ufeffjobname: marked\r\ntasks: [{{{task}}}]\r\n")
    assert vcctl.good("job", "create", "-f", "marked.yaml") == "submit job marked successfully\n"


def test_the_server_can_be_named_by_master_and_a_kubeconfig_means_nothing(vcctl: Vcctl) -> None:
    url = vcctl.env["YARD_URL"]
    elsewhere = Vcctl(vcctl.folder, {**vcctl.env, "YARD_URL": "http://127.0.0.1:1"})
    assert elsewhere.good("job", "list", "-s", url, "-k", "/no/such/kubeconfig").startswith("Name ")


# --- queues -------------------------------------------------------------------------------------------------------


@pytest.fixture
def owner(yard: Yard, tmp_path: Path) -> Vcctl:
    return Vcctl(tmp_path / "owner", {"YARD_DATA": str(yard.data), "YARD_LANG": "en"})


def test_who_may_change_everybodys_jobs_must_say_whose(yard: Yard, vcctl: Vcctl, owner: Vcctl, tmp_path: Path) -> None:
    people = [vcctl, newcomer(yard, tmp_path / "other", name="wlw")]
    for person in people:
        person.create("same-name", "sleep 1000")
    for verb in ("delete", "suspend", "resume"):
        done = owner.run("job", verb, "-N", "same-name")
        assert (done.code, done.out[: done.out.index(":")]) == (2, f"Failed to {verb} job")
    id = re.search(r"([a-z0-9]{10}) \(wlw\)", done.out)
    assert id, done
    assert owner.good("job", "delete", "-N", id.group(1)) == "delete job same-name successfully\n"
    assert owner.good("job", "delete", "-N", "same-name") == "delete job same-name successfully\n"
    assert not any("same-name" in person.good("job", "list") for person in people)


def test_queues_are_groups_with_their_weights(yard: Yard, owner: Vcctl) -> None:
    assert owner.good("queue", "create", "-n", "nlp", "-w", "3") == ""
    with Client(data=yard.data) as client:
        assert [group.weight for group in client.groups() if group.name == "nlp"] == [3.0]
    assert owner.good("queue", "operate", "-n", "nlp", "-a", "update", "-w", "5") == ""
    header, line = owner.good("queue", "get", "-n", "nlp").splitlines()
    assert header == "Name                     Weight  State   Inqueue Pending Running Unknown "
    assert line == "nlp                      5       Open    0       0       0       0       "
    assert owner.good("queue", "operate", "-n", "nlp", "-a", "open") == ""
    assert owner.good("queue", "delete", "-n", "nlp") == ""
    gone = owner.run("queue", "get", "-n", "nlp")
    assert (gone.code, gone.out) == (2, 'Failed to get queue: queues.scheduling.volcano.sh "nlp" not found\n')


def test_queues_count_their_jobs(vcctl: Vcctl, owner: Vcctl) -> None:
    vcctl.create("counted", "sleep 1000")
    vcctl.create("waiting", "true", resources='{gpu: "8"}')
    vcctl.wait_for("counted", "Running")

    def counts() -> list[str]:
        lines = owner.good("queue", "list").splitlines()
        return next(line.split() for line in lines if line.startswith("iie-lct"))

    wait_until(lambda: counts() == ["iie-lct", "1", "Open", "0", "1", "1", "0"], 30, lambda: str(counts()))
    vcctl.good("job", "delete", "-N", "counted")
    vcctl.good("job", "delete", "-N", "waiting")


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (("create", "-n", "default"), 'Failed to create queue: queues.scheduling.volcano.sh "default" already exists'),
        (("create", "-n", "zero", "-w", "0"), "Failed to create queue: admission webhook"),
        (("create", "-n", "shut", "-S", "Closed"), "Failed to create queue: a queue is a group here"),
        (("get",), "Failed to get queue: queue name must be specified"),
        (("delete",), "Failed to delete queue: queue name must be specified"),
        (("delete", "-n", "nobody"), 'Failed to delete queue: queues.scheduling.volcano.sh "nobody" not found'),
        (("operate",), "Failed to operate queue: queue name must be specified"),
        (("operate", "-n", "default"), "Failed to operate queue: action can not be null"),
        (
            ("operate", "-n", "default", "-a", "paint"),
            "Failed to operate queue: action paint invalid, valid actions are open, close and update",
        ),
        (
            ("operate", "-n", "default", "-a", "update"),
            "Failed to operate queue: when update queue default, weight must be specified, the value must be greater",
        ),
        (
            ("operate", "-n", "default", "-a", "close"),
            "Failed to operate queue: a queue is a group here, and is always open",
        ),
    ],
)
def test_what_is_wrong_about_queues_is_said_on_standard_output(owner: Vcctl, words: tuple[str, ...], told: str) -> None:
    done = owner.run("queue", *words)
    assert done.code == 2
    assert done.out.startswith(told)


def test_only_those_may_make_queues_who_may_make_groups(vcctl: Vcctl) -> None:
    done = vcctl.run("queue", "create", "-n", "mine")
    assert done.code == 2
    assert done.out.startswith("Failed to create queue: ")
