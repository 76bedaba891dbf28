"""Every reason has its sentence in both languages, says its facts, and harms no terminal whatever the facts hold."""

from __future__ import annotations

import inspect
import re
import unicodedata
from collections.abc import Mapping
from typing import Any, get_args

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from gpuyard.domain import problems, reasons, resources
from gpuyard.domain.problems import Problem
from gpuyard.domain.reasons import Code, Reason, because
from gpuyard.domain.workload import Cause, State
from gpuyard.words import LanguageName, en, pick_language, say, state_word, zh

LANGUAGES: tuple[LanguageName, ...] = get_args(LanguageName)

# Machines are noisy: how long an example takes says nothing.
unhurried = settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])


def facts_named_in_comments(source: str) -> dict[str, tuple[str, ...]]:
    """`OVER_QUOTA = "..."  # scope, who` -> {"OVER_QUOTA": ("scope", "who")}."""
    named = {}
    for name, comment in re.findall(r'^    ([A-Z0-9_]+) = "[^"]+"(?:  # (.*))?$', source, re.MULTILINE):
        words = re.sub(r"\(none\).*|  # noqa.*", "", comment)
        named[name] = tuple(word.strip() for word in words.split(",") if word.strip())
    return named


NAMED = facts_named_in_comments(inspect.getsource(reasons))
NAMED_BY_PROBLEM = facts_named_in_comments(inspect.getsource(problems))

CAUSE = because(Code.OUT_OF_MEMORY, memory=7 << 30).to_json()
# A value for every fact, and what of it must be readable in the sentence.
SAMPLES: Mapping[str, tuple[Any, str]] = {
    "resource": ("ascend", "ascend"),
    "asked": (11000, "11"),
    "largest": (12000, "12"),
    "used": (13000, "13"),
    "limit": (14000, "14"),
    "free": (15500, "15.5"),
    "until": (1_900_000_000.0, "2030-03-17"),
    "cause": (CAUSE, "7G"),
    "seconds": (17.0, "17"),
    "memory": (18 << 30, "18G"),
    "size": (19 << 20, "19M"),
    "problem": ("the moon is down", "the moon is down"),
    "exit_code": (23, "23"),
    "known": (["nvidia", "simulated"], "nvidia"),
    "jobs": (["k4", "k5"], "k5"),
    "nodes": (["gpu07", "gpu08"], "gpu08"),
    "matches": (["ab1", "ab2"], "ab2"),
    "state": ("paused", ""),  # told by its name in the language
    "scope": ("user", ""),  # chooses the words, is not itself said
    "at": ("roles.worker.cards", "roles.worker.cards"),
    "allowed": (["home", "share"], "share"),
    "most": (86400, "1"),
    "least": (30 << 20, "3"),
    "models": (["A100", "H800"], "H800"),
    "labels": (["zone=a", "rack=7"], "rack=7"),
    "pools": (["old", "dev"], "dev"),
    "open": (["P100", "K80"], "K80"),
    "guaranteed": (31000, "31"),
    "common": (32000, "32"),
    "share": (33000, "33"),
    "rule": ("priority", ""),  # chooses the words, is not itself said
    "lost_seconds": (2400.0, "40"),
    "ran_seconds": (7500.0, "2"),
    "saved": (True, ""),
    "ahead": (3600.0, "1"),
    "waited": (45000.0, "12"),
    "points": (50, "50"),
    "reason": (CAUSE, "7G"),
    "ends_by": (1_900_000_000.0, "2030-03-17"),
    "starts_at": (1_910_000_000.0, "2030-07-11"),
    "submitted_at": (1_920_000_000.0, "2030-11-04"),
}
OTHERWISE: Mapping[tuple[str, str], tuple[Any, str]] = {
    ("NEEDS_REPLICAS", "asked"): (16, "16"),  # whole cards, since only whole ones are split
    ("NEEDS_REPLICAS", "largest"): (8, "8"),
    ("NEEDS_REPLICAS", "nodes"): (21, "21"),
    ("RETRY", "limit"): (5, "5"),
    ("NUMBER", "most"): (86400, "86400"),
    ("RING", "allowed"): ([1, 2, 4], "4"),
    ("NODE_FACT", "nodes"): (22, "22"),
    ("NODE_FACT", "trouble"): ("held by pid 7", "held by pid 7"),
    ("JOB_FACT", "cards"): (34000, "34"),
    ("JOB_FACT", "device"): ("ascend", "ascend"),
    ("RULE_AGE", "mine"): (1_930_000_000.0, "2031-02-27"),
    ("RULE_AGE", "theirs"): (1_920_000_000.0, "2030-11-04"),
    ("RULE_PASSED", "at"): (1_900_000_000.0, "2030-03-17"),
    ("RULE_NOT_THERE", "at"): (1_900_000_000.0, "2030-03-17"),
    ("RULE_MADE_ROOM", "at"): (1_900_000_000.0, "2030-03-17"),
    ("MOVES", "to"): ([{"node": "gpu07"}], ""),  # the place to the card, for programs
    ("MOVES_FACT", "moves"): (2, "2"),
    ("MOVES_FACT", "mode"): ("move", ""),  # chooses the words, is not itself said
    ("MOVES_FACT", "lacks"): ("cpu", ""),
    ("NOT_ALLOWED", "whom"): ("admin", ""),
    ("GUESS_HISTORY", "runs"): (3, "3"),
    ("GUESS_HISTORY", "least"): (8, "8"),
    ("ORDER", "ahead"): ("k7", "k7"),
    ("FIFO", "ahead"): ("k7", "k7"),
    ("RULE_MADE_ROOM", "group"): ("vision", ""),  # said where it is about its guarantee
    ("TOO_LARGE", "limit"): (14 << 20, "14M"),
    ("STORE_NEWER", "known"): ("0003", "0003"),
    ("TOTAL_REPLICAS", "most"): (100_000, "100000"),
    ("PULL_FAILED", "why"): ("not_found", ""),
    ("DISK_SOON", "used"): (13 << 30, "13G"),
    ("DISK_SOON", "limit"): (14 << 30, "14G"),
    ("DISK_OVER", "used"): (13 << 30, "13G"),
    ("DISK_OVER", "limit"): (14 << 30, "14G"),
    ("CONTAINER_FAILED", "why"): ("disk_full", ""),
    ("NOT_RUNNING", "what"): ("env", ""),  # chooses the words, is not itself said
    ("NO_FORWARDING", "what"): ("tcp", ""),
}


