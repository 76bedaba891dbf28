"""What `yard` says of dev environments to those who mistype, come too early, or ask for too much."""

from __future__ import annotations

from tests.cli.yard import Yard


def test_an_unknown_environment_is_not_called_a_job(simulated: Yard) -> None:
    for command in ("show", "stop", "start", "restart", "rm", "open", "ssh"):
        missing = simulated.run("env", command, "nobody")
        assert missing.code == 3, missing
        assert "no dev environment called `nobody`" in missing.err
        assert "yard env ls" in missing.err
    assert "找不到开发环境 `nobody`" in simulated.run("env", "show", "nobody", YARD_LANG="zh").err


def test_one_that_can_never_start_is_not_waited_for(simulated: Yard) -> None:
    made = simulated.run("env", "create", "huge", "--cards", "1000")
    assert made.code == 1, made
    assert "waiting would not help" in made.err
    restarted = simulated.run("env", "restart", "huge", "--cards", "0")
    assert restarted.code == 0, restarted
    simulated.good("env", "rm", "huge", "--yes")


def test_a_stopped_environment_is_stopped_wherever_it_is_spoken_of(simulated: Yard) -> None:
    made = simulated.json("env", "create", "rests")
    simulated.good("env", "stop", "rests")
    simulated.wait_for(str(made["id"]), "paused")
    assert "is stopped" in simulated.good("why", "rests")
    for command in (("ls",), ("show", "rests"), ("events", "rests")):
        told = simulated.good(*command)
        assert "paused" not in told
        assert "stopped" in told
    entered = simulated.run("env", "ssh", "rests")
    assert (entered.code, "yard env start rests" in entered.err) == (1, True)
    simulated.good("env", "rm", "rests", "--yes")


def test_environments_are_told_from_jobs_in_a_list_of_both(simulated: Yard) -> None:
    made = simulated.json("env", "create", "among")
    listed = simulated.good("ls")
    assert "KIND" in listed
    (line,) = [line for line in listed.splitlines() if line.startswith(str(made["id"]))]
    assert line.split()[1:3] == ["among", "env"]
    simulated.good("env", "rm", "among", "--yes")


def test_what_cannot_be_opened_is_said_before_the_server_is_asked(simulated: Yard) -> None:
    simulated.json("env", "create", "opened")
    for what in ("labs", "0", "65536"):
        wrong = simulated.run("env", "open", "opened", what)
        assert wrong.code == 2, wrong
        assert "lab, ide, terminal" in wrong.err
    simulated.good("env", "rm", "opened", "--yes")


def test_each_port_option_says_what_it_is_for(simulated: Yard) -> None:
    assert "port to listen on" in simulated.good("up", "--help")
    assert "through the browser" in simulated.good("env", "create", "--help")
