"""Record keys as text: what a row's key fields become.

Here belongs what tells the key of a row from its own columns, of rows that are written and of
stored ones that have no `_hoodie_record_key`. Partition paths are `write.keygen`'s.

Begin with `record_keys.py`.
"""