def sample(name: str, fact: str) -> tuple[Any, str]:
    return OTHERWISE.get((name, fact)) or SAMPLES.get(fact) or (f"some-{fact}", f"some-{fact}")


@pytest.mark.parametrize("language", LANGUAGES)
@pytest.mark.parametrize("code", Code)
def test_every_reason_says_all_its_facts(code: Code, language: LanguageName) -> None:
    samples = {fact: sample(code.name, fact) for fact in NAMED[code.name]}
    sentence = say(Reason(code, {fact: value for fact, (value, _) in samples.items()}), language)
    for fact, (_, readable) in samples.items():
        assert readable in sentence, f"{fact} is not said in: {sentence}"
    assert "?" not in sentence.replace("mean `some-nearest`?", ""), sentence


@pytest.mark.parametrize("language", LANGUAGES)
@pytest.mark.parametrize("problem", Problem)
def test_every_problem_says_all_its_facts(problem: Problem, language: LanguageName) -> None:
    samples = {fact: sample(problem.name, fact) for fact in NAMED_BY_PROBLEM[problem.name]}
    facts = {fact: value for fact, (value, _) in samples.items()}
    sentence = say(because(Code.BAD_VALUE, at="memory", problem=problem.value, **facts), language)
    for fact, (_, readable) in samples.items():
        assert readable in sentence, f"{fact} is not said in: {sentence}"
    assert problem.value not in sentence
    assert sentence == say(because(Code.BAD_VALUE, at="memory", problem=problem, **facts), language)


@pytest.mark.parametrize("language", [en, zh], ids=["en", "zh"])
def test_the_tables_are_complete(language: Any) -> None:
    assert set(language.SENTENCES) == set(Code)
    assert set(Problem) <= set(language.PROBLEMS)
    assert set(language.STATES) == set(State)


@pytest.mark.parametrize("code", Code)
def test_chinese_is_chinese_and_english_is_not(code: Code) -> None:
    chinese, english = say(Reason(code), "zh"), say(Reason(code), "en")
    assert chinese != english
    assert not re.search(r"[\u4e00-\u9fff，。：；（）]", english)
    assert re.search(r"[\u4e00-\u9fff]", chinese) or chinese == "?。"


