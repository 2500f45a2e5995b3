"""One engine for services that rewrite planned slices: compaction, log compaction, clustering,
resize.

Here belongs what is the same of all of them: claim, tasks, commit, and what becomes of a plan that
is void. What a service plans, and into which files, belongs to its own folder.

Begin with `run.py`.
"""
