"""What a table is: its configuration, and how `hoodie.properties` says it.

Here belongs what is fixed or kept with a table: keys, index, merge mode, buckets and rings. What a
write asks for is in `options`.

Begin with `config.py`, then `properties.py`.
"""
