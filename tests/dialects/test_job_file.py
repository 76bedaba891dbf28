"""Reading and writing job files: what is meant is understood, and what is written can be read again."""

from __future__ import annotations

import json
from contextlib import suppress
from typing import Any

import pytest
import yaml
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from jsonschema import Draft202012Validator  # type: ignore[import-untyped]
from tests.dialects.specs import group_names, specs

from gpuyard.dialects.native import job_schema, parse_json, parse_yaml, read_job, write_job
from gpuyard.dialects.native.fields import JOB_FIELDS, ROLE_FIELDS
from gpuyard.dialects.native.parts import MAX_COMMAND_BYTES, MAX_ENV_BYTES
from gpuyard.domain.errors import BadInput
from gpuyard.domain.problems import Problem
from gpuyard.domain.reasons import Code
from gpuyard.domain.resources import GIB, Cards, Resources
from gpuyard.domain.workload import DEFAULT_RETRIES, Cause, Mount, Port, RoleSpec, Spec, Together, Where

# Machines are noisy: how long an example takes says nothing.
unhurried = settings(deadline=None, suppress_health_check=[HealthCheck.too_slow, HealthCheck.filter_too_much])

WHOLE_FILE = """\
name: train            # optional
group: vision
command: python train.py --lr 0.1
replicas: 4
cards: 2
device: ascend
models: [910B, 910C]
where: {nodes: [a, b], labels: {zone: 北}}
cpu: 4
memory: 16G
shm: 8G
image: pytorch/pytorch:2.4
env: {LR: 0.10, MODE: no, DEBUG: true, N: 007, WHEN: 2024-01-01}
mounts: [{volume: home, path: ./data/, at: /data/, read_only: true}, {volume: share, at: /share}]
ports: [{number: 6006, name: tb}, 8080]
priority: high
preemptible: true
retries: {exit: 2, lost: 5}
max_time: 2h
grace: 30s
together: spread
checkpoint: out/checkpoints
workdir: 0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef
"""


def read(text: str, default_device: str = "nvidia") -> Spec:
    data, marks = parse_yaml(text)
    return read_job(data, marks, default_device=default_device).spec


def role(text: str, default_device: str = "nvidia") -> RoleSpec:
    return read(text, default_device).roles[0]


def problem_of(data: Any) -> dict[str, Any]:
    with pytest.raises(BadInput) as caught:
        read_job(data)
    return dict(caught.value.reason.facts)


def test_every_key_is_understood() -> None:
    data, marks = parse_yaml(WHOLE_FILE)
    job = read_job(data, marks, default_device="nvidia")
    assert job.group == "vision"
    worker = RoleSpec(
        "worker",
        ("sh", "-c", "python train.py --lr 0.1"),
        4,
        Resources(4000, 16 * GIB, 8 * GIB, Cards("ascend", 2000, ("910B", "910C"))),
        "pytorch/pytorch:2.4",
        (("LR", "0.10"), ("MODE", "no"), ("DEBUG", "true"), ("N", "007"), ("WHEN", "2024-01-01")),
        (Mount("home", "/data", "data", True), Mount("share", "/share")),
        (Port(6006, "tb"), Port(8080)),
        Where(("a", "b"), (("zone", "北"),)),
    )
    assert job.spec == Spec(
        "train",
        (worker,),
        priority=700,
        preemptible=True,
        retries={**DEFAULT_RETRIES, Cause.EXIT: 2, Cause.LOST: 5},
        max_seconds=7200.0,
        grace_seconds=30.0,
        workdir="0123456789abcdef" * 4,
        together=Together.SPREAD,
        checkpoint="out/checkpoints",
    )


def test_a_command_is_all_that_is_needed() -> None:
    assert read("command: python train.py\n") == Spec("python", (RoleSpec("worker", ("sh", "-c", "python train.py")),))


def test_a_list_is_run_without_a_shell_and_numbers_stay_as_written() -> None:
    assert role("command: [python, train.py, --lr, 1e-3, --flag, true]").command == (
        *("python", "train.py", "--lr", "1e-3"),
        *("--flag", "true"),
    )


def test_roles_have_their_own_commands_and_resources() -> None:
    spec = read("name: a\nroles:\n  ps: {command: a, cpu: 500m}\n  worker: {command: b, replicas: 3, cards: 0.5}\n")
    assert [(r.name, r.replicas) for r in spec.roles] == [("ps", 1), ("worker", 3)]
    assert spec.role("worker").resources.cards == Cards("nvidia", 500)


