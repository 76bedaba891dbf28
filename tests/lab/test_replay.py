"""The lab's one command: tables to read, the same as JSON, plots in a folder; and worlds that come from a seed."""

from __future__ import annotations

import json
import re
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import pytest
from lab.compare import CURVE_POINTS, DEFAULT, STRICT, curves, limited, measure
from lab.itp import case_of, nodes_for, read
from lab.lines import Line
from lab.made_up import case_of as made_up
from lab.replay import main
from lab.report import (
    DAYS,
    HOURS,
    MINUTES,
    SECONDS,
    Report,
    Table,
    Unit,
    counted,
    shown,
    unit_of_axis,
    unit_of_table,
)
from lab.synthetic import Habit, nodes, work
from tests.draw import a_job, a_node
from tests.journal.yard import JournalYard

from gpuyard.dialects.policy import to_text
from gpuyard.domain.policy import DAY, HOUR, Ordering, Policy
from gpuyard.domain.workload import Wanted
from gpuyard.rehearsal.results import Result, Timeline
from gpuyard.store.database import Database

ROWS = """job_id,submission_time,duration,num_gpu
c,300,50,1
a,100,1000,8
b,200,100,16
d,40000,10,1
"""


@pytest.fixture
def traces(tmp_path: Path) -> Path:
    (tmp_path / "itp").mkdir()
    (tmp_path / "itp" / "cluster01.csv").write_text(ROWS, encoding="utf-8")
    (tmp_path / "itp" / "cluster02.csv").write_text(ROWS, encoding="utf-8")
    return tmp_path


def test_a_trace_is_read_by_time_and_its_cluster_holds_the_largest_job(traces: Path) -> None:
    jobs = read(traces / "itp" / "cluster01.csv")

    assert [job.submitted for job in jobs] == [100, 200, 300, 40_000]
    assert nodes_for(jobs) == 2
    heavy = [job._replace(seconds=job.seconds * 1000) for job in jobs]
    load = sum(job.seconds * job.cards for job in heavy) / (40_000 - 100)
    assert (nodes_for(heavy) - 1) * 8 * 0.85 < load <= nodes_for(heavy) * 8 * 0.85


def test_strict_order_makes_the_small_one_wait_for_the_gang(traces: Path) -> None:
    case = case_of(traces / "itp" / "cluster01.csv")

    strict, ours = measure(case, STRICT), measure(case, DEFAULT)

    assert strict.summary.over == ours.summary.over == 4
    assert strict.summary.wait.most == ours.summary.wait.most == 900
    assert strict.waits[-1] == 900


def test_curves_are_means_of_stretches_of_equal_length_however_moments_round() -> None:
    timeline = Timeline()
    for at, busy, waiting in ((0.0, 0, 5), (0.1, 500, 7), (0.7, 1000, 2), (2.1, 1000, 0)):
        timeline.note(at, busy, 1000, waiting)

    used, queue = curves(Result([], timeline, 0, 0.0, 2.1))

    assert len(used) == len(queue) == CURVE_POINTS
    assert max(waiting for _, waiting in queue) == 7
    assert sum(waiting for _, waiting in queue) / CURVE_POINTS == pytest.approx((0.5 + 4.2 + 2.8) / 2.1, abs=0.01)
    assert sum(part for _, part in used) / CURVE_POINTS == pytest.approx((0.3 + 1.4) / 2.1, abs=0.001)


def test_what_is_told_as_the_longest_time_is_enough_and_from_the_list(traces: Path) -> None:
    told = [limited(arrival) for arrival in case_of(traces / "itp" / "cluster01.csv").arrivals]

    assert [one.workload.spec.max_seconds for one in told] == [1800, 600, 600, 600]


def test_the_command_prints_tables_and_writes_plots(traces: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["itp", str(traces), "--only", "cluster01", "--plots", str(traces / "plots")]) == 0

    out = capsys.readouterr().out
    assert "cluster01" in out
    assert "cluster02" not in out
    assert "measured on:" in out
    assert {path.name for path in (traces / "plots").iterdir()} >= {"itp-waits.svg", "itp-cluster01-use.svg"}


def test_the_command_tells_the_same_as_json(traces: Path, capsys: pytest.CaptureFixture[str]) -> None:
    main(["itp", str(traces), "-o", "json"])

    told = json.loads(capsys.readouterr().out)
    assert {row["trace"] for row in told["tables"][0]["rows"]} == {"cluster01", "cluster02"}
    assert all(row["jobs"] == row["over"] == 4 for row in told["tables"][0]["rows"])
    assert [promise["kept"] for promise in told["promises"]] == [True, True]


