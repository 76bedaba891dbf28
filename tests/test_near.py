"""Which tests a change asks for, and which a newcomer can run: told by the sources themselves."""

from __future__ import annotations

import subprocess
from collections.abc import Mapping
from pathlib import Path

import pytest
from tests import fast, near
from tests.links import Links, Tree, is_test, read
from tests.near import PROJECT, Choice, changed_since, choose

# Rooms that the project does not have, so that this file stands on none of its own.
KILN, OVEN, BAKERY = "src/gpuyard/kiln", "src/gpuyard/oven", "src/gpuyard/bakery.py"
MADE_UP = {
    f"{KILN}/__init__.py": "",
    f"{KILN}/clay.py": "",
    f"{KILN}/glaze.py": "def dip():\n    from . import clay",
    f"{OVEN}/bread.py": "from gpuyard.kiln.glaze import dip",
    f"{OVEN}/recipe.txt": "",
    BAKERY: "from gpuyard.oven import bread",
    near.WIRING: "from gpuyard import bakery",
    near.COMMAND: "def up():\n    from gpuyard import wiring",
    "tests/kiln/test_clay.py": "from gpuyard.kiln import clay",
    "tests/kiln/test_other.py": "import gpuyard.kiln.clay",
    "tests/kiln/test_fire.py": "from tests import shop",
    "tests/oven/conftest.py": "@pytest.fixture\ndef loaf():\n    from gpuyard.oven import bread",
    "tests/oven/test_loaf.py": "def test_it(loaf):\n    pass",
    "tests/oven/test_alone.py": "import subprocess",
    "tests/shop/yard.py": f"import subprocess\nsubprocess.run(['-m', {'gpuyard.cli.main'!r}])",
    "tests/shop/test_opening.py": "from tests.shop.yard import a_shop",
    "tests/test_bakery.py": "from gpuyard.bakery import bake",
}


@pytest.fixture(scope="module")
def links() -> dict[str, Links]:
    return Tree(MADE_UP).links()


@pytest.fixture(scope="module")
def project() -> Tree:
    return read(PROJECT)


@pytest.fixture(scope="module")
def real(project: Tree) -> dict[str, Links]:
    return project.links()


def ways(choice: Choice) -> dict[str, int]:
    return {file: why for why, files in choice.chosen.items() for file in files}


def links_of(text: str, **others: str) -> Links:
    tree = {"tests/shop/here.py": text, "tests/shop/corpus/a.yaml": "", "docs/a.md": "", "tests/yard.py": ""}
    return Tree(tree | {f"{KILN}/__init__.py": "", f"{KILN}/clay.py": ""} | others).links()["tests/shop/here.py"]


# --- what a file stands on --------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "file"),
    [
        ("from gpuyard.kiln.clay import Clay", f"{KILN}/clay.py"),
        ("def f():\n    import gpuyard.kiln.clay as c", f"{KILN}/clay.py"),
        ("if TYPE_CHECKING:\n    from gpuyard.kiln import clay", f"{KILN}/clay.py"),
        ("from gpuyard.kiln import Clay", f"{KILN}/__init__.py"),
        ("from ..yard import a_yard", "tests/yard.py"),
        ("HERE = Path(__file__).parent\nfor file in (HERE / 'corpus').iterdir(): pass", "tests/shop/corpus/a.yaml"),
        ("from gpuyard import kiln\nfor file in Path(kiln.__file__).parent.iterdir(): pass", f"{KILN}/clay.py"),
        ("text_of('docs/a.md')", "docs/a.md"),
    ],
)
def test_a_file_stands_on_what_it_imports_and_opens(text: str, file: str) -> None:
    assert file in links_of(text).imports


def test_a_path_is_followed_through_the_constants_of_other_files() -> None:
    other = "from pathlib import Path\nPROJECT = Path(__file__).parents[1]\nPAGES = PROJECT / 'docs'"
    found = links_of("from tests.other import PAGES\n(PAGES / 'a.md').read_text()", **{"tests/other.py": other})
    assert found.imports == {"tests/other.py", "docs/a.md"}


@pytest.mark.parametrize("text", ["run('-m', 'gpuyard.kiln.clay')", "import_module(f'gpuyard.kiln.{name}')"])
def test_what_is_started_or_loaded_by_name_is_a_link_of_its_own(text: str) -> None:
    assert f"{KILN}/clay.py" in links_of(text).starts


