"""All tests at once: `python -m tests.runner [what pytest is told]`, which is what `make test` runs.

__main__     begins a run: a name, what runs that are gone have left, pytest
runs         the name of a run, carried by all it makes; clearing after a run that is gone
apart        a worker's own view of the machine: processes, network, mounts, /tmp, cgroups
worker       runs the files it is given, and sends what became of each test
plugin       hands the files out, and collects; whatever failed is tried once more when the machine is quiet
bundles      what is handed out, and in which order
telling      the tables at the end
"""
