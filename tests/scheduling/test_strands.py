"""Who asks for so much that cards beside it are of no use to anybody is told so."""

from __future__ import annotations

from tests.draw import a_job, a_node

from gpuyard.scheduling.strands import kinds, strands
from gpuyard.words import say

NODE = a_node("gpu01", cards=8, cpu=64, memory_gib=512)


def test_one_card_with_nearly_all_cores_strands_the_others_and_is_told_how_many() -> None:
    [note] = strands(a_job(cards=1, cpu=62).spec, [NODE])
    assert note.facts == {"resource": "cpu", "asked": 62000, "share": 8000, "cards": 5, "node": "gpu01"}
    assert "leaves 5 cards that nobody can use" in say(note, "en")
    assert "会有 5 张卡因此没人能用" in say(note, "zh")


def test_nearly_all_memory_strands_cards_too() -> None:
    [note] = strands(a_job(cards=2, memory_gib=500).spec, [NODE])
    assert note.facts["resource"] == "memory"
    assert note.facts["cards"] == 5  # 12G are left, an eighth of the fair share is 8G: enough for one of six
    assert note.facts["share"] == 128 << 30


def test_a_fair_share_and_twice_of_it_strand_nothing() -> None:
    for job in (a_job(cards=1), a_job(cards=1, cpu=8), a_job(cards=1, cpu=16, memory_gib=128), a_job(cpu=63)):
        assert strands(job.spec, [NODE]) == []


def test_a_fair_share_strands_nothing_where_there_are_fewer_cores_than_cards() -> None:
    small = a_node("small", cards=8, cpu=2, memory_gib=24)
    assert strands(a_job(cards=1, memory_gib=2).spec, [small]) == []
    [note] = strands(a_job(cards=1, cpu=1).spec, [small])
    assert note.facts["cards"] == 3  # one core is left, a quarter of one for each: enough for four of seven


def test_the_whole_node_strands_nothing_however_much_it_asks() -> None:
    assert strands(a_job(cards=8, cpu=64, memory_gib=512).spec, [NODE]) == []


def test_several_replicas_on_one_node_are_counted_together() -> None:
    [note] = strands(a_job(cards=1, cpu=16, replicas=8).spec, [NODE])
    assert note.facts["cards"] == 4


def test_where_another_kind_of_node_is_not_stranded_nothing_is_said() -> None:
    large = a_node("big", cards=8, cpu=256, memory_gib=2048)
    assert strands(a_job(cards=1, cpu=62).spec, [NODE, large]) == []
    assert len(strands(a_job(cards=1, cpu=62).spec, [NODE])) == 1


def test_nodes_alike_are_looked_at_once() -> None:
    alike = [a_node(f"gpu{n}", cards=8) for n in range(5)]
    assert kinds([*alike, a_node("cpu01")]) == (alike[0],)
