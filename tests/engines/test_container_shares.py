"""One group, some of its members in containers and some not: what one makes in its folder is everybody's."""

from __future__ import annotations

import pytest
from tests.engines.containers import GROUP_ID, UID, ContainerYard
from tests.engines.places import MakeYard, replica

from gpuyard.domain.people import BLOCK
from gpuyard.files.shares import Shares

BOB, CAT = UID + BLOCK, UID + 2 * BLOCK


@pytest.fixture
def shared(container_yard: ContainerYard) -> ContainerYard:
    shares = Shares(container_yard.data / "files" / "share")
    if shares.without_lists():
        pytest.skip("this file system keeps no access lists")
    shares.open_to("vision", GROUP_ID, [UID, BOB])
    return container_yard


def test_members_write_each_others_files_and_someone_else_cannot(shared: ContainerYard) -> None:
    made = "umask 077; cd $YARD_SHARE_DIR; mkdir d; echo ann > d/f; chown 1000:1000 d/f; stat -c %u d/f"
    assert shared.run(made, replica(0))[1] == "1000\n"
    added = "echo bob >> /mnt/share/vision/d/f; cat /mnt/share/vision/d/f; rm /mnt/share/vision/d/f"
    assert shared.run(added, replica(1), owner="bob", uid=BOB)[1] == "ann\nbob\n"
    seen, _ = shared.run("ls /mnt/share/vision", replica(2), owner="cat", uid=CAT)
    assert seen.exit_code != 0


def test_a_process_and_a_container_share_too(shared: ContainerYard, make_yard: MakeYard) -> None:
    processes = make_yard(shared.data)
    shared.run("umask 077; mkdir $YARD_SHARE_DIR/d; echo ann > $YARD_SHARE_DIR/d/f; echo mine > $HOME/f", replica(0))
    request = processes.request(replica(1), "sh", "-c", "cat $HOME/f; echo b >> $YARD_SHARE_DIR/d/f", uid=UID)
    processes.engine.launch(request)
    assert processes.ended(replica(1))[1] == "mine\n"
    _, log = shared.run("cat /mnt/share/vision/d/f", replica(2), owner="bob", uid=BOB)
    assert log == "ann\nb\n"
