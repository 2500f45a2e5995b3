"""Compaction: log files merged into new base files.

`trigger` says whether it is time, `strategy` which file groups come first: both pure. Scheduling and execution are still to come.
"""
