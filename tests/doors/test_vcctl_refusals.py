"""What vcctl does not take: said in its own way, with its exit codes, and nothing is created."""

from __future__ import annotations

import re
from collections.abc import Iterator

import pytest
from tests.cli.yard import Yard
from tests.doors.elsewhere import answering
from tests.doors.vcctl import Vcctl, newcomer

GOOD = "jobname: good\ntasks: [{command: 'true', image: b, resources: {cpu: 100m, memory: 64Mi}}]\n"


@pytest.fixture(scope="module")
def yard(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Yard]:
    folder = tmp_path_factory.mktemp("vcctl")
    (folder / "home").mkdir()
    yard = Yard(folder / "home", folder / "data")
    yard.up("--engine", "process")
    yield yard
    yard.run("down", "--all")


@pytest.fixture(scope="module")
def vcctl(yard: Yard, tmp_path_factory: pytest.TempPathFactory) -> Vcctl:
    return newcomer(yard, tmp_path_factory.mktemp("person"))


@pytest.fixture(autouse=True)
def nothing_is_created(yard: Yard) -> Iterator[None]:
    before = yard.number_of_jobs()
    yield
    assert yard.number_of_jobs() == before


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("", "the file says nothing"),
        ("jobname: a\n", "No task specified in job spec"),
        ("jobname: a\ntasks:\n  - command: b\n   image: c\n", "yaml: line 4: did not find expected key"),
        ("jobname: a\ntasks:\n  - workingDir:\n  \timage: c\n", "yaml: line 4: found character that cannot start"),
        ("jobname: 'a\n", "yaml: line 1: found unexpected end of stream"),
        (GOOD.replace("64Mi", "64QB"), "memory: Invalid value: '64QB': quantities must match"),
        (GOOD.replace("image: b", "image:"), "containers[0].image: Required value. (line 2)"),
        (GOOD.replace("good", "Good"), 'Job.batch.volcano.sh "Good" is invalid: metadata.name'),
        (GOOD + "queue: nobodys\n", 'unable to find job queue: queues.scheduling.volcano.sh "nobodys" not found;'),
        ("kind: Pod\n", 'no matches for kind "Pod"'),
        ("apiVersion: batch.volcano.sh/v2\nkind: Job\n", 'no matches for kind "Job" in version "batch.volcano.sh/v2"'),
        (
            GOOD.replace("resources", "resouces"),
            'unknown field "tasks[0].resouces", did you mean "resources"?',
        ),
        (GOOD.replace("command", "comand"), 'unknown field "tasks[0].comand", did you mean "command"?'),
        (
            "kind: Job\nmetadata: {name: p}\nspec:\n"
            "  tasks: [{template: {spec: {restartPolicy: Sometimes, containers: [{image: b, command: [a]}]}}}]\n",
            'spec.restartPolicy: Unsupported value: "Sometimes": supported values: "Always", "OnFailure", "Never"',
        ),
        (GOOD + "---\njobname: second\n", "No task specified in job spec"),
        (GOOD + "---\n" + GOOD, 'jobs.batch.volcano.sh "good" already exists'),
        (GOOD + "---\nkind: Queue\napiVersion: scheduling.volcano.sh/v1beta1\n", 'no matches for kind "Queue"'),
        (
            "apiVersion: batch.volcano.sh/v1alpha1\nkind: Job\nmetadata: {name: p}\nspec:\n  priorityClassName: royal\n"
            "  tasks: [{template: {spec: {containers: [{image: b, command: [a]}]}}}]\n",
            "no PriorityClass with name royal was found; there are: low, normal, high, urgent",
        ),
    ],
)
def test_a_file_that_cannot_be_meant_is_refused(vcctl: Vcctl, text: str, told: str) -> None:
    vcctl.write("job.yaml", text)
    for verb in ("create", "run"):
        done = vcctl.run("job", verb, "-f", "job.yaml")
        assert done.code == 2, done
        assert done.out.startswith(f"Failed to {verb} job: ")
        assert told in done.out