def test_several_processes_find_the_same(traces: Path, capsys: pytest.CaptureFixture[str]) -> None:
    def rows(*more: str) -> list[object]:
        main(["itp", str(traces), "-o", "json", *more])
        found = json.loads(capsys.readouterr().out)["tables"][0]["rows"]
        return [{name: cell for name, cell in row.items() if name not in ("seconds", "jobs/s")} for row in found]

    assert rows("--processes", "2") == rows()


def test_a_trace_needs_its_folder(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["itp"]) == 2
    assert "which folder" in capsys.readouterr().err


def test_a_missed_promise_is_said_and_returned() -> None:
    report = Report("x", lines=[Line("a", 2.0, 1.0, "s")])

    assert "MISS" in str(report)
    assert report.to_json()["promises"] == [{"what": "a", "value": 2.0, "promised": 1.0, "unit": "s", "kept": False}]


def test_columns_are_aligned_and_numbers_have_the_digits_that_mean_something() -> None:
    told = str(Table("t", ("name", "n"), [("one", 1.234), ("three", 12345.6)])).splitlines()

    assert told[1:] == ["name        n", "-----  ------", "one      1.23", "three  12,346"]
    assert [shown(cell) for cell in (None, 0.5, 150.25, 1_000_000, "x")] == ["-", "0.50", "150.2", "1,000,000", "x"]
    assert [counted(number, "job") for number in (0, 1, 2000)] == ["0 jobs", "1 job", "2,000 jobs"]


# --- made up --------------------------------------------------------------------------------------------------------


def test_the_same_seed_gives_the_same_world_and_another_one_another() -> None:
    cluster = nodes()

    assert work(7, cluster, Habit(), days=2) == work(7, cluster, Habit(), days=2)
    assert work(7, cluster, Habit(), days=2) != work(8, cluster, Habit(), days=2)


def test_made_up_work_comes_in_order_fits_and_is_about_as_much_as_asked_for() -> None:
    cluster = nodes()
    cards = sum(len(node.cards) for node in cluster)
    came = work(3, cluster, Habit(load=0.6), days=20)

    times = [arrival.workload.submitted_at for arrival in came]
    assert times == sorted(times)
    assert len({arrival.workload.id for arrival in came}) == len(came)
    load = sum(a.seconds * _cards(a.workload.spec.roles[0]) for a in came) / (cards * 20 * DAY)
    assert 0.6 <= load < 0.9
    owners = [arrival.workload.owner for arrival in came]
    assert owners.count("user01") > owners.count("user20")
    assert any(arrival.workload.spec.roles[0].replicas > 1 for arrival in came)


def _cards(role: object) -> float:
    return role.replicas * role.resources.cards.milli / 1000  # type: ignore[attr-defined, no-any-return]


def test_all_made_up_work_comes_to_its_end() -> None:
    found = measure(made_up(5, 150), DEFAULT)

    assert found.summary.over == found.summary.started == 150


# --- one's own ------------------------------------------------------------------------------------------------------


@pytest.fixture
def past(tmp_path: Path) -> Path:
    """A minute and a half of a platform. The last one was paused for a while before it started."""
    with closing(Database.open(f"sqlite:///{tmp_path}/yard.db")) as database:
        yard = JournalYard(database, [a_node("a", 4)], tmp_path / "journal")
        for number, owner in enumerate(("ann", "ann", "bob")):
            made = a_job(f"job000000{number}", cards=4, env=(("YARD_SIM_SECONDS", "20"),))
            last = yard.submit(replace(made, owner=owner))
            yard.pass_time(1.0)
        yard.want(last, Wanted.PAUSE)
        for second in range(90):
            if second == 5:
                yard.want(last, Wanted.RUN)
            yard.pass_time(1.0, steps=2)
        yard.crash()
        yard.close()
    return tmp_path


