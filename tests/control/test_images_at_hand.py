"""What an engine says of its images reaches the place that work is given, and the story its owner reads."""

from __future__ import annotations

from dataclasses import replace

from tests.control.yard import Yard
from tests.draw import a_job, a_node

from gpuyard.api.views import node_out
from gpuyard.domain.reasons import Code
from gpuyard.domain.workload import Workload
from gpuyard.store import nodes as node_rows
from gpuyard.store.database import Database
from gpuyard.words import say

IMAGE = "docker.io/pytorch/pytorch:2.4"


def in_image(job: Workload) -> Workload:
    roles = tuple(replace(role, image="pytorch/pytorch:2.4") for role in job.spec.roles)
    return replace(job, spec=replace(job.spec, roles=roles))


def placed_on(yard: Yard, id: str) -> list[str]:
    attempt = yard.get(id).attempt
    return [replica.allotment.node for replica in attempt.replicas] if attempt else []


def test_work_goes_where_its_image_is_and_its_story_says_so(database: Database) -> None:
    yard = Yard(database, [a_node("a", 8), a_node("b", 8), a_node("c", 8)])
    yard.pass_time()
    books = yard.control.picture.books
    yard.engine.hold_images("c", IMAGE)
    yard.pass_time()
    assert yard.control.picture.books is books  # they need not be made anew for an image
    id = yard.submit(in_image(a_job(cards=8)))
    yard.pass_time()
    assert placed_on(yard, id) == ["c"]
    (line,) = [line.reason for line in yard.story(id) if line.reason.code is Code.PLACED]
    assert line.facts["images"] == ["pytorch/pytorch:2.4"]
    assert "on c for attempt 1, with pytorch/pytorch:2.4 at hand;" in say(line, "en")
    assert "已有镜像 pytorch/pytorch:2.4" in say(line, "zh")
    with database.read() as conn:
        assert [node_out(node, None).images for node in node_rows.all(conn)] == [[], [], [IMAGE]]
    yard.close()


def test_where_the_image_makes_no_difference_nothing_is_said_of_it(database: Database) -> None:
    yard = Yard(database, [a_node("a", 8), a_node("b", 8)])
    id = yard.submit(in_image(a_job(cards=8)))
    yard.pass_time()
    assert placed_on(yard, id) == ["a"]
    (line,) = [line.reason for line in yard.story(id) if line.reason.code is Code.PLACED]
    assert "images" not in line.facts
    yard.close()