def test_a_queue_that_is_not_there_is_not_found(yard: Yard, vcctl: Vcctl) -> None:
    owner = Vcctl(vcctl.folder, {"YARD_DATA": str(yard.data), "YARD_LANG": "en"})
    owner.write("queue.yaml", GOOD + "queue: nobodys\n")
    done = owner.run("job", "create", "-f", "queue.yaml")
    words = 'unable to find job queue: queues.scheduling.volcano.sh "nobodys" not found;'
    assert done.out == f'Failed to create job: admission webhook "validatejob.volcano.sh" denied the request: {words}\n'


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (("create",), "Failed to create job: yaml file (specified by --filename or -f) is mandatory to create a job"),
        (("create", "-f", "job.txt"), "Failed to create job: only support yaml file"),
        (
            ("create", "-f", "nope.yaml"),
            "Failed to create job: failed to read file, err: open nope.yaml: no such file or directory",
        ),
        (("run",), "Failed to run job: job name cannot be left blank"),
        (
            ("run", "-N", "a", "-L", "cpu"),
            "Failed to run job: invalid argument syntax cpu, expected <resource>=<value>",
        ),
        (
            ("run", "-N", "a", "-i", "b", "-R", "cpu=x"),
            "Failed to run job: quantities must match the regular expression",
        ),
        (("run", "-N", "a", "-i", "python:3"), "Failed to run job: a command is needed"),
        *(
            (
                ("logs", "-N", "a", "-L", lines),
                f'Failed to logs job: invalid argument "{lines}" for "-L, --lines" flag: must be greater than 0',
            )
            for lines in ("0", "-5")
        ),
        (("view",), "Failed to view job: job name (specified by --name or -N) is mandatory to view a particular job"),
        (("delete",), "Failed to delete job: job name is mandatory to delete a particular job"),
        (("suspend",), "Failed to suspend job: job name is mandatory to suspend a particular job"),
        (("resume",), "Failed to resume job: job name is mandatory to resume a particular job"),
        (("logs",), "Failed to logs job: job name is mandatory to show the logs of a particular job"),
        *(
            ((verb, "-N", "nobody"), f'Failed to {verb} job: jobs.batch.volcano.sh "nobody" not found')
            for verb in ("view", "delete", "suspend", "resume", "logs")
        ),
        (("delete", "-N", "../x"), 'Failed to delete job: jobs.batch.volcano.sh "../x" not found'),
    ],
)
def test_commands_that_say_too_little_are_told_so(vcctl: Vcctl, words: tuple[str, ...], told: str) -> None:
    done = vcctl.run("job", *words)
    assert done.code == 2
    assert done.out.startswith(told)
    assert "line 1" not in done.out  # there is no file


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (("job", "logs", "-N", "a", "-L", "lines"), 'invalid argument "lines" for "-L, --lines" flag'),
        (("job", "list", "--sort"), "unknown flag: --sort"),
        (("job", "delete", "-x"), "unknown shorthand flag: 'x' in -x"),
        (("job", "delete", "-N"), "flag needs an argument: 'N' in -N"),
        (("jobs",), 'unknown command "jobs" for "vcctl"'),
        (("job", "craete"), 'unknown command "craete" for "vcctl job"'),
    ],
)
def test_mistyped_commands_are_answered_as_cobra_does(vcctl: Vcctl, words: tuple[str, ...], told: str) -> None:
    done = vcctl.run(*words)
    assert (done.code, done.out) == (1, "")
    assert done.err.startswith(f"Error: {told}")


def test_a_server_that_is_not_there_is_named(vcctl: Vcctl) -> None:
    away = Vcctl(vcctl.folder, {**vcctl.env, "YARD_URL": "http://127.0.0.1:1"})
    away.write("good.yaml", GOOD)
    for words in (("job", "list"), ("job", "create", "-f", "good.yaml"), ("queue", "list")):
        done = away.run(*words)
        assert done.code == 2
        assert re.match(rf"Failed to {words[1]} {words[0]}: .*127\.0\.0\.1:1.*\n", done.out)


def test_nothing_secret_is_sent_unprotected_to_another_machine_because_no_scheme_was_typed(vcctl: Vcctl) -> None:
    done = vcctl.run("job", "list", "-s", "yard.invalid:8470")
    assert done.code == 2
    assert "https://yard.invalid:8470" in done.out


def test_something_else_at_the_address_is_told_as_such(vcctl: Vcctl) -> None:
    with answering(b"{}") as port:
        for words in (("job", "list"), ("job", "delete", "-N", "a"), ("job", "logs", "-N", "a"), ("queue", "list")):
            done = vcctl.run(*words, "-s", f"http://127.0.0.1:{port}")
            assert done.code == 2
            assert "is this the address of a gpuyard server?" in done.out


def test_a_wrong_token_is_refused(vcctl: Vcctl) -> None:
    stranger = Vcctl(vcctl.folder, {**vcctl.env, "YARD_TOKEN": "yard_wrong"})
    stranger.write("good.yaml", GOOD)
    done = stranger.run("job", "create", "-f", "good.yaml")
    assert done.code == 2
    assert done.out.startswith("Failed to create job: ")


def test_nothing_of_a_file_reaches_the_terminal_as_a_command_to_it(vcctl: Vcctl) -> None:
    vcctl.write("evil.yaml", 'jobname: "a\\e[2J"\ntasks: [{command: a, image: b}]\n')
    done = vcctl.run("job", "create", "-f", "evil.yaml")
    assert done.code == 2
    assert "\x1b" not in done.out + done.err


def test_a_file_without_end_is_refused(vcctl: Vcctl) -> None:
    (vcctl.folder / "endless.yaml").symlink_to("/dev/zero")
    done = vcctl.run("job", "create", "-f", "endless.yaml")
    assert (done.code, done.out) == (
        2,
        "Failed to create job: failed to read file, err: endless.yaml is larger than 1 MiB\n",
    )


def test_output_that_nobody_can_take_is_said(vcctl: Vcctl) -> None:
    for words in ("--help", "version", "job list"):
        done = vcctl.shell(f"vcctl {words} > /dev/full\n")
        assert (done.code, done.err) == (1, "Error: write /dev/stdout: no space left on device\n")


@pytest.mark.parametrize("words", ["job view -N", "job list -q", "queue get -n", "job run -N"])
def test_what_is_no_text_is_refused(vcctl: Vcctl, words: str) -> None:
    done = vcctl.shell(f"vcctl {words} \"$(printf 'a\\377')\"\n")
    assert done.code == 2
    assert done.out.startswith("Failed to ")


def test_help_version_and_completion_need_no_server(vcctl: Vcctl) -> None:
    alone = Vcctl(vcctl.folder, {"YARD_URL": "http://127.0.0.1:1"})
    assert alone.good("--help").splitlines()[2:4] == ["Usage:", "  vcctl [command]"]
    assert alone.good("help", "job", "run") == alone.good("job", "run", "--help")
    assert "-N, --name string" in alone.good("job", "logs", "-h")
    assert alone.good("version").splitlines()[0] == "API Version: v1alpha1"
    assert "vcctl" in alone.good("completion", "bash")
