"""Key generators: from the columns of a batch to its record keys and partition paths, as Hudi
writes them.

Here belongs what makes keys and their text. Where a key lives is for `index` to say.

Begin with `columns.py`; `table_keys.py` does it for a table and its options.
"""
