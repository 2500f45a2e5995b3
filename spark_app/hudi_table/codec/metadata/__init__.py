"""Records of the metadata table as Arrow columns: their encoding, their keys, what one file gives.

Here belongs the shape of a record. Reading and writing the metadata table belongs to
`hudi_table.metadata`.

Begin with `records.py`.
"""
