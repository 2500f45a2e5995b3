"""Clustering: small files rewritten into few, their rows in an order that reads can use.

`trigger` says whether it is time, `strategy` which slices go together: both without storage.
`schedule` publishes a plan, `execute` carries it out; the two may be different processes.

What a task writes is `write.handles.cluster`.

Begin with `schedule.py`.
"""
