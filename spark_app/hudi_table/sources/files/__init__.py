"""A folder of files as a source: what lies there, which of it is in the table, and the files as
Arrow.

Here belongs what is of files alone. The checkpoint itself is in `hudi_table.model.job`.

Begin with `source.py`.
"""
