"""When something is started: schedules, needs, runs so far, the next attempt and its backoff.

Here belongs judgement of time and attempts. What the status says of it is in `status`.

Begin with `attempts.py`, then `due.py`.
"""
