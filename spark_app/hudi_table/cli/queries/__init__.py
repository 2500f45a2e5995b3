"""Verbs of `hudictl` that ask: about a table, for its rows, about errors and the program itself.
Each module is named as its verb.

Here belongs a verb's `run`. Its arguments stand in `program.py`; nothing here changes a table.

Begin with `info.py`.
"""