@pytest.mark.parametrize("language", LANGUAGES)
@pytest.mark.parametrize("code", Code)
def test_a_reason_without_any_facts_still_reads_well(code: Code, language: LanguageName) -> None:
    sentence = say(Reason(code), language)
    assert sentence
    assert not re.search(r"[\[\]{}]|None|  |\(\)|（）| \.|: \.", sentence), sentence


hostile = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=True, allow_infinity=True)
    | st.text()
    | st.sampled_from(
        ["\x1b[31mred", "\x1b]0;title\x07", "{by}", "[{by}]", "{0}", "%s", "\u202eevil", "a\nb\r", "9" * 99]
    ),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=5), inner, max_size=4),
    max_leaves=8,
)
every_fact = sorted(
    {fact for named in [*NAMED.values(), *NAMED_BY_PROBLEM.values()] for fact in named} | {"line", "column"}
)


@unhurried
@given(
    code=st.sampled_from(Code),
    facts=st.dictionaries(st.sampled_from(every_fact), hostile, max_size=8),
    language=st.sampled_from(LANGUAGES),
)
@example(Code.BACK_OFF, {"until": 1e300, "cause": {"code": "gone.code", "facts": 7}}, "en")
@example(Code.OVER_QUOTA, {"used": 10**5000, "limit": float("nan"), "resource": "cpu", "scope": []}, "zh")
@example(Code.TIME_UP, {"seconds": float("inf")}, "zh")
@example(Code.EXIT_CODE, {"exit_code": []}, "en")
def test_no_facts_break_a_sentence_or_a_terminal(code: Code, facts: dict[str, Any], language: LanguageName) -> None:
    sentence = say(Reason(code, facts), language)
    assert sentence
    assert len(sentence) < 5000
    for character in sentence:
        assert unicodedata.category(character) not in ("Cc", "Cf", "Cs"), ascii(sentence)
    sentence.encode()


def test_a_fact_cannot_bring_its_own_template() -> None:
    assert say(because(Code.STOPPED, by="{action} [x]"), "en") == "Stopped by {action} [x]."


def test_colours_and_window_titles_are_taken_out() -> None:
    name = "\x1b[31mann\x1b[0m\x1b]0;owned\x07\x9b5m\x1b(B bob\r\n\u202e"
    assert say(because(Code.STOPPED, by=name), "en") == "Stopped by ann bob."


def test_a_cause_inside_a_cause_is_said_but_not_without_end() -> None:
    reason = because(Code.EXIT_CODE, exit_code=3)
    for _ in range(50):
        reason = because(Code.RETRY, cause=reason.to_json(), number=1)
    assert len(say(reason, "en")) < 500


@pytest.mark.parametrize("cause", Cause)
def test_a_plain_cause_is_put_into_words(cause: Cause) -> None:
    for language in LANGUAGES:
        assert not say(because(Code.BACK_OFF, cause=cause.value), language).endswith(f": {cause.value}")


