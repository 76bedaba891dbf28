"""The picture control thinks with: it notices by itself when it is wrong, and takes in a flood piece by piece."""

from __future__ import annotations

from dataclasses import replace

from tests.control.yard import Yard
from tests.draw import a_job, a_node

from gpuyard.domain.workload import State
from gpuyard.store.database import Database
from gpuyard.world.picture import FEED_PAGE, Picture


def test_a_picture_that_went_wrong_is_repaired_and_names_what_was_wrong(database: Database) -> None:
    yard = Yard(database, [a_node("a", 8)])
    kept, lost = yard.submit(a_job("kept000001")), yard.submit(a_job("lost000001"))
    picture = Picture(database)
    picture.follow()
    ghost = replace(a_job("ghost00001"), version=3)
    wrong = replace(picture.live[lost], state=State.PAUSED, version=7)
    picture.wrote(picture.position, picture.position, [ghost, wrong])
    picture.nodes = (a_node("b", 1),)
    assert picture.audit() == [f"workload {lost}", "workload ghost00001", "nodes"]
    assert {id: workload.state for id, workload in picture.live.items()} == {kept: State.QUEUED, lost: State.QUEUED}
    assert picture.audit() == []
    yard.close()


def test_a_flood_of_changes_is_taken_in_piece_by_piece(database: Database) -> None:
    yard = Yard(database, [a_node("a", 8)])
    picture = Picture(database)
    picture.follow()
    for number in range(5):
        yard.submit(a_job(f"flood{number:05d}"))
    assert not picture.follow(FEED_PAGE)
    assert len(picture.live) == 5
    yard.submit(a_job("more000001"))
    assert picture.follow(1)
    assert not picture.follow(1)
    assert len(picture.live) == 6
    yard.close()
