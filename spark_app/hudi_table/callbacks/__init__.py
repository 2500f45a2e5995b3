"""Telling others of commits: which completed after a position, as CloudEvents, signed, and posted
to whom that is allowed.

Here belongs what reads a timeline for the sake of somebody outside: no rows, and nothing is written
to the table. Who keeps the position, and when it is tried again, is the caller's affair: `hudictl
events` and `wait` print it, the operator keeps it in a status.

Begin with `commits.py`.
"""
