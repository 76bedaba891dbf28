"""What is remembered. The only room that speaks SQL.

`database` opens a SQLite file or a PostgreSQL database and gives out read and write transactions; `feed` tells whoever
waits that something changed; the other modules are functions on a connection, one module per kind of thing. Times are
epoch seconds given by the caller.
"""
