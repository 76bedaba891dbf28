"""The loops: the only room where a decision meets an effect.

    loop          one pass: follow the store, heed wishes, look at replicas, place the waiting, carry out; its thread
    changes       what one pass changes, written in one guarded transaction
    launching     replicas handed to the engine in the background, results brought back
    sampling      what running replicas use
    housekeeping  nightly backup, old logs, old feed rows
    folders       groups' folders follow who belongs to the group
    numbers       at start: numbers of an older version become blocks, and files follow

Everything is level-triggered: what to do next is read from the state, so a pass may be lost, repeated or cut in half.
"""
