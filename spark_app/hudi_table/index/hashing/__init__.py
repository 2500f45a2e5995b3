"""Indexes whose hash is all: nothing is looked up, a key's place follows from it and from what the
table stores of its buckets.

Here belong the numbers of buckets and the hash rings as an index uses them, and what a write stores
of them. How rings lie in the store belongs to `table.view`, the hash functions to `codec`.

Begin with `bucket.py`; `consistent.py` is the same on rings, which `ring_write.py` renews.
"""
