"""Which accelerators this machine has, whether they are well, and who holds them open.

Each kind of card has a probe. A probe never raises because hardware misbehaves: a card in trouble is told as such.
"""

from gpuyard.devices.find import find_probes

__all__ = ["find_probes"]
