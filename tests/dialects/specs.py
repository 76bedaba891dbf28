"""Any `Spec` that a job file can describe, for hypothesis."""

from __future__ import annotations

from hypothesis import strategies as st

from gpuyard.dialects.native.parts import RESERVED_PLACES
from gpuyard.domain.cluster import LABEL_KEY_RULE, is_label_value
from gpuyard.domain.resources import (
    DEVICE_TYPES,
    MAX_CPU_MILLI,
    MAX_MEMORY,
    MAX_SECONDS,
    MIB,
    WHOLE_CARD,
    Cards,
    Resources,
)
from gpuyard.domain.workload import DOORS, Cause, Mount, Origin, Port, RoleSpec, Spec, Together, Where

plain = st.characters(exclude_categories=("Cc", "Cf", "Cs", "Zl", "Zp"))
with_lines = plain | st.sampled_from("\n\t")
texts = st.text(with_lines, max_size=20)
not_blank = texts.filter(lambda text: text.strip() != "")

job_names = st.from_regex(r"[A-Za-z0-9][A-Za-z0-9._-]{0,62}", fullmatch=True)
group_names = st.from_regex(r"[a-z][a-z0-9_-]{0,31}", fullmatch=True)
role_names = st.from_regex(r"[a-z][a-z0-9]{0,15}", fullmatch=True)
env_names = st.from_regex(r"[A-Za-z_][A-Za-z0-9_]{0,10}", fullmatch=True)
seconds = st.integers(1, MAX_SECONDS * 1000).map(lambda milli: milli / 1000)

commands = not_blank.map(lambda line: ("sh", "-c", line)) | st.lists(texts, min_size=1, max_size=4).map(tuple).filter(
    lambda words: words[0].strip() != ""
)
models = st.sampled_from(["A100", "910", "NVIDIA A100-SXM4-80GB", "true", "1e3"]) | st.from_regex(
    r"[A-Za-z0-9][A-Za-z0-9._+()/-]{0,20}", fullmatch=True
)
node_names = st.from_regex(r"[A-Za-z0-9][A-Za-z0-9._-]{0,20}", fullmatch=True)
label_keys = st.from_regex(LABEL_KEY_RULE, fullmatch=True)
label_values = st.text(plain, min_size=1, max_size=10).filter(is_label_value)
wheres = st.builds(
    Where,
    st.lists(node_names, max_size=3, unique=True).map(tuple),
    st.dictionaries(label_keys, label_values, max_size=3).map(lambda labels: tuple(sorted(labels.items()))),
)
cards = st.builds(
    Cards,
    st.sampled_from(DEVICE_TYPES),
    st.integers(1, WHOLE_CARD) | st.integers(1, 100_000).map(lambda whole: whole * WHOLE_CARD),
    st.lists(models, max_size=3, unique=True).map(tuple),
)
memory = st.integers(MIB, MAX_MEMORY) | st.integers(1, 1024).map(lambda count: count << 30)
resources = st.builds(
    Resources,
    st.none() | st.integers(1, MAX_CPU_MILLI),
    st.none() | memory,
    st.none() | memory,
    st.none() | cards,
)
images = st.sampled_from(
    [
        *("pytorch", "pytorch/pytorch:2.4", "localhost:5000/a/b_c-d.e:v1", "docker:24", "a@sha256:" + "0" * 64),
        "registry.example.com/team/image:tag@sha256:" + "a1" * 32,
    ]
)
folders = st.from_regex(r"[A-Za-z0-9_+@=-][A-Za-z0-9._+@=-]{0,10}", fullmatch=True)
places = st.lists(folders, min_size=1, max_size=3).map(lambda parts: "/" + "/".join(parts))
free_places = places.filter(lambda at: f"/{at.split('/')[1]}" not in RESERVED_PLACES)
checkpoints = st.lists(folders | st.just("保存"), min_size=1, max_size=3).map("/".join) | places
paths = st.lists(folders | st.just("数据"), max_size=3).map("/".join)
mounts = st.builds(Mount, st.sampled_from(["home", "share"]), free_places, paths, st.booleans())
ports = st.builds(Port, st.integers(1, 65535), st.just("") | st.from_regex(r"[a-z][a-z0-9-]{0,30}", fullmatch=True))


def _side_by_side(chosen: list[Mount]) -> bool:
    return all(
        not f"{a.at}/".startswith(f"{b.at}/") for i, a in enumerate(chosen) for j, b in enumerate(chosen) if i != j
    )


roles = st.builds(
    RoleSpec,
    name=role_names,
    command=commands,
    replicas=st.integers(1, 5000),
    resources=resources,
    image=st.none() | images,
    env=st.dictionaries(env_names, texts, max_size=3).map(lambda env: tuple(env.items())),
    mounts=st.lists(mounts, max_size=3).filter(_side_by_side).map(tuple),
    ports=st.lists(ports, max_size=3, unique_by=(lambda p: p.number, lambda p: p.name or p.number)).map(tuple),
    where=wheres,
    completes=st.booleans(),
)
origins = st.builds(
    Origin,
    st.sampled_from(DOORS),
    st.dictionaries(st.from_regex(r"[A-Za-z][A-Za-z0-9_.-]{0,20}", fullmatch=True), texts, max_size=3).map(
        lambda facts: tuple(facts.items())
    ),
)
specs = st.builds(
    Spec,
    name=job_names,
    roles=st.lists(roles, min_size=1, max_size=3, unique_by=lambda role: role.name).map(tuple)
    | roles.map(lambda role: (RoleSpec("worker", role.command, role.replicas, role.resources, role.image),)),
    priority=st.integers(1, 1000),
    preemptible=st.booleans(),
    retries=st.fixed_dictionaries({cause: st.integers(0, 100) for cause in Cause}),
    max_seconds=st.none() | seconds,
    grace_seconds=st.integers(1, 3_600_000).map(lambda milli: milli / 1000),
    workdir=st.none() | st.from_regex(r"[0-9a-f]{64}", fullmatch=True),
    together=st.sampled_from(Together),
    checkpoint=st.none() | checkpoints,
    origin=st.none() | origins,
)
