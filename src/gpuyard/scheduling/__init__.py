"""Who starts where, and why the others wait. Pure: a snapshot goes in, a plan comes out.

    snapshot   what the decision may look at
    order      who is asked first
    quota      what groups and people may still use
    room       what is left on each node while a plan is made
    fit        which node takes a replica, and whole gangs
    explain    the reason of everyone who waits
    plan       the pass over the queue that ties these together; also `preview`

The same code answers "what happens now" and "what if". It reads no clock and remembers nothing.
"""
