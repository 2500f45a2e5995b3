"""What a table's index costs, and another one in its place.

Here belongs what measures an index, judges it and changes it. How an index works belongs to
`hudi_table.index`.

Begin with `advice.py`.
"""
