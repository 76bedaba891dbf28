"""The `dlc` dialect: params files of PAI's light DLC in, our job file out, and our jobs told in its words.

params.py   key=value lines with their places        keys.py     every key and kind there is
reading.py  params file -> our job file               writing.py  our job -> params file
inside.py   what a replica of such a job is told      telling.py  states, tables and JSON as dlc shows them
ids.py      dlc... and ws... ids                      priorities.py
"""
