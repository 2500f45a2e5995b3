"""The metadata table: Hudi's own listing and indexes of a table, under `.hoodie/metadata`. See
`docs/explanation/metadata-table.md`.

Here belongs what reads it, merges its entries, derives them from commits and writes them as part of
a commit. It has no chain of its own: a delta counts if its instant completes on the data table's
timeline, and what changes its file groups is a plan of the data table's chain. It stands above
`table`, which knows of it by a port alone; when it is compacted or cleaned is decided in
`services`.

Begin with `port.py`, all that a table asks of it, then `table.py` and `reading.py`; `indexing.py`
builds it.
"""
