"""What people keep on the server: working folders shipped with a job, and later roots, transfer and usage.

Every name that comes from outside is checked before it becomes part of a path.
"""
