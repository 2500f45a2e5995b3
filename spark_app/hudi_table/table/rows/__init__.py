"""What lies in a slice: the blocks of its logs, merged with its base file column by column; rows
grouped, sorted and spilled.

Here belongs what holds rows as Arrow data, within a memory budget. Which slice is meant is decided
in `view`; bytes are `codec`'s.

Begin with `log_merge.py`, a slice from its log to its rows, then `merge.py`.
"""
