"""What things are and the laws they obey.

Frozen data and pure functions. Nothing here reads a clock, a disk, a network or a random number, and nothing here
imports another room. What belongs here is what would still be true if every other room were rewritten.
"""
