"""Resizing: a table with a bucket index rewritten into another number of buckets, by one
replacecommit.

`plan` says what it costs and publishes it as a plan that holds the whole table, `execute` carries
it out; the two may be different processes, with an approval between them. The commit names both
numbers (`table.timeline.bucket_count`), so files and number change together.

What a task writes is `write.handles.rebucket`.

Begin with `plan.py`.
"""
