"""Rows of another Hudi table: all of them, then those that its commits change, deletes among them
if they are wanted.

Begin with `source.py`.
"""
