"""What is asked for against what is there, before an instant is claimed: options, schema, merge
mode, the state of the table.

Here belongs what refuses, and what decides the values that a write goes by. No file of data is read
or written.

Begin with `request.py`; `create_table.py` does the same for a table that is not there yet.
"""
