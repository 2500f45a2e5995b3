"""Cleaning: older versions of files, and files of replaced groups, deleted once no retained reader
needs them.

`policy` says which slices those are, `stored` which slices there are: both pure. `plan` chooses and
publishes, `execute` deletes; the two may be different processes. `ttl` drops whole partitions that
have outlived their time.

Begin with `policy.py`.
"""
