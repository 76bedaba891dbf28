"""`yard env` as a person types it."""

from __future__ import annotations

import json

from tests.cli.yard import Yard


def created(yard: Yard, name: str, *asked: str) -> dict[str, object]:
    return dict(yard.json("env", "create", name, *asked))


def test_an_environment_from_creation_to_removal(simulated: Yard) -> None:
    made = simulated.run("env", "create", "dev_1", "--cards", "2", "--cpu", "4", "--memory", "8G", "--idle", "2h")
    assert made.code == 0, made
    assert "dev_1 runs." in made.err
    listed = simulated.good("env", "ls")
    assert "dev_1" in listed
    assert "running" in listed
    shown = simulated.good("env", "show", "dev_1")
    assert "2 nvidia" in shown
    assert "8G" in shown
    restarted = simulated.run("env", "restart", "dev_1", "--cards", "0")
    assert restarted.code == 0, restarted
    assert simulated.json("env", "show", "dev_1")["cards"] == 0
    assert simulated.run("env", "rm", "dev_1", "--yes").code == 0
    assert all(env["name"] != "dev_1" for env in simulated.json("env", "ls"))


def test_a_stopped_one_says_so_and_starts_with_other_resources(simulated: Yard) -> None:
    made = created(simulated, "again", "--cards", "1")
    assert made["state"] == "running"
    (stopped,) = simulated.json("env", "stop", "again")
    assert (stopped["id"], stopped["state"]) == (made["id"], "paused")
    assert "stopped" in simulated.good("env", "ls")
    assert "yard env start again" in simulated.good("env", "show", "again")
    started = simulated.json("env", "start", "again", "--cards", "3", "--timer", "1h")
    assert (started["state"], started["cards"]) == ("running", 3)
    assert started["stop_at"] is not None
    simulated.good("env", "rm", "again", "--yes")


def test_one_that_has_to_wait_says_why_and_what_would_start_it(simulated: Yard) -> None:
    for name, cards in (("full_1", "4"), ("full_2", "3")):
        created(simulated, name, "--cards", cards)
    waiting = simulated.run("env", "create", "waits", "--cards", "2", "--detach")
    assert waiting.code == 0
    why = simulated.json("why", waiting.out.strip())
    assert why["reason_code"].startswith("waiting.")
    (fewer,) = [remedy for remedy in why["remedies"] if remedy["changes"].get("cards") == "1"]
    assert fewer["command"].startswith("yard env restart waits --cards 1")
    started = simulated.run(*fewer["command"].split()[1:])
    assert started.code == 0, started
    for name in ("full_1", "full_2", "waits"):
        simulated.good("env", "rm", name, "--yes")


def test_timers_by_command(simulated: Yard) -> None:
    created(simulated, "timed")
    assert "timed" in simulated.run("env", "timer", "timed", "2h", "--idle", "30m").err
    assert json.loads(simulated.good("env", "timer", "timed", "off", "-o", "json"))["stop_at"] is None
    nothing = simulated.run("env", "timer", "timed")
    assert (nothing.code, "say when" in nothing.err) == (2, True)
    assert simulated.run("env", "timer", "timed", "soon").code != 0
    simulated.good("env", "rm", "timed", "--yes")


def test_bad_names_and_unknown_ones_are_told_in_both_languages(simulated: Yard) -> None:
    wrong = simulated.run("env", "create", "with-dash")
    assert wrong.code == 2
    assert "27 letters" in wrong.err
    assert "27 个字母" in simulated.run("env", "create", "with-dash", YARD_LANG="zh").err
    missing = simulated.run("env", "show", "nobody")
    assert missing.code != 0
    assert "nobody" in missing.err


def test_one_that_is_being_stopped_can_be_asked_to_start_again(machine: Yard) -> None:
    created(machine, "quick", "--cpu", "0.2", "--memory", "128M")
    machine.good("env", "stop", "quick", "--detach")
    started = machine.json("env", "start", "quick")
    assert started["state"] == "running"
    machine.good("env", "rm", "quick", "--yes")


def test_a_name_is_free_again_once_its_environment_is_removed(machine: Yard) -> None:
    first = created(machine, "anew", "--cpu", "0.2", "--memory", "128M")
    machine.good("env", "rm", "anew", "--yes")
    assert created(machine, "anew", "--cpu", "0.2", "--memory", "128M")["id"] != first["id"]
    machine.good("env", "rm", "anew", "--yes")


def test_a_restart_that_could_never_start_again_stops_nothing(simulated: Yard) -> None:
    made = created(simulated, "stays", "--cards", "1")
    for wish in (("--cards", "1000"), ("--memory", "lots"), ("--timer", "soon"), ("--image", "debian:12")):
        refused = simulated.run("env", "restart", "stays", *wish)
        assert refused.code in (1, 2), refused
        now = simulated.json("env", "show", "stays")
        assert (now["state"], now["attempt"], now["cards"]) == ("running", made["attempt"], 1)
    refused = simulated.run("env", "restart", "stays", "--cards", "1000")
    assert (refused.code, "--force" in refused.err, "stays stays as it is" in refused.err) == (1, True, True)
    forced = simulated.run("env", "restart", "stays", "--cards", "1000", "--force")
    assert (forced.code, "waiting would not help" in forced.err) == (1, True)
    simulated.good("env", "stop", "stays")
    assert simulated.run("env", "start", "stays", "--cards", "999").code == 1
    assert simulated.json("env", "show", "stays")["cards"] == 1000
    assert simulated.good("env", "start", "stays", "--cards", "2", "--detach") == made["id"]
    simulated.good("env", "rm", "stays", "--yes")


def test_restart_need_not_wait_until_it_runs(simulated: Yard) -> None:
    made = created(simulated, "hurry")
    assert simulated.good("env", "restart", "hurry", "--detach") == made["id"]
    simulated.wait_for(str(made["id"]), "running")
    simulated.good("env", "rm", "hurry", "--yes")
