"""How many processes and threads one replica may have. Pure."""

from __future__ import annotations

# An editor, a notebook and a few kernels need hundreds. Libraries start a thread for every core of the machine in every
# loading process of a training: whoever asked for many cores needs thousands. A fork bomb in a small environment should
# stay small.
AT_LEAST, FOR_EACH_CORE = 2048, 256


def most_processes(chosen: int, cpu_milli: int) -> int:
    """What an admin chose; 0: by the cores it asked for."""
    return chosen or AT_LEAST + FOR_EACH_CORE * cpu_milli // 1000
