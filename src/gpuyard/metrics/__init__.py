"""What running work uses: samples and series, in a database file of their own.

The job database never carries them, and losing the file loses nothing but pictures of the last hours.
"""
