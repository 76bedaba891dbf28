"""Real work on this machine with no container engine. One small supervisor per replica owns its life.

    engine ──writes──> request.json ──read by──> supervisor ──forks──> the job
       ^                                              │
       └────────reads status.json and the log <───────┘

Everything that must survive the server is in the replica's folder; everything that runs there is in `supervision`,
which is started by path, uses the standard library only and imports nothing of the rest.
"""
