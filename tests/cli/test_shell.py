"""`yard shell` in a real terminal: through the gateway and the broker into a running replica, and back."""

from __future__ import annotations

import contextlib
import fcntl
import struct
import termios
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
from tests.api import yard as apis
from tests.cli.terminal import Terminal
from tests.cli.yard import Yard
from tests.gateway import house as gateways
from tests.gateway.brokers import BrokerPlace

from gpuyard.domain.workload import Workload
from gpuyard.gateway.config import GatewayNote


@dataclass
class Place:
    """A server, a gateway and a broker on one data folder, and Ann's running job."""

    data: Path
    yard: Yard
    api: apis.Yard
    house: gateways.House
    broker: BrokerPlace
    job: Workload


@pytest.fixture
def place(tmp_path: Path) -> Iterator[Place]:
    data = tmp_path / "data"
    broker = BrokerPlace(data)
    with contextlib.ExitStack() as ends:
        ends.callback(broker.close)
        api = ends.enter_context(apis.running(data, data=data))
        house = ends.enter_context(gateways.running(data, broker.client))
        _say_where(data, house.port)
        with api.person("ann"):
            token = api.token_of("ann", "write")
        job = house.workload("ann")
        assert job.attempt is not None
        broker.replica(str(job.attempt.replicas[0].id))
        (tmp_path / "home").mkdir()
        yard = Yard(tmp_path / "home", data, {"YARD_URL": api.url, "YARD_TOKEN": token})
        yield Place(data, yard, api, house, broker, job)


def _say_where(data: Path, port: int) -> None:
    GatewayNote(f"http://localhost:{port}", port, None, 1, 1.0, "x").write(data)


def test_a_shell_is_typed_into_and_its_exit_code_is_the_commands(place: Place) -> None:
    terminal = Terminal(place.yard, "shell", place.job.id)
    terminal.type("echo sum $((40 + 2))\n")
    terminal.read_until("sum 42")
    terminal.type("sh -c 'echo asleep $((1 + 1)); exec sleep 600'\n")
    terminal.read_until("asleep 2")
    terminal.type("\x03")  # goes inside, and ends nothing here
    terminal.read_until("^C")
    terminal.type("\nexit 9\n")
    assert terminal.exit_code() == 9


def test_a_command_runs_without_a_terminal_too(place: Place) -> None:
    done = place.yard.run("shell", place.job.id, "--", "sh", "-c", "echo out; exit 4")
    assert (done.code, done.out.strip()) == (4, "out")
    done = place.yard.run("shell", place.job.id, stdin="echo piped $((1 + 1))\nexit 3\n")
    assert done.code == 3
    assert "piped 2" in done.out


def test_the_window_has_its_size_inside_and_follows_it(place: Place) -> None:
    terminal = Terminal(place.yard, "shell", place.job.id)
    terminal.type("echo begun $((1 + 1))\n")
    terminal.read_until("begun 2")
    fcntl.ioctl(terminal._fd, termios.TIOCSWINSZ, struct.pack("HHHH", 51, 133, 0, 0))
    terminal.type("while [ \"$(stty size)\" != '51 133' ]; do sleep 0.05; done; echo resized $((1 + 1))\n")
    terminal.read_until("resized 2")
    terminal.type("exit\n")
    assert terminal.exit_code() == 0


def test_a_lost_gateway_is_waited_for_and_the_shell_is_the_same(place: Place) -> None:
    terminal = Terminal(place.yard, "shell", place.job.id)
    terminal.type("kept=$((6 * 7)); echo begun $kept\n")
    terminal.read_until("begun 42")
    for there in list(place.house.web._connections):
        place.house.loop.call_soon_threadsafe(there.transport.abort)
    terminal.read_until("connecting again")
    terminal.read_until("\x1b[2J")  # what was shown comes again
    terminal.type("echo it is still $kept\n")
    terminal.read_until("it is still 42")
    terminal.type("exit\n")
    assert terminal.exit_code() == 0


def test_of_a_command_whose_connection_was_lost_for_good_nothing_is_claimed(place: Place) -> None:
    command = Terminal(place.yard, "shell", place.job.id, "--", "sh", "-c", "echo begun; sleep 60")
    command.read_until("begun")
    place.broker.process.kill()
    place.broker.process.wait()
    (place.data / "run" / "broker.sock").unlink()
    place.broker.start()
    command.read_until("whether the command ran to its end is not known")
    assert command.exit_code() == 255


def test_who_may_not_is_told(place: Place) -> None:
    with place.api.person("ben"):
        stranger = place.yard.as_user(place.api.token_of("ben", "write"))
    done = stranger.run("shell", place.job.id, "--", "id")
    assert done.code != 0
    assert place.job.id in done.err


def test_what_does_not_run_is_told(place: Place) -> None:
    place.house.stop(place.job)
    done = place.yard.run("shell", place.job.id, "--", "id", YARD_RETRY_SECONDS="1")
    assert done.code != 0
    assert "is stopped" in done.err


def test_without_a_gateway_it_is_said(place: Place) -> None:
    (place.data / "gateway.json").unlink()
    done = place.yard.run("shell", place.job.id, "--", "id")
    assert done.code != 0
    assert "gateway" in done.err