@pytest.mark.parametrize(
    ("reason", "english", "chinese"),
    [
        (
            because(
                Code.OVER_QUOTA,
                scope="group",
                who="vision",
                group="vision",
                resource="nvidia",
                used=7000,
                limit=8000,
                asked=2000,
            ),
            "The quota of group vision has not enough left: 7 of 8 nvidia cards in use, this asks for 2.",
            "vision 组的配额剩余不够：上限 8 张 nvidia 卡，已用 7 张 nvidia 卡，这个任务还要 2 张 nvidia 卡。",
        ),
        (
            because(Code.NEVER_FITS, resource="memory", asked=512 << 30, largest=256 << 30, node="gpu01"),
            "each replica asks for 512G of memory, and the largest machine (gpu01) has 256G of memory",
            "每个副本要 512G 内存，而最大的机器 gpu01 只有 256G 内存",
        ),
        (
            because(
                Code.BUSY, resource="cpu", asked=1500, free=1000, node="gpu01", jobs=["a", "b", "c", "d", "e", "f"]
            ),
            "the best machine (gpu01) has 1 core free just now. Running there: a, b, c, d, e and 1 more.",
            "每个副本要 1.5 核，目前最合适的机器 gpu01 空闲 1 核。",
        ),
        (
            because(Code.NEEDS_REPLICAS, asked=16, largest=8, device="nvidia", nodes=20, replicas=2, each=8),
            "ask for 2 replicas with 8 cards each",
            "请改用分布式：申请 2 个副本，每个 8 张卡",
        ),
        (
            because(Code.RETRY, number=1, limit=3, seconds=90.0, cause=because(Code.EXIT_CODE, exit_code=1).to_json()),
            "tried again in 1 minute 30 seconds, retry 1 of 3. Before: The command ended with exit code 1.",
            "1 分钟 30 秒后自动重试：第 1 次，最多 3 次。这次的情况：命令以退出码 1 结束",
        ),
        (
            because(Code.BAD_VALUE, at="memory", line=3, column=9, value="lots", problem=Problem.BYTES.value),
            "line 3, column 9 (memory): `lots` will not do; expected an amount like 512M",
            "第 3 行第 9 列（memory）：`lots` 不行，应当写成 512M",
        ),
        (
            because(Code.TOO_LARGE, what="password", size=2000, limit=1024),
            "2000 characters, at most 1024",
            "共 2000 个字符，最多 1024 个",
        ),
        (
            because(Code.CARD_HELD, node="gpu01", card=0, pid=0, holder="held by python"),
            "Card 0 on gpu01 is free on paper, but something still holds it (held by python). ",
            "gpu01 上的 0 号卡已经释放，但仍被占用（held by python）。",
        ),
    ],
    ids=lambda value: value.code.name if isinstance(value, Reason) else "",
)
def test_sentences_read_as_people_write(reason: Reason, english: str, chinese: str) -> None:
    assert english in say(reason, "en")
    assert chinese in say(reason, "zh")


@pytest.mark.parametrize(
    ("reason", "english", "chinese"),
    [
        (because(Code.CARDS_SIMULATED, cards=1), "The card is simulated", "这 1 张卡是模拟的"),
        (because(Code.CARDS_SIMULATED, cards=2), "The 2 cards are simulated", "这 2 张卡是模拟的"),
        (
            because(Code.NEEDS_REPLICAS, asked=2, largest=1, device="nvidia", nodes=1, replicas=2, each=1),
            "2 replicas with 1 card each. 1 machine is there.",
            "申请 2 个副本，每个 1 张卡。目前共有 1 台机器。",
        ),
        (
            because(Code.NEVER_FITS, resource="cpu", asked=9000, largest=1000, node="", replicas=1),
            "as it is: it asks for 9 cores, and all machines together have 1 core.",
            "一共要 9 核，而所有机器加起来只有 1 核。",
        ),
        (
            because(Code.NEVER_FITS, resource="nvidia", asked=9000, largest=8000, node="", replicas=9),
            "as it is: its 9 replicas together ask for 9 nvidia cards",
            "9 个副本一共要 9 张 nvidia 卡",
        ),
        (
            because(Code.BUSY, resource="nvidia", asked=2000, free=1000),
            "it needs 2 nvidia cards; free just now: 1 nvidia card.",
            "需要 2 张 nvidia 卡，目前空闲 1 张 nvidia 卡。",
        ),
    ],
)
def test_one_is_one_and_several_are_several(reason: Reason, english: str, chinese: str) -> None:
    assert english in say(reason, "en")
    assert chinese in say(reason, "zh")


def test_where_there_are_no_cards_at_all_a_way_to_try_it_is_told() -> None:
    for language in LANGUAGES:
        nothing = say(because(Code.NO_SUCH_DEVICE, device="nvidia", known=[]), language)
        assert "`yard up --simulate-cards 8`" in nothing
        assert "--simulate-cards" not in say(because(Code.NO_SUCH_DEVICE, device="ascend", known=["nvidia"]), language)


