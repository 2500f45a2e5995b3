"""Filters: text, tuples or an Arrow expression, bound to a schema.

Here belongs what a filter means. Which files it leaves out is `pruning`'s.

Begin with `predicates.py`.
"""
