"""Any job of ours that can be said in Volcano's words, written so and read back: it is the same job."""

from __future__ import annotations

from dataclasses import replace

import yaml
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st
from tests.dialects.specs import group_names, specs

from gpuyard.dialects import native
from gpuyard.dialects.volcano import quantities
from gpuyard.dialects.volcano.pods import HOST_LABEL
from gpuyard.dialects.volcano.reading import read
from gpuyard.dialects.volcano.writing import unsaid, write
from gpuyard.domain.resources import MIB
from gpuyard.domain.workload import DEFAULT_PRIORITY, DEFAULT_RETRIES, Cause, RoleSpec, Spec, Together, Where

names = st.from_regex(r"[a-z0-9](?:[-a-z0-9]{0,30}[a-z0-9])?", fullmatch=True)


def sayable(spec: Spec, name: str) -> Spec:
    """The same job without what Volcano's file has no place for."""
    exits = spec.retries[Cause.EXIT]
    retries = {**DEFAULT_RETRIES, **({Cause.EXIT: exits, Cause.OOM: exits} if exits else {})}
    return replace(
        spec,
        name=name,
        roles=tuple(_role(role) for role in spec.roles),
        priority=DEFAULT_PRIORITY,
        retries=retries,
        max_seconds=None if spec.max_seconds is None else float(max(1, round(spec.max_seconds))),
        grace_seconds=float(max(1, round(spec.grace_seconds))),
        workdir=None,
        together=Together.ANY,
        checkpoint=None,
        origin=None,
    )


def _role(role: RoleSpec) -> RoleSpec:
    asked = role.resources
    cards = replace(asked.cards, models=()) if asked.cards else None
    ports = tuple(replace(port, name=port.name[:15].rstrip("-")) for port in role.ports)
    distinct = len({port.name for port in ports}) == len(ports)
    labels = tuple((key, value) for key, value in role.where.labels if key != HOST_LABEL)
    return replace(
        role,
        image=role.image or "busybox",
        mounts=(),
        resources=replace(asked, cards=cards),
        ports=ports if distinct else tuple(replace(port, name="") for port in ports),
        where=Where(role.where.nodes[:1], labels),
    )


@settings(suppress_health_check=[HealthCheck.too_slow], deadline=None, max_examples=60)
@given(specs, names, group_names)
def test_a_job_written_as_theirs_reads_back_the_same(drawn: Spec, name: str, group: str) -> None:
    spec = sayable(drawn, name)
    assert unsaid(spec) == []
    text = write(spec, group)
    assume(len(text.encode()) < 60_000)
    found = read(text)
    back = native.read_job(found.job)
    assert replace(back.spec, origin=None) == spec
    assert back.group == group
    assert found.unused == ()


@settings(suppress_health_check=[HealthCheck.too_slow], deadline=None, max_examples=30)
@given(specs, names)
def test_json_and_yaml_of_it_mean_the_same(drawn: Spec, name: str) -> None:
    text = write(sayable(drawn, name))
    written = yaml.safe_dump(yaml.safe_load(text), allow_unicode=True, sort_keys=False)
    assume(len(written.encode()) < 60_000)
    assert read(written).job == read(text).job


@settings(deadline=None)
@given(specs)
def test_what_has_no_place_there_is_named(drawn: Spec) -> None:
    named = unsaid(drawn)
    assert ("workdir" in named) == (drawn.workdir is not None)
    assert ("mounts" in named) == any(role.mounts for role in drawn.roles)


@settings(deadline=None)
@given(st.integers(0, 1 << 50))
def test_bytes_are_written_and_read_exactly(amount: int) -> None:
    assert quantities.whole(quantities.show_bytes(amount)) == amount
    assert quantities.whole(quantities.show_bytes(amount * MIB)) == amount * MIB


@settings(deadline=None)
@given(st.integers(0, 10**8))
def test_thousandths_are_written_and_read_exactly(amount: int) -> None:
    assert quantities.milli(quantities.show_milli(amount)) == amount
