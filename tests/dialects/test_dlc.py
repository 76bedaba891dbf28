"""Params files of dlc: read as its users write them, refused in its words, and written back."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.dialects import specs
from tests.dialects.dlc_params import USUAL

from gpuyard.dialects import brought, native
from gpuyard.dialects.dlc import keys, params
from gpuyard.dialects.dlc.names import is_name, plain_name
from gpuyard.dialects.dlc.writing import write
from gpuyard.domain.errors import BadInput
from gpuyard.domain.resources import GIB, MIB
from gpuyard.domain.workload import JOB_NAME_RULE, Cause, Origin

odd_names = st.text(specs.plain, min_size=1, max_size=100).map(str.strip)
names = specs.job_names | odd_names.filter(lambda name: is_name(name) and name[0] not in "\"'")


def changed(**keys: str) -> str:
    """The usual file with other values; new keys at the end."""
    lines = [line for line in USUAL.splitlines() if line.partition("=")[0] not in keys]
    return "\n".join([*lines, *(f"{key}={value}" for key, value in keys.items())]) + "\n"


def job_of(text: str) -> native.JobFile:
    return native.read_job(brought.read("dlc", text).job)


def refusals(text: str) -> list[str]:
    with pytest.raises(BadInput) as refused:
        brought.read("dlc", text)
    return [problem.facts["text"] for problem in refused.value.problems]


# --- reading ------------------------------------------------------------------------------------------------------


def test_the_usual_file_is_one_master_with_its_amounts() -> None:
    job = job_of(USUAL)
    (master,) = job.spec.roles
    assert (job.spec.name, job.group, job.spec.priority) == ("yourtaskname", "your-workspace-id", 500)
    assert (master.name, master.replicas, master.command) == ("master", 1, ("sh", "-c", 'echo "hello world"'))
    assert (master.resources.cpu_milli, master.resources.memory, master.resources.shm) == (4000, 4 * GIB, 4 * GIB)
    assert master.resources.cards is None
    assert master.image == "master0:5000/eflops/pytorch:v1"


def test_the_usual_file_says_nothing_that_is_lost() -> None:
    assert brought.read("dlc", USUAL).notes == ()


@pytest.mark.parametrize(
    "command",
    [
        "A=1 python3 t.py --lr=0.1",
        "echo 'a  b' | tee x",
        'python3 -c "print(1 == 1)"',
        "=",
        "echo 你好",
        "printf 'a\\nb' # c",
        r"echo it\'s \"fine\" \\",
        "true # don't",
    ],
)
def test_a_command_is_taken_as_it_stands(command: str) -> None:
    assert job_of(changed(command=command)).spec.roles[0].command == ("sh", "-c", command)


@pytest.mark.parametrize(
    ("name", "here"),
    [
        ("Infer[llama-7b/ARC_c]", "Infer-llama-7b-ARC_c-"),
        ("_x y", "x-y"),
        ("训练", "job"),
        ("x" * 100, "x" * 63),
    ],
)
def test_a_name_that_ours_cannot_be_is_kept_beside_one_that_can(name: str, here: str) -> None:
    found = brought.read("dlc", changed(name=name))
    assert [note.facts["at"] for note in found.notes] == ["name"]
    spec = native.read_job(found.job).spec
    assert spec.origin is not None
    assert (spec.name, spec.origin.fact("name")) == (here, name)


@settings(deadline=None)
@given(names)
def test_a_name_here_obeys_our_rule_and_ours_stay_as_they_are(name: str) -> None:
    assert JOB_NAME_RULE.match(plain_name(name))
    assert plain_name(name) == name or not JOB_NAME_RULE.match(name)


def test_a_command_may_have_several_lines() -> None:
    text = USUAL.replace('command=echo "hello world"', "command=set -e\n\tcd /tmp\n\t\tls")
    assert job_of(text).spec.roles[0].command[2] == "set -e\ncd /tmp\n\tls"


@pytest.mark.parametrize("indent", ["    ", "\t"])
def test_a_file_written_from_within_a_script_may_be_indented(indent: str) -> None:
    assert job_of("".join(indent + line for line in USUAL.splitlines(keepends=True))) == job_of(USUAL)


def test_windows_lines_comments_and_blank_lines_change_nothing() -> None:
    assert job_of("\ufeff# mine\r\n\r\n" + USUAL.replace("\n", "\r\n")) == job_of(USUAL)


def test_spaces_and_quotes_around_values_other_than_the_command_do_not_count() -> None:
    assert job_of(changed(name='"yourtaskname"').replace("kind=", "kind = ")) == job_of(USUAL)


@pytest.mark.parametrize(
    ("written", "meant"),
    [
        *(("4", 4 * GIB), ("128Gi", 128 * GIB), ("512Mi", 512 * MIB), ("1.5", 3 * GIB // 2)),
        *(("4G", 4 * GIB), ("64GB", 64 * GIB), ("0", None)),
    ],
)
def test_memory_counts_gigabytes_when_it_has_no_unit(written: str, meant: int | None) -> None:
    assert job_of(changed(worker_memory=written)).spec.roles[0].resources.memory == meant


def test_the_first_of_several_workers_is_the_master() -> None:
    master, worker = job_of(changed(worker_count="4", worker_gpu="8")).spec.roles
    assert (master.name, master.replicas, worker.name, worker.replicas) == ("master", 1, "worker", 3)
    assert master.resources == worker.resources


def test_roles_have_their_own_image_and_amounts() -> None:
    more = {"ps_count": "2", "ps_cpu": "1", "ps_memory": "2", "ps_image": "tf:ps", "worker_gpu": "1"}
    ps, worker = job_of(changed(kind="TFJob", **more)).spec.roles
    assert (ps.name, ps.replicas, ps.image, ps.resources.cards) == ("ps", 2, "tf:ps", None)
    assert worker.resources.cards is not None
    assert worker.completes
    assert not ps.completes


def test_a_batch_job_keeps_its_workers_and_an_mpi_job_ends_with_its_first_node() -> None:
    assert [role.name for role in job_of(changed(kind="BatchJob", worker_count="3")).spec.roles] == ["worker"]
    master, worker = job_of(changed(kind="MPIJob", worker_count="3")).spec.roles
    assert master.completes
    assert worker.command != master.command


@pytest.mark.parametrize("kind", keys.KINDS)
def test_every_kind_that_runs_is_read(kind: str) -> None:
    assert job_of(changed(kind=kind)).spec.origin == Origin(
        "dlc", (("kind", kind), *((("promoted", "true"),) if kind in keys.PROMOTES else ()))
    )


def test_what_has_a_meaning_under_another_name_keeps_it() -> None:
    text = changed(
        worker_gpu="2",
        worker_gpu_type="nvidia_a100-sxm4-80gb",
        node_names="n1,n2",
        envs="A=1,B=x=y",
        job_max_running_time_minutes="90",
        enable_preemptible_job="true",
        aimaster_enable="true",
        aimaster_args="--enable-job-restart True --max-num-of-job-restart 5",
    )
    spec = job_of(text).spec
    cards = spec.roles[0].resources.cards
    assert cards is not None
    assert cards.models == ("nvidia_a100-sxm4-80gb",)
    assert spec.roles[0].where.nodes == ("n1", "n2")
    assert dict(spec.roles[0].env) == {"A": "1", "B": "x=y"}
    assert (spec.max_seconds, spec.preemptible, spec.retries[Cause.EXIT]) == (5400, True, 5)


def test_libraries_are_installed_before_the_command() -> None:
    command = job_of(changed(thirdparty_libs="einops, numpy==1.26")).spec.roles[0].command[2]
    assert command == 'python3 -m pip install einops numpy==1.26 || exit 1\necho "hello world"'


def test_what_has_no_meaning_is_named_with_its_line_unless_it_is_empty() -> None:
    text = changed(data_sources="data1ewbw1ztmmyh", resource_id="quota1", vpc_id="", node_names="")
    unused = brought.read("dlc", text).unused
    assert {(one.at, one.line) for one in unused} == {("data_sources", 13), ("resource_id", 14)}


@pytest.mark.parametrize(
    ("more", "unused"),
    [
        ({"worker_gpu_type": "A100"}, "worker_gpu_type"),
        ({"master_count": "0", "master_cpu": "2"}, "master_cpu"),
        ({"aimaster_enable": "false", "aimaster_args": "--enable-job-restart True"}, "aimaster_args"),
        ({"aimaster_enable": "true", "aimaster_args": "--enable-job-hang-detection True"}, "aimaster_args"),
        ({"success_policy": "ChiefWorker"}, "success_policy"),
        ({"success_policy": "AllWorkers"}, "success_policy"),
        ({"worker_spec": "ecs.gn6e"}, "worker_spec"),
    ],
)
def test_what_says_nothing_beside_the_rest_of_the_file_is_named(more: dict[str, str], unused: str) -> None:
    assert [one.at for one in brought.read("dlc", changed(**more)).unused] == [unused]


def test_an_elastic_job_is_said_to_have_a_fixed_size() -> None:
    (note,) = brought.read("dlc", changed(kind="ElasticBatchJob")).notes
    assert note.facts["what"] == "door.read.dlc_elastic"


def test_the_id_of_a_foreign_workspace_is_pointed_out() -> None:
    (note,) = brought.read("dlc", changed(workspace_id="ws1lu4iyv5yjjyvp")).notes
    assert note.facts["at"] == "workspace_id"


# --- refusing -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("key", ["name", "kind", "command", "worker_count"])
def test_a_missing_key_is_named(key: str) -> None:
    text = "".join(line for line in USUAL.splitlines(keepends=True) if not line.startswith(f"{key}="))
    assert refusals(text) == [f'required flag(s) "{key}" not set']


@pytest.mark.parametrize(
    ("key", "value", "said"),
    [
        ("worker_memory", "4X", 'invalid argument "4X" for "worker_memory"'),
        ("worker_cpu", "many", 'invalid argument "many" for "worker_cpu"'),
        ("worker_gpu", "1.5", 'invalid argument "1.5" for "worker_gpu"'),
        ("worker_count", "-1", 'invalid argument "-1" for "worker_count"'),
        ("worker_count", "0", "a job needs at least one node"),
        ("priority", "10", 'invalid argument "10" for "priority": expected 1 to 9'),
        ("priority", "0", 'invalid argument "0" for "priority"'),
        ("interactive", "fal", 'invalid argument "fal" for "interactive": expected true or false'),
        ("kind", "RayJob", "kind RayJob cannot be run here yet"),
        ("kind", "pytorchjob", 'unknown kind "pytorchjob", did you mean "PyTorchJob"?'),
        ("kind", "Foo", 'unknown kind "Foo"; expected one of PyTorchJob'),
        ("name", "a\x07b", "at most 512 characters that can be seen"),
        ("name", "x" * 513, "at most 512 characters that can be seen"),
        ("worker_image", "UPPER CASE", 'invalid argument "UPPER CASE" for "worker_image"'),
        ("workspace_id", "A B", 'invalid argument "A B" for "workspace_id"'),
        ("command", 'echo "hel', "expected every quotation mark to be closed"),
        ("command", "echo don't", "expected every quotation mark to be closed"),
        ("worker_cout", "2", 'unknown key "worker_cout", did you mean "worker_count"?'),
        ("workers", "2", 'unknown key "workers", did you mean "worker_count"?'),
        ("ps_count", "2", 'a PyTorchJob has no PS: "ps_count"'),
        ("envs", "A", 'invalid argument "A" for "envs": expected k=v,k=v'),
        ("success_policy", "Some", "ChiefWorker or AllWorkers"),
        ("priority", "", 'key "priority" has no value'),
    ],
)
def test_a_wrong_value_is_told_in_dlc_s_words(key: str, value: str, said: str) -> None:
    (text,) = refusals(changed(**{key: value}))
    assert said in text


def test_every_problem_is_told_at_once_with_its_line() -> None:
    with pytest.raises(BadInput) as refused:
        brought.read("dlc", USUAL.replace("=4\n", "=4X\n").replace("kind=PyTorchJob", "kind"))
    lines = [problem.facts.get("line") for problem in refused.value.problems]
    assert lines[0] == 2  # no `=`
    assert len(lines) >= 2


def test_an_open_quote_is_told_beside_an_unknown_kind() -> None:
    kind, command = sorted(refusals(changed(kind="Foo", command='echo "x')), reverse=True)
    assert 'unknown kind "Foo"' in kind
    assert "expected every quotation mark to be closed" in command


@pytest.mark.parametrize("kind", ["TFJob", "MPIJob"])
def test_nodes_that_must_know_all_others_have_an_end(kind: str) -> None:
    assert refusals(changed(kind=kind, worker_count="1001")) == [f"a {kind} has at most 1000 nodes, not 1001"]


def test_of_thousands_of_mistakes_the_first_ones_are_told() -> None:
    assert len(refusals("".join(f"k{number}=\n" for number in range(8_000)))) == 50


def test_a_key_given_twice_is_refused() -> None:
    assert refusals(USUAL + "name=other\n") == ['key "name" is given twice, first in line 1']


BEFORE_THE_COMMAND = USUAL.index("command=") + len("command=")
WITHIN_QUOTES = range(USUAL.index('"') + 1, USUAL.index('"\n') + 1)


@settings(deadline=None)
@given(st.integers(0, BEFORE_THE_COMMAND) | st.sampled_from(WITHIN_QUOTES))
def test_a_file_that_was_cut_off_before_its_command_is_whole_is_refused(length: int) -> None:
    with pytest.raises(BadInput):
        brought.read("dlc", USUAL[:length])


@settings(deadline=None)
@given(st.text(max_size=300) | st.lists(st.sampled_from(USUAL.splitlines()) | st.text(max_size=20)).map("\n".join))
def test_any_text_is_read_or_refused_and_nothing_else(text: str) -> None:
    try:
        native.read_job(brought.read("dlc", text).job)
    except BadInput:
        return


# --- round trips --------------------------------------------------------------------------------------------------

commands = specs.not_blank.map(lambda text: text.replace("'", "").replace('"', "").replace("\\", "").strip()).filter(
    lambda text: bool(text) and not any(line != line.rstrip() for line in text.split("\n"))
)


@st.composite
def written(draw: st.DrawFn) -> dict[str, str]:
    """The keys of a params file that has every meaning it can have."""
    kind = draw(st.sampled_from(keys.KINDS))
    pairs = {"name": draw(names), "kind": kind, "command": draw(commands)}
    roles = draw(st.lists(st.sampled_from(keys.ROLES_OF[kind]), min_size=1, unique=True))
    for role in roles:
        pairs[f"{role}_count"] = str(draw(st.integers(1, 50)))
        pairs[f"{role}_gpu"] = str(draw(st.integers(0, 16)))
        pairs[f"{role}_cpu"] = draw(st.sampled_from(["4", "0.5", "250m", "0"]))
        pairs[f"{role}_memory"] = draw(st.sampled_from(["4", "128Gi", "512Mi", "0.5", "3T"]))
        if draw(st.booleans()):
            pairs[f"{role}_gpu_type"] = draw(st.sampled_from(["NVIDIA-L20Y", "nvidia_a100-sxm4-80gb", "Ascend910B"]))
        if draw(st.booleans()):
            pairs[f"{role}_image"] = draw(specs.images)
    optional: dict[str, st.SearchStrategy[str]] = {
        "priority": st.integers(1, 9).map(str),
        "workspace_id": specs.group_names,
        "node_names": st.lists(specs.node_names, min_size=1, max_size=3, unique=True).map(",".join),
        "envs": st.just("A=1,B=two words,C="),
        "thirdparty_libs": st.just("einops,numpy==1.26"),
        "thirdparty_lib_dir": st.just("/mnt/user/ann/libs"),
        "job_max_running_time_minutes": st.integers(0, 10000).map(str),
        "enable_preemptible_job": st.sampled_from(["true", "false"]),
        "success_policy": st.sampled_from(["ChiefWorker", "AllWorkers"]),
        "resource_id": st.just("quota1"),
        "interactive": st.sampled_from(["true", "false"]),
    }
    for key, values in optional.items():
        if draw(st.booleans()):
            pairs[key] = draw(values)
    return pairs


@settings(deadline=None)
@given(written())
def test_a_job_written_as_params_and_read_again_means_the_same(pairs: dict[str, str]) -> None:
    once = job_of(params.join(pairs.items()))
    again = job_of(write(once.spec, once.group))
    assert again == once


@settings(deadline=None)
@given(written())
def test_a_job_from_dlc_survives_our_own_job_file(pairs: dict[str, str]) -> None:
    once = job_of(params.join(pairs.items()))
    assert native.read_job(native.write_job(once.spec, once.group)) == once


@settings(deadline=None)
@given(st.dictionaries(st.sampled_from(keys.ALL_KEYS), specs.not_blank.map(str.strip).filter(bool), max_size=5))
def test_pairs_survive_a_params_file(pairs: dict[str, str]) -> None:
    kept = {key: value for key, value in pairs.items() if key in params.VERBATIM or value[0] not in "\"'"}
    text = params.join(kept.items())
    entries, mistakes = params.split(text)
    assert not mistakes
    assert {entry.key: entry.value for entry in entries} == {key: value.strip() for key, value in kept.items()}


def test_what_the_file_says_wins_over_flags_and_keeps_its_lines() -> None:
    text = params.with_flags("name=a\nkind=BatchJob", [("name", "b"), ("command", "one\ntwo")])
    entries, _ = params.split(text)
    assert [(e.key, e.value, e.line_in_file) for e in entries] == [
        ("name", "a", 1),
        ("kind", "BatchJob", 2),
        ("command", "one\ntwo", None),
    ]
