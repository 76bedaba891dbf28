"""What runs beside a replica, and what the engine must know about it: records, cgroups, processes.

Standard library only, and nothing of gpuyard is imported: a supervisor must start fast, stay small, and not care
whether the server, its packages or its virtual environment are still there.
"""
