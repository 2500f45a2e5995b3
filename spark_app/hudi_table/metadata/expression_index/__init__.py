"""Indexes of expressions: the partitions of the metadata table that say which values an expression
of one column takes in each file, by bounds or by a bloom filter.

Here belongs what an expression gives for a column, and what a commit or a building tells such an
index. What files a commit has written belongs to `delta`, what a read asks of one to
`read.pruning`.

Begin with `entries.py`.
"""
