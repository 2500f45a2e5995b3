"""Queries: lazy scans, projection, filters, partition pruning, time travel, changes. Never writes.

Here belongs what plans a query and streams its batches. Which files count is for `table.view` to
say, what lies in a slice for `table.rows`.

Begin with `scan.py`, then `plan.py` and `files.py`.
"""
