"""The picture scheduling reads: what is live, kept current from the store's change feed and audited against the store.

Its size follows the live work, never the history.
"""