def test_the_type_of_card_is_the_platforms_own_when_left_out() -> None:
    assert role("command: x\ncards: 1", "ascend").resources.cards == Cards("ascend", 1000)
    assert role("command: x\ncards: 1\ndevice: nvidia", "ascend").resources.cards == Cards("nvidia", 1000)
    assert role("command: x\ncards: 1", "").resources.cards is not None


def test_zero_cards_means_none() -> None:
    assert role("command: x\ncards: 0\ndevice: ascend").resources.cards is None


def test_the_models_that_will_do_are_a_list_or_one_text_and_numbers_stay_as_written() -> None:
    for written in ("[A100, NVIDIA H100]", "A100,NVIDIA H100", "' A100 , NVIDIA H100'"):
        assert role(f"command: x\ncards: 1\nmodels: {written}").resources.cards == Cards(
            "nvidia", 1000, ("A100", "NVIDIA H100")
        )
    assert role("command: x\ncards: 1\nmodels: 910").resources.cards == Cards("nvidia", 1000, ("910",))
    assert role("command: x\ncards: 0\nmodels: A100").resources.cards is None


def test_where_says_which_machines_will_do_and_the_order_of_labels_means_nothing() -> None:
    where = role("command: x\nwhere:\n  nodes: [b, a]\n  labels: {zone: 北, disk: 2, fast: true}\n").where
    assert where == Where(("b", "a"), (("disk", "2"), ("fast", "true"), ("zone", "北")))
    assert role("command: x\nwhere: {nodes: 'a, b'}").where == Where(("a", "b"))
    assert role("command: x\nwhere: {}").where == Where()


def test_a_checkpoint_folder_is_absolute_or_in_the_home() -> None:
    assert read("command: x\ncheckpoint: ./out//保存/").checkpoint == "out/保存"
    assert read("command: x\ncheckpoint: /data//run7/.").checkpoint == "/data/run7"


def test_a_priority_is_a_number_or_a_class_of_the_platform() -> None:
    assert [read(f"command: x\npriority: {word}").priority for word in ("low", "urgent", "123")] == [200, 900, 123]
    own = {"deadline": 950}
    assert read_job({"command": "x", "priority": "deadline"}, priorities=own).spec.priority == 950
    assert read_job({"command": "x", "priority": 7}, priorities=own).spec.priority == 7
    with pytest.raises(BadInput) as caught:
        read_job({"command": "x", "priority": "deadlin"}, priorities=own)
    assert caught.value.reason.facts["allowed"] == ["deadline"]
    assert caught.value.reason.facts["nearest"] == "deadline"


def test_a_number_of_retries_is_for_failing_commands() -> None:
    assert read("command: x\nretries: 3").retries == {**DEFAULT_RETRIES, Cause.EXIT: 3}


def test_a_block_of_shell_keeps_its_lines_and_tabs() -> None:
    assert role("command: |\n  set -e\n  \tpython train.py\n").command[2] == "set -e\n\tpython train.py\n"


def test_aliases_are_followed() -> None:
    spec = read("roles:\n  a: &a {command: x, cards: 2}\n  b: *a\n")
    assert spec.roles[0].resources == spec.roles[1].resources


def test_a_byte_order_mark_and_windows_line_ends_do_no_harm() -> None:
    data, marks = parse_yaml("\ufeffcommand: x\r\nname: train\r\n".encode())
    assert read_job(data, marks).spec.name == "train"


def test_chinese_is_welcome_where_text_is_free() -> None:
    worker = role("command: echo 你好\nenv: {A: 训练}\nmounts: [{volume: home, path: 数据, at: /data}]\n")
    assert worker.command[2] == "echo 你好"
    assert (worker.env, worker.mounts[0].path) == ((("A", "训练"),), "数据")


@pytest.mark.parametrize(
    ("command", "name"),
    [
        ("python train.py", "python"),
        ("/usr/bin/python3 -m x", "python3"),
        ("A=1 B=2 torchrun x", "torchrun"),
        ("./run.sh", "run.sh"),
        ("$(id)", "id"),
        ("&& ||", "job"),
        ("训练", "job"),
        ("A=1", "job"),
        ("x" * 100, "x" * 63),
        (["bash", "-c", "x"], "bash"),
    ],
)
def test_the_name_is_that_of_the_program(command: str | list[str], name: str) -> None:
    assert read_job({"command": command}).spec.name == name


@pytest.mark.parametrize(
    "image",
    ["pytorch", "docker:24-dind", "a/b/c:1", "localhost:5000/x", "Registry.example.com/x", "x@sha256:" + "0" * 64],
)
def test_images_of_the_usual_spellings_are_taken(image: str) -> None:
    assert read_job({"command": "x", "image": image}).spec.roles[0].image == image


