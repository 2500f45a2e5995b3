"""Log files: their blocks, and the rows, deletes and changes in them.

Here belongs the bytes of a block. Which blocks apply is for `table.rows` to say.

Begin with `blocks.py`, then `rows.py`.
"""
