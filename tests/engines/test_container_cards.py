"""A card's open device that is passed on to a container which was given no card, through a folder that both see."""

from __future__ import annotations

import shlex

from tests.engines.containers import ContainerYard
from tests.engines.places import replica

from gpuyard.images.toolbox.base import AT, python_command

TAKE = """
import array, os, socket, time
os.chdir(os.environ["HOME"])
door = socket.socket(socket.AF_UNIX); door.bind("new"); door.listen(1); os.rename("new", "door")
said, sent, _, _ = door.accept()[0].recvmsg(1, socket.CMSG_SPACE(4))
print("took", array.array("i", sent[0][2])[0], flush=True); time.sleep(1000)
"""
PASS_ON = """
import array, os, socket, time
card = os.open(os.environ["YARD_CARD_PATHS"], os.O_RDWR)
os.chdir(os.environ["HOME"])
while not os.path.exists("door"): time.sleep(0.05)
door = socket.socket(socket.AF_UNIX); door.connect("door")
door.sendmsg([b"x"], [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", [card]))])
"""
PYTHON = " ".join((*python_command(AT), "-I", "-S", "-c"))


def test_a_container_that_was_passed_a_card_is_named_until_it_ends(each_yard: ContainerYard) -> None:
    yard = each_yard
    taker, giver = replica(workload="wtaker0001"), replica(workload="wgiver0001")
    yard.launch(f"{PYTHON} {shlex.quote(TAKE)}", taker)
    yard.launch(f"{PYTHON} {shlex.quote(PASS_ON)}", giver, cards=[1])
    seen, log = yard.ended(giver)
    assert (seen.exit_code, log) == (0, "")
    yard.says(taker, "took")
    yard.wait_for(lambda: list(yard.held()) == [taker], "the finding of who holds the card")
    (card,) = yard.held()[taker]
    assert (card.node, card.device, card.index) == (yard.node, "nvidia", 1)
    (trouble,) = [card.trouble for card in yard.engine.nodes()[0].cards if card.trouble]
    assert trouble.endswith("of wtaker0001 (worker-0)")
    yard.engine.stop(taker, None, 0.0)
    yard.ended(taker)
    yard.wait_for(lambda: not any(card.trouble for card in yard.engine.nodes()[0].cards), "a card that is free")
    assert yard.held() == {}
