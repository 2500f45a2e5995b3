"""What is said of a resource: conditions, debts, events, figures and progress, and why a table
stands still.

Here belongs what becomes a status or a line for people. Nothing here starts anything.

Begin with `conditions.py`, then `report.py`.
"""
