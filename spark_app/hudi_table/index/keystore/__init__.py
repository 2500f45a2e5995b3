"""An index in an external store of keys, such as a database.

Here belongs the index, what it needs of a store, and the stores. Filling one anew belongs to
`services`.

Begin with `external.py`; `store.py` says what a store must do.
"""
