"""Writes: an operation from request to commit.

Here belongs what plans and makes the files of a write: rows taken in, keyed (`keygen`), checked
(`checks`), tagged with their file groups and written (`handles`). Services plan their rewrites in
`services` and have them made by `handles`. What a commit is belongs to `table.commit`, where a key
lives to `index`.

Begin with `operations.py`, then `attempt.py` and `workload.py`.
"""