@pytest.mark.parametrize("text", ['"""As gpuyard.kiln.clay does, and docs/a.md says."""', "open('gpuyard.db')", "(("])
def test_prose_and_other_names_are_no_links(text: str) -> None:
    assert links_of(text) == Links()


def test_files_that_import_one_another_are_read_all_the_same() -> None:
    here = "from pathlib import Path\nfrom tests.yard import THERE\nHERE = Path(__file__)"
    assert links_of(here, **{"tests/yard.py": "from tests.shop.here import HERE\nTHERE = HERE"}).imports


def test_a_conftest_matters_to_those_who_ask_for_what_it_offers(links: Mapping[str, Links]) -> None:
    assert "tests/oven/conftest.py" in links["tests/oven/test_loaf.py"].imports
    assert "tests/oven/conftest.py" not in links["tests/oven/test_alone.py"].imports


# --- what a change asks for -------------------------------------------------------------------------------------------


def test_what_is_named_after_the_change_comes_first_and_then_who_is_closest(links: Mapping[str, Links]) -> None:
    choice = choose([f"{KILN}/clay.py"], links, {})
    assert choice.chosen == {
        near.ROOM: ["tests/kiln/test_clay.py", "tests/kiln/test_other.py", "tests/kiln/test_fire.py"],
        near.FAR: ["tests/oven/test_loaf.py", "tests/test_bakery.py"],
        near.WHOLE: ["tests/shop/test_opening.py"],
    }


def test_without_time_the_far_ones_are_left_out_and_it_is_said(links: Mapping[str, Links]) -> None:
    choice = choose([f"{KILN}/clay.py"], links, {"tests/kiln/test_other.py": 60.0}, budget=9.0)
    assert ways(choice) == {
        "tests/kiln/test_clay.py": near.ROOM,
        "tests/kiln/test_fire.py": near.ROOM,
        "tests/oven/test_loaf.py": near.FAR,
        "tests/test_bakery.py": near.FAR,
    }
    assert near.left_out(choice) == [
        "left for CI: 1 file of the same room, 1 file reaching the change only through a whole platform"
    ]


def test_a_changed_test_is_run_however_long_it_takes(links: Mapping[str, Links]) -> None:
    choice = choose(["tests/kiln/test_clay.py"], links, {"tests/kiln/test_clay.py": 1000.0})
    assert choice.chosen == {near.CHANGED: ["tests/kiln/test_clay.py"]}


def test_what_tests_share_asks_for_those_who_share_it(links: Mapping[str, Links]) -> None:
    assert ways(choose(["tests/shop/yard.py"], links, {})).keys() == {"tests/shop/test_opening.py"}
    assert ways(choose(["tests/oven/conftest.py"], links, {})).keys() == {"tests/oven/test_loaf.py"}


def test_the_beginning_of_a_package_stands_for_all_of_it(links: Mapping[str, Links]) -> None:
    assert ways(choose([f"{KILN}/__init__.py"], links, {})) == ways(choose([f"{KILN}/clay.py"], links, {}))


def test_a_file_that_no_source_names_counts_as_those_beside_it(links: Mapping[str, Links]) -> None:
    assert ways(choose([f"{OVEN}/recipe.txt"], links, {})) == ways(choose([f"{OVEN}/bread.py"], links, {}))


def test_what_is_gone_is_felt_by_those_who_still_import_it_and_is_not_run_itself() -> None:
    gone = [f"{KILN}/clay.py", "tests/kiln/test_clay.py"]
    choice = choose(gone, Tree(MADE_UP | dict.fromkeys(gone, "")).links(), {}, gone=gone)
    assert "tests/kiln/test_other.py" in choice.files
    assert "tests/kiln/test_clay.py" not in choice.files


def test_a_change_that_no_test_feels_is_named(links: Mapping[str, Links]) -> None:
    choice = choose(["lab/alone.py"], {**links, "lab/alone.py": Links()}, {})
    assert near.left_out(choice) == ["no test reaches lab/alone.py"]


@pytest.mark.parametrize("path", ["Makefile", "pyproject.toml", "tests/conftest.py", ".ci/run", "somewhere/new.txt"])
def test_when_in_doubt_all(path: str, links: Mapping[str, Links]) -> None:
    assert path in choose([path, f"{KILN}/clay.py"], links, {}).all_because


