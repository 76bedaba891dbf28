"""The front door: HTTP in, errors as answers out. One file per noun; what is decided is decided elsewhere.

The api writes wishes into the store and reads what is there. It never calls the loops that make wishes true.
"""
