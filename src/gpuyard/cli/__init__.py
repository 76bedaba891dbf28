"""The same by hand: the `yard` command.

What belongs here is what a person sees in a terminal: commands, tables, questions, exit codes. What the server can do
is asked through `sdk`; only `up`, `down`, `restore` and `doctor` look at this machine themselves.
"""
