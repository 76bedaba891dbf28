"""A policy is read back as it was written, and what makes no sense is refused with its place and the reason."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gpuyard.dialects import native
from gpuyard.dialects.policy import (
    Known,
    differences,
    forget_group,
    forget_person,
    from_text,
    merge_groups,
    notes_on,
    read_policy,
    set_value,
    to_text,
    write_policy,
)
from gpuyard.domain.cluster import Card, Node
from gpuyard.domain.errors import BadInput
from gpuyard.domain.policy import Defragment, Defragmenting, First, Ordering, Placing, Policy, Pool, Preempting
from gpuyard.domain.problems import Problem
from gpuyard.domain.reasons import Code
from gpuyard.words import say

KNOWN = Known(groups=frozenset({"vision", "speech"}), people=frozenset({"anna", "ben"}))

EXAMPLE = """
priorities: {low: 200, normal: 500, high: 700, urgent: 900}
ceilings: {member: 700, lead: 900, admin: 1000}
order: {people: [anna], fair_share: true, half_life: 7d, ahead: 1h, tolerance: 0.1, cores_per_card: 16,
        age_every: 12h, age_points: 50}
backfill: true
preempt: {enabled: true, for_priority: true, min_run: 300s}
placing: in_order
servers: [gpu02, gpu01]
pools: {p100: {models: [P100], nodes: [], labels: {room: "b12"}}, a100: {models: [A100]}}
groups: {vision: [p100]}
kinds: {job: [p100, a100]}
rings: {ascend: [[0, 1, 2, 3], [4, 5, 6, 7]]}
"""


def read_text(text: str) -> Policy:
    data, marks = native.parse_yaml(text)
    return read_policy(data, KNOWN, marks)


def test_a_document_as_an_admin_writes_it_is_read() -> None:
    policy = read_text(EXAMPLE)
    assert policy.order == Ordering(people=("anna",))
    assert policy.preempt == Preempting(min_run=300.0)
    assert policy.placing is Placing.IN_ORDER
    assert policy.servers == ("gpu02", "gpu01")
    assert policy.pools["p100"] == Pool(models=("P100",), labels=(("room", "b12"),))
    assert policy.group_pools == {"vision": ("p100",)}
    assert policy.kind_pools == {"job": ("p100", "a100")}
    assert policy.rings == {"ascend": ((0, 1, 2, 3), (4, 5, 6, 7))}


def test_what_is_left_out_keeps_its_default() -> None:
    assert read_policy({}) == Policy()
    assert read_policy({"order": {"half_life": "3d"}}).order == Ordering(half_life=3 * 86400)
    assert read_policy({"ceilings": {"member": 600}}).ceilings == {"member": 600, "lead": 900, "admin": 1000}


def test_the_default_is_kept_and_read_back() -> None:
    assert from_text(None) == Policy()
    assert from_text(to_text(Policy())) == Policy()


# --- round trip ---------------------------------------------------------------------------------------------------

names = st.from_regex(r"[a-z][a-z0-9_-]{0,10}", fullmatch=True)
words = st.from_regex(r"[A-Za-z0-9][A-Za-z0-9 .-]{0,10}[A-Za-z0-9]", fullmatch=True)
seconds = st.integers(1, 366 * 86400 * 1000 - 1).map(lambda milli: milli / 1000) | st.integers(1, 1_000_000).map(float)
priorities = st.integers(1, 1000)


def distinct(items: st.SearchStrategy[Any], least: int = 0) -> st.SearchStrategy[tuple[Any, ...]]:
    return st.lists(items, min_size=least, max_size=4, unique=True).map(tuple)


@st.composite
def policies(draw: st.DrawFn) -> Policy:
    member, lead, admin = sorted(draw(st.tuples(priorities, priorities, priorities)))
    classes = draw(st.dictionaries(names, priorities, max_size=4)) | {"normal": draw(st.integers(1, member))}
    labels = st.dictionaries(words, words, max_size=2).map(lambda found: tuple(sorted(found.items())))
    pools = draw(st.dictionaries(names, st.builds(Pool, distinct(words), distinct(words), labels), max_size=3))
    chosen = distinct(st.sampled_from(sorted(pools)), least=1) if pools else st.nothing()
    users: st.SearchStrategy[Any] = st.dictionaries(names, chosen, max_size=3) if pools else st.just({})
    chips = draw(st.permutations(range(16)))
    return Policy(
        priorities=classes,
        ceilings={"member": member, "lead": lead, "admin": admin},
        order=Ordering(
            first=draw(st.sampled_from(First)),
            first_level=draw(seconds),
            next_level=draw(st.floats(1.0, 1000.0, exclude_min=True)),
            levels=draw(st.integers(1, 50)),
            oldest_first=draw(st.booleans()),
            people=draw(distinct(names)),
            fair_share=draw(st.booleans()),
            half_life=draw(seconds),
            ahead=draw(seconds),
            tolerance=draw(st.floats(0.0001, 1.0, exclude_min=True)),
            cores_per_card=draw(st.integers(1, 10_000)),
            age_every=draw(seconds),
            age_points=draw(st.integers(0, 1000)),
        ),
        backfill=draw(st.booleans()),
        preempt=Preempting(draw(st.booleans()), draw(st.booleans()), draw(seconds), draw(st.booleans())),
        defragment=Defragment(
            draw(st.sampled_from(Defragmenting)), draw(seconds), draw(seconds), draw(seconds), draw(st.integers(1, 16))
        ),
        placing=draw(st.sampled_from(Placing)),
        servers=draw(distinct(words)),
        pools=pools,
        group_pools=draw(users),
        kind_pools=draw(st.just({}) | st.fixed_dictionaries({"job": chosen})) if pools else {},
        rings=draw(st.sampled_from([{}, {"ascend": (tuple(chips[:4]), tuple(chips[4:9]))}])),
    )


@given(policies())
@settings(deadline=None)
def test_what_is_written_is_read_back_the_same(policy: Policy) -> None:
    assert read_policy(write_policy(policy)) == policy
    assert from_text(to_text(policy)) == policy
    assert differences(policy, policy) == {}


@given(policies(), policies())
@settings(deadline=None, max_examples=30)
def test_setting_what_differs_leads_from_one_to_the_other(one: Policy, other: Policy) -> None:
    document = write_policy(one)
    for key, value in write_policy(other).items():
        document = set_value(document, key, value)
    assert read_policy(document) == other
    assert bool(differences(one, other)) == (one != other)


# --- nonsense -----------------------------------------------------------------------------------------------------

NONSENSE: list[tuple[dict[str, Any], str, Problem]] = [
    ({"priorities": {"normal": 500, "mine": 1001}}, "priorities.mine", Problem.WHOLE_NUMBER),
    ({"priorities": {"normal": 500, "none": 0}}, "priorities.none", Problem.WHOLE_NUMBER),
    ({"priorities": {"normal": 500, "Not A Name": 3}}, "priorities.Not A Name", Problem.PERSON_NAME),
    ({"ceilings": {"member": 950}}, "ceilings.member", Problem.CEILING_ORDER),
    ({"ceilings": {"lead": 1000, "admin": 900}}, "ceilings.lead", Problem.CEILING_ORDER),
    ({"ceilings": {"member": 400}}, "ceilings.member", Problem.NORMAL_CEILING),
    ({"order": {"half_life": 0}}, "order.half_life", Problem.DURATION),
    ({"order": {"half_life": "-1d"}}, "order.half_life", Problem.DURATION),
    ({"order": {"ahead": "0s"}}, "order.ahead", Problem.DURATION),
    ({"order": {"age_every": -5}}, "order.age_every", Problem.DURATION),
    ({"order": {"age_every": "soon"}}, "order.age_every", Problem.DURATION),
    ({"order": {"tolerance": 0}}, "order.tolerance", Problem.NUMBER),
    ({"order": {"tolerance": 5e-324}}, "order.tolerance", Problem.NUMBER),
    ({"order": {"tolerance": 1.01}}, "order.tolerance", Problem.NUMBER),
    ({"order": {"tolerance": float("nan")}}, "order.tolerance", Problem.NUMBER),
    ({"order": {"tolerance": True}}, "order.tolerance", Problem.NUMBER),
    ({"order": {"cores_per_card": 0}}, "order.cores_per_card", Problem.WHOLE_NUMBER),
    ({"order": {"age_points": -1}}, "order.age_points", Problem.WHOLE_NUMBER),
    ({"order": {"people": ["anna", "anna"]}}, "order.people.1", Problem.REPEATED),
    ({"order": {"people": ["anne"]}}, "order.people.0", Problem.ONE_OF),
    ({"order": {"people": "anna"}}, "order.people", Problem.LIST),
    ({"order": []}, "order", Problem.MAPPING),
    ({"backfill": "yes"}, "backfill", Problem.BOOLEAN),
    ({"preempt": {"min_run": -1}}, "preempt.min_run", Problem.DURATION),
    ({"placing": "best"}, "placing", Problem.ONE_OF),
    ({"servers": ["a", "b", "a"]}, "servers.2", Problem.REPEATED),
    ({"servers": [" "]}, "servers.0", Problem.BLANK),
    ({"pools": {"p100": {"models": ["--"]}}}, "pools.p100.models.0", Problem.BLANK),
    ({"pools": {"p100": []}}, "pools.p100", Problem.MAPPING),
    ({"groups": {"vision": ["p100"]}}, "groups.vision.0", Problem.POOL),
    ({"pools": {"p100": {}}, "groups": {"vision": []}}, "groups.vision", Problem.BLANK),
    ({"pools": {"p100": {}}, "groups": {"visoin": ["p100"]}}, "groups.visoin", Problem.ONE_OF),
    ({"pools": {"p100": {}}, "groups": {"vision": ["p100", "p100"]}}, "groups.vision.1", Problem.REPEATED),
    ({"pools": {"p100": {}}, "kinds": {"jobs": ["p100"]}}, "kinds.jobs", Problem.ONE_OF),
    ({"kinds": {"job": ["a100"]}}, "kinds.job.0", Problem.POOL),
    ({"rings": {"ascend": [[0, 1], [1, 2]]}}, "rings.ascend.1.0", Problem.REPEATED),
    ({"rings": {"ascend": [[0, 0]]}}, "rings.ascend.0.1", Problem.REPEATED),
    ({"rings": {"ascend": [[0, -1]]}}, "rings.ascend.0.1", Problem.WHOLE_NUMBER),
    ({"rings": {"ascend": [[]]}}, "rings.ascend.0", Problem.BLANK),
    ({"rings": {"ascend": []}}, "rings.ascend", Problem.BLANK),
    ({"rings": {"tpu": [[0, 1]]}}, "rings.tpu", Problem.ONE_OF),
    ({"rings": {"ascend": [0, 1]}}, "rings.ascend.0", Problem.LIST),
]


@pytest.mark.parametrize(("document", "at", "problem"), NONSENSE, ids=lambda value: str(value)[:50])
def test_nonsense_is_refused_with_its_place_and_the_reason(document: Any, at: str, problem: Problem) -> None:
    with pytest.raises(BadInput) as refusal:
        read_policy(document, KNOWN)
    told = [(reason.facts.get("at"), reason.facts.get("problem")) for reason in refusal.value.problems]
    assert (at, problem.value) in told
    assert len(told) == 1, told
    for language in ("en", "zh"):
        sentence = say(refusal.value.problems[0], language)
        assert at in sentence
        assert "?" not in sentence.replace("`?)", "").replace("？", "")


def test_an_unknown_key_is_told_with_the_nearest_one() -> None:
    with pytest.raises(BadInput) as refusal:
        read_policy({"order": {"halflife": "3d"}, "backfil": True})
    told = {(reason.code, reason.facts["key"], reason.facts["nearest"]) for reason in refusal.value.problems}
    assert told == {(Code.UNKNOWN_KEY, "halflife", "half_life"), (Code.UNKNOWN_KEY, "backfil", "backfill")}


def test_the_class_normal_must_be_there() -> None:
    with pytest.raises(BadInput) as refusal:
        read_policy({"priorities": {"low": 100}})
    assert [(reason.code, reason.facts["key"]) for reason in refusal.value.problems] == [(Code.MISSING_KEY, "normal")]


def test_every_problem_is_told_at_once_and_by_line() -> None:
    with pytest.raises(BadInput) as refusal:
        read_text("order:\n  half_life: 0\n  tolerance: 2\nplacing: worst_fit\n")
    assert [reason.facts["line"] for reason in refusal.value.problems] == [2, 3, 4]


def test_what_is_not_a_document_is_refused() -> None:
    oddities: tuple[Any, ...] = (None, [], "text", 7)
    for odd in oddities:
        with pytest.raises(BadInput):
            read_policy(odd)


# --- changing one value -------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("path", "value", "before", "after"),
    [
        ("order.half_life", "3d", "7d", "3d"),
        ("order.tolerance", "0.2", 0.1, 0.2),
        ("order.people", "anna,ben", [], ["anna", "ben"]),
        ("order.people", ["ben"], [], ["ben"]),
        ("backfill", "false", True, False),
        ("placing", "spread", "fragments", "spread"),
        ("servers", "gpu02, gpu01", [], ["gpu02", "gpu01"]),
        ("priorities.night", "50", None, 50),
        ("ceilings.member", "600", 700, 600),
        ("pools.p100.models", "P100", None, ["P100"]),
        ("pools.p100.labels.example.com/room", "b12", None, "b12"),
        ("rings.ascend", "[[0,1],[2,3]]", [[0, 1, 2, 3], [4, 5, 6, 7]], [[0, 1], [2, 3]]),
        ("preempt.min_run", "0s", "5m", "0s"),
    ],
)
def test_one_value_is_changed_by_its_path(path: str, value: Any, before: Any, after: Any) -> None:
    changed = read_policy(set_value(write_policy(Policy()), path, value))
    assert differences(Policy(), changed)[path] == (before, after)


@pytest.mark.parametrize(
    ("path", "value"),
    [
        ("order.half_life", "3d"),
        ("priorities.normal", "400"),
        ("priorities.low", "100"),
        ("priorities.night", "50"),
        ("ceilings.member", "600"),
        ("rings.ascend", "[[0,1],[2,3]]"),
        ("rings", "{}"),
    ],
)
def test_emptying_a_value_brings_its_default_back_and_removes_what_has_none(path: str, value: str) -> None:
    changed = set_value(write_policy(Policy()), path, value)
    assert read_policy(changed) != Policy()
    assert read_policy(set_value(changed, path, "")) == Policy()


def test_the_others_stay_when_one_gets_its_default_back() -> None:
    changed = set_value(set_value(write_policy(Policy()), "priorities.low", "100"), "priorities.normal", "400")
    assert read_policy(set_value(changed, "priorities.low", "")).priorities["normal"] == 400


def test_no_time_at_all_will_do_before_a_preemption_and_nowhere_else() -> None:
    for written in ("0", "0s", 0, "0m"):
        assert read_policy({"preempt": {"min_run": written}}).preempt.min_run == 0
        with pytest.raises(BadInput):
            read_policy({"order": {"half_life": written}})


@pytest.mark.parametrize(
    ("path", "nearest"),
    [
        ("half_life", "order.half_life"),
        ("order.halflife", "order.half_life"),
        ("order.half_life.days", ""),
        ("orders.people", "order.people"),
        ("backfill.on", "backfill"),
        ("pools.p100.model", ""),
        ("groups.vision.p100", ""),
        ("", ""),
        ("order.", ""),
        ("..", ""),
    ],
)
def test_a_path_that_leads_nowhere_is_refused(path: str, nearest: str) -> None:
    with pytest.raises(BadInput) as refusal:
        set_value(write_policy(Policy()), path, "1")
    assert refusal.value.reason.code is Code.UNKNOWN_KEY
    if nearest:
        assert refusal.value.reason.facts["nearest"] == nearest


# --- groups and people come and go --------------------------------------------------------------------------------


def pools_of(**groups: tuple[str, ...]) -> Policy:
    return Policy(pools={"a": Pool(), "b": Pool()}, group_pools=groups)


def test_whoever_is_gone_is_no_longer_named() -> None:
    policy = pools_of(vision=("a",), speech=("b",))
    assert forget_group(policy, "vision").group_pools == {"speech": ("b",)}
    ordered = Policy(order=Ordering(people=("anna", "ben")))
    assert forget_person(ordered, "anna").order.people == ("ben",)


def test_a_merged_group_may_use_the_pools_of_both_and_rules_on_the_target_stay() -> None:
    assert merge_groups(pools_of(vision=("a",), speech=("b", "a")), "vision", "speech").group_pools == {
        "speech": ("b", "a")
    }
    assert merge_groups(pools_of(vision=("a",)), "vision", "speech").group_pools == {}
    assert merge_groups(pools_of(speech=("b",)), "vision", "speech").group_pools == {"speech": ("b",)}
    assert merge_groups(pools_of(), "vision", "speech").group_pools == {}


def test_names_that_nothing_here_has_are_noted_and_not_refused() -> None:
    node = Node("gpu01", 1000, 1, (Card(0, "nvidia", "NVIDIA Tesla P100-PCIE"),), labels=(("room", "b12"),))
    pool = Pool(models=("P100", "H100"), nodes=("gpu01", "gpu09"), labels=(("room", "b12"), ("room", "b13")))
    notes = notes_on(Policy(servers=("gpu07",), pools={"p": pool}), [node])
    assert [(note.code, note.facts.get("name")) for note in notes] == [
        (Code.NAMES_NOTHING, "gpu07"),
        (Code.SERVERS_UNUSED, None),
        (Code.NAMES_NOTHING, "gpu09"),
        (Code.NAMES_NOTHING, "H100"),
        (Code.NAMES_NOTHING, "room=b13"),
    ]
