"""Columns of unstructured data: the nearest vectors of a column of VECTOR, the bytes that a column
of BLOB holds or refers to.

Here belongs what is asked of such a column as a whole. How one is stored stands in
`codec/logical_types`; that rows of other columns are read is `scan.py`'s.

Begin with `nearest.py`."""
