"""Two real groups on this machine become one while a job of the first is writing into its share."""

from __future__ import annotations

import json
import os

import pytest
from tests.cli.yard import Yard, wait_until

from gpuyard import Client

needs_root = pytest.mark.skipif(os.geteuid() != 0, reason="groups of their own need root")
PASSWORD = "correct horse battery"
WRITES = (
    "umask 007; n=0; until [ -e /data/enough ]; do n=$((n+1)); echo $n > /data/beat && sleep 0.1; done; cat /data/set"
)
SHARE = [{"volume": "share", "at": "/data"}]


@needs_root
def test_running_work_goes_on_in_its_share_and_the_other_group_reads_what_it_writes(machine: Yard) -> None:
    machine.good("group", "create", "left")
    machine.good("group", "create", "right")
    people = {}
    for name, group in (("lara", "left"), ("rob", "right")):
        machine.good("user", "create", name, "--password", PASSWORD, "--group", group)
        people[name] = Client(token=machine.good("token", "create", "t", "--user", name), url=url_of(machine))
    with people["lara"] as lara, people["rob"] as rob:
        first = lara.submit(command="umask 007; echo kept > /data/set", mounts=SHARE).wait(timeout=60)
        assert first.state == "succeeded", first.reason
        going = lara.submit(command=WRITES, mounts=SHARE)
        share = machine.data / "files" / "share"
        wait_until(lambda: (share / "left" / "beat").exists())
        machine.good("group", "merge", "left", "right", "--yes")
        moved = share / "right" / "left"
        assert not (share / "left").exists()
        seen = (moved / "beat").read_text()
        wait_until(lambda: (moved / "beat").read_text() not in ("", seen))
        now = going.refresh()
        assert (now.state, now.group) == ("running", "right")
        reads = rob.submit(command="cat /data/left/beat /data/left/set && touch /data/left/enough", mounts=SHARE)
        assert reads.wait(timeout=60).state == "succeeded", reads.refresh().reason
        assert going.wait(timeout=60).state == "succeeded", going.refresh().reason
        again = lara.rerun(first.id).wait(timeout=60)
        assert again.state == "succeeded", again.reason
        assert (moved / "set").read_text() == "kept\n"


def url_of(machine: Yard) -> str:
    return str(json.loads((machine.data / "server.json").read_text())["url"])