def test_the_past_of_a_platform_is_compared_under_other_policies(
    past: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    other = tmp_path / "by-age.json"
    other.write_text(to_text(Policy(order=Ordering(fair_share=False))), encoding="utf-8")

    assert main(["own", str(past), "--policy", str(other), "-o", "json"]) == 0

    rows = json.loads(capsys.readouterr().out)["tables"][0]["rows"]
    assert [row["rule"] for row in rows] == ["as it is", "by-age", "strict order"]
    assert {row["jobs"] for row in rows} == {row["over"] for row in rows} == {3}


def test_a_past_of_minutes_is_told_and_drawn_in_seconds(past: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["own", str(past), "-o", "json", "--plots", str(past / "plots")]) == 0

    row = json.loads(capsys.readouterr().out)["tables"][0]["rows"][0]
    assert row["wait mean s"] == pytest.approx((0 + 20 + 35) / 3, abs=4)
    assert row["completion mean s"] == pytest.approx(row["wait mean s"] + 20, abs=4)
    drawn = next((past / "plots").glob("own-*-use.svg")).read_text(encoding="utf-8")
    (line, *_) = re.findall(r'class="line s0" d="([^"]*)"', drawn)
    places = re.findall(r"[ML]([\d.]+) ", line)
    assert len(set(places)) == len(places) == CURVE_POINTS
    assert ">seconds</text>" in drawn


@pytest.mark.parametrize(
    ("span", "axis", "table"),
    [(90, SECONDS, SECONDS), (1800, MINUTES, SECONDS), (3 * HOUR, HOURS, MINUTES), (60 * DAY, DAYS, HOURS)],
)
def test_the_unit_of_time_goes_by_how_long_it_was(span: float, axis: Unit, table: Unit) -> None:
    assert (unit_of_axis(span), unit_of_table(span)) == (axis, table)


def test_months_are_told_in_hours_and_drawn_over_days(traces: Path, capsys: pytest.CaptureFixture[str]) -> None:
    late = ROWS + "e,5000000,3600,1\n"
    (traces / "itp" / "cluster01.csv").write_text(late, encoding="utf-8")

    main(["itp", str(traces), "--plots", str(traces / "plots")])

    told = capsys.readouterr().out
    assert "wait mean h" in told
    assert "completion mean h  median h  p90 h" in told
    assert "lost card-h" in told
    assert ">days</text>" in (traces / "plots" / "itp-cluster01-use.svg").read_text(encoding="utf-8")
    assert ">hours</text>" in (traces / "plots" / "itp-waits.svg").read_text(encoding="utf-8")


# --- what will not do -----------------------------------------------------------------------------------------------


def refused(capsys: pytest.CaptureFixture[str], *arguments: str) -> str:
    """The one line that says why."""
    try:
        code: object = main(list(arguments))
    except SystemExit as ended:
        code = ended.code
    said = capsys.readouterr().err
    assert code == 2
    assert said.count("\n") == 1
    return said


def test_a_folder_without_a_journal_is_said(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert "no journal" in refused(capsys, "own", str(tmp_path))
    assert "no journal" in refused(capsys, "own", str(tmp_path / "nowhere"))


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("placing: sprad\n", "did you mean `spread`"),
        ("placing: sprad\nbackfil: 3\n", "and 1 other problem"),
        ("", "holds no rules; write one with `yard policy show"),
        ("# nothing\n", "holds no rules"),
        ("just words\n", "holds no rules"),
        ("order: [\n", "not valid YAML"),
    ],
)
def test_a_policy_that_will_not_do_is_told_in_one_line(
    text: str, said: str, past: Path, traces: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = past / "b1.yaml"
    file.write_text(text, encoding="utf-8")

    for name, folder in (("own", past), ("itp", traces)):
        told = refused(capsys, name, str(folder), "--policy", str(file))
        assert said in told
        assert str(file) in told
        assert "train.py" not in told  # that is for job files


def test_a_policy_that_is_not_there_is_told_in_one_line(past: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert "/nofile cannot be read: No such file" in refused(capsys, "own", str(past), "--policy", "/nofile")
    assert "cannot be read: Is a directory" in refused(capsys, "own", str(past), "--policy", str(past))


def test_none_of_a_trace_is_too_few(traces: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for few in ("0", "-3", "some"):
        assert "from 1 on" in refused(capsys, "itp", str(traces), "--most", few)


def test_a_trace_that_is_not_there_is_told_with_those_that_are(
    traces: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    said = refused(capsys, "itp", str(traces), "--only", "cluster01", "cluster99")
    assert "there is no cluster99; there is cluster01, cluster02" in said
    for name in ("muri", "estimates", "openb"):
        assert "there is no trace99" in refused(capsys, name, str(traces), "--only", "trace99")
    assert "no cluster*.csv in" in refused(capsys, "itp", str(tmp_path / "nowhere"))


def test_a_trace_that_is_empty_or_another_one_is_said(traces: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = traces / "itp" / "cluster01.csv"
    file.write_text(ROWS.splitlines()[0] + "\n", encoding="utf-8")
    assert "cluster01.csv holds no jobs" in refused(capsys, "itp", str(traces))
    file.write_text("a,b\n1,2\n", encoding="utf-8")
    assert "needs submission_time" in refused(capsys, "itp", str(traces))


def test_what_a_replay_has_no_use_for_is_refused(past: Path, capsys: pytest.CaptureFixture[str]) -> None:
    said = refused(capsys, "own", str(past), "--only", "foo", "--seeds", "1")
    assert "no use for --only, --seeds here" in said
    assert "--policy" in said


def test_plots_that_cannot_be_written_are_said(past: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (past / "taken").write_text("", encoding="utf-8")
    assert "taken: File exists" in refused(capsys, "own", str(past), "--plots", str(past / "taken"))