@pytest.mark.parametrize(
    ("facts", "english", "chinese"),
    [
        ({"what": "attempt", "there": 0}, "it has not been started yet", "它还没有启动过"),
        ({"what": "attempt", "there": 1}, "it has attempt 1 only", "只运行过 1 次"),
        ({"what": "attempt", "there": 3}, "it has attempts 1 to 3", "第 1 次到第 3 次"),
        ({"what": "replica", "there": ["worker-0"]}, "its only replica is worker-0", "它的副本是：worker-0"),
        ({"what": "replica", "there": ["a-0", "b-0"]}, "its replicas are a-0, b-0", "它的副本是：a-0、b-0"),
    ],
)
def test_who_looks_for_the_wrong_one_is_told_which_there_are(facts: Any, english: str, chinese: str) -> None:
    reason = because(Code.NOT_FOUND, name="7", **facts)
    assert english in say(reason, "en")
    assert chinese in say(reason, "zh")


def test_what_cannot_be_done_to_a_job_names_the_job() -> None:
    facts = {"id": "k4", "name": "train", "action": "pause"}
    assert say(because(Code.WRONG_STATE, state="stopping", **facts), "en").startswith("train (k4) is stopping now")
    ended = because(Code.WRONG_STATE, state="failed", **facts)
    assert say(ended, "en").startswith("train (k4) has already ended (failed)")
    assert say(ended, "zh").startswith("train（k4）已经结束（失败）")


CHINESE_NEXT_TO_LATIN = re.compile(r"[\u4e00-\u9fff][A-Za-z0-9`]|[A-Za-z0-9`][\u4e00-\u9fff]")
KNOWN_NOUNS = {"what": "user", "action": "stop", "state": "paused", "kind": "job", "role": "member", "above": "lead"}


def facts_for(name: str, named: tuple[str, ...], **more: Any) -> dict[str, Any]:
    return {fact: KNOWN_NOUNS.get(fact, sample(name, fact)[0]) for fact in named} | more


@pytest.mark.parametrize("code", Code)
def test_a_blank_stands_between_chinese_and_latin_words(code: Code) -> None:
    named = NAMED[code.name]
    for more in ({}, {"scope": "group"}, {"node": ""}, {"node": "", "replicas": 3}, {"quota": "nvidia"}, {"pid": 7}):
        sentence = say(Reason(code, facts_for(code.name, named, **more)), "zh")
        assert not CHINESE_NEXT_TO_LATIN.search(sentence), sentence
    for left_out in named:
        facts = facts_for(code.name, named)
        del facts[left_out]
        sentence = say(Reason(code, facts), "zh")
        assert not CHINESE_NEXT_TO_LATIN.search(sentence), sentence


@pytest.mark.parametrize("problem", list(zh.PROBLEMS))
def test_a_blank_stands_between_chinese_and_latin_words_in_problems_too(problem: str) -> None:
    name = problem.name if isinstance(problem, Problem) else ""
    facts = facts_for(name, NAMED_BY_PROBLEM.get(name, ()))
    for given_facts in (facts, {}):
        sentence = say(because(Code.BAD_VALUE, at="memory", problem=problem, **given_facts), "zh")
        assert not CHINESE_NEXT_TO_LATIN.search(sentence), sentence


def test_what_the_parsers_of_amounts_say_is_told_in_chinese_too() -> None:
    told = re.findall(r'raise ValueError\("([^"]+)"\)', inspect.getsource(resources))
    assert len(told) >= 9
    for text in set(told) - {"cards are whole, or a share of one card below 1"}:
        assert re.search(r"[\u4e00-\u9fff]", say(because(Code.BAD_VALUE, problem=text), "zh").rstrip("。"))


@pytest.mark.parametrize("state", State)
def test_states_have_a_short_name_in_both_languages(state: State) -> None:
    assert state_word(state, "en") == state.value
    assert re.fullmatch(r"[\u4e00-\u9fff]{2,4}", state_word(state, "zh"))


@pytest.mark.parametrize(
    ("header", "language"),
    [
        ("", "en"),
        ("zh", "zh"),
        ("zh-CN,zh;q=0.9,en;q=0.8", "zh"),
        ("zh-TW", "zh"),
        ("zh_CN.UTF-8", "zh"),
        ("en-US,en;q=0.9,zh;q=0.8", "en"),
        ("fr,zh;q=0.5", "zh"),
        ("de, fr", "en"),
        ("en;q=0.1, zh;q=0.2", "zh"),
        ("zh;q=0", "en"),
        ("*", "en"),
        ("zh;q=nan", "en"),
        ("zhuang", "en"),
        (";;;,,,q=", "en"),
    ],
)
def test_the_language_is_picked_by_preference(header: str, language: str) -> None:
    assert pick_language(header) == language


