"""Key generators: from the columns of a batch to its record keys and partition paths, as Hudi
writes them.

Here belongs what makes keys and paths of rows that come in. The text of a key is made in
`table.keys`, and where a key lives is for `index` to say.

Begin with `columns.py`; `table_keys.py` does it for a table and its options.
"""
