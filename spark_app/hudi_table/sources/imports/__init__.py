"""Rows that lie in a table or folder of another form, as of one moment: a folder of Parquet, a
Delta table, an Iceberg table.

Each form is a module that makes a `Snapshot` (`base.py`): its columns, how it is divided, and its
rows, all of one version. Nothing here knows the table that they come into.

Begin with `base.py`.
"""
