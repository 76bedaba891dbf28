"""`vcctl`: the command line of Volcano, and of the tool made from it with `job create` and `job logs`, on gpuyard."""
