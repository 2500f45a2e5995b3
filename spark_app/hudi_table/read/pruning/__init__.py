"""What a filter cannot match: partitions, buckets, files by their column statistics, by the
record index or by an index of an expression, row groups.

Here belongs only what leaves files out; whatever it lets through is still filtered row by row.

Begin with `chain.py`, which has all of it in its order.
"""
