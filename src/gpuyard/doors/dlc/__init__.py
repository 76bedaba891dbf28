"""The `dlc` program: the commands, files and words of PAI's light DLC, on top of this platform.

main.py  the program     tree.py    its commands and flags     config.py, endpoint.py  who one is, and where it is
creating.py, watching.py  submit     jobs.py, pods.py, workspaces.py  look and stop      saying.py  how it speaks
"""
