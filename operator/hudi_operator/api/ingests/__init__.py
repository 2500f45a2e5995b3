"""`ingest` of a HudiTable: a way of rows into the table, and a module for each type of source that
has fields of its own.

Here belong fields and their rules. What a job gets of them is `manifests`'.

Begin with `ingest.py`, then `source.py`.
"""
