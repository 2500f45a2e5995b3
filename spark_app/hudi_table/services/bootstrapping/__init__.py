"""Bootstrapping: a folder of Parquet becomes a Hudi table in place. Of each file a skeleton with
the meta columns is written, and no row is copied, but in the partitions that are to be.

What makes such a table belongs here; what reads one does not: see `table/bootstrap`.

Begin with `run.py`.
"""
