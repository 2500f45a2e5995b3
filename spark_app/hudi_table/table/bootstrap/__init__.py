"""Reading a table that was bootstrapped in place: each skeleton is opened together with the file
outside the table that holds its columns.

What opens files belongs here. How rows lie side by side, and the bytes of the index, do not: see
`codec/bootstrap`. Nothing here writes.

Begin with `skeletons.py`.
"""
