"""What every commit changed, row by row: Hudi's change data capture queries.

Here belongs the plan of such a query and its rows. The rows in their latest state are
`incremental.py`'s, beside this folder.

Begin with `query.py`.
"""
