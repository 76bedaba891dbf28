"""Who starts where, and why the others wait. Pure: a snapshot goes in, a plan comes out.

    snapshot   what the decision may look at, and what it decides
    books      the same, kept current piece by piece
    line       those who wait, in batches that are alike
    order      who is asked first              share     who used how much of late
    accounting what ended attempts have used, and how long they ran
    quota      limits, guarantees, borrowing
    sieve      which nodes will do at all      rings     chips that are linked
    room       what is left on each node       score     which node is asked first
    fit        which node takes a replica, and whole gangs
    prospects  where one that waits is closest to starting: there it keeps the free rest
    backfill   when one that waits can start at the latest
    preempt    who makes room for whom         rights    who may push out whom
    victims    the search for them             cheapest  the cheapest of several sets that are enough
    explain    the reason of everyone who waits
    why        the proof, and the changes that would start it now
    strands    requests that leave cards useless
    plan       the pass over the queue that ties these together; also `preview`

The same code answers "what happens now" and "what if". It reads no clock and remembers nothing.
"""
