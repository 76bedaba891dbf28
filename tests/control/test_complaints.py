"""What users of a platform like this complained about, played through, and what they read here in both languages.

The Chinese headings are their own words.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from dataclasses import replace

import pytest
from tests.control.yard import Yard
from tests.draw import a_job, a_node

from gpuyard.api.views import node_out, use_by_node
from gpuyard.dialects.policy import to_text
from gpuyard.domain.people import Quota
from gpuyard.domain.policy import Ordering, Placing, Policy
from gpuyard.domain.reasons import Code, Reason
from gpuyard.domain.resources import GIB
from gpuyard.domain.workload import State, Wanted, Workload
from gpuyard.scheduling.before import Answer, Past
from gpuyard.scheduling.snapshot import Remedy, Sort, Why
from gpuyard.store import merging, sharing
from gpuyard.store import nodes as node_rows
from gpuyard.store.database import Database
from gpuyard.words import remedy_words, say
from gpuyard.world.view import View

LONG = (("YARD_SIM_SECONDS", "100000"),)


class Desk:
    """A platform of two machines with eight cards each, and someone who answers questions about it."""

    def __init__(self, yard: Yard) -> None:
        self.yard = yard
        self.view = View(yard.database, lambda: yard.time)

    def submit(self, job: Workload) -> str:
        role = replace(job.spec.roles[0], env=LONG)
        self.yard.submit(replace(job, spec=replace(job.spec, roles=(role,))))
        self.yard.pass_time()
        return job.id

    def why(self, id: str) -> Why:
        found = self.view.why(id, True, ())
        assert found is not None, self.yard.get(id)
        return found

    def before(self, one: str, two: str) -> Answer:
        return self.view.before(*(Past(self.yard.get(id), tuple(self.yard.story(id))) for id in (one, two)))

    def nodes_of(self, id: str) -> set[str]:
        attempt = self.yard.get(id).attempt
        assert attempt is not None
        return {replica.allotment.node for replica in attempt.replicas}

    def cards_of(self, id: str) -> list[int]:
        attempt = self.yard.get(id).attempt
        assert attempt is not None
        return [share.index for replica in attempt.replicas for share in replica.allotment.cards]

    def set_policy(self, policy: Policy) -> None:
        with self.yard.database.write() as conn:
            sharing.set_policy_text(conn, to_text(policy))


@pytest.fixture
def desk(database: Database) -> Iterator[Desk]:
    with closing(Yard(database, [a_node("gpu01", 8), a_node("gpu02", 8)])) as yard:
        yard.pass_time()
        yield Desk(yard)


def reads(reason: Reason, english: str, chinese: str) -> None:
    assert english in say(reason, "en")
    assert chinese in say(reason, "zh")


def offered(remedy: Remedy, english: str, chinese: str) -> None:
    assert remedy_words(dict(remedy.changes), remedy.nodes, "en") == english
    assert remedy_words(dict(remedy.changes), remedy.nodes, "zh") == chinese


# --- 无意义的排队 ---


def test_nobody_queues_for_what_can_never_come(desk: Desk) -> None:
    id = desk.submit(a_job("toolarge01", cards=8, memory_gib=600))
    told = desk.why(id)
    assert told.sort is Sort.NEVER
    reads(
        told.reason,
        "It can never start as it is: each replica asks for 600G of memory, and the largest machine (gpu01) has 512G",
        "按现在的要求永远无法启动：每个副本要 600G 内存，而最大的机器 gpu01 只有 512G 内存",
    )
    offered(
        told.remedies[0],
        "Ask for 512G of memory: it would start on gpu01.",
        "改用 512G 内存：可以在 gpu01 上马上启动。",
    )


def test_nobody_queues_behind_what_can_never_start(desk: Desk) -> None:
    desk.submit(a_job("toolarge01", cards=8, memory_gib=600, priority=900))
    small = desk.submit(a_job("small00001", cards=1))
    assert desk.yard.state(small) is State.RUNNING


# --- 后提交的任务反而跑起来了 ---


def test_why_a_later_job_runs_first_is_answered_with_the_reason_of_the_earlier(desk: Desk) -> None:
    desk.submit(a_job("runs000001", cards=8))
    desk.submit(a_job("runs000002", cards=5))
    earlier = desk.submit(a_job("earlier001", cards=8, cpu=1, memory_gib=10))
    later = desk.submit(a_job("later00001", cpu=2, memory_gib=1))
    assert (desk.yard.state(earlier), desk.yard.state(later)) == (State.QUEUED, State.RUNNING)
    answer = desk.before(later, earlier)
    assert (answer.first, answer.other, answer.rule.code) == (later, earlier, Code.RULE_PASSED)
    reads(
        answer.rule,
        "The other could not start just then (1970-01-12 13:46:40 UTC). Waiting for running work to end: a replica "
        "needs 8 nvidia cards, and the best machine (gpu02) has 3 nvidia cards free just now. Running there: "
        "runs000002.",
        "另一个任务当时（1970-01-12 13:46:40 UTC）还不能启动。正在等别的任务结束：每个副本要 8 张 nvidia 卡，"
        "目前最合适的机器 gpu02 空闲 3 张 nvidia 卡。那里正在运行：runs000002。",
    )


def test_while_both_wait_the_rule_between_them_is_told_with_both_numbers(desk: Desk) -> None:
    desk.submit(a_job("runs000001", cards=8, replicas=2))
    mine = desk.submit(a_job("mine000001", cards=8))
    urgent = desk.submit(a_job("urgent0001", cards=8, priority=700))
    answer = desk.before(urgent, mine)
    assert (answer.first, answer.rule.code) == (urgent, Code.RULE_PRIORITY)
    reads(answer.rule, "Its priority is higher: 700 against 500.", "它的优先级更高：700，对方是 500。")
    assert desk.before(mine, urgent) == answer  # whoever asks, and whichever way round
    assert [ahead.workload for ahead in desk.why(mine).ahead] == [urgent]


# --- 当2个节点分别有8卡，7卡空闲时 ---


def test_with_eight_and_seven_free_cards_a_new_job_takes_the_node_with_seven(desk: Desk) -> None:
    first = desk.submit(a_job("first00001", cards=1))
    second = desk.submit(a_job("second0001", cards=1))
    assert desk.nodes_of(second) == desk.nodes_of(first)
    whole = desk.submit(a_job("whole00001", cards=8))
    assert desk.yard.state(whole) is State.RUNNING


# --- 单机没有足够GPU，多机足够 ---


def test_more_cards_than_a_machine_has_is_told_to_run_distributed(desk: Desk) -> None:
    id = desk.submit(a_job("sixteen001", cards=16))
    told = desk.why(id)
    assert told.sort is Sort.NEVER
    reads(
        told.reason,
        "No single machine has 16 nvidia cards; the largest has 8. Split it over machines: ask for 2 replicas with 8 "
        "cards each.",
        "没有一台机器有 16 张 nvidia 卡，最多的一台只有 8 张。请改用分布式：申请 2 个副本，每个 8 张卡。",
    )
    offered(
        told.remedies[0],
        "Split it into 2 replicas with 8 each, if your program can run distributed: it would start on gpu01, gpu02.",
        "改用分布式：2 个副本，每个 8 张卡（程序要支持分布式）：可以在 gpu01、gpu02 上马上启动。",
    )


def test_cards_that_are_free_on_several_machines_are_offered_as_several_replicas(desk: Desk) -> None:
    for number, node in enumerate(("gpu01", "gpu02")):
        desk.submit(a_job(f"runs00000{number}", cards=5))
        assert node in desk.nodes_of(f"runs00000{number}")
    id = desk.submit(a_job("six0000001", cards=6))
    told = desk.why(id)
    assert told.sort is Sort.BUSY
    assert dict(told.remedies[0].changes) == {"replicas": "2", "cards": "3"}


# --- VC剩余GPU卡数一直在跳跃, 资源监控信息不一致 ---


def test_free_cards_never_jump(desk: Desk) -> None:
    def free() -> float:
        with desk.yard.database.read() as conn:
            nodes = node_rows.all(conn)
        use = use_by_node(desk.view.holding())
        return sum(sum(node_out(node, use.get(node.name)).cards_free.values()) for node in nodes)

    assert free() == 16
    for number, cards in enumerate((3, 0.5, 8, 4), start=1):
        before = free()
        id = desk.submit(a_job(f"job000000{number}", cards=cards))
        assert free() == before - cards
        for _ in range(5):  # looking again and again, and time passing, changes nothing
            desk.yard.pass_time(3)
            assert free() == before - cards
        desk.yard.want(id, Wanted.STOP)
        desk.yard.pass_time()
        assert free() == before


# --- 僵死任务占用卡 ---


def test_a_card_that_something_still_holds_is_named_with_its_process(database: Database) -> None:
    with closing(Yard(database, [a_node("gpu01", 8, held=(3,))])) as yard:
        desk = Desk(yard)
        told = desk.why(desk.submit(a_job("all8000001", cards=8)))
    assert told.sort is Sort.TROUBLE
    reads(
        told.reason,
        "Card 3 on gpu01 is free on paper, but something still holds it (held by pid 7 (python)), process 7.",
        "gpu01 上的 3 号卡已经释放，但仍被占用（held by pid 7 (python)），进程号 7。",
    )
    reads(
        told.facts[0],
        "8 asked, 7 nvidia cards free; #3: held by pid 7 (python)",
        "空闲 7 张 nvidia 卡；#3: held by pid 7",
    )
    assert dict(told.remedies[0].changes)["cards"] == "7"


# --- 为什么会调度不成功？是因为资源不够吗 ---


def test_why_it_is_not_scheduled_tells_quota_from_cards(desk: Desk) -> None:
    desk.yard.set_quota(Quota("vision", "nvidia", 8000))
    desk.submit(a_job("runs000001", cards=6))
    told = desk.why(desk.submit(a_job("more000001", cards=4)))
    assert told.sort is Sort.QUOTA
    quota, job = told.facts
    reads(
        quota,
        "Quota of group vision: 6 nvidia cards in use of at most 8; this asks for 4.",
        "vision 组的配额：已用 6 张 nvidia 卡，上限 8 张 nvidia 卡；这个任务要 4 张 nvidia 卡。",
    )
    reads(
        job,
        "runs000001 of ann, group vision, holds 6 nvidia cards on gpu0",
        "runs000001（用户 ann，vision 组）：占用 6 张",
    )
    offered(told.remedies[0], "Ask for 2 cards: it would start on gpu01.", "改用 2 张卡：可以在 gpu01 上马上启动。")


def test_why_it_is_not_scheduled_goes_machine_by_machine(desk: Desk) -> None:
    desk.submit(a_job("runs000001", cards=8))
    desk.submit(a_job("runs000002", cards=2, memory_gib=500))
    told = desk.why(desk.submit(a_job("waits00001", cards=4, memory_gib=100)))
    assert told.sort is Sort.BUSY
    reads(
        told.facts[0],
        "gpu02: 100G asked, 12G of memory free; running there: runs000002.",
        "gpu02：要 100G 内存，空闲 12G 内存",
    )
    reads(told.facts[1], "gpu01: 4 asked, 0 nvidia cards free; running there: runs000001.", "空闲 0 张 nvidia 卡")
    offered(
        told.remedies[0], "Ask for 12G of memory: it would start on gpu02.", "改用 12G 内存：可以在 gpu02 上马上启动。"
    )


# --- 能够按人，服务器顺序，卡顺序分配算力 ---


def test_by_policy_persons_servers_and_cards_are_served_in_the_order_the_admin_wants(desk: Desk) -> None:
    desk.set_policy(Policy(order=Ordering(people=("bob",)), placing=Placing.IN_ORDER, servers=("gpu02", "gpu01")))
    first = desk.submit(a_job("first00001", cards=2))
    second = desk.submit(a_job("second0001", cards=2))
    assert (desk.nodes_of(first), desk.cards_of(first)) == ({"gpu02"}, [0, 1])
    assert (desk.nodes_of(second), desk.cards_of(second)) == ({"gpu02"}, [2, 3])
    desk.submit(a_job("fills00001", cards=8))
    mine = desk.submit(a_job("mine000001", cards=8))
    bobs = desk.submit(a_job("bobs000001", cards=8, owner="bob"))
    answer = desk.before(bobs, mine)
    assert answer.first == bobs
    reads(
        answer.rule,
        "bob is number 1 on the admin's list of people who come first.",
        "bob 在管理员设定的优先名单上排第 1 位。",
    )


# --- 合并VC，不影响现在执行的任务 ---


def test_merging_groups_leaves_running_work_alone(desk: Desk) -> None:
    id = desk.submit(a_job("runs000001", cards=4))
    with desk.yard.database.write() as conn:
        merging.merge(conn, "vision", "speech", now=desk.yard.time, by="admin", half_life=1e6)
    desk.yard.pass_time(10)
    job = desk.yard.get(id)
    assert (job.state, job.group, job.attempts_made) == (State.RUNNING, "speech", 1)
    line = next(line for line in desk.yard.story(id) if line.reason.code is Code.GROUP_MERGED)
    reads(
        line.reason,
        "Group vision was merged into group speech by admin; it goes on there unchanged.",
        "vision 组已并入 speech 组（由 admin 操作），任务不受影响，继续进行。",
    )


# --- CPU、MEM 上限, Share_MEM限制 ---


def test_what_is_left_open_is_a_fair_share_and_half_of_the_memory_is_shared(desk: Desk) -> None:
    attempt = desk.yard.get(desk.submit(a_job("twocards01", cards=2))).attempt
    assert attempt is not None
    given = attempt.replicas[0].allotment
    assert (given.cpu_milli, given.memory, given.shm) == (16_000, 128 * GIB, 64 * GIB)
    assert all(desk.yard.state(desk.submit(a_job(f"others000{n}", cards=2))) is State.RUNNING for n in range(7))


def test_a_request_that_would_leave_cards_to_nobody_is_told_so(desk: Desk) -> None:
    outlook = desk.view.preview(a_job("greedy0001", cards=1, cpu=62))
    assert outlook.starts
    reads(
        outlook.notes[0],
        "It asks for much for its cards: 62 cores, where the fair share is 8. On gpu01 that leaves 5 cards that nobody",
        "要 62 核，而合理的份额是 8 核。在 gpu01 上会有 5 张卡因此没人能用。",
    )
