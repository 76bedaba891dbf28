"""Volcano's job files and words, and those of the customised `vcctl` whose files begin with `jobname`.

text ──reading.read──> Brought (our job file as data, and what has no meaning here)
our states ──telling──> their words and tables           (needs no YAML: the client uses it)
a replica ──inside.told──> the variables, names and files that their plugins give
our job ──writing.write──> their file
"""
