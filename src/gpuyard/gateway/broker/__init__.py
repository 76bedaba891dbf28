"""The broker: gives the gateway streams into running replicas, by replica and user, and holds terminals for it.

    gateway ──broker.sock──> desk ──door folder──> porter, inside the workload
                              └── terminals: shells that outlive the gateway's connections

A small process of its own with the server's rights. It decides nothing about who may enter: the gateway has asked
access. What comes out of a door is in a user's hands and is believed only as far as it can be checked. Standard library
and the tiny parts of engines that stand alone; nothing it imports is large.
"""
