"""The client part runs where the server's dependencies are not installed."""

from __future__ import annotations

import os
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

import gpuyard

PROJECT = Path(__file__).parents[2]
REFUSE = """
import sys
REFUSED = {"fastapi", "starlette", "sqlalchemy", "alembic", "pydantic", "yaml", "uvicorn", "uvloop", "psutil",
           "psycopg", "argon2", "pynvml", "typer"}
class NotInstalled:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in REFUSED:
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)
sys.meta_path.insert(0, NotInstalled())
"""


def run_without_server(code: str, **env: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-c", REFUSE + code],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
        env={**os.environ, "PYTHONPATH": str(PROJECT / "src"), "YARD_LANG": "en", **env},
    )


def test_every_module_of_the_client_loads() -> None:
    modules = [
        ".".join(path.relative_to(PROJECT / "src").with_suffix("").parts)
        for room in ("sdk", "cli", "doors")
        for path in sorted((PROJECT / "src/gpuyard" / room).rglob("*.py"))
    ]
    code = f"import importlib\nfor name in {modules!r}: importlib.import_module(name)\nimport gpuyard; gpuyard.Client"
    done = run_without_server(code)
    assert done.returncode == 0, done.stderr


def test_importing_the_package_loads_neither_the_http_library_nor_the_server() -> None:
    code = "import gpuyard, sys\nprint(sorted(n for n in sys.modules if n.partition('.')[0] in ('httpx2', 'click')))"
    assert run_without_server(code).stdout.strip() == "[]"


@pytest.mark.parametrize("program", ["dlc", "vcctl"])
def test_a_front_door_is_there_at_once(program: str) -> None:
    """Scripts start it by the hundred: what takes long to load is loaded where it is needed, or not at all."""
    slow = ("httpx2", "click", "ssl", "http", "email", "yaml")
    code = (
        f"import gpuyard.doors.{program}.main, gpuyard.doors.asking\n"
        f"print(sorted(name for name in sys.modules if name.partition('.')[0] in {slow!r}))"
    )
    assert run_without_server(code).stdout.strip() == "[]"


def test_a_job_is_created_without_loading_what_its_address_does_not_need(tmp_path: Path) -> None:
    (tmp_path / "job.yaml").write_text("jobname: train\n")
    slow = ("urllib.parse", "ipaddress", "pathlib", "encodings.idna")
    code = (
        "import gpuyard.doors.vcctl.main as vcctl\n"
        f"sys.argv[1:] = ['job', 'create', '-f', {str(tmp_path / 'job.yaml')!r}]\n"
        "try: vcctl.main()\n"
        f"finally: print(sorted(name for name in sys.modules if name in {slow!r}))"
    )
    told = run_without_server(code, YARD_URL="http://127.0.0.1:1", YARD_TOKEN="yard_x").stdout
    assert "cannot be reached" in told
    assert told.endswith("\n[]\n")


@pytest.mark.parametrize("arguments", [["--help"], ["run", "--help"], ["ls"], ["version"], ["doctor"]])
def test_the_command_runs_without_the_server_part(tmp_path: Path, arguments: list[str]) -> None:
    done = run_without_server(
        f"from gpuyard.cli.main import main\nsys.exit(main({arguments!r}))", YARD_DATA=str(tmp_path / "none")
    )
    assert "Traceback" not in done.stderr
    assert done.returncode in (0, 1, 5)


@pytest.mark.parametrize("arguments", [["up"], ["restore", __file__]])
def test_what_needs_the_server_part_says_how_to_get_it(tmp_path: Path, arguments: list[str]) -> None:
    done = run_without_server(
        f"from gpuyard.cli.main import main\nsys.exit(main({arguments!r}))", YARD_DATA=str(tmp_path / "none")
    )
    assert done.returncode == 1
    assert 'pip install ".[server]"' in done.stderr


def test_help_does_not_load_what_only_work_needs() -> None:
    tell = "print('LOADED', [name for name in ('httpx2', 'ssl', 'asyncio') if name in sys.modules])"
    done = run_without_server(f"from gpuyard.cli.main import main\nmain(['--help'])\n{tell}")
    assert "LOADED []" in done.stdout


def test_the_package_lists_its_names_before_they_are_loaded() -> None:
    names = {"Client", "Job", "YardApiError", "NotFound", "NotAllowed", "BadInput", "ServerUnreachable"}
    done = run_without_server(
        f"import gpuyard, gpuyard.sdk\nprint({names!r} <= set(dir(gpuyard)) & set(dir(gpuyard.sdk)))"
    )
    assert done.stdout.strip() == "True", done.stderr


def test_the_version_is_the_one_of_the_project() -> None:
    project = tomllib.loads((PROJECT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    assert gpuyard.__version__ == project["version"]
