"""All tests are run in two halves: none is in both or in none, and nothing that goes wrong in one is lost."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from tests import halves
from tests.cli.yard import wait_until
from tests.halves import APART, MACHINE, half_of, verdict

PROJECT = Path(__file__).parents[1]
BOTH = """
import signal, sys
from tests.halves import Half, both
for number in (signal.SIGINT, signal.SIGTERM):
    signal.signal(number, signal.default_int_handler)
sys.exit(both(*(Half(name, [sys.executable, "-c", code]) for name, code in zip(("one", "two"), sys.argv[1:]))))
"""
SLEEPS = """
import pathlib, time
print("begun", flush=True)
pathlib.Path({there!r}).touch()
try: time.sleep(60)
except KeyboardInterrupt: print("torn down")
"""


def run_both(first: str, second: str) -> subprocess.Popen[str]:
    command = [sys.executable, "-c", BOTH, first, second]
    return subprocess.Popen(command, stdout=subprocess.PIPE, text=True, cwd=PROJECT)


def test_what_uses_containers_stays_with_the_machine_and_what_is_new_is_apart() -> None:
    assert half_of(halves.HERE / "engines" / "test_disk.py") == MACHINE
    assert half_of(halves.HERE / "doors" / "test_vcctl_containers.py") == MACHINE
    assert half_of(halves.HERE / "doors" / "test_vcctl.py") == APART
    assert half_of(Path(__file__)) == APART


def test_the_folders_that_are_named_are_there() -> None:
    assert all((halves.HERE / folder).is_dir() for folder in halves.MACHINES_FOLDERS)


def test_pytest_collects_each_file_in_one_half(tmp_path: Path) -> None:
    files = ["tests/test_settings.py", "tests/engines/test_disk.py"]
    env = {key: value for key, value in os.environ.items() if key != "PYTEST_ADDOPTS"}
    found = []
    for half in (MACHINE, APART):
        options = ["--collect-only", "-q", f"--half={half}", *halves.places(tmp_path, half)]
        command = [sys.executable, "-m", "pytest", *options, *files]
        told = subprocess.run(command, cwd=PROJECT, env=env, capture_output=True, text=True, timeout=120).stdout
        found.append({line.partition("::")[0] for line in told.splitlines() if "::" in line})
    assert found == [{"tests/engines/test_disk.py"}, {"tests/test_settings.py"}]


@pytest.mark.parametrize(
    ("codes", "code"), [([0, 0], 0), ([1, 0], 1), ([0, 3], 3), ([5, 0], 0), ([0, 5], 0), ([5, 1], 1), ([5, 5], 5)]
)
def test_both_must_be_good_unless_one_had_nothing_to_do(codes: list[int], code: int) -> None:
    assert verdict(codes) == code


def test_both_are_shown_whole_with_their_last_lines_at_the_end() -> None:
    running = run_both("print('a\\n=== 1 passed ===')", "print('b\\n=== 2 failed ==='); raise SystemExit(1)")
    told, _ = running.communicate(timeout=60)
    assert told.replace("\ntwo: still at it ...\n", "").endswith(
        "a\n=== 1 passed ===\nb\n=== 2 failed ===\n\none: 1 passed\ntwo: 2 failed\n"
    )
    assert running.returncode == 1


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_an_interrupt_ends_both_after_they_have_torn_down(number: int, tmp_path: Path) -> None:
    begun = [tmp_path / "one", tmp_path / "two"]
    running = run_both(*(SLEEPS.format(there=str(file)) for file in begun))
    wait_until(lambda: all(file.exists() for file in begun))
    running.send_signal(number)
    told, _ = running.communicate(timeout=60)
    assert told.count("torn down\n") == 4  # by both, and again as their last lines
    assert running.returncode != 0


@pytest.mark.skipif(not halves.can_be_apart(), reason="namespaces are made by root only")
def test_apart_there_is_a_loopback_and_nobody_else() -> None:
    code = """if True:
        import json, os, socket
        with socket.create_server(("127.0.0.1", 0)) as served, socket.create_connection(served.getsockname()): pass
        networks = [name for _, name in socket.if_nameindex() if name != "lo"]
        processes = [name for name in os.listdir("/proc") if name.isdigit()]
        print(json.dumps([len(processes), [name for name in networks if "tun" not in name and "gre" not in name]]))
    """
    command = halves.in_namespaces([sys.executable, "-c", code])
    done = subprocess.run(command, cwd=PROJECT, capture_output=True, text=True, timeout=60)
    assert json.loads(done.stdout) == [2, []], done.stderr


@pytest.mark.skipif(not halves.can_be_apart(), reason="namespaces are made by root only")
def test_apart_the_code_of_the_tests_is_told_and_who_loses_its_parent_is_taken_in() -> None:
    orphan = "(sleep 0.1; exit 7) & echo $!"
    code = f"""if True:
        import os, subprocess, sys, time
        pid = int(subprocess.run(["sh", "-c", {orphan!r}], stdout=subprocess.PIPE).stdout)
        deadline = time.monotonic() + 20
        while os.path.exists(f"/proc/{{pid}}") and time.monotonic() < deadline: time.sleep(0.05)
        sys.exit(9 if os.path.exists(f"/proc/{{pid}}") else 3)
    """
    done = subprocess.run(halves.in_namespaces([sys.executable, "-c", code]), cwd=PROJECT, timeout=60)
    assert done.returncode == 3