@unhurried
@given(st.text())
def test_any_header_picks_a_language(header: str) -> None:
    assert pick_language(header) in LANGUAGES


def test_one_that_saved_nothing_is_told_that_all_is_lost_and_what_helps() -> None:
    told = because(Code.PREEMPTED, by="k4", rule="priority", lost_seconds=7200.0, ran_seconds=7200.0, saved=False)
    assert "had saved nothing" in say(told, "en")
    assert all("`checkpoint:`" in say(told, language) for language in LANGUAGES)
    assert "last checkpoint" not in say(told, "en")


@pytest.mark.parametrize("language", LANGUAGES)
def test_nobody_is_called_by_a_question_mark(language: LanguageName) -> None:
    for code, names in ((Code.RULE_PEOPLE, ("who",)), (Code.RULE_USER_SHARE, ("user", "other_user"))):
        facts = {**dict.fromkeys(names, ""), "place": 2, "use": 1.0, "other_use": 2.0, "group": "vision"}
        sentence = say(Reason(code, facts), language)
        assert "?" not in sentence
        assert sentence[0] not in " ，"


def test_a_quota_that_is_not_full_is_not_called_used_up() -> None:
    facts = {"scope": "group", "who": "vision", "resource": "nvidia", "limit": 64000}
    some = say(because(Code.OVER_QUOTA, **facts, used=40000, asked=32000), "en")
    assert "has not enough left: 40 of 64 nvidia cards in use, this asks for 32" in some
    assert "is used up" in say(because(Code.OVER_QUOTA, **facts, used=64000, asked=1000), "en")


def test_the_numbers_of_fair_share_are_told_as_they_are_counted() -> None:
    facts = {"group": "a", "use": 1.5, "other_group": "b", "other_use": 3.0, "ahead": 3600.0}
    plain = say(because(Code.RULE_SHARE, **facts), "en")
    assert "counted use" in plain
    assert "running work counts for the next 1 h too" in plain
    assert "weight" not in plain
    assert "The use of b is divided by its weight, 2." in say(because(Code.RULE_SHARE, **facts, other_weight=2.0), "en")


def test_a_machine_that_is_not_there_is_called_by_its_name() -> None:
    told = say(because(Code.NO_SUCH_NODE, nodes=["sim-99"], labels=[]), "en")
    assert "there is no machine sim-99" in told


def test_cards_that_are_free_without_cores_beside_them_are_not_called_apart() -> None:
    told = say(because(Code.MOVES_FACT, moves=0, nodes=[], mode="propose", lacks="cpu"), "en")
    assert "without enough cores beside them" in told
    assert "not together" not in told
    assert "CPU 核" in say(because(Code.MOVES_FACT, moves=0, nodes=[], mode="propose", lacks="cpu"), "zh")


def test_whom_to_ask_is_somebody_who_could_help() -> None:
    told = {
        whom: say(because(Code.NOT_ALLOWED, action="policy.change", whom=whom), "en") for whom in ("", "admin", "token")
    }
    assert told[""].endswith("Ask the group's lead or an admin.")
    assert told["admin"].endswith("Ask an admin.")
    assert "wider scope" in told["token"]


def test_one_run_is_not_spoken_of_as_many() -> None:
    told = [say(because(Code.GUESS_HISTORY, runs=runs, least=8), "en") for runs in (0, 1, 2)]
    assert ["no run has ended" in told[0], "1 run has ended" in told[1], "2 runs have ended" in told[2]] == [True] * 3


def test_another_ones_work_is_told_by_its_id_alone() -> None:
    told = say(
        because(Code.JOB_FACT, job="k4", job_name="", owner="", group="vision", cards=2000, device="nvidia"), "en"
    )
    assert told.startswith("k4, group vision, holds 2 nvidia cards")


def test_chinese_has_no_bracket_after_a_bracket() -> None:
    whose = {"by_owner": "ann", "by_group": "vision", "owner": "ann", "group": "vision"}
    for code, facts in (
        (Code.PREEMPTED, {"by": "k4", "by_name": "urgent"}),
        (Code.JOB_FACT, {"job": "k4", "job_name": "long"}),
    ):
        assert "）（" not in say(because(code, **facts, **whose), "zh")
