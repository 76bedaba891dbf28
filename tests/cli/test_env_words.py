"""What `yard` says of dev environments to those who mistype, come too early, or ask for too much."""

from __future__ import annotations

from tests.cli.yard import Yard, wait_until


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
    simulated.json("env", "create", "rests")
    simulated.good("env", "stop", "rests")
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


def test_nothing_is_removed_where_nobody_can_be_asked(simulated: Yard) -> None:
    simulated.json("env", "create", "kept")
    refused = simulated.run("env", "rm", "kept", stdin="y\n")
    assert (refused.code, "--yes" in refused.err) == (2, True)
    assert "--yes" in simulated.run("env", "rm", "kept", YARD_LANG="zh").err
    assert simulated.json("env", "show", "kept")["state"] == "running"
    simulated.good("env", "rm", "kept", "--yes")


def test_the_words_of_jobs_are_not_used_for_environments(simulated: Yard) -> None:
    made = simulated.json("env", "create", "spoken")
    assert "no output of its own" in simulated.run("logs", "spoken").err
    paused = simulated.run("pause", "spoken")
    assert ("resume" in paused.err, "spoken is asked to stop" in paused.err) == (False, True)
    simulated.wait_for(str(made["id"]), "paused")
    resumed = simulated.run("resume", "spoken")
    assert ("queue" in resumed.err, "spoken is asked to start" in resumed.err) == (False, True)
    assert "spoken is asked to stop" in simulated.run("stop", "spoken").err
    simulated.good("env", "rm", "spoken", "--yes")


def test_a_list_says_in_short_who_stopped_it(simulated: Yard) -> None:
    simulated.json("env", "create", "listed", "--cards", "1", "--cpu", "1", "--memory", "1G")
    simulated.good("env", "stop", "listed")
    (line,) = [line for line in simulated.good("env", "ls").splitlines() if line.startswith("listed")]
    assert line.endswith("by admin")
    simulated.good("env", "rm", "listed", "--yes")


def test_show_says_how_to_get_in_and_what_stops_it(machine: Yard) -> None:
    made = machine.run("env", "create", "door", "--cpu", "0.2", "--memory", "128M", "--port", "6006", "--idle", "2h")
    assert (made.code, "yard shell door" in made.err) == (0, True)
    wait_until(lambda: machine.json("env", "show", "door")["ssh"] is not None, what=lambda: "the gateway is not open")
    shown = machine.good("env", "show", "door")
    ssh_port = machine.json("env", "show", "door")["ssh"].split()[2]
    for words in (
        f"ssh -p {ssh_port} admin+door@",
        "yard shell door",
        "//p6006-",
        "running since",
        "the machine's own",
    ):
        assert words in shown
    assert ["timer", "off"] in [line.split() for line in shown.splitlines()]
    assert ["idle", "2h"] in [line.split() for line in shown.splitlines()]
    machine.good("env", "rm", "door", "--yes")


def test_what_the_toolbox_lacks_is_refused_by_the_command(machine: Yard) -> None:
    machine.json("env", "create", "bare", "--cpu", "0.2", "--memory", "128M")
    for what in ("lab", "ide"):
        refused = machine.run("env", "open", "bare", what)
        assert (refused.code, refused.out) == (1, "")
        assert "yard toolbox build" in refused.err
    assert "工具箱" in machine.run("env", "open", "bare", "lab", YARD_LANG="zh").err
    machine.good("env", "rm", "bare", "--yes")


def test_a_name_that_is_taken_ends_like_any_other_thing_that_cannot_be_done(simulated: Yard) -> None:
    simulated.json("env", "create", "taken")
    again = simulated.run("env", "create", "taken")
    assert (again.code, "already" in again.err) == (1, True)
    simulated.good("env", "rm", "taken", "--yes")


def test_a_running_one_is_not_changed_by_start_and_a_stopped_one_not_stopped_again(simulated: Yard) -> None:
    simulated.json("env", "create", "steady")
    refused = simulated.run("env", "start", "steady", "--cards", "1")
    assert (refused.code, "yard env restart steady" in refused.err) == (1, True)
    assert simulated.run("env", "start", "steady").code == 0
    simulated.good("env", "stop", "steady")
    again = simulated.run("env", "stop", "steady")
    assert (again.code, "asked to stop" in again.err, "steady is stopped" in again.err) == (0, False, True)
    simulated.good("env", "rm", "steady", "--yes")


def test_one_that_waits_is_not_entered_by_ssh_and_says_why(simulated: Yard) -> None:
    simulated.good("env", "create", "waiting", "--cards", "1000", "--detach")
    refused = simulated.run("env", "ssh", "waiting")
    assert (refused.code, "waiting is queued" in refused.err) == (1, True)
    simulated.good("env", "rm", "waiting", "--yes")


def test_one_that_was_removed_is_called_so(machine: Yard) -> None:
    made = machine.json("env", "create", "gone", "--cpu", "0.2", "--memory", "128M")
    machine.good("env", "rm", "gone", "--yes")
    entered = machine.run("shell", str(made["id"]))
    assert (entered.code, "gone was removed" in entered.err) == (1, True)


def test_the_commands_are_listed_in_the_order_of_a_day(simulated: Yard) -> None:
    told = simulated.good("env", "--help")
    assert told.index("create ") < told.index("show ") < told.index("stop ") < told.index("rm ")
