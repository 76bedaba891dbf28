"""Where replicas really run. Every engine obeys the contract in `seam`; one test suite checks them all.

An engine never decides what should run and never touches the store. It is told by control, and asked by control.
"""
