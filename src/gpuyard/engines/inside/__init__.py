"""The porter: the first process of a workload, from inside. It runs the command, reaps, and opens the door to shells.

Standard library only and nothing else of gpuyard: it is started by path, in any image, by the toolbox's Python.
"""
