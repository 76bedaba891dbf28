"""Files that begin with `jobname`: every form people write, and what is wrong told with its line."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from gpuyard.dialects import native
from gpuyard.dialects.brought import Brought, guess
from gpuyard.dialects.volcano.reading import read
from gpuyard.domain.errors import BadInput
from gpuyard.domain.workload import Port, RoleSpec, Spec

FILES = Path(__file__).parents[1] / "doors" / "volcano"
TEMPLATE = (FILES / "template.yaml").read_text(encoding="utf-8")
SIMPLEST = (FILES / "simplest.yaml").read_text(encoding="utf-8")


def task(**keys: Any) -> str:
    lines = [f"    {key}: {value}" for key, value in {"command": "run.sh", "image": "img", **keys}.items()]
    return "jobname: j\ntasks:\n  -\n" + "\n".join(lines) + "\n"


def spec_of(text: str) -> Spec:
    return native.read_job(read(text).job).spec


def role_of(text: str) -> RoleSpec:
    return spec_of(text).roles[0]


def said(brought: Brought) -> list[tuple[int | None, str]]:
    return [(note.facts.get("line"), str(note.facts.get("what") or note.facts.get("at"))) for note in brought.notes]


def refusal(text: str) -> tuple[str, int | None]:
    with pytest.raises(BadInput) as caught:
        read(text)
    facts = caught.value.reason.facts
    return str(facts["text"]), facts.get("line")


def test_the_template_is_taken_with_its_tab_and_its_comments() -> None:
    brought = read(TEMPLATE)
    spec = native.read_job(brought.job).spec
    assert spec.name == "xxxx"
    role = spec.roles[0]
    assert (role.command, role.image) == (("sh", "-c", "xxxx xxxx"), "xxxx")
    assert (role.resources.cpu_milli, role.resources.memory) == (500, 1024 << 20)
    assert role.resources.cards is not None
    assert role.resources.cards.whole == 1
    assert said(brought) == [(4, "door.read.tab")]
    assert guess(TEMPLATE) == "volcano"


def test_the_simplest_file_is_submitted_under_a_name_that_hosts_can_have() -> None:
    brought = read(SIMPLEST)
    assert brought.job["name"] == "test-job1"
    assert said(brought) == [(1, "door.read.name")]
    assert brought.job["origin"]["facts"]["tasks"] == '{"task0": "task-0"}'


@pytest.mark.parametrize(
    ("command", "args", "run"),
    [
        (
            '["python", "pytorch.py"]',
            '["-train", "-batch_size", "8"]',
            ("python", "pytorch.py", "-train", "-batch_size", "8"),
        ),
        ('["python", "pytorch.py"]', "\"-train -name 'a b'\"", ("python", "pytorch.py", "-train", "-name", "a b")),
        ('["sh", "-c"]', '"a && b"', ("sh", "-c", "a && b")),
        ("python train.py", '["--note", "a b"]', ("sh", "-c", "python train.py --note 'a b'")),
        ("python train.py", "-x 1", ("sh", "-c", "python train.py -x 1")),
        ("sh /nfs/testdata/code/lzj/run.sh", "", ("sh", "-c", "sh /nfs/testdata/code/lzj/run.sh")),
        ("[sleep, 5]", "", ("sleep", "5")),
        ('["echo", "$(GREETING) $$HOME $(UNKNOWN)"]', "", ("echo", "$(GREETING) $HOME $(UNKNOWN)")),
    ],
)
def test_commands_and_arguments_are_text_or_lists(command: str, args: str, run: tuple[str, ...]) -> None:
    assert role_of(task(command=command, args=args)).command == run


def test_variables_of_the_file_are_filled_into_lists() -> None:
    text = task(command='["echo", "$(GREETING)!"]', env="{GREETING: hello}")
    assert role_of(text).command == ("echo", "hello!")


def test_the_shell_goes_to_the_working_folder_first() -> None:
    listed = role_of(task(command='["python", "a b.py"]', workingDir="/nfs/testdata/code/a/b"))
    assert listed.command == ("sh", "-c", "cd /nfs/testdata/code/a/b || exit 1\nexec python 'a b.py'")
    line = role_of(task(command="python a.py; echo done", workingDir='"/my folder"'))
    assert line.command == ("sh", "-c", "cd '/my folder' || exit 1\npython a.py; echo done")


@pytest.mark.parametrize(
    ("resources", "cpu", "memory", "cards"),
    [
        ('{cpu: "500m", memory: "1024Mi", gpu: "1"}', 500, 1 << 30, 1000),
        ("{cpu: 2, memory: 16G, gpu: 4}", 2000, 16 * 10**9, 4000),
        ("{cpu: 0.5, memory: 1.5Gi}", 500, 3 << 29, None),
        ("{cpu: 1e1, memory: 1e9, gpu: 0}", 10_000, 10**9, None),
        ("{gpu: 0.5}", None, None, 500),
        ("{cpu: , memory: }", None, None, None),
        ("", None, None, None),
    ],
)
def test_amounts_are_those_of_kubernetes(
    resources: str, cpu: int | None, memory: int | None, cards: int | None
) -> None:
    asked = role_of(task(resources=resources)).resources
    assert (asked.cpu_milli, asked.memory) == (cpu, memory)
    assert (asked.cards.milli if asked.cards else None) == cards


@pytest.mark.parametrize(
    ("ports", "read_as"),
    [
        ("{number: 8080, name: web1}", (Port(8080, "web1"),)),
        ("{number: 8080}", (Port(8080),)),
        ("[{number: 8080, name: web1}, {number: 6006}]", (Port(8080, "web1"), Port(6006))),
        ("{number: '8080', name: 8080Tcp}", (Port(8080, "p8080tcp"),)),
        ("[6006]", (Port(6006),)),
        ("{number: , name: }", ()),
    ],
)
def test_ports_are_a_mapping_or_a_list(ports: str, read_as: tuple[Port, ...]) -> None:
    assert role_of(task(ports=ports)).ports == read_as


def test_several_tasks_become_roles_with_names_of_their_own() -> None:
    text = "jobname: d\ntasks:\n" + "  - {command: a, image: b, amount: '2'}\n  - {command: c, image: d, name: ps-1}\n"
    text += "  - {command: e, image: f, name: ps1}\n"
    spec = spec_of(text)
    assert [(role.name, role.replicas) for role in spec.roles] == [("task0", 2), ("ps1", 1), ("ps12", 1)]
    assert spec.origin is not None
    assert spec.origin.fact("tasks") == '{"task0": "task-0", "ps1": "ps-1", "ps12": "ps1"}'


def test_keys_that_nobody_knows_are_named_with_their_lines() -> None:
    text = "jobname: j\nowner: me\ntasks:\n  - command: a\n    image: b\n    colour: red\n    nothing:\n"
    assert said(read(text)) == [(2, "owner"), (6, "tasks[0].colour")]


def test_a_tab_whose_meaning_is_not_plain_is_refused_with_its_line() -> None:
    text = "jobname: j\ntasks:\n  - image: b\n    workingDir:\n  \tcommand: a\n"
    words, line = refusal(text)
    assert line == 5
    assert "yaml: line 5: found character that cannot start any token (a TAB" in words


def test_tabs_inside_a_script_stay_as_they_are() -> None:
    text = "jobname: j\ntasks:\n  - image: b\n    command: |\n      if true; then\n      \techo a\n      fi\n"
    assert role_of(text).command[2] == "if true; then\n\techo a\nfi\n"


@pytest.mark.parametrize(
    ("text", "words", "line"),
    [
        ("tasks:\n  - {command: a, image: b}\n", "job name cannot be left blank", None),
        ("jobname:\ntasks:\n  - {command: a, image: b}\n", "job name cannot be left blank", 1),
        ("jobname: j\n", "denied the request: No task specified in job spec", None),
        ("jobname: j\ntasks: []\n", "No task specified in job spec", 2),
        ("jobname: j\ntasks: yes\n", "cannot unmarshal string into Go struct field Job.tasks of type", 2),
        ("jobname: j\ntasks:\n  - {command: a}\n", "containers[0].image: Required value.", 3),
        ("jobname: j\ntasks:\n  - {image: a}\n", "a command is needed", 3),
        ("jobname: Test\ntasks:\n  - {command: a, image: b}\n", 'metadata.name: Invalid value: "Test"', 1),
        (f"jobname: {'a' * 64}\ntasks:\n  - {{command: a, image: b}}\n", "no more than 63 characters", 1),
        (task(amount="two"), "cannot unmarshal string into Go struct field Job.tasks.amount of type int32", 6),
        (task(amount="-1"), "'replicas' < 0 in task: task-0, job: j;", 4),
        (task(resources="{memory: 10XB}"), "quantities must match the regular expression", 6),
        (task(resources="{memory: 1024}"), "is 1024 bytes", 6),
        (task(resources="{cpu: -1}"), "must be greater than or equal to 0", 6),
        (task(resources="{gpu: 1.5}"), "must be an integer", 6),
        (task(resources="{fpga: 1}"), "Insufficient fpga", 6),
        (task(ports="{number: 70000}"), "must be between 1 and 65535", 6),
        (task(ports="{number: 80, name: '80'}"), "at least one letter", 6),
        (task(ports="{name: web}"), "must be between 1 and 65535", 6),
        (task(image="'a b'"), "not a name of an image", 5),
        (task(command="[python]", args='"\'open"'), "args: Invalid value: No closing quotation", 6),
        ("jobname: j\ntasks:\n  - command: a\n   image: b\n", "yaml: line 4: did not find expected key", 4),
        ("jobname: j\ntasks: [a\n", "yaml: line 2: did not find expected ',' or ']'", 2),
        ("jobname: j\njobname: k\n", 'yaml: line 2: key "jobname" already set in map', 2),
        ("jobname: a: b\n", "yaml: line 1: mapping values are not allowed", 1),
        ("", "the file says nothing", 1),
        ("- a\n", "cannot unmarshal", 1),
        ("jobname: j\n---\njobname: k\n", "yaml: line 2: a second document begins here", 2),
        ('jobname: "j\n', "a quote is not closed", 1),
    ],
)
def test_what_is_wrong_is_told_in_the_tools_words_with_the_line(text: str, words: str, line: int | None) -> None:
    told, at = refusal(text)
    assert words in told
    assert at == line
