"""Ascend cards from the text of npu-smi, as several models and driver versions print it."""

from __future__ import annotations

import os
from pathlib import Path

from gpuyard.devices.ascend import AscendProbe, parse_npu_smi, run_npu_smi
from gpuyard.domain.resources import MIB

NPU_910B = """\
+------------------------------------------------------------------------------------------------+
| npu-smi 23.0.rc3                 Version: 23.0.rc3                                             |
+---------------------------+---------------+----------------------------------------------------+
| NPU   Name                | Health        | Power(W)    Temp(C)           Hugepages-Usage(page)|
| Chip                      | Bus-Id        | AICore(%)   Memory-Usage(MB)  HBM-Usage(MB)        |
+===========================+===============+====================================================+
| 0     910B3               | OK            | 95.6        45                0    / 0             |
| 0                         | 0000:C1:00.0  | 0           0    / 0          3413 / 65536         |
+===========================+===============+====================================================+
| 1     910B3               | OK            | 312.4       61                0    / 0             |
| 0                         | 0000:C2:00.0  | 87          0    / 0          60112/ 65536         |
+===========================+===============+====================================================+
| 2     910B3               | Alarm         | 97.0        44                0    / 0             |
| 0                         | 0000:81:00.0  | 0           0    / 0          3411 / 65536         |
+===========================+===============+====================================================+
+---------------------------+---------------+----------------------------------------------------+
| NPU     Chip              | Process id    | Process name             | Process memory(MB)      |
+===========================+===============+====================================================+
| 1       0                 | 2543110       | python3                  | 56763                   |
+===========================+===============+====================================================+
| No running processes found in NPU 0                                                            |
+===========================+===============+====================================================+
"""

NPU_910A = """\
+------------------------------------------------------------------------------------+
| npu-smi 21.0.4                       Version: 21.0.4                               |
+----------------------+---------------+---------------------------------------------+
| NPU   Name           | Health        | Power(W)   Temp(C)                          |
| Chip                 | Bus-Id        | AICore(%)  Memory-Usage(MB)  HBM-Usage(MB)  |
+======================+===============+=============================================+
| 0     910A           | OK            | 67.8       41                               |
| 0                    | 0000:C1:00.0  | 0          2621 / 15171      2    / 32768   |
+======================+===============+=============================================+
| 7     910A           | Warning       | 70.1       48                               |
| 0                    | 0000:02:00.0  | 12         1101 / 15039      31019/ 32768   |
+======================+===============+=============================================+
"""

NPU_910C = """\
+------------------------------------------------------------------------------------------------+
| npu-smi 25.0.rc1                 Version: 25.0.rc1                                             |
+---------------------------+---------------+----------------------------------------------------+
| NPU   Name                | Health        | Power(W)    Temp(C)           Hugepages-Usage(page)|
| Chip  Phy-ID              | Bus-Id        | AICore(%)   Memory-Usage(MB)  HBM-Usage(MB)        |
+===========================+===============+====================================================+
| 0     Ascend910           | OK            | 160.2       35                0    / 0             |
| 0     0                   | 0000:9D:00.0  | 0           0    / 0          2871 / 65536         |
+------------------------------------------------------------------------------------------------+
| 0     Ascend910           | OK            | -           36                0    / 0             |
| 1     1                   | 0000:9F:00.0  | 3           0    / 0          2890 / 65536         |
+===========================+===============+====================================================+
"""


def test_each_card_has_its_node_model_memory_and_health() -> None:
    cards = AscendProbe(lambda: NPU_910B).look()
    assert [card.index for card in cards] == [0, 1, 2]
    assert cards[0].model == "Ascend 910B3"
    assert cards[0].memory == 65536 * MIB
    assert cards[1].path == "/dev/davinci1"
    assert [card.trouble for card in cards] == ["", "", "its health is Alarm"]
    assert not any(card.simulated for card in cards)


def test_use_is_read_where_it_is_told() -> None:
    readings = AscendProbe(lambda: NPU_910B).read()
    assert [(r.index, r.percent, r.memory) for r in readings][1] == (1, 87.0, 60112 * MIB)


def test_older_cards_and_gaps_in_their_numbers_are_understood() -> None:
    cards = AscendProbe(lambda: NPU_910A).look()
    assert [(card.index, card.model, card.memory, card.trouble) for card in cards] == [
        (0, "Ascend 910A", 32768 * MIB, ""),
        (7, "Ascend 910A", 32768 * MIB, ""),
    ]


def test_cards_with_two_chips_are_counted_by_their_physical_number() -> None:
    assert [chip.index for chip in parse_npu_smi(NPU_910C)] == [0, 1]


def test_what_is_not_understood_is_no_card() -> None:
    assert parse_npu_smi("") == []
    assert parse_npu_smi("dcmi module initialize failed. ret is -8005\n") == []
    assert parse_npu_smi("| 0     910B3               | OK            |\n" * 3) == []


def test_a_card_that_npu_smi_no_longer_names_is_in_trouble_not_gone() -> None:
    now = [0.0]
    answers = [NPU_910A, None]
    probe = AscendProbe(lambda: answers[0], lambda: now[0])
    assert len(probe.look()) == 2
    answers[0] = answers[1]
    now[0] = 60.0
    assert [card.trouble for card in probe.look()] == ["npu-smi no longer names it"] * 2


def test_npu_smi_is_not_asked_for_every_look() -> None:
    now = [0.0]
    asked: list[float] = []
    probe = AscendProbe(lambda: asked.append(now[0]) or NPU_910B, lambda: now[0])  # type: ignore[func-returns-value]
    for _ in range(5):
        probe.look()
    now[0] = 60.0
    probe.look()
    assert asked == [0.0, 60.0]


def test_the_program_is_found_on_the_path_and_its_failure_is_no_answer(tmp_path: Path) -> None:
    program = tmp_path / "npu-smi"
    before = os.environ["PATH"]
    try:
        os.environ["PATH"] = str(tmp_path)
        assert run_npu_smi() is None
        program.write_text(f"#!/bin/sh\n[ $1 = info ] && printf '%s' '{NPU_910B}'\n")
        program.chmod(0o755)
        assert run_npu_smi() == NPU_910B
        program.write_text("#!/bin/sh\nexit 3\n")
        assert run_npu_smi() is None
    finally:
        os.environ["PATH"] = before
