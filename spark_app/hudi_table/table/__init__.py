"""The loaded table: storage port, clock, engine, timeline, file system view, merge, transactions.

What belongs here turns objects under a base path into a consistent table, and an attempt into a
commit. What to write, and how to query, belongs to `write` and `read`.
"""