def test_a_change_is_what_was_done_here_since_the_branch_was_left_or_is_not_yet_known(tmp_path: Path) -> None:
    def git(*words: str) -> None:
        who = ("-c", "user.name=ann", "-c", "user.email=ann@example.org")
        subprocess.run(["git", *who, *words], cwd=tmp_path, check=True, capture_output=True)

    def write(*names: str) -> None:
        for name in names:
            (tmp_path / name).write_text(name)
        git("add", "--all")
        git("commit", "--message", "more")

    git("init", "--initial-branch", "main")
    write("old", "moved")
    git("switch", "--create", "ours")
    write("done")
    git("switch", "main")
    write("theirs")
    git("switch", "ours")
    git("mv", "moved", "to")
    (tmp_path / "new\n名").write_text("untracked")
    assert changed_since("main", tmp_path) == ["done", "moved", "new\n名", "to"]
    assert changed_since("HEAD", tmp_path) == ["moved", "new\n名", "to"]


# --- the real tree ----------------------------------------------------------------------------------------------------


def test_a_change_in_the_ledger_runs_all_of_its_tests(real: Mapping[str, Links]) -> None:
    files = {file for file in real if file.startswith("tests/ledger/test_")}
    choice = choose(["src/gpuyard/ledger/accounts.py"], real, dict.fromkeys(real, 2.0))
    assert files <= set(choice.files)
    assert {*near.ALWAYS, *near.SHORT_WHOLES} <= set(choice.files)


def test_a_change_in_the_console_and_one_in_a_page_run_those_who_look_at_it(real: Mapping[str, Links]) -> None:
    assert "tests/console/test_tour.py" in choose(["web/src/App.tsx"], real, {}).files
    assert "tests/cli/test_tutorial.py" in choose(["docs/tutorials/queue.md"], real, {}).files
    assert "tests/dialects/test_job_corpus.py" in choose(["tests/dialects/corpus/empty.yaml"], real, {}).files


def test_every_test_of_a_room_is_reached_from_some_source(real: Mapping[str, Links]) -> None:
    sources = [path for path in real if path.startswith(near.CODE) and not path.startswith("tests/")]
    reached = {file for found in near.reaches(sources, real).values() for file in found}
    of_rooms = [file for file in real if is_test(file) and file.count("/") > 1 and not file.startswith("tests/runner/")]
    assert [file for file in of_rooms if file not in reached] == []


def test_every_file_that_is_named_is_there() -> None:
    named = {*near.ALWAYS, *near.SHORT_WHOLES, near.WIRING, near.COMMAND, fast.POSTGRESQL, *near.recorded_seconds()}
    assert [path for path in sorted(named) if not (PROJECT / path).is_file()] == []


# --- fast -------------------------------------------------------------------------------------------------------------


def test_fast_is_what_starts_no_program_itself_or_by_what_it_shares(links: Mapping[str, Links]) -> None:
    assert fast.in_process(links) == [
        "tests/kiln/test_clay.py",
        "tests/kiln/test_fire.py",
        "tests/kiln/test_other.py",
        "tests/oven/test_loaf.py",
        "tests/test_bakery.py",
    ]


def test_the_slowest_are_not_fast() -> None:
    seconds = {"tests/a/test_slow.py": 30.0, "tests/a/test_quick.py": 1.0, "tests/a/test_half.py": 15.0}
    assert fast.in_time(seconds, seconds, budget=20.0) == ["tests/a/test_half.py", "tests/a/test_quick.py"]


def test_the_pure_rooms_are_fast_and_whole_platforms_are_not(real: Mapping[str, Links]) -> None:
    files = fast.in_process(real)
    assert {"tests/scheduling/test_plan.py", "tests/store/test_workloads.py", "tests/control/test_moves.py"} <= {*files}
    assert not {*near.SHORT_WHOLES, "tests/engines/test_contract.py", "tests/console/test_tour.py"} & {*files}


def test_what_is_left_is_counted(project: Tree) -> None:
    assert fast.left_out(fast.in_process(project.links()), project).startswith("left to make test: ")
    assert "of 3 test functions in 1 of 2 files" in fast.left_out(["tests/a/test_one.py"], three_tests())


def three_tests() -> Tree:
    return Tree(
        {"tests/a/test_one.py": "def test_a(): ...", "tests/a/test_two.py": "def test_b(): ...\ndef test_c(): ..."}
    )
