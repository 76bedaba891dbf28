"""A card that somebody still holds is not given out, and the holder is named."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest
from tests.engines.places import IS_ROOT, MakeYard, Yard, replica, wait_for

from gpuyard.devices.probe import CardReading
from gpuyard.devices.simulated import SimulatedProbe
from gpuyard.domain.cluster import Card
from gpuyard.domain.workload import Life
from gpuyard.engines.process.cards import BEING_LOOKED_AT, CardWatch
from gpuyard.engines.process.engine import BOOT_ID
from gpuyard.engines.process.layout import Layout
from gpuyard.engines.process.replicas import Replicas
from gpuyard.engines.process.supervision import record
from gpuyard.engines.seam import HeldCard

HOLD = 'exec 9<>"$YARD_CARD_PATHS"; echo ready; sleep 1000'


def troubles(yard: Yard) -> dict[int, str]:
    return {card.index: card.trouble for card in yard.engine.nodes()[0].cards if card.trouble}


def test_a_card_in_the_hands_of_its_own_replica_is_not_in_trouble(yard_with_cards: Yard) -> None:
    id = yard_with_cards.launch(HOLD, cards=[1])
    yard_with_cards.says(id, "ready")
    assert troubles(yard_with_cards) == {}


def test_a_card_held_by_a_stranger_is_not_given_out_and_the_holder_is_named(yard_with_cards: Yard) -> None:
    path = yard_with_cards.data / "simulated" / "nvidia2"
    program = f"import time; f = open({str(path)!r}); print('ready', flush=True); time.sleep(1000)"
    with subprocess.Popen([sys.executable, "-c", program], stdout=subprocess.PIPE) as holder:
        assert holder.stdout is not None
        holder.stdout.readline()
        (card,) = [card for card in yard_with_cards.engine.nodes()[0].cards if card.trouble]
        assert (card.index, card.holder_pid) == (2, holder.pid)
        assert card.trouble.startswith(f"held by pid {holder.pid} (python")
        holder.kill()
        holder.wait()
    assert troubles(yard_with_cards) == {}


@pytest.mark.skipif(not IS_ROOT, reason="without a room every card is visible")
def test_a_card_held_by_a_replica_it_was_not_given_to_is_in_trouble(yard_with_cards: Yard) -> None:
    """It cannot see the card, but it may be handed the open file."""
    id = yard_with_cards.launch("echo ready; sleep 1000", cards=[0])
    yard_with_cards.says(id, "ready")
    holder = replica(1)
    yard_with_cards.launch(HOLD, holder, cards=[3])
    yard_with_cards.says(holder, "ready")
    folder = yard_with_cards.engine.log_path(holder).parent
    request = folder / "request.json"
    request.write_text(request.read_text().replace('"cards": [3]', '"cards": [2]'))
    assert set(troubles(yard_with_cards)) == {3}


_TAKE = """
import array, os, socket, time
door = socket.socket(socket.AF_UNIX); door.bind(chr(0) + "DOOR"); door.listen(1); print("ready", flush=True)
said, sent, _, _ = door.accept()[0].recvmsg(1, socket.CMSG_SPACE(4))
print("took", os.readlink("/proc/self/fd/%d" % array.array("i", sent[0][2])[0]), flush=True); time.sleep(1000)
"""

_PASS_ON = """
import array, os, socket
card = os.open(os.environ["YARD_CARD_PATHS"], os.O_RDWR)
door = socket.socket(socket.AF_UNIX); door.connect(chr(0) + "DOOR")
door.sendmsg([b"x"], [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", [card]))])
"""


@pytest.mark.skipif(not IS_ROOT, reason="without a room every card is visible")
@pytest.mark.parametrize("has_groups", [True, False])
def test_a_card_passed_on_to_another_job_is_in_trouble_and_that_job_is_named_until_it_ends(
    tmp_path: Path, make_yard: MakeYard, has_groups: bool
) -> None:
    """The file was opened in a room that is gone: its name is lost, it is still the same file."""
    options = {} if has_groups else {"cgroup_root": tmp_path / "none"}
    yard = make_yard(tmp_path / "data", [SimulatedProbe(tmp_path / "data", 4)], **options)
    taker, giver = replica(1), replica(2)
    door = f"gpuyard-test-{os.getpid()}"
    yard.engine.launch(yard.request(taker, "python3", "-c", _TAKE.replace("DOOR", door), owner="bob"))
    yard.says(taker, "ready")
    yard.engine.launch(yard.request(giver, "python3", "-c", _PASS_ON.replace("DOOR", door), cards=[2]))
    assert yard.ended(giver)[0].exit_code == 0
    yard.says(taker, "took")
    pid = yard.status(taker)["job"]["pid"]
    wait_for(lambda: troubles(yard).get(2, "").startswith(f"held by pid {pid} "))
    assert troubles(yard)[2].endswith(f" of {taker.workload} (worker-1)")
    assert set(troubles(yard)) == {2}
    assert yard.held() == {taker: [HeldCard(yard.node, "nvidia", 2, pid, "python3")]}
    yard.engine.stop(taker, None, 0.0)
    yard.ended(taker)
    wait_for(lambda: troubles(yard) == {}, "the card to be free")
    wait_for(lambda: not yard.held())


def test_a_stranger_is_named_as_nobodys_work(yard_with_cards: Yard) -> None:
    path = yard_with_cards.data / "simulated" / "nvidia2"
    program = f"import time; f = open({str(path)!r}); print('ready', flush=True); time.sleep(1000)"
    yard_with_cards.launch("sleep 1000")
    with subprocess.Popen([sys.executable, "-c", program], stdout=subprocess.PIPE) as holder:
        assert holder.stdout is not None
        holder.stdout.readline()
        assert set(troubles(yard_with_cards)) == {2}
        assert yard_with_cards.held() == {}
        holder.kill()
        holder.wait()


def test_a_card_given_back_is_not_given_out_before_a_look_that_began_later_is_finished(tmp_path: Path) -> None:
    """Nobody waits for a look here: the first answer after the end cannot know who kept the card."""
    cards = SimulatedProbe(tmp_path, 2).look()
    layout = Layout(tmp_path)
    layout.prepare()
    watch = CardWatch(Replicas(layout, None, str(BOOT_ID)), patience_seconds=0.0)
    try:
        assert [card.trouble for card in watch.name_holders(cards)] == [BEING_LOOKED_AT] * 2
        wait_for(lambda: all(not card.trouble for card in watch.name_holders(cards)))
        layout.live_mark(replica()).touch()
        watch.note_given(replica(), [cards[1]])
        assert all(not card.trouble for card in watch.name_holders(cards))
        layout.live_mark(replica()).unlink()
        assert [card.trouble for card in watch.name_holders(cards)] == ["", BEING_LOOKED_AT]
        wait_for(lambda: all(not card.trouble for card in watch.name_holders(cards)))
    finally:
        watch.close()


def test_a_replica_of_which_only_the_beginning_is_known_hinders_no_look(tmp_path: Path) -> None:
    """A container that has just been asked for has no process yet that could be named."""
    cards = SimulatedProbe(tmp_path, 1).look()
    layout = Layout(tmp_path)
    layout.prepare()
    layout.replica(replica()).mkdir(parents=True)
    layout.live_mark(replica()).touch()
    record.write(str(layout.replica(replica())), record.REQUEST, {"device": "nvidia", "cards": [0]})
    record.write(str(layout.replica(replica())), record.STATUS, {"life": record.STARTING})
    watch = CardWatch(Replicas(layout, None, str(BOOT_ID)))
    program = f"import time; f = open({cards[0].path!r}); print('ready', flush=True); time.sleep(1000)"
    with subprocess.Popen([sys.executable, "-c", program], stdout=subprocess.PIPE) as holder:
        assert holder.stdout is not None
        holder.stdout.readline()
        try:
            wait_for(lambda: watch.name_holders(cards)[0].holder_pid == holder.pid, "the naming of who holds it")
        finally:
            holder.kill()
            watch.close()


def test_a_double_forked_holder_dies_with_its_job_and_the_card_is_free(yard_with_cards: Yard) -> None:
    script = f"( ( setsid sh -c '{HOLD}' >>note 2>&1 & ) & ); while ! grep -q ready note; do sleep 0.01; done"
    seen, _ = yard_with_cards.run(script, cards=[1])
    assert seen.exit_code == 0
    assert troubles(yard_with_cards) == {}


def test_a_double_forked_holder_dies_though_the_supervisor_was_killed(yard_with_cards: Yard) -> None:
    script = f"( ( setsid sh -c '{HOLD}' & ) & ); sleep 1000"
    id = yard_with_cards.launch(script, cards=[1])
    yard_with_cards.says(id, "ready")
    os.kill(yard_with_cards.supervisor(id), signal.SIGKILL)
    wait_for(lambda: yard_with_cards.look(id).life is Life.ENDED)
    assert troubles(yard_with_cards) == {}


class _NodeCards:
    """Real device nodes that do no harm: the machine's own null and zero, under the names of cards."""

    def look(self) -> Sequence[Card]:
        return [
            Card(0, "nvidia", "Null", path="/dev/gpuyard-test0"),
            Card(1, "nvidia", "Zero", path="/dev/gpuyard-test1"),
        ]

    def read(self) -> Sequence[CardReading]:
        return [CardReading("nvidia", 0, 12.5, 1000), CardReading("nvidia", 1, 99.0, 2000)]

    def close(self) -> None:
        return


@pytest.mark.skipif(not IS_ROOT, reason="only root gives each user a room")
def test_only_the_given_device_nodes_are_there_and_drivers_count_them_from_zero(
    tmp_path: Path, make_yard: MakeYard
) -> None:
    nodes = [Path("/dev/gpuyard-test0"), Path("/dev/gpuyard-test1")]
    for number, node in zip((3, 5), nodes, strict=True):
        os.mknod(node, 0o600 | 0o020000, os.makedev(1, number))
    try:
        yard = make_yard(tmp_path / "data", [_NodeCards()])
        id = yard.launch(
            "ls /dev | grep test; head -c 4 $YARD_CARD_PATHS | wc -c; echo $CUDA_VISIBLE_DEVICES; sleep 1000", cards=[1]
        )
        yard.says(id, "\n4\n0\n")
        assert yard.log(id).split() == ["gpuyard-test1", "4", "0"]
        wait_for(lambda: id in yard.engine.usage([id]))
        (card,) = yard.engine.usage([id])[id].cards
        assert (card.index, card.percent, card.memory) == (1, 99.0, 2000)
    finally:
        for node in nodes:
            node.unlink()
