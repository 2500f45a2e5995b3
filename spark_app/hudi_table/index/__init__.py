"""Where a record key lives: the `Index` protocol and its implementations (bucket; simple and bloom, global or not; record index; custom).

Here belongs what tags a key with its file group, and what that needs of files, logs and stores. Which index a table has is said by its
properties (`model`); what is done with the answer belongs to `write`.

Begin with `base.py`, the protocol, then `lookup.py`, which simple and bloom share.
"""
