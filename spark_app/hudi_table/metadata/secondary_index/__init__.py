"""Indexes of secondary keys: the partitions of the metadata table that say which record keys have a
value in a column. Where a record key is, the record index says.

Here belongs the building of one, what a commit tells it and how values are looked up in it. What a
filter does with that belongs to `read.pruning`.

Begin with `pairs.py`.
"""