def test_the_limits_on_size_hold_for_data_that_was_never_a_file() -> None:
    assert problem_of({"command": "x" * (MAX_COMMAND_BYTES + 1)})["problem"] == Problem.TOO_LONG
    assert problem_of({"command": ["x" * 1000] * 66})["problem"] == Problem.TOO_LONG
    assert problem_of({"command": ["x"] * 1001})["problem"] == Problem.TOO_MANY
    assert problem_of({"command": "x", "env": {"A": "训" * (MAX_ENV_BYTES // 3 + 1)}})["problem"] == Problem.TOO_LONG
    assert problem_of({"command": "x", "env": {f"A{i}": "x" * 1000 for i in range(66)}})["problem"] == Problem.TOO_LONG
    assert problem_of({"command": "x", "env": {f"A{i}": "" for i in range(501)}})["problem"] == Problem.TOO_MANY
    assert problem_of({"command": "x", "ports": list(range(1, 60))})["problem"] == Problem.TOO_MANY


def test_a_secret_is_not_repeated_in_the_refusal() -> None:
    with pytest.raises(BadInput) as caught:
        read_job({"command": "x", "env": {"TOKEN": "hunter2\x00"}})
    assert "hunter2" not in json.dumps([problem.to_json() for problem in caught.value.problems])


def test_without_a_text_the_path_says_where() -> None:
    assert problem_of({"roles": {"worker": {"command": "x", "mounts": [{"volume": "home", "at": "etc"}]}}}) == {
        "at": "roles.worker.mounts.0.at",
        "problem": "rule.mount_place",
        "value": "etc",
    }


def test_at_most_fifty_problems_are_told() -> None:
    with pytest.raises(BadInput) as caught:
        read_job({f"key{i}": 1 for i in range(500)})
    assert len(caught.value.problems) == 50


# --- JSON ---------------------------------------------------------------------------------------------------------


def test_json_is_read_like_yaml() -> None:
    assert read_job(parse_json(b'{"command": ["a", 0.5], "cards": 2, "env": {"A": 1}}')) == read_job(
        parse_yaml("{command: [a, 0.5], cards: 2, env: {A: 1}}")[0]
    )


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("", Problem.JSON_SYNTAX),
        ("{", Problem.JSON_SYNTAX),
        ("[]", Problem.TOP_NOT_MAPPING),
        ("null", Problem.TOP_NOT_MAPPING),
        ('{"cpu": NaN}', Problem.JSON_NUMBER),
        ('{"cpu": -Infinity}', Problem.JSON_NUMBER),
        ('{"a": 1, "a": 2}', Problem.DUPLICATE_KEY),
        ("[" * 100_00, Problem.TOO_DEEP),
        ("[" * 30 + "]" * 30, Problem.TOO_DEEP),
        ("[" + "1," * 2000 + "1]", Problem.TOO_MANY_NODES),
        (b'{"a": "\xff"}', Problem.NOT_UTF8),
    ],
    ids=lambda value: str(value)[:20],
)
def test_bad_json_is_refused_in_words(text: str | bytes, problem: Problem) -> None:
    with pytest.raises(BadInput) as caught:
        parse_json(text)
    assert caught.value.reason.code is Code.BAD_YAML
    assert caught.value.reason.facts["problem"] == problem


@pytest.mark.parametrize("number", ["9" * 5000, "1e400", "-1e400", "-1", "0.5", "true", "null", '"4"', "[]"])
def test_numbers_in_json_that_cannot_be_meant_are_refused(number: str) -> None:
    with pytest.raises(BadInput) as caught:
        read_job(parse_json(f'{{"command": "x", "replicas": {number}}}'))
    assert caught.value.reason.facts["at"] == "replicas"


def test_json_larger_than_the_limit_is_refused() -> None:
    with pytest.raises(BadInput) as caught:
        parse_json(b'{"command": "' + b"x" * 70_000 + b'"}')
    assert caught.value.reason.code is Code.TOO_LARGE


# --- any input ----------------------------------------------------------------------------------------------------

anything = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=10),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3),
    max_leaves=10,
)
keys = st.sampled_from([*JOB_FIELDS, *ROLE_FIELDS, "roles"])


@unhurried
@given(st.dictionaries(keys | st.text(max_size=5), anything, max_size=6) | anything)
def test_any_data_is_read_or_refused(data: Any) -> None:
    try:
        spec = read_job(data).spec
    except BadInput as refusal:
        json.dumps([problem.to_json() for problem in refusal.problems], allow_nan=False).encode()
        return
    assert read_job(write_job(spec)).spec == spec


