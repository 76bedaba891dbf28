"""SSH into running work: `ssh user+environment@host`, by platform password or public key.

The protocol is spoken here, by asyncssh; everything that runs, runs inside the workload, through the broker. The door
is opened by `door.start_ssh`.
"""
