"""Without root: no cgroups, no rooms, one user. Still nothing that a job forks survives it."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.engines.places import IS_ROOT

SOURCE = Path(__file__).parents[2]
UID = 65_533

PROGRAM = """
import os, signal, sys
from pathlib import Path
from gpuyard.devices.simulated import SimulatedProbe
from gpuyard.domain.errors import EngineError
from gpuyard.domain.reasons import Code
from gpuyard.domain.usage import Progress
from gpuyard.domain.workload import Cause, Life, Mount
from gpuyard.engines.process.supervision import processes, record
from tests.engines.places import Yard, is_alive, replica, wait_for
from tests.engines.porters import PorterPlace, read_all

assert os.geteuid() != 0
data = Path(sys.argv[1])
yard = Yard(data, devices=[SimulatedProbe(data, 2)])

seen, log = yard.run("id -u; pwd; echo $TMPDIR; python3 -c 'print(1)'")
assert seen.exit_code == 0, (seen, log)
assert log.split()[0] == str(os.getuid())
assert log.split()[1] == str(data / "files" / "user" / "ann")
assert yard.status(replica())["cgroup"] is None

child = "sh -c 'echo $$ >> pids; sleep 1000'"
wait = "while [ ! -e pids ] || [ $(wc -l < pids) -lt 2 ]; do sleep 0.01; done; cat pids"
seen, log = yard.run(f"setsid {child} & ( ( nohup {child} >/dev/null 2>&1 & ) & ); {wait}", replica(1))
assert seen.exit_code == 0
pids = [int(word) for word in log.split() if word.isdigit()]
assert len(pids) == 2 and not [pid for pid in pids if is_alive(pid)], log

id = yard.launch("trap '' TERM; ( ( setsid sh -c 'echo ready; sleep 1000' & ) & ); sleep 1000", replica(2))
yard.says(id, "ready")
usage = yard.engine.usage([id])[id]
assert usage.processes >= 3 and usage.memory > 0, usage
yard.engine.stop(id, None, 0.2)
assert yard.ended(id)[0].cause is None
assert not processes.marked(str(id))

hold = 'exec 9<>"$YARD_CARD_PATHS"; ( ( setsid sh -c "echo ready; sleep 1000" & ) & ); sleep 1000'
id = yard.launch(hold, replica(3), cards=[1])
yard.says(id, "ready")
assert not [card for card in yard.engine.nodes()[0].cards if card.trouble]
os.kill(yard.supervisor(id), signal.SIGKILL)
seen, _ = yard.ended(id)
assert seen.cause is Cause.LOST
assert not processes.marked(str(id))
assert not [card for card in yard.engine.nodes()[0].cards if card.trouble]

try:
    yard.launch("true", replica(4), mounts=(Mount("home", "/data"),))
except EngineError as refused:
    assert refused.reason.code is Code.ENGINE_CANNOT
else:
    raise AssertionError("mounts need root")

saves = "sleep 0.1; echo 5 > $YARD_BEACON; echo x > $YARD_CHECKPOINT/model; sleep 1000"
id = yard.launch(saves, replica(6), checkpoint="ck")
model = data / "files" / "user" / "ann" / "ck" / "model"
wait_for(lambda: model.exists() and yard.engine.progress({id: None}).get(id) == Progress(model.stat().st_mtime, 5))
yard.engine.stop(id, None, 0.0)
yard.ended(id)
assert yard.engine.progress({id: None})[id].step == 5

job, env = yard.launch("echo up; sleep 1000", replica(7)), replica(8)
yard.says(job, "up")
record.write(str(yard.engine.log_path(job).parent), record.WANTED, {})
os.kill(yard.supervisor(job), signal.SIGUSR1)
yard.engine.launch(yard.request(env))
for id in (job, env):
    place = PorterPlace(yard.engine.log_path(id).parent)
    wait_for((place.door / "porter.sock").exists)
    answer, ears = place.run("echo $YARD_REPLICA; setsid sleep 1000 > /dev/null 2>&1 &")
    assert read_all(ears).decode().strip() == str(id)
    yard.engine.stop(id, None, 5.0)
    assert yard.ended(id)[0].cause is None
    assert not processes.marked(str(id))
    place.close()

id = yard.launch("sleep 1000", replica(5))
wait_for(lambda: yard.look(id).life is Life.RUNNING)
assert yard.engine.sweep([]) == [id]
yard.ended(id)
yard.engine.forget(replica().workload)
yard.close()
print("all well")
"""


@pytest.fixture
def copy(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """The source where an ordinary user can read it, and a folder of that user's own."""
    place = Path("/var/tmp") / f"gpuyard-unprivileged-{os.getpid()}"
    for name in ("src/gpuyard", "tests/engines"):
        shutil.copytree(SOURCE / name, place / name, ignore=shutil.ignore_patterns("__pycache__"))
    (place / "own").mkdir()
    os.chown(place / "own", UID, UID)
    yield place
    shutil.rmtree(place)


@pytest.mark.skipif(not IS_ROOT or shutil.which("setpriv") is None, reason="needs root to become an ordinary user")
def test_everything_works_as_an_ordinary_user(copy: Path) -> None:
    python = shutil.which("python3", path="/usr/local/bin:/usr/bin:/bin")
    if (
        python is None
        or subprocess.run([python, "-c", "import sys; sys.exit(sys.version_info < (3, 11))"], check=False).returncode
    ):
        pytest.skip("no Python 3.11 that an ordinary user can reach")
    done = subprocess.run(
        [
            "setpriv",
            f"--reuid={UID}",
            f"--regid={UID}",
            "--clear-groups",
            python,
            "-c",
            PROGRAM,
            str(copy / "own" / "data"),
        ],
        env={
            "PATH": "/usr/bin:/bin",
            "PYTHONPATH": f"{copy / 'src'}:{copy}",
            "HOME": str(copy / "own"),
            "PYTHONDONTWRITEBYTECODE": "1",
        },
        cwd=copy / "own",
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout.endswith("all well\n")
