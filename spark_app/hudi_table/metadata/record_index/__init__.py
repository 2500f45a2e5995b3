"""The record index: the partition of the metadata table that says where each record key is.

Here belongs its building, what a commit tells it and how keys are looked up in it. How a write asks
it belongs to `index`.

Begin with `lookup.py`.
"""
