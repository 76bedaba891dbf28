"""Work that comes, runs and ends in fast motion: months in seconds. Pure: no clock, no store, no engine, no chance.

    given      what comes: arrivals with their true run times, changes of the cluster, habits of the machines
    run        the clock: after each change of the world a cycle is decided, and carried out as control would
    looks      what an engine would report
    moments    when time alone can change what is decided
    results    what became of everyone, and how full the cluster was
    summary    the numbers of it

The decisions are those of `scheduling`, the transitions those of `domain.lifecycle`, the charges those of
`scheduling.accounting`: what is rehearsed is the real thing, only the machines are not.
"""

from gpuyard.rehearsal.given import Arrival, Change, Habits, Rest
from gpuyard.rehearsal.results import Outcome, Result, Timeline
from gpuyard.rehearsal.run import rehearse

__all__ = ["Arrival", "Change", "Habits", "Outcome", "Rest", "Result", "Timeline", "rehearse"]