@unhurried
@given(
    st.text()
    | st.binary()
    | st.text("abc:-[]{}&*!|>'\"%@`#,?\n\t \\~0")
    | st.lists(st.sampled_from(WHOLE_FILE)).map("".join)
)
def test_any_text_is_parsed_or_refused_with_a_line(text: str | bytes) -> None:
    with suppress(BadInput):
        assert isinstance(parse_yaml(text)[0], dict)
        return
    with pytest.raises(BadInput) as caught:
        parse_yaml(text)
    facts = caught.value.reason.facts
    assert facts["line"] >= 1
    assert facts["column"] >= 1


@unhurried
@given(st.binary() | st.text().map(str.encode) | anything.map(lambda value: json.dumps(value).encode()))
def test_any_bytes_are_parsed_as_json_or_refused(text: bytes) -> None:
    with suppress(BadInput):
        assert isinstance(parse_json(text), dict)


# --- writing ------------------------------------------------------------------------------------------------------


@unhurried
@given(specs, st.none() | group_names)
def test_what_is_written_is_read_again_the_same(spec: Spec, group: str | None) -> None:
    written = json.loads(json.dumps(write_job(spec, group), allow_nan=False))
    job = read_job(written, default_device="ascend")
    assert (job.spec, job.group) == (spec, group)
    Draft202012Validator(job_schema()).validate(written)


@unhurried
@given(specs)
def test_what_is_written_survives_being_a_yaml_file(spec: Spec) -> None:
    text = yaml.safe_dump(write_job(spec), allow_unicode=True, sort_keys=False)
    data, marks = parse_yaml(text)
    assert read_job(data, marks).spec == spec


def test_what_is_written_is_as_short_as_a_person_would_write_it() -> None:
    assert write_job(
        read("command: python train.py\ncards: 2\nmemory: 16G\nmax_time: 90m\ngrace: 1.5s\n"), "vision"
    ) == {
        "name": "python",
        "group": "vision",
        "command": "python train.py",
        "cards": 2,
        "device": "nvidia",
        "memory": "16G",
        "max_time": "1h30m",
        "grace": "1.5s",
    }


# --- the published schema -----------------------------------------------------------------------------------------


def test_the_schema_is_itself_valid_and_explains_every_key() -> None:
    schema = job_schema()
    Draft202012Validator.check_schema(schema)
    assert set(schema["properties"]) == {*JOB_FIELDS, *ROLE_FIELDS, "roles"}
    assert all(len(property["description"]) > 10 for property in schema["properties"].values())
    assert json.loads(json.dumps(schema)) == schema


@pytest.mark.parametrize(
    "data",
    [
        {},
        {"name": "x"},
        {"command": ""},
        {"command": []},
        {"command": "x", "gpus": 2},
        {"command": "x", "cards": -1},
        {"command": "x", "priority": 0},
        {"command": "x", "replicas": True},
        {"command": "x", "priority": 1001},
        {"command": "x", "priority": 1.5},
        {"command": "x", "cards": 1, "models": []},
        {"command": "x", "cards": 1, "models": {"A100": 1}},
        {"command": "x", "where": {"zone": "north"}},
        {"command": "x", "where": {"labels": ["zone"]}},
        {"command": "x", "together": "near"},
        {"command": "x", "checkpoint": ""},
        {"roles": {"a": {"command": "x", "together": "spread"}}},
        {"command": "x", "device": "tpu"},
        {"command": "x", "name": "a b"},
        {"command": "x", "ports": [0]},
        {"command": "x", "mounts": [{"volume": "home"}]},
        {"command": "x", "retries": {"crash": 1}},
        {"command": "x", "roles": {"a": {"command": "y"}}},
        {"cards": 2, "roles": {"a": {"command": "y"}}},
        {"roles": {}},
        {"roles": {"A": {"command": "x"}}},
        {"roles": {"a": {"command": "x", "priority": 3}}},
    ],
    ids=str,
)
def test_what_the_schema_refuses_we_refuse_too(data: dict[str, Any]) -> None:
    assert not Draft202012Validator(job_schema()).is_valid(data)
    with pytest.raises(BadInput):
        read_job(data)


@unhurried
@given(st.dictionaries(keys, anything, max_size=4).map(lambda data: {"command": "x", **data}))
def test_whatever_we_take_the_schema_takes(data: dict[str, Any]) -> None:
    try:
        read_job(data)
    except BadInput:
        return
    Draft202012Validator(job_schema()).validate(data)
