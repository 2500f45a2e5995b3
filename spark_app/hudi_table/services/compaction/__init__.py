"""Compaction: log files merged into new base files.

`trigger` says whether it is time, `strategy` which file groups come first: both pure. `schedule`
publishes a plan, `execute` carries it out; the two may be different processes.

What a task writes is `write.handles.compact`.

Begin with `schedule.py`.
"""
